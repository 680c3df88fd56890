/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc_open.c - make inboxes and a segment, map those of the others, and test them.
 *
 * A rank that lacks something publishes that and takes part in all steps: the others must
 * not wait for it, and they learn why it is out of reach.  Mappings are tested in both
 * directions: each rank writes a pattern into the others' inboxes by a stream, and reads
 * the others' patterns in its own inbox.
 */
#include "transports/cuda_ipc.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/limit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_SLOTS 64
#define LEAST_SLOT ((size_t)64)
#define MOST_INBOX                                                             \
    ((size_t)64 << 20) /* bytes, unless a parameter sets another size */
#define MOST_SLOT ((size_t)16 << 20)

/* First exchange: what each rank has. */
struct offer {
    struct coll__segment_offer file;
    int32_t status, n_slots; /* status of the rank; `why` has the reason */
    uint64_t slot;
    uint64_t ctx; /* for ranks of its process */
    unsigned char uuid[16];
    struct cuda_ipc_wish wish;
    char why[CUDA_IPC_WHY];
};

/* then where it is. */
struct inbox {
    int32_t status, can_export;
    uint64_t at; /* for ranks of its process */
    struct coll__cuda_memory memory;
    char why[CUDA_IPC_WHY];
};

struct opening {
    struct cuda_ipc *tp;
    const struct coll__tp_env *env;
    struct offer *offers, offer; /* [size], this rank's */
    struct inbox *inboxes, inbox;
    void *stream; /* for trying */
};

static int is_local(const struct opening *o, int rank)
{
    return o->env->peers[rank].host == o->env->peers[o->env->rank].host;
}

static int is_of_this_process(const struct opening *o, int rank)
{
    const struct coll__peer *peer = &o->env->peers[rank];

    return peer->pid == (int)getpid() &&
           peer->pid_ns == o->env->peers[o->env->rank].pid_ns;
}

/* ---- what this rank has -------------------------------------------------- */

/* All ranks of a host use the lowest rank's sizes. */
static void choose_sizes(struct cuda_ipc *tp, struct offer *offer)
{
    size_t n = coll__limit(LIMIT_CUDA_SLOTS);
    size_t slot = coll__limit(LIMIT_CUDA_SLOT);
    size_t n_peers = (size_t)max_int(1, tp->local_size - 1);

    n = min_size(max_size(n, 1), MOST_SLOTS);
    if (!slot)
        slot = min_size(MOST_INBOX / (2 * n) / n_peers, MOST_SLOT);
    offer->n_slots = (int)n;
    offer->slot = max_size(slot / LEAST_SLOT, 1) * LEAST_SLOT;
}

/* Keep the sentence that was just logged. */
static int lacks(char why[CUDA_IPC_WHY], int status)
{
    if (status)
        snprintf(why, CUDA_IPC_WHY, "%s", coll_last_error());
    return status;
}

/* Find the context, load kernels, and make the host's segment if that is this rank's
 * task. */
static int look(struct opening *o, void *context)
{
    struct cuda_ipc *tp = o->tp;
    int err,
        status = lacks(o->offer.why, coll__cuda_home_of(context, &tp->home));

    if (status)
        return status;
    o->offer.ctx = (uint64_t)tp->home.ctx;
    memcpy(o->offer.uuid, tp->home.uuid, 16);
    choose_sizes(tp, &o->offer);
    cuda_ipc__wish(tp, &o->offer.wish);
    o->offer.wish.pid_ns = o->env->peers[o->env->rank].pid_ns;
    if (tp->local_rank || tp->local_size == 1)
        return COLL_OK;
    tp->base.n_slots = o->offer.n_slots;
    err = coll__segment_offer(&o->offer.file);
    tp->file = o->offer.file.fd;
    if (!err && coll__set_file_len(tp->file, cuda_ipc_segment_len(tp)))
        err = errno;
    if (!err)
        return COLL_OK;
    snprintf(o->offer.why, CUDA_IPC_WHY, "no memory that ranks share: %s",
             strerror(err));
    return COLL_ERR_SYSTEM;
}

static const struct offer *leader_of(const struct opening *o)
{
    int r = 0;

    while (!is_local(o, r))
        r++;
    return &o->offers[r];
}

