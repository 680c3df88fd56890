/* SPDX-License-Identifier: BSD-3-Clause */
/* spare.c - a core for a thread that serves a rank in the background.
 *
 * If ranks are bound, some cores of their host may be free, or none.  If ranks are not
 * bound, they share all cores: the kernel finds idle ones by itself, and the question is
 * only whether there are enough.  A free core also needs time to run on it: the quota of
 * a control group is shared by its ranks and the thread of each.
 */
#include "lib/topo/machine.h"

#include <stdlib.h>

int coll__cores_of(pid_t pid, struct coll__cores *cores)
{
    for (int n = 1024; n <= 1 << 20; n *= 2) { /* cpu_set_t may be too small */
        size_t len = CPU_ALLOC_SIZE(n);
        cpu_set_t *set = CPU_ALLOC(n);

        if (set && !sched_getaffinity(pid, len, set)) {
            *cores = (struct coll__cores){set, len};
            return 0;
        }
        CPU_FREE(set);
    }
    return -1;
}

/* List this host's ranks whose binding can be read, this rank first; returns how many. */
static int ask_ranks(const struct coll__peer *peers, int size, int rank,
                     struct coll__cores *ranks)
{
    const struct coll__peer *me = &peers[rank];
    int n = 0;

    if (!coll__cores_of(me->pid, &ranks[0]))
        n++;
    for (int r = 0; n && r < size; r++)
        if (peers[r].host == me->host && peers[r].pid_ns == me->pid_ns &&
            peers[r].pid != me->pid && !coll__cores_of(peers[r].pid, &ranks[n]))
            n++;
    return n;
}

/* Find processors that no rank is bound to, the best ones if there is a choice.  Returns
 * how many are free in all. */
static int find_spare(const struct coll__cores *ranks, int n,
                      struct coll__seat *seat)
{
    struct coll__cores spare = {CPU_ALLOC(ranks->len * 8), ranks->len};
    int n_spare = spare.set ? coll__hwloc_spare(ranks, n, 0, &spare) : 0;

    if (n_spare) {
        seat->spare = spare.set;
        seat->len = spare.len;
    } else {
        CPU_FREE(spare.set);
    }
    return n_spare;
}

/* Does the quota of this rank's control group suffice for one more thread for each of its
 * ranks? */
static int has_time(const struct coll__peer *peers, int size, int rank)
{
    const struct coll__peer *me = &peers[rank];
    int n = 0;

    for (int r = 0; r < size; r++)
        n += peers[r].host == me->host &&
             peers[r].quota_group == me->quota_group;
    return me->quota <= 0 || me->quota >= 2 * n;
}

void coll__topo_seat(const struct coll__peer *peers, int size, int rank,
                     struct coll__seat *seat)
{
    const struct coll__peer *me = &peers[rank];
    struct coll__cores *ranks = calloc((size_t)me->local_size, sizeof(*ranks));
    int n = 0, n_spare = 0;

    *seat = (struct coll__seat){0};
    if (ranks)
        n = ask_ranks(peers, size, rank, ranks);
    if (n)
        n_spare = find_spare(ranks, n, seat);
    seat->has_core =
        (n_spare >= me->local_size || me->local_cores >= 2 * me->n_sharers) &&
        has_time(peers, size, rank);
    for (int i = 0; i < n; i++)
        CPU_FREE(ranks[i].set);
    free(ranks);
}
