/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.c - read whole frames, write queued ones, keep the table of wires, and notice a
 * host that has fallen silent.
 *
 * Sent data is watched until the other end's kernel has acknowledged it.  The kernel's
 * keep-alive probes watch a wire on which nothing is under way.
 */
#include "lib/net/wire.h"
#include "lib/net/auth.h"
#include "lib/net/net.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define REST_TIME 1.0   /* s, that a wire stays without a link */
#define FIRST_TIME 10.0 /* s, until the first link comes */

struct coll__wire_chunk {
    struct coll__wire_chunk *next;
    size_t len, n_sent;
    unsigned char bytes[];
};

/* Encryption: a frame's header and body travel as records, a long body as several. */
struct coll__wire_crypt {
    struct coll__seal in, out;
    unsigned char record[COLL__SEAL_RECORD + COLL__SEAL_BYTES]; /* being read */
    size_t n_record;
};

/* All under the reactor's lock; local_generation says which process they belong to. */
static struct coll__wire *wires;
static struct coll__wire local = {.source.fd = -1};
static struct coll__task local_task;
static unsigned local_generation;

static void drop_output(struct coll__wire *wire)
{
    while (wire->first) {
        struct coll__wire_chunk *chunk = wire->first;

        wire->first = chunk->next;
        free(chunk);
    }
    wire->last = &wire->first;
    wire->n_queued = 0;
}

static void free_crypt(struct coll__wire_crypt *crypt)
{
    if (crypt)
        coll__auth_wipe(crypt, sizeof(*crypt));
    free(crypt);
}

static void forget(struct coll__wire *wire)
{
    struct coll__wire **at = &wires;

    while (*at != wire)
        at = &(*at)->next;
    *at = wire->next;
    drop_output(wire);
    free_crypt(wire->crypt);
    free(wire->body);
    free(wire);
}

static void snap(struct coll__wire *wire)
{
    coll__reactor_remove(&wire->source);
    coll__wire_broken(wire, 1);
    forget(wire);
}

static struct coll__wire_head swap(const struct coll__wire_head *head)
{
    return (struct coll__wire_head){
        .tag = le64toh(head->tag), /* to and from are the same */
        .src = le32toh(head->src),
        .dst = le32toh(head->dst),
        .frame = {.type = le32toh(head->frame.type),
                  .from = le32toh(head->frame.from),
                  .to = le32toh(head->frame.to),
                  .id = le32toh(head->frame.id),
                  .len = le64toh(head->frame.len)},
    };
}

/* ---- input -------------------------------------------------------------- */

/* The socket has failed: note whether the other end's host is silent.  The kernel
 * reports an error only once, to the next read or write. */
static void note_error(struct coll__wire *wire, int err)
{
    wire->is_silent |= coll__net_is_silence(err);
}

/* Read up to `want` bytes: > 0; 0: nothing now; -1: the end. */
static ssize_t receive(struct coll__wire *wire, void *to, size_t want)
{
    for (;;) {
        ssize_t n = recv(wire->source.fd, to, want, 0);

        if (n > 0) {
            wire->is_drained = (size_t)n < want;
            return n;
        }
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            note_error(wire, errno);
        return -1;
    }
}

/* Read by way of the inbox: a small frame takes one system call. */
static ssize_t take(struct coll__wire *wire, void *to, size_t want)
{
    size_t n = wire->in_end - wire->in_at;

    if (!n && wire->is_drained)
        return 0;
    if (!n && want >= sizeof(wire->inbox))
        return receive(wire, to, want);
    if (!n) {
        ssize_t got = receive(wire, wire->inbox, sizeof(wire->inbox));

        if (got <= 0)
            return got;
        wire->in_at = 0;
        wire->in_end = n = (size_t)got;
    }
    n = min_size(n, want);
    memcpy(to, wire->inbox + wire->in_at, n);
    wire->in_at += n;
    return (ssize_t)n;
}

/* Read sealed bytes: a whole record, or nothing yet. */
static ssize_t take_record(struct coll__wire *wire, void *to, size_t want)
{
    struct coll__wire_crypt *crypt = wire->crypt;
    size_t len = min_size(want, COLL__SEAL_RECORD);

    while (crypt->n_record < len + COLL__SEAL_BYTES) {
        ssize_t n = take(wire, crypt->record + crypt->n_record,
                         len + COLL__SEAL_BYTES - crypt->n_record);

        if (n <= 0)
            return n;
        crypt->n_record += (size_t)n;
    }
    crypt->n_record = 0;
    if (!coll__seal_take(&crypt->in, to, crypt->record, len))
        return (ssize_t)len;
    log_error("boot", "a control message failed authentication: it was changed "
                      "on its way here");
    return -1;
}

static ssize_t take_part(struct coll__wire *wire, void *to, size_t want)
{
    return wire->crypt ? take_record(wire, to, want) : take(wire, to, want);
}

static int deliver(struct coll__wire *wire)
{
    unsigned char *body = wire->body;
    struct coll__wire_head head = wire->head;

    wire->body = NULL;
    wire->n_head = wire->n_body = 0;
    coll__wire_got(wire, &head, body);
    return 1;
}