static int map_segment(struct opening *o, const struct offer *leader)
{
    struct cuda_ipc *tp = o->tp;
    int pid = 0;

    for (int r = o->env->size - 1; r >= 0; r--)
        if (is_local(o, r))
            pid = o->env->peers[r].pid;
    if (leader->status) {
        snprintf(o->inbox.why, CUDA_IPC_WHY, "%s", leader->why);
        return leader->status;
    }
    tp->segment =
        coll__segment_map(pid, &leader->file, cuda_ipc_segment_len(tp));
    if (!tp->segment) {
        snprintf(o->inbox.why, CUDA_IPC_WHY,
                 "process %d cannot share memory with process %d: %s",
                 (int)getpid(), pid, strerror(errno));
        return COLL_ERR_SYSTEM;
    }
    tp->map = coll__segment_at(tp->segment);
    return COLL_OK;
}

/* Set all flags to empty before other ranks learn that the segment is mapped. */
static void clear_flags(const struct cuda_ipc *tp)
{
    for (int r = 0; r < tp->local_size; r++)
        for (int s = 0; s < cuda_ipc_n_slots(tp); s++)
            atomic_store(&cuda_ipc_flag(tp, r, tp->local_rank, s)->state,
                         COLL__SLOT_EMPTY);
}

static int make_inbox(struct opening *o)
{
    struct cuda_ipc *tp = o->tp;
    size_t len = cuda_ipc_inbox_len(tp);
    char why[CUDA_IPC_WHY];

    if (lacks(o->inbox.why, cuda_ipc__make_inbox(len, &tp->inbox)))
        return COLL_ERR_NOMEM;
    o->inbox.at = (uint64_t)tp->inbox;
    o->inbox.can_export =
        !coll__cuda_try_export(tp->inbox, &o->inbox.memory, why, sizeof(why));
    if (!o->inbox.can_export)
        snprintf(o->inbox.why, CUDA_IPC_WHY, "no CUDA IPC: %.170s", why);
    return COLL_OK;
}

/* All ranks have the same wishes and decide alike. */
static int decide(struct opening *o)
{
    struct cuda_ipc *tp = o->tp;
    struct cuda_ipc_wish *wishes =
        calloc((size_t)tp->local_size, sizeof(*wishes));

    if (!wishes) {
        snprintf(o->inbox.why, CUDA_IPC_WHY, "no memory for %d ranks",
                 tp->local_size);
        return COLL_ERR_NOMEM;
    }
    for (int r = 0; r < o->env->size; r++)
        if (is_local(o, r))
            wishes[tp->local_of[r]] = o->offers[r].wish;
    cuda_ipc__decide(tp, wishes);
    free(wishes);
    return COLL_OK;
}

/* A waiting stream blocks the streams that share its connection to the GPU.  With more
 * streams than connections, it may block the stream that it waits for. */
static int are_too_many(struct opening *o)
{
    const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    int n = 0, most = text && atoi(text) > 0 ? atoi(text) : 8;

    for (int r = 0; r < o->env->size; r++) {
        if (!is_local(o, r) || !is_of_this_process(o, r))
            continue;
        n += !memcmp(o->offers[r].uuid, o->offer.uuid, 16);
        o->tp->shares_context |=
            r != o->env->rank && o->offers[r].ctx == o->offer.ctx;
    }
    if (n <= most)
        return 0;
    snprintf(
        o->inbox.why, CUDA_IPC_WHY,
        "%d ranks of a process share a GPU, with %d connections to it; set "
        "CUDA_DEVICE_MAX_CONNECTIONS=32",
        n, most);
    return 1;
}

/* Make the stream and load the kernels now: neither can be done during a capture. */
static int prepare(struct opening *o)
{
    int status = lacks(o->inbox.why, coll__cuda_stream_create(&o->stream));

    return status ? status
                  : lacks(o->inbox.why,
                          coll__cuda_prepare(o->stream, &o->tp->base.kernels));
}

/* Test stream writes before anything relies on them; the place is that of the rank's
 * pattern for itself. */
static int try_flags(struct opening *o)
{
    const struct cuda_ipc *tp = o->tp;
    unsigned char *at =
        tp->seen + cuda_ipc_pattern_at(tp, tp->local_rank, tp->local_rank);
    void *const flags[2] = {at, at + CUDA_IPC_PATTERN};

    return lacks(o->inbox.why, coll__cuda_try_flags(o->stream, flags));
}

