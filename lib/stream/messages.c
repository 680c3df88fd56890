/* SPDX-License-Identifier: BSD-3-Clause */
/* messages.c - sends and receives that streams carry out by themselves.
 *
 * A message travels in pieces of a slot's length, through slots that no collective uses
 * (COLL__ASIDE).  A sent piece stays in its slot until the receiver takes it; the
 * sender does not wait for that.  Two ranks take each other's messages in the order of
 * their calls.
 *
 * A stream works in order, but a group's messages must travel side by side.  So they are
 * laid out in rounds.  In each round a rank sends the next piece to each of its peers,
 * and then receives the next piece from each.
 *
 *     to 1: a0 a1 a2     to 2: b0      from 1: c0 c1      round 0: a0 b0 | c0
 *                                                         round 1: a1    | c1
 *                                                         round 2: a2
 *
 * There is no deadlock.  Consider a rank in the lowest round.  The piece before the one
 * that it sends was taken in a lower round, so the slot is empty and the send ends.  The
 * piece that it receives is of this round, too, and its sender sends in a round before
 * it receives.
 */
#include "lib/stream/programs.h"
#include "lib/comm/comm.h"
#include "lib/device/cuda.h"
#include "lib/run/args.h"
#include "lib/run/request.h"
#include "lib/stream/calls.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "transports/stream.h"

#include <stdlib.h>
#include <string.h>

/* ---- judging ------------------------------------------------------------- */

static int is_send(const struct coll__stream_call *call)
{
    return call->pb.collective == COLL_SEND;
}

static size_t len_of(const struct coll__stream_call *call)
{
    return coll__problem_bytes(&call->pb);
}

/* For a message of this rank to itself: find the call at the message's other end, or
 * NULL.  The n-th send to this rank itself matches the n-th receive. */
static const struct coll__stream_call *
other_half(const struct coll_comm *comm, const struct coll__batch *batch, int i)
{
    const struct coll__stream_call *calls = batch->calls;
    int n_before = 0;

    for (int j = 0; j < i; j++)
        n_before += calls[j].pb.root == comm->rank &&
                    is_send(&calls[j]) == is_send(&calls[i]);
    for (int j = 0; j < batch->n; j++)
        if (calls[j].pb.root == comm->rank &&
            is_send(&calls[j]) != is_send(&calls[i]) && !n_before--)
            return &calls[j];
    return NULL;
}

int coll__messages_check(const struct coll_comm *comm,
                         const struct coll__batch *batch)
{
    for (int i = 0; i < batch->n; i++) {
        const struct coll__stream_call *call = &batch->calls[i], *other;

        if (call->pb.root != comm->rank)
            continue;
        other = other_half(comm, batch, i);
        if (!other || other->pb.type != call->pb.type ||
            other->pb.count != call->pb.count)
            return coll__args_wrong(
                &call->args,
                "a message of a rank to itself needs the matching send or "
                "receive in the same group, with the same count and type");
    }
    return COLL_OK;
}

/* ---- to oneself ---------------------------------------------------------- */

static int put_own(struct coll__stream_tp *tp, void *stream,
                   const struct coll__stream_call *from,
                   const struct coll__stream_call *to)
{
    struct coll__work work = {.kind = WORK_COPY,
                              .dst = to->args.out,
                              .src = from->args.in,
                              .len = len_of(from),
                              .stream = stream,
                              .is_src_host = from->is_host[BUF_IN] != 0,
                              .is_dst_host = to->is_host[BUF_OUT] != 0};

    return coll__stream_work(tp, &work);
}

/* ---- to others ----------------------------------------------------------- */

static size_t n_pieces(const struct coll_comm *comm,
                       const struct coll__stream_call *call)
{
    size_t slot = comm->links.routes.streams->slot;

    return (len_of(call) + slot - 1) / slot;
}

/* Find the round of each message's first piece, after the pieces of earlier messages
 * with the same peer.  Returns the number of rounds. */