/* The head is complete: allocate the body. */
static int begin_body(struct coll__wire *wire)
{
    wire->head = swap(&wire->head);
    if (!wire->head.frame.len)
        return deliver(wire);
    if (wire->head.frame.len > COLL__FRAME_MAX)
        return -1;
    wire->body = malloc(wire->head.frame.len);
    return wire->body ? 1 : -1;
}

/* Read a piece: 1: go on; 0: nothing now; -1: break the wire. */
static int read_some(struct coll__wire *wire)
{
    size_t len = wire->head.frame.len;
    ssize_t n;

    if (wire->n_head < sizeof(wire->head)) {
        n = take_part(wire, (char *)&wire->head + wire->n_head,
                      sizeof(wire->head) - wire->n_head);
        if (n <= 0)
            return (int)n;
        wire->n_head += (size_t)n;
        return wire->n_head < sizeof(wire->head) ? 1 : begin_body(wire);
    }
    n = take_part(wire, wire->body + wire->n_body, len - wire->n_body);
    if (n <= 0)
        return (int)n;
    wire->n_body += (size_t)n;
    return wire->n_body < len ? 1 : deliver(wire);
}

/* ---- output ------------------------------------------------------------- */

/* Write as much as the socket takes.  After an error the output is dropped; the reads
 * that follow still get the peer's last frames, and then the end. */
static void flush(struct coll__wire *wire)
{
    while (wire->first) {
        struct coll__wire_chunk *chunk = wire->first;
        ssize_t n = send(wire->source.fd, chunk->bytes + chunk->n_sent,
                         chunk->len - chunk->n_sent, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            note_error(wire, errno);
            drop_output(wire);
        }
        if (n < 0)
            break;
        chunk->n_sent += (size_t)n;
        wire->n_queued -= (size_t)n;
        if (chunk->n_sent < chunk->len)
            break;
        wire->first = chunk->next;
        if (!wire->first)
            wire->last = &wire->first;
        free(chunk);
    }
    coll__reactor_change(&wire->source,
                         wire->first ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Write a part of a frame in the form in which it travels; returns the end. */
static unsigned char *put_part(struct coll__wire *wire, unsigned char *to,
                               const void *from, size_t len)
{
    if (!wire->crypt) {
        memcpy(to, from, len);
        return to + len;
    }
    for (size_t at = 0, n; at < len; at += n) {
        n = min_size(len - at, COLL__SEAL_RECORD);
        coll__seal_put(&wire->crypt->out, to, (const char *)from + at, n);
        to += n + COLL__SEAL_BYTES;
    }
    return to;
}

static size_t len_of(const struct coll__wire *wire, size_t len)
{
    return wire->crypt ? coll__sealed_len(len) : len;
}

static int enqueue(struct coll__wire *wire, const struct coll__wire_head *head,
                   const void *body)
{
    size_t len = len_of(wire, sizeof(*head)) + len_of(wire, head->frame.len);
    struct coll__wire_chunk *chunk = malloc(sizeof(*chunk) + len);
    struct coll__wire_head swapped = swap(head);
    unsigned char *at;

    if (!chunk) {
        log_error("boot", "no memory for a control message of %zu bytes", len);
        return COLL_ERR_NOMEM;
    }
    chunk->next = NULL;
    chunk->len = len;
    chunk->n_sent = 0;
    at = put_part(wire, chunk->bytes, &swapped, sizeof(swapped));
    if (head->frame.len)
        put_part(wire, at, body, head->frame.len);
    *wire->last = chunk;
    wire->last = &chunk->next;
    wire->n_queued += len;
    return COLL_OK;
}

static void begin_local(void);

int coll__wire_send(struct coll__wire *wire, const struct coll__wire_head *head,
                    const void *body)
{
    double look_at;
    int status;

    begin_local();
    if (wire == &local ? !local.links : wire->source.fd < 0)
        return COLL_OK; /* it is breaking, or was the parent's */
    status = enqueue(wire, head, body);
    if (status)
        return status;
    if (wire == &local) {
        coll__reactor_defer(&local_task);
        return COLL_OK;
    }
    flush(wire);
    look_at = coll__now() + COLL__SILENCE_LOOK;
    if (wire->source.deadline <= 0 || wire->source.deadline > look_at)
        coll__reactor_deadline(&wire->source, look_at);
    return COLL_OK;
}

/* ---- the wire to ourselves ---------------------------------------------- */

/* Deliver the queued frames; frames that the callbacks send are queued behind them. */
static void run_local(struct coll__task *task)
{
    (void)task;
    while (local.first) {
        struct coll__wire_chunk *chunk = local.first;
        struct coll__wire_head head;
        unsigned char *body = NULL;

        memcpy(&head, chunk->bytes, sizeof(head));
        head = swap(&head);
        if (head.frame.len && !(body = malloc(head.frame.len))) {
            coll__wire_broken(&local, 1);
            drop_output(&local);
            return;
        }
        if (body)
            memcpy(body, chunk->bytes + sizeof(head), head.frame.len);
        local.first = chunk->next;
        if (!local.first)
            local.last = &local.first;
        local.n_queued -= chunk->len;
        free(chunk);
        coll__wire_got(&local, &head, body);
    }
    coll__wire_drained(&local);
}

/* Name this process.  A forked child begins anew with another name: it cannot use the
 * parent's links. */
static void begin_local(void)
{
    if (local.is_known && local_generation == coll__generation_now())
        return;
    if (local.is_known)
        coll__wire_broken(&local, 0);
    drop_output(&local);
    coll__auth_random(local.process, sizeof(local.process));
    local.is_known = 1;
    local_generation = coll__generation_now();
    local_task = (struct coll__task){.run = run_local};
}

void coll__wire_self(unsigned char process[COLL__PROCESS_BYTES])
{
    begin_local();
    memcpy(process, local.process, COLL__PROCESS_BYTES);
}

/* ---- the table ---------------------------------------------------------- */

struct coll__wire *coll__wire_find(const unsigned char *process)
{
    struct coll__wire *wire = wires;

    begin_local();
    if (!memcmp(process, local.process, COLL__PROCESS_BYTES))
        return &local;
    while (wire && (!wire->is_known || wire->source.fd < 0 ||
                    memcmp(process, wire->process, COLL__PROCESS_BYTES)))
        wire = wire->next;
    return wire;
}

int coll__wire_count(void)
{
    int n = 0;

    for (struct coll__wire *wire = wires; wire; wire = wire->next)
        n++;
    return n;
}

static void wire_ready(struct coll__source *source, uint32_t events)
{
    struct coll__wire *wire = (struct coll__wire *)source;
    int rc;

    if (events & EPOLLOUT) {
        flush(wire);
        if (!wire->first)
            coll__wire_drained(wire);
    }
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)))
        return;
    wire->is_drained = 0;
    while ((rc = read_some(wire)) > 0)
        ;
    if (rc < 0)
        snap(wire);
}

