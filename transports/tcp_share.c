/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_share.c - long messages that several connections share, one for each cable.
 *
 *   channel's connection   head 0 | a short message | head 1 | ...
 *   rail 0                 piece 0 of message 0 | piece 2 of 0 | piece 1 of 1 | ...
 *   rail 1                 piece 1 of message 0 | piece 0 of 1 | ...
 *
 * The sender cuts a message into pieces, and each rail takes the next piece when it has
 * sent the one before: a slow rail takes less.  Only the head goes by the channel's
 * connection, so heads and other messages keep their order, and are compared there.  A
 * piece is an ordinary message of its rail.  Its signature holds the number of its message
 * (seq) and its offset (count).  The receiver posts a receive into place when it sees the
 * piece's header.  Pieces of one message end in any order, and a later message may end
 * first.
 *
 * Messages may begin before their receives: then heads and pieces wait in the sockets'
 * buffers, and hold up the sender.  Each channel has rails of its own, so channels do not
 * hold up each other.
 */
#include "lib/util/util.h"
#include "transports/tcp.h"

#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)128 << 10) /* bytes; the longest */
#define ALIGN 64u                 /* bytes; a multiple of TCP_GRAIN */

/* ---- the messages -------------------------------------------------------- */

/* Return how many rails messages to a rank have; less than 2: they have none. */
static int count_rails(const struct tcp *tcp, int rank)
{
    const struct tcp_card *card = &tcp->cards[rank];
    int most = min_int(tcp->rails.n, card->n_rails);

    if (tcp->is_near[rank] || most < 2)
        return 0;
    return tcp->rails.are_set ? most : min_int(most, tcp__count_ways(card));
}

static struct tcp_conn *rail_of(struct tcp *tcp, const struct tcp_share *share,
                                int i)
{
    return tcp__conn(tcp, share->conn->rank, tcp_rail(share->conn->channel, i));
}

/* Return what a channel's connection shares; NULL without memory. */
static struct tcp_share *share_of(struct tcp *tcp, struct tcp_conn *conn)
{
    struct tcp_share *share = conn->share;

    if (share)
        return share;
    share = calloc(1, sizeof(*share));
    if (!share)
        return NULL;
    share->conn = conn;
    share->n_rails = count_rails(tcp, conn->rank);
    for (int i = 0; i < share->n_rails; i++)
        if (!rail_of(tcp, share, i))
            share->n_rails = 0;
    share->next = tcp->rails.shares;
    tcp->rails.shares = conn->share = share;
    return share;
}

/* Return an empty message for the end of a list; NULL without memory. */
static struct tcp_shared *add(struct tcp *tcp, struct tcp_shared **list)
{
    struct tcp_shared *shared = tcp->rails.spare, **end = list;

    if (shared)
        tcp->rails.spare = shared->next;
    else
        shared = malloc(sizeof(*shared));
    if (!shared)
        return NULL;
    *shared = (struct tcp_shared){.list = list};
    while (*end)
        end = &(*end)->next;
    *end = shared;
    tcp->rails.n_shared++;
    tcp->n_active++;
    return shared;
}

static void end(struct tcp *tcp, struct tcp_shared *shared, int status)
{
    struct tcp_shared **at = shared->list;

    while (*at != shared)
        at = &(*at)->next;
    *at = shared->next;
    coll__xfer_end(shared->whole, status);
    shared->next = tcp->rails.spare;
    tcp->rails.spare = shared;
    tcp->rails.n_shared--;
    tcp->n_active--;
}

/* Note which heads and pieces have ended; returns how many.  If one has failed, its rank
 * is lost, and tcp__end_shared() ends its message. */
static int take_parts(struct tcp *tcp)
{
    struct coll__xfer *part;
    int n = 0;

    for (; (part = coll__ended_take(&tcp->rails.parts)); n++) {
        struct tcp_shared *shared = part->owner;

        part->owner = NULL;
        if (part->status)
            continue;
        if (part != &shared->head)
            shared->left -= part->len;
        if (!shared->left && !shared->head.owner)
            end(tcp, shared, COLL_OK);
    }
    return n;
}

/* ---- sending ------------------------------------------------------------- */

/* Return the length of pieces that gives each rail as many. */
static size_t piece_of(size_t len, int n_rails)
{
    size_t n = (size_t)n_rails, rounds = (len + n * PIECE - 1) / (n * PIECE);

    return round_up((len + n * rounds - 1) / (n * rounds), ALIGN);
}

struct coll__xfer *tcp__share(struct tcp *tcp, struct tcp_conn *conn,
                              struct coll__xfer *whole)
{
    struct tcp_share *share = conn->out.status ? NULL : share_of(tcp, conn);
    struct tcp_shared *shared =
        share && share->n_rails > 1 ? add(tcp, &share->sending) : NULL;

    if (!shared)
        return NULL;
    whole->status = COLL_IN_PROGRESS;
    shared->whole = whole;
    shared->number = share->n_sent++;
    shared->piece = piece_of(whole->len, share->n_rails);
    shared->left = whole->len;
    shared->head = *whole;
    shared->head.sig.collective |= TCP_SHARED;
    shared->head.done = whole->len; /* nothing follows it */
    shared->head.ended = &tcp->rails.parts;
    shared->head.owner = shared;
    return &shared->head;
}

/* Let a rail send the next piece. */
static void send_piece(struct tcp *tcp, struct tcp_share *share, int i,
                       struct tcp_shared *shared)
{
    const struct coll__xfer *whole = shared->whole;
    struct tcp_conn *conn = rail_of(tcp, share, i);
    struct coll__xfer *piece = &share->out[i];