static size_t lay_out(const struct coll_comm *comm,
                      const struct coll__batch *batch, size_t *first)
{
    size_t n_rounds = 0;

    for (int i = 0; i < batch->n; i++) {
        const struct coll__stream_call *call = &batch->calls[i];
        int j = i - 1;

        while (j >= 0 && (batch->calls[j].pb.root != call->pb.root ||
                          is_send(&batch->calls[j]) != is_send(call)))
            j--;
        first[i] = j < 0 ? 0 : first[j] + n_pieces(comm, &batch->calls[j]);
        n_rounds = max_size(n_rounds, first[i] + n_pieces(comm, call));
    }
    return n_rounds;
}

/* A piece of a message to or from another rank. */
struct piece {
    const struct coll__stream_call *call;
    size_t k;
};

/* The pieces of a batch, in the order in which they are enqueued. */
struct list {
    struct piece *pieces;
    int n;
    size_t *first; /* while it is made: the round of each call's first piece */
};

static int no_memory(int n)
{
    log_error("api", "no memory for a group of %d messages", n);
    return COLL_ERR_NOMEM;
}

/* Add the sends, or the receives, of a round. */
static void add_round(const struct coll_comm *comm,
                      const struct coll__batch *batch, size_t round,
                      int are_sends, struct list *list)
{
    for (int i = 0; i < batch->n; i++) {
        const struct coll__stream_call *call = &batch->calls[i];
        size_t first = list->first[i];

        if (call->pb.root != comm->rank && is_send(call) == are_sends &&
            round >= first && round - first < n_pieces(comm, call))
            list->pieces[list->n++] = (struct piece){call, round - first};
    }
}

static void add_rounds(const struct coll_comm *comm,
                       const struct coll__batch *batch, struct list *list)
{
    size_t n_rounds = lay_out(comm, batch, list->first);

    for (size_t round = 0; round < n_rounds; round++) {
        add_round(comm, batch, round, 1, list);
        add_round(comm, batch, round, 0, list);
    }
}

/* List all pieces; the caller frees list->pieces.  A status, logged. */
static int list_all(const struct coll_comm *comm,
                    const struct coll__batch *batch, struct list *list)
{
    size_t n = 1;

    for (int i = 0; i < batch->n; i++)
        n += n_pieces(comm, &batch->calls[i]);
    list->n = 0;
    list->first = malloc((size_t)batch->n * sizeof(*list->first));
    list->pieces = list->first ? malloc(n * sizeof(*list->pieces)) : NULL;
    if (list->pieces)
        add_rounds(comm, batch, list);
    free(list->first);
    return list->pieces ? COLL_OK : no_memory(batch->n);
}

/* Return the name of a piece for the transport. */
static struct coll__message message_of(const struct coll_comm *comm,
                                       const struct coll__stream_call *call,
                                       size_t k)
{
    size_t n_slots = (size_t)comm->links.routes.streams->n_slots;

    return (struct coll__message){.peer = call->pb.root,
                                  .n = COLL__ASIDE + (int)(k % n_slots)};
}

static size_t piece_len(const struct coll_comm *comm,
                        const struct coll__stream_call *call, size_t k)
{
    size_t slot = comm->links.routes.streams->slot;

    return min_size(slot, len_of(call) - k * slot);
}

/* Return the signature of the call's messages: the sender's, at both ends. */
static struct coll__signature signature_of(const struct coll_comm *comm,
                                           const struct coll__stream_call *call)
{
    struct coll__signature sig =
        coll__request_signature(&call->pb, &call->op, SERIES_STREAM);

    if (!is_send(call)) {
        sig.collective = COLL_SEND;
        sig.root = comm->rank;
    }
    return sig;
}

static int put_piece(const struct coll_comm *comm, void *stream,
                     const struct coll__stream_call *call, size_t k)
{
    struct coll__stream_tp *tp = comm->links.routes.streams;
    size_t at = k * tp->slot, len = piece_len(comm, call, k);
    struct coll__message end = message_of(comm, call, k);
    struct coll__work work = {.kind = WORK_COPY,
                              .len = len,
                              .stream = stream,
                              .is_src_host = call->is_host[BUF_IN] != 0,
                              .is_dst_host = call->is_host[BUF_OUT] != 0};

    if (is_send(call)) {
        work.src = (const unsigned char *)call->args.in + at;
        return coll__stream_send(tp, &end, &work);
    }
    work.dst = (unsigned char *)call->args.out + at;
    return coll__stream_recv(tp, &end, &work);
}

