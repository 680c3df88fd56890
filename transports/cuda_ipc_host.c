/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc_host.c - slots in host memory for ranks whose GPUs do not reach each other, on
 * hosts where other pairs do.
 *
 * All devices can access memory that their processes have registered.  A message between
 * two such ranks goes down one PCIe link and up the other, by streams or kernels as
 * usual, without the CPU.  The slots are in one segment.  Each such pair has a part for
 * each direction, laid out like an inbox and as long:
 *
 *   token | pair 0: lower to higher rank, higher to lower | pair 1: ...
 *
 * All ranks find the same pairs, from the reachability that each has published.
 */
#include "lib/trace/log.h"
#include "transports/cuda_ipc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEGIN ((size_t)4096)

/* What a rank says of another one. */
enum { WAY_NONE, WAY_GPU, WAY_HOST };

/* And of the segment. */
struct said {
    struct coll__segment_offer file;
    int32_t status;
};

struct meeting {
    struct cuda_ipc *tp;
    const struct coll__tp_env *env;
    unsigned char *rows; /* [size * size] */
    struct said *all, mine;
};

/* ---- which pairs ------------------------------------------------------------- */

static int are(const struct meeting *m, int a, int b, int way)
{
    size_t n = (size_t)m->env->size;

    return m->rows[(size_t)a * n + (size_t)b] == way &&
           m->rows[(size_t)b * n + (size_t)a] == way;
}

/* Count the pairs before (a, b) that use this way. */
static size_t count(const struct meeting *m, int way, int until_a, int until_b)
{
    size_t n = 0;

    for (int a = 0; a < m->env->size; a++)
        for (int b = a + 1; b < m->env->size; b++) {
            if (a == until_a && b == until_b)
                return n;
            n += are(m, a, b, way);
        }
    return n;
}

static size_t n_pairs(const struct meeting *m, int way)
{
    return count(m, way, -1, -1);
}

/* Are there pairs of both kinds?  If no two GPUs reach each other, host slots gain
 * nothing. */
static int is_mixed(const struct meeting *m)
{
    return n_pairs(m, WAY_HOST) && n_pairs(m, WAY_GPU);
}

/* ---- the segment --------------------------------------------------------------- */

static size_t way_len(const struct cuda_ipc *tp)
{
    return cuda_ipc_inbox_len(tp) / (size_t)(tp->local_size - 1);
}

static size_t segment_len(const struct meeting *m)
{
    return round_up(BEGIN + 2 * n_pairs(m, WAY_HOST) * way_len(m->tp), BEGIN);
}

/* The way from rank a to b. */
static struct cuda_ipc_way way_of(const struct meeting *m, int a, int b)
{
    const struct cuda_ipc *tp = m->tp;
    size_t pair = count(m, WAY_HOST, a < b ? a : b, a < b ? b : a);
    size_t n_slots = (size_t)tp->base.n_slots;
    unsigned char *at =
        tp->host_seen + BEGIN + (2 * pair + (a > b)) * way_len(tp);
    unsigned char *words = at + 2 * n_slots * tp->base.slot;

    return (struct cuda_ipc_way){.slots = at,
                                 .words = words,
                                 .kernel_slots =
                                     words + n_slots * 2 * CUDA_IPC_WORD};
}

/* The lowest rank makes it. */
static void offer(struct meeting *m)
{
    struct coll__segment_offer *file = &m->mine.file;
    int err;

    file->fd = -1;
    if (m->tp->local_rank)
        return;
    err = coll__segment_offer(file);
    if (!err && coll__set_file_len(file->fd, segment_len(m)))
        err = errno;
    if (err)
        log_info("cuda", "no memory that ranks and GPUs share: %s",
                 strerror(err));
    m->mine.status = err ? COLL_ERR_SYSTEM : COLL_OK;
}

static int take(struct meeting *m)
{
    struct cuda_ipc *tp = m->tp;
    int leader = tp->peers[0].rank, was, status;

    if (!tp->seen || m->all[leader].status)
        return COLL_ERR_SYSTEM;
    tp->host = coll__segment_map(m->env->peers[leader].pid,
                                 &m->all[leader].file, segment_len(m));
    if (!tp->host)
        return COLL_ERR_SYSTEM;
    tp->host_len = segment_len(m);
    status = coll__cuda_go_in(&tp->home, &was);
    if (status)
        return status;
    status = cuda_ipc__register(tp->host, tp->host_len, &tp->host_seen);
    coll__cuda_go_out(was);
    return status;
}

/* Not before all have it. */
static void adopt(struct meeting *m)
{
    struct cuda_ipc *tp = m->tp;
    int me = m->env->rank;

    for (int r = 0; r < m->env->size; r++)
        if (m->all[r].status)
            return;
    for (int r = 0; r < m->env->size; r++) {
        struct cuda_ipc_peer *peer = &tp->peers[tp->local_of[r]];

        if (!are(m, me, r, WAY_HOST))
            continue;
        peer->to = way_of(m, me, r);
        peer->from = way_of(m, r, me);
        peer->reached = 1;
        tp->base.by_host[r] = 1;
        log_info("cuda", "rank %d is reached through host memory: %s", r,
                 peer->why);
    }
}

/* ---- the collective call -------------------------------------------------------- */

static int gather(const struct meeting *m, const void *in, size_t len,
                  void *out)
{
    return m->env->allgather(m->env->arg, in, len, out);
}

static int share(struct meeting *m)
{
    int rc;

    offer(m);
    rc = gather(m, &m->mine, sizeof(m->mine), m->all);
    if (rc == COLL_OK)
        m->mine.status = take(m);
    if (rc == COLL_OK)
        rc = gather(m, &m->mine, sizeof(m->mine), m->all);
    if (rc == COLL_OK)
        adopt(m);
    if (m->mine.file.fd >= 0)
        close(m->mine.file.fd);
    return rc;
}

/* This rank's reachability of each other rank. */
static void say(const struct meeting *m, int may_share, unsigned char *row)
{
    const struct cuda_ipc *tp = m->tp;

    for (int r = 0; r < m->env->size; r++) {
        int local = tp->local_of[r];

        if (r == m->env->rank)
            row[r] = WAY_NONE;
        else if (tp->peers[local].reached)
            row[r] = WAY_GPU;
        else
            row[r] = may_share ? WAY_HOST : WAY_NONE;
    }
}

int cuda_ipc__share_host(struct cuda_ipc *tp, const struct coll__tp_env *env,
                         int may_share)
{
    size_t n = (size_t)env->size;
    struct meeting m = {.tp = tp,
                        .env = env,
                        .rows = malloc(n * n),
                        .all = calloc(n, sizeof(*m.all))};
    unsigned char *row = malloc(n);
    int rc = m.rows && m.all && row ? COLL_OK : COLL_ERR_NOMEM;

    if (rc == COLL_OK) {
        say(&m, may_share, row);
        rc = gather(&m, row, n, m.rows);
    }
    if (rc == COLL_OK && is_mixed(&m))
        rc = share(&m);
    free(m.rows);
    free(m.all);
    free(row);
    return rc;
}