    *piece = (struct coll__xfer){
        .status = COLL_IN_PROGRESS,
        .buf = (char *)whole->buf + shared->at,
        .len = min_size(shared->piece, whole->len - shared->at),
        .sig = {.seq = shared->number, .count = shared->at},
        .ended = &tcp->rails.parts,
        .owner = shared};
    shared->at += piece->len;
    tcp__limit_flight(conn);
    tcp_enlist(tcp, &tcp->sending[share->conn->channel], &conn->out, piece);
}

static int send_pieces(struct tcp *tcp, struct tcp_share *share)
{
    struct tcp_shared *shared = share->sending;
    int n = 0;

    for (int i = 0; i < share->n_rails; i++) {
        while (shared && shared->at == shared->whole->len)
            shared = shared->next;
        if (!shared)
            break;
        if (share->out[i].owner)
            continue;
        send_piece(tcp, share, i, shared);
        n++;
    }
    return n;
}

/* ---- receiving ----------------------------------------------------------- */

int tcp__take_shared(struct tcp *tcp, struct tcp_lane *in)
{
    struct tcp_wire *head = &in->wire;
    struct tcp_share *share;
    struct tcp_shared *shared;

    if (!(head->sig.collective & TCP_SHARED))
        return 0;
    head->sig.collective &= (uint8_t)~TCP_SHARED;
    if (!coll__xfer_fits(in->first, &head->sig, head->len))
        return 0;
    share = share_of(tcp, in->conn);
    shared = share ? add(tcp, &share->receiving) : NULL;
    if (!shared) {
        tcp__lose(tcp, in->conn, COLL_ERR_NOMEM,
                  "sends a long message: no memory for it; free some");
        return 1;
    }
    shared->whole = tcp_take_first(in);
    shared->number = share->n_taken++;
    shared->left = shared->whole->len;
    return 1;
}

/* Return the message of a piece; NULL: its head has not come yet. */
static struct tcp_shared *find(struct tcp_share *share, uint64_t number)
{
    struct tcp_shared *shared = share->receiving;

    while (shared && shared->number != number)
        shared = shared->next;
    return shared;
}

static int is_within(const struct tcp_wire *piece, size_t len)
{
    return piece->sig.count < len && piece->len <= len - piece->sig.count &&
           piece->sig.count % TCP_GRAIN == 0;
}

/* A piece has come by a rail: receive it into place. */
static int recv_piece(struct tcp *tcp, struct tcp_share *share, int i,
                      const struct tcp_wire *wire)
{
    struct tcp_shared *shared = find(share, wire->sig.seq);
    struct tcp_conn *conn = rail_of(tcp, share, i);
    const struct coll__xfer *whole;
    size_t at = wire->sig.count;

    if (!shared)
        return 0;
    whole = shared->whole;
    if (!is_within(wire, whole->len)) {
        tcp__lose_changed(tcp, conn);
        return 1;
    }
    share->in[i] = (struct coll__xfer){
        .status = COLL_IN_PROGRESS,
        .buf = (char *)whole->buf + at,
        .len = wire->len,
        .sig = wire->sig,
        .reduce = whole->reduce,
        .with = whole->reduce ? (const char *)whole->with + at : NULL,
        .ended = &tcp->rails.parts,
        .owner = shared};
    tcp_enlist(tcp, &tcp->receiving[share->conn->channel], &conn->in,
               &share->in[i]);
    return 1;
}

/* Look whether a rail has a piece.  With many active lanes, epoll tells which rails are
 * worth a look. */
static int look_at_rail(struct tcp *tcp, struct tcp_share *share, int i)
{
    int channel = tcp_rail(share->conn->channel, i);
    struct tcp_conn *conn =
        tcp->conns[coll__lane(channel, share->conn->rank, tcp->base.size)];
    struct tcp_wire wire;
    int rc;

    if (!conn || conn->state != TCP_CONNECTED || share->in[i].owner ||
        (!conn->in.is_ready && tcp->n_active > TCP_FEW))
        return 0;
    rc = (conn->in.crypt ? tcp__peek_sealed : tcp__peek)(&conn->in, &wire);
    conn->in.is_ready = rc == 1;
    if (rc == 1)
        return recv_piece(tcp, share, i, &wire);
    if (rc < 0 && errno == EBADMSG)
        tcp__lose_changed(tcp, conn);
    else if (rc < 0)
        tcp__broken(tcp, conn, errno);
    return rc < 0;
}

/* ---- both ---------------------------------------------------------------- */

int tcp__move_shared(struct tcp *tcp)
{
    int n = take_parts(tcp);

    for (struct tcp_share *share = tcp->rails.shares; share;
         share = share->next) {
        n += send_pieces(tcp, share);
        for (int i = 0; i < tcp->rails.n && share->receiving; i++)
            n += look_at_rail(tcp, share, i);
    }
    return n;
}

void tcp__end_shared(struct tcp *tcp, int rank, int status)
{
    take_parts(tcp);
    for (struct tcp_share *share = tcp->rails.shares; share;
         share = share->next) {
        while (share->conn->rank == rank && share->sending)
            end(tcp, share->sending, status);
        while (share->conn->rank == rank && share->receiving)
            end(tcp, share->receiving, status);
    }
}

static void free_list(struct tcp_shared *list)
{
    for (struct tcp_shared *next; list; list = next) {
        next = list->next;
        free(list);
    }
}

void tcp__free_shares(struct tcp *tcp)
{
    for (struct tcp_share *next, *share = tcp->rails.shares; share;
         share = next) {
        next = share->next;
        free_list(share->sending);
        free_list(share->receiving);
        free(share);
    }
    free_list(tcp->rails.spare);
}