static int put_own_all(const struct coll_comm *comm,
                       const struct coll__batch *batch)
{
    int rc = COLL_OK;

    for (int i = 0; i < batch->n && rc == COLL_OK; i++)
        if (batch->calls[i].pb.root == comm->rank && is_send(&batch->calls[i]))
            rc = put_own(comm->links.routes.streams, batch->stream,
                         &batch->calls[i], other_half(comm, batch, i));
    return rc;
}

/* ---- carried by the host ------------------------------------------------------- */

static struct coll__planned planned_of(const struct coll_comm *comm,
                                       const struct piece *piece)
{
    return (struct coll__planned){.of = message_of(comm, piece->call, piece->k),
                                  .len = piece_len(comm, piece->call, piece->k),
                                  .sig = signature_of(comm, piece->call),
                                  .is_send = is_send(piece->call) != 0,
                                  .is_first = !piece->k};
}

static int is_same(const struct coll__planned *a, const struct coll__planned *b)
{
    return a->of.peer == b->of.peer && a->of.n == b->of.n && a->len == b->len &&
           a->is_send == b->is_send && a->is_first == b->is_first &&
           !memcmp(&a->sig, &b->sig, sizeof(a->sig));
}

/* Does the list have the messages of the last run? */
static int is_again(const struct coll_comm *comm, const struct list *list,
                    const struct coll__kept_run *kept)
{
    if (!kept->run || kept->n != list->n)
        return 0;
    for (int i = 0; i < list->n; i++) {
        struct coll__planned now = planned_of(comm, &list->pieces[i]);

        if (!is_same(&now, &kept->planned[i]))
            return 0;
    }
    return 1;
}

void coll__messages_forget(struct coll__kept_run *kept)
{
    if (kept->run)
        kept->forget(kept->run);
    free(kept->planned);
    *kept = (struct coll__kept_run){.run = NULL};
}

static int plan_run(const struct coll_comm *comm, const struct list *list,
                    struct coll__kept_run *kept)
{
    struct coll__stream_tp *tp = comm->links.routes.streams;

    coll__messages_forget(kept);
    kept->planned = malloc((size_t)list->n * sizeof(*kept->planned));
    if (!kept->planned)
        return no_memory(list->n);
    for (int i = 0; i < list->n; i++)
        kept->planned[i] = planned_of(comm, &list->pieces[i]);
    kept->n = list->n;
    kept->forget = tp->ops->forget;
    return tp->ops->plan(tp, kept->planned, list->n, &kept->run);
}

/* Tell the transport of all pieces, if it has to carry some. */
static int begin_run(const struct coll_comm *comm, void *stream,
                     const struct list *list, struct coll__kept_run *kept)
{
    struct coll__stream_tp *tp = comm->links.routes.streams;
    int rc = COLL_OK;

    if (!tp->ops->plan || !list->n)
        return COLL_OK;
    if (!is_again(comm, list, kept))
        rc = plan_run(comm, list, kept);
    return rc ? rc : tp->ops->begin(tp, kept->run, stream);
}

/* ---- the whole batch -------------------------------------------------------- */

static int put_all(const struct coll_comm *comm,
                   const struct coll__batch *batch, const struct list *list,
                   struct coll__kept_run *kept)
{
    int rc = begin_run(comm, batch->stream, list, kept);

    if (rc == COLL_OK)
        rc = put_own_all(comm, batch);
    for (int i = 0; i < list->n && rc == COLL_OK; i++)
        rc = put_piece(comm, batch->stream, list->pieces[i].call,
                       list->pieces[i].k);
    return rc;
}

/* If an error leaves a part of the batch in the stream, the other ranks wait for the
 * rest, so release the streams. */
int coll__messages_put(struct coll_comm *comm, const struct coll__batch *batch,
                       struct coll__kept_run *kept)
{
    struct list list;
    int rc = list_all(comm, batch, &list);

    if (rc)
        return rc;
    rc = put_all(comm, batch, &list, kept);
    free(list.pieces);
    return rc && !batch->place.is_captured ? coll__programs_failed(comm, rc)
                                           : rc;
}