/* Check whether sent data has been acknowledged, and whether the wire is still used. */
static void wire_expired(struct coll__source *source)
{
    struct coll__wire *wire = (struct coll__wire *)source;
    double now = coll__now(), silence;
    int is_unheard = coll__net_is_unheard(source->fd, &silence);

    wire->is_silent |= is_unheard && silence >= COLL__SILENCE;
    if (wire->is_silent || (!wire->links && now >= wire->rest_at))
        snap(wire);
    else if (is_unheard)
        coll__reactor_deadline(source, now + COLL__SILENCE_LOOK);
    else if (!wire->links)
        coll__reactor_deadline(source, wire->rest_at);
}

static void wire_dropped(struct coll__source *source)
{
    struct coll__wire *wire = (struct coll__wire *)source;

    coll__wire_broken(wire, 0);
    forget(wire);
}

/* Each direction has a key of its own, named by its sender's role. */
static struct coll__wire_crypt *new_crypt(const unsigned char *session,
                                          const char *role)
{
    int is_listener = !strcmp(role, "listener");
    struct coll__wire_crypt *crypt = calloc(1, sizeof(*crypt));

    if (!crypt)
        return NULL;
    coll__seal_init(&crypt->out, session, role);
    coll__seal_init(&crypt->in, session,
                    is_listener ? "connector" : "listener");
    return crypt;
}

static struct coll__wire *make(int fd, const unsigned char *process,
                               const unsigned char *session, const char *role)
{
    struct coll__wire *wire = calloc(1, sizeof(*wire));

    if (wire && session)
        wire->crypt = new_crypt(session, role);
    if (!wire || (session && !wire->crypt)) {
        log_error("boot", "no memory for a connection");
        free(wire);
        return NULL;
    }
    wire->source = (struct coll__source){
        .fd = fd,
        .events = EPOLLIN,
        .deadline = coll__now() + FIRST_TIME,
        .ready = wire_ready,
        .expired = wire_expired,
        .dropped = wire_dropped,
    };
    wire->rest_at = wire->source.deadline;
    wire->last = &wire->first;
    if (process) {
        memcpy(wire->process, process, COLL__PROCESS_BYTES);
        wire->is_known = 1;
    }
    return wire;
}

struct coll__wire *coll__wire_new(int fd, const unsigned char *process,
                                  const unsigned char *session,
                                  const char *role)
{
    struct coll__wire *wire = make(fd, process, session, role);

    if (!wire || coll__reactor_add(&wire->source)) {
        if (wire)
            free_crypt(wire->crypt);
        free(wire);
        close(fd);
        return NULL;
    }
    coll__net_allow_stalls(fd);
    wire->next = wires;
    wires = wire;
    return wire;
}

void coll__wire_rest(struct coll__wire *wire)
{
    if (wire == &local || wire->source.fd < 0)
        return;
    wire->rest_at = coll__now() + REST_TIME;
    if (wire->source.deadline <= 0)
        coll__reactor_deadline(&wire->source, wire->rest_at);
}