static int prepare_alone(struct opening *o)
{
    int was, status = lacks(o->inbox.why, coll__cuda_go_in(&o->tp->home, &was));

    if (status)
        return status;
    status = prepare(o);
    coll__cuda_go_out(was);
    return status;
}

/* Make all that a run needs; the context is current. */
static int make_all(struct opening *o)
{
    struct cuda_ipc *tp = o->tp;
    const struct offer *leader = leader_of(o);
    int status = o->offer.status, was;

    tp->base.n_slots = leader->n_slots;
    tp->base.slot = leader->slot;
    if (status) {
        memcpy(o->inbox.why, o->offer.why, CUDA_IPC_WHY);
        return status;
    }
    status = decide(o);
    if (status == COLL_OK && tp->local_size == 1)
        status = prepare_alone(o);
    if (status || tp->local_size == 1)
        return status;
    if (are_too_many(o))
        return COLL_ERR_UNSUPPORTED;
    status = map_segment(o, leader);
    if (status)
        return status;
    clear_flags(tp);
    status = lacks(o->inbox.why, coll__cuda_go_in(&tp->home, &was));
    if (status)
        return status;
    status = lacks(
        o->inbox.why,
        cuda_ipc__register(tp->segment, cuda_ipc_segment_len(tp), &tp->seen));
    if (status == COLL_OK)
        status = make_inbox(o);
    if (status == COLL_OK)
        status = prepare(o);
    if (status == COLL_OK)
        status = try_flags(o);
    if (status == COLL_OK && tp->base.kernel.most)
        status = lacks(o->inbox.why, cuda_ipc__clear_words(tp, o->stream));
    if (tp->seen)
        tp->base.kernel.stop = tp->seen + CACHE_LINE; /* cuda_ipc_state() */
    coll__cuda_go_out(was);
    return status;
}

/* ---- the others ---------------------------------------------------------- */

/* Use the inbox of a rank of this process by its address, if this GPU can access that
 * rank's GPU. */
static int find_own(const struct opening *o, int rank,
                    struct cuda_ipc_peer *peer)
{
    const struct offer *theirs = &o->offers[rank];
    const struct cuda_ipc *tp = o->tp;
    int status = COLL_OK;

    if (theirs->ctx != o->offer.ctx) {
        if (!memcmp(theirs->uuid, tp->home.uuid, 16)) {
            snprintf(
                peer->why, CUDA_IPC_WHY,
                "it has another context of the "
                "same GPU; let all ranks of a process use the primary one");
            return COLL_ERR_UNSUPPORTED;
        }
        status = coll__cuda_reach((void *)theirs->ctx, peer->why, CUDA_IPC_WHY);
    }
    if (status == COLL_OK) {
        peer->inbox = (unsigned char *)o->inboxes[rank].at;
        cuda_ipc__hold(peer->inbox);
    }
    return status;
}

static int map_inbox(struct cuda_ipc_peer *peer, const struct inbox *theirs)
{
    void *at;
    int status;

    if (!theirs->can_export) {
        snprintf(peer->why, CUDA_IPC_WHY, "%s", theirs->why);
        return COLL_ERR_UNSUPPORTED;
    }
    peer->memory = theirs->memory;
    status =
        coll__cuda_try_import(&theirs->memory, &at, peer->why, CUDA_IPC_WHY);
    if (status == COLL_OK) {
        peer->inbox = at;
        peer->is_mapped = 1;
    }
    return status;
}

/* With the place entered. */
static int find_inbox(struct opening *o, int rank)
{
    struct cuda_ipc *tp = o->tp;
    const struct inbox *theirs = &o->inboxes[rank];
    int local = tp->local_of[rank], is_own = is_of_this_process(o, rank);
    struct cuda_ipc_peer *peer = &tp->peers[local];
    int status = theirs->status;

    if (status) {
        snprintf(peer->why, CUDA_IPC_WHY, "%s", theirs->why);
        return status;
    }
    status = coll__cuda_can_reach(&tp->home, o->offers[rank].uuid, peer->why,
                                  CUDA_IPC_WHY);
    if (status == COLL_OK)
        status = is_own ? find_own(o, rank, peer) : map_inbox(peer, theirs);
    if (status)
        return status;
    peer->to = cuda_ipc_way_in(tp, peer->inbox, local, tp->local_rank);
    peer->from = cuda_ipc_way_in(tp, tp->inbox, tp->local_rank, local);
    if (!is_own)
        atomic_store(&cuda_ipc_note(tp, tp->local_rank, local)->has_mapped,
                     MAPPED);
    return COLL_OK;
}

