/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.c - one rank of a job between guests, by coll_comm_create_env().
 *
 *   ranks random N   N collectives of random shapes, every byte looked at
 *   ranks large N    N allreduces of 1 MiB in the same buffers, checked, which are
 *                    to be registered with the device once
 *   ranks die        the last rank kills itself amid allreduces; the others are to
 *                    be told who did
 *   ranks vanish     the last rank's host loses its network amid them; the same
 *
 * Each prints on how many TCP ports its process listens, once ranks are joined:
 * one more than libcoll's own listener would be UCX's.
 */
#include "include/coll/coll.h"
#include "lib/util/util.h"
#include "tests/support/work.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS 1024
#define LARGE (1 << 18) /* floats */
#define BEFORE_DEATH 20

static int port_of(int fd)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof(at), int_len = sizeof(int);
    int is_listening = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &int_len) ||
        !is_listening || getsockname(fd, (struct sockaddr *)&at, &len))
        return 0;
    if (at.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&at)->sin_port);
    return at.ss_family == AF_INET6
               ? ntohs(((struct sockaddr_in6 *)&at)->sin6_port)
               : 0;
}

/* What the device holds in memory: queues above all. */
static long pinned_kib(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;

    while (status && kib < 0 && fgets(line, sizeof(line), status))
        sscanf(line, "VmPin: %ld", &kib);
    if (status)
        fclose(status);
    return kib;
}

static void print_state(int rank)
{
    int n = 0;

    for (int fd = 0; fd < FDS; fd++)
        n += port_of(fd) != 0;
    printf("rank %d listens on %d ports, %ld KiB are pinned\n", rank, n,
           pinned_kib());
    fflush(stdout);
}

static int random_run(struct world_rank *me, struct coll_comm *comm, int n)
{
    uint64_t state = 4711, own = 1000u * (unsigned)me->rank;
    struct oracle_handles handles;

    WORLD_CHECK(me, !oracle_handles_init(&handles, me->rank));
    for (int i = 0; i < n; i++) {
        struct oracle_op op = oracle_draw(&state, me->size);
        struct work w;

        work_init(&w, &op, me->rank, &handles, oracle_random(&own, 2) == 0);
        WORLD_CHECK(me, work_call(&w, comm) == COLL_OK);
        if (work_check(&w, me))
            return 1;
        work_fini(&w);
    }
    WORLD_CHECK(me, !oracle_handles_fini(&handles));
    return 0;
}

static int sum(struct coll_comm *comm, float *in, float *out, size_t n)
{
    return coll_allreduce(in, out, n, COLL_F32, COLL_SUM, comm, NULL);
}

/* The memory regions that are registered with the devices of this machine. */
static int n_regions(void)
{
    FILE *out = popen("rdma resource show", "r");
    char line[256], *at;
    int n = 0;

    while (out && fgets(line, sizeof(line), out))
        if ((at = strstr(line, " mr ")))
            n += atoi(at + 4);
    return out && !pclose(out) ? n : -1;
}

static int large_round(struct world_rank *me, struct coll_comm *comm, int i,
                       float *in, float *out)
{
    for (size_t k = 0; k < LARGE; k++)
        in[k] = (float)((size_t)me->rank + k % 1000 + (size_t)i);
    WORLD_CHECK(me, sum(comm, in, out, LARGE) == COLL_OK);
    for (size_t k = 0; k < LARGE; k++) {
        size_t all = (size_t)me->size * (k % 1000 + (size_t)i);

        all += (size_t)me->size * (size_t)(me->size - 1) / 2;
        WORLD_CHECK(me, out[k] >= (float)all && out[k] <= (float)all);
    }
    return 0;
}

/* What is registered after some rounds stays so; that there is more than before
 * shows that the device reads and writes the buffers themselves. */
static int large_run(struct world_rank *me, struct coll_comm *comm, int n)
{
    float *in = malloc(LARGE * sizeof(*in)), *out = malloc(LARGE * sizeof(*in));
    int before = n_regions(), warm = 0, after;

    WORLD_CHECK(me, in && out);
    for (int i = 0; i < n; i++) {
        if (large_round(me, comm, i, in, out))
            return 1;
        if (i == n / 2)
            warm = n_regions();
    }
    after = n_regions();
    printf("memory regions: %d before, %d amid, %d after\n", before, warm,
           after);
    WORLD_CHECK(me, before < warm && warm == after);
    free(in);
    free(out);
    return 0;
}

/* The status that the others get is that of a dead peer; what they say of it is
 * for the caller to look at. */
static int die_run(struct world_rank *me, struct coll_comm *comm,
                   int is_vanishing)
{
    int rc = COLL_OK, is_victim = me->rank == me->size - 1;
    float in[64] = {1}, out[64];
    double began = 0;

    for (int i = 0; rc == COLL_OK; i++) {
        if (i == BEFORE_DEATH && is_victim) {
            if (!is_vanishing)
                kill(getpid(), SIGKILL);
            WORLD_CHECK(me, !system("ip link set eth0 down"));
        }
        began = coll__now();
        rc = sum(comm, in, out, 64);
    }
    printf("told after %.1f s: %s\n", coll__now() - began, coll_last_error());
    WORLD_CHECK(me, rc == COLL_ERR_PEER);
    return 0;
}

static int run(struct world_rank *me, struct coll_comm *comm, const char *what,
               int n)
{
    float one = 1, all;

    WORLD_CHECK(me, sum(comm, &one, &all, 1) == COLL_OK);
    print_state(me->rank);
    if (!strcmp(what, "random"))
        return random_run(me, comm, n);
    if (!strcmp(what, "large"))
        return large_run(me, comm, n);
    return die_run(me, comm, !strcmp(what, "vanish"));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    struct world_rank me = {0};
    struct coll_comm *comm;
    int failed;

    if (!*what || !strstr("random large die vanish", what)) {
        fprintf(stderr, "Usage: ranks random|large|die|vanish [N]\n");
        return 2;
    }
    if (coll_comm_create_env(&comm, NULL) != COLL_OK)
        return 1;
    me.rank = coll_comm_rank(comm);
    me.size = coll_comm_size(comm);
    failed = run(&me, comm, what, argc > 2 ? atoi(argv[2]) : 10);
    if (coll_comm_destroy(comm) != COLL_OK && argc > 2)
        failed = 1;
    return failed;
}