/* ---- trying -------------------------------------------------------------- */

static void make_pattern(const struct cuda_ipc *tp, int by, int of,
                         unsigned char pattern[CUDA_IPC_PATTERN])
{
    for (int i = 0; i < CUDA_IPC_PATTERN; i++)
        pattern[i] = (unsigned char)(1 + i + 7 * by + 31 * of + tp->local_size);
}

static int copy(const struct opening *o, void *dst, const void *src)
{
    struct coll__work work = {.kind = WORK_COPY,
                              .dst = dst,
                              .src = src,
                              .len = CUDA_IPC_PATTERN,
                              .stream = o->stream};

    return coll__cuda_enqueue(&work);
}

static void write_pattern(struct opening *o, int local)
{
    struct cuda_ipc *tp = o->tp;
    size_t at = cuda_ipc_pattern_at(tp, tp->local_rank, local);
    int status;

    make_pattern(tp, tp->local_rank, local, tp->map + at);
    status = copy(o, tp->peers[local].to.slots, tp->seen + at);
    if (status == COLL_OK)
        status = coll__cuda_stream_wait(o->stream);
    if (status == COLL_OK)
        atomic_store(&cuda_ipc_note(tp, tp->local_rank, local)->has_written, 1);
}

static void read_pattern(struct opening *o, int local)
{
    struct cuda_ipc *tp = o->tp;
    size_t at =
        cuda_ipc_pattern_at(tp, local, tp->local_rank) + CUDA_IPC_PATTERN;
    unsigned char wanted[CUDA_IPC_PATTERN];
    int status;

    make_pattern(tp, local, tp->local_rank, wanted);
    status = copy(o, tp->seen + at,
                  tp->inbox + cuda_ipc_slots_at(tp, tp->local_rank, local));
    if (status == COLL_OK)
        status = coll__cuda_stream_wait(o->stream);
    if (status == COLL_OK && !memcmp(tp->map + at, wanted, sizeof(wanted)))
        atomic_store(&cuda_ipc_note(tp, tp->local_rank, local)->has_read, 1);
}

/* Two ranks reach each other if both have noted it, so both know. */
static void judge(struct cuda_ipc *tp, int local)
{
    struct cuda_ipc_peer *peer = &tp->peers[local];
    struct cuda_ipc_note *ours = cuda_ipc_note(tp, tp->local_rank, local);
    struct cuda_ipc_note *theirs = cuda_ipc_note(tp, local, tp->local_rank);

    peer->reached =
        atomic_load(&ours->has_written) && atomic_load(&theirs->has_written) &&
        atomic_load(&ours->has_read) && atomic_load(&theirs->has_read);
    if (!peer->reached && !peer->why[0])
        snprintf(peer->why, CUDA_IPC_WHY,
                 atomic_load(&theirs->has_written)
                     ? "what is written through the mapping does not arrive"
                     : "it cannot map this rank's memory");
}

/* Do a step for each other rank of the host; the context is current. */
static void for_peers(struct opening *o, int writes)
{
    struct cuda_ipc *tp = o->tp;
    int was;

    if (o->inbox.status || !tp->seen || coll__cuda_go_in(&tp->home, &was))
        return;
    for (int r = 0; r < o->env->size; r++) {
        int local = tp->local_of[r];

        if (local < 0 || r == o->env->rank)
            continue;
        if (!writes) {
            if (atomic_load(
                    &cuda_ipc_note(tp, local, tp->local_rank)->has_written))
                read_pattern(o, local);
        } else if (find_inbox(o, r) == COLL_OK) {
            write_pattern(o, local);
        }
    }
    coll__cuda_go_out(was);
}

/* ---- opening ------------------------------------------------------------- */

static int gather(const struct opening *o, const void *in, size_t len,
                  void *out)
{
    return o->env->allgather(o->env->arg, in, len, out);
}

/* Wait for all ranks: then their notes are written. */
static int meet(const struct opening *o)
{
    char *all = malloc((size_t)o->env->size), one = 0;
    int rc = all ? gather(o, &one, 1, all) : COLL_ERR_NOMEM;

    free(all);
    return rc;
}

/* A rank without the segment sees no notes, and no rank sees it. */
static void judge_all(struct opening *o)
{
    struct cuda_ipc *tp = o->tp;

    for (int r = 0; r < o->env->size; r++) {
        int local = tp->local_of[r];

        if (local < 0 || r == o->env->rank)
            continue;
        if (o->inbox.status)
            memcpy(tp->peers[local].why, o->inbox.why, CUDA_IPC_WHY);
        else if (tp->seen)
            judge(tp, local);
    }
}

static void log_unreached(const struct cuda_ipc *tp)
{
    for (int local = 0; local < tp->local_size; local++)
        if (local != tp->local_rank && !tp->peers[local].reached)
            log_info("cuda", "rank %d is out of reach of the GPU's streams: %s",
                     tp->peers[local].rank, tp->peers[local].why);
}

static int join(struct opening *o, void *context)
{
    struct cuda_ipc *tp = o->tp;
    int rc;

    o->offer.file.fd = -1;
    o->offer.status = look(o, context);
    rc = gather(o, &o->offer, sizeof(o->offer), o->offers);
    if (rc)
        return rc;
    o->inbox.status = make_all(o);
    rc = gather(o, &o->inbox, sizeof(o->inbox), o->inboxes);
    if (rc == COLL_OK) {
        for_peers(o, 1);
        rc = meet(o);
    }
    if (rc == COLL_OK) {
        for_peers(o, 0);
        rc = meet(o);
    }
    if (rc == COLL_OK) {
        judge_all(o);
        if (tp->local_size == tp->base.size)
            rc = cuda_ipc__share_host(tp, o->env, !o->inbox.status && tp->seen);
        log_unreached(tp);
    }
    if (tp->file >= 0)
        close(tp->file);
    tp->file = -1;
    return rc;
}

static struct cuda_ipc *new_tp(const struct coll__tp_env *env)
{
    const struct coll__peer *me = &env->peers[env->rank];
    struct cuda_ipc *tp = calloc(1, sizeof(*tp));

    if (!tp)
        return NULL;
    tp->held.end = cuda_ipc__end;
    tp->base = (struct coll__stream_tp){.ops = &coll__stream_cuda_ipc,
                                        .streams = &coll__cuda_streams,
                                        .rank = env->rank,
                                        .size = env->size,
                                        .generation = coll__generation_now()};
    tp->local_rank = me->local_rank;
    tp->local_size = me->local_size;
    tp->file = -1;
    tp->local_of = malloc((size_t)env->size * sizeof(int));
    tp->peers = calloc((size_t)me->local_size, sizeof(*tp->peers));
    tp->maps = calloc((size_t)env->size, sizeof(*tp->maps));
    tp->base.by_host = calloc((size_t)env->size, 1);
    if (!tp->local_of || !tp->peers || !tp->maps || !tp->base.by_host) {
        cuda_ipc__close(&tp->base, 1);
        return NULL;
    }
    for (int r = 0; r < env->size; r++) {
        int local =
            env->peers[r].host == me->host ? env->peers[r].local_rank : -1;

        tp->local_of[r] = local;
        if (local >= 0)
            tp->peers[local] =
                (struct cuda_ipc_peer){.rank = r, .pid = env->peers[r].pid};
    }
    snprintf(tp->peers[tp->local_rank].why, CUDA_IPC_WHY, "it is this rank");
    return tp;
}

int cuda_ipc__open(const struct coll__tp_env *env, void *context,
                   struct coll__stream_tp **out)
{
    size_t n = (size_t)env->size;
    struct opening o = {.env = env, .tp = new_tp(env)};
    int rc = COLL_ERR_NOMEM;

    coll__cuda_held_reclaim();
    cuda_ipc__reclaim();
    o.offers = calloc(n, sizeof(*o.offers));
    o.inboxes = calloc(n, sizeof(*o.inboxes));
    if (o.tp && o.offers && o.inboxes)
        rc = join(&o, context);
    coll__cuda_stream_destroy(o.stream);
    free(o.offers);
    free(o.inboxes);
    if (rc == COLL_ERR_NOMEM)
        log_error("cuda", "no memory for slots between %zu ranks", n);
    if (rc == COLL_OK)
        *out = &o.tp->base;
    else if (o.tp)
        cuda_ipc__close(&o.tp->base, 0);
    return rc;
}
