/* SPDX-License-Identifier: BSD-3-Clause */
/* link.c - read whole frames, write queued ones. */
#include "lib/boot/link.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct coll__link_chunk {
    struct coll__link_chunk *next;
    size_t len, n_sent;
    unsigned char bytes[];
};

static void drop_output(struct coll__link *link)
{
    while (link->first) {
        struct coll__link_chunk *chunk = link->first;

        link->first = chunk->next;
        free(chunk);
    }
    link->last = &link->first;
    link->n_queued = 0;
}

static void forget(struct coll__link *link)
{
    drop_output(link);
    free(link->body);
    link->body = NULL;
}

static void snap(struct coll__link *link)
{
    coll__reactor_remove(&link->source);
    forget(link);
    link->broken(link);
}

static struct coll__frame swap(const struct coll__frame *frame)
{
    return (struct coll__frame){
        .type = le32toh(frame->type), /* to and from are the same */
        .from = le32toh(frame->from),
        .to = le32toh(frame->to),
        .id = le32toh(frame->id),
        .len = le64toh(frame->len),
    };
}

/* ---- input -------------------------------------------------------------- */

/* Read up to want bytes: > 0, 0 for nothing now, -1 at the end. */
static ssize_t take(struct coll__link *link, void *to, size_t want)
{
    for (;;) {
        ssize_t n = recv(link->source.fd, to, want, 0);

        if (n > 0)
            return n;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (!n || errno != EINTR)
            return -1;
    }
}

static int deliver(struct coll__link *link)
{
    unsigned char *body = link->body;
    struct coll__frame frame = link->head;

    link->body = NULL;
    link->n_head = link->n_body = 0;
    return link->got(link, &frame, body) ? -1 : 1;
}

/* The header is whole: make room for the body. */
static int begin_body(struct coll__link *link)
{
    link->head = swap(&link->head);
    if (!link->head.len)
        return deliver(link);
    if (link->head.len > COLL__FRAME_MAX)
        return -1;
    link->body = malloc(link->head.len);
    return link->body ? 1 : -1;
}

/* Read a piece: 1 go on, 0 nothing now, -1 the link is to break. */
static int read_some(struct coll__link *link)
{
    ssize_t n;

    if (link->n_head < sizeof(link->head)) {
        n = take(link, (char *)&link->head + link->n_head,
                 sizeof(link->head) - link->n_head);
        if (n <= 0)
            return (int)n;
        link->n_head += (size_t)n;
        return link->n_head < sizeof(link->head) ? 1 : begin_body(link);
    }
    n = take(link, link->body + link->n_body, link->head.len - link->n_body);
    if (n <= 0)
        return (int)n;
    link->n_body += (size_t)n;
    return link->n_body < link->head.len ? 1 : deliver(link);
}

/* ---- output ------------------------------------------------------------- */

static void finish_output(struct coll__link *link)
{
    if (link->is_shutting)
        shutdown(link->source.fd, SHUT_WR);
    link->drained(link);
}

/* Write what the socket takes.  An error shows again at the next read, which
 * comes first to what the peer had to say. */
static void flush(struct coll__link *link)
{
    while (link->first) {
        struct coll__link_chunk *chunk = link->first;
        ssize_t n = send(link->source.fd, chunk->bytes + chunk->n_sent,
                         chunk->len - chunk->n_sent, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            drop_output(link);
        if (n < 0)
            break;
        chunk->n_sent += (size_t)n;
        link->n_queued -= (size_t)n;
        if (chunk->n_sent < chunk->len)
            break;
        link->first = chunk->next;
        if (!link->first)
            link->last = &link->first;
        free(chunk);
    }
    coll__reactor_change(&link->source,
                         link->first ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

int coll__link_send(struct coll__link *link, const struct coll__frame *frame,
                    const void *body)
{
    struct coll__frame wire = swap(frame);
    struct coll__link_chunk *chunk;
    size_t len = sizeof(wire) + frame->len;

    if (!coll__link_is_up(link) || link->is_shutting)
        return COLL_OK;
    chunk = malloc(sizeof(*chunk) + len);
    if (!chunk) {
        log_error("boot", "no memory for a control message of %zu bytes", len);
        return COLL_ERR_NOMEM;
    }
    chunk->next = NULL;
    chunk->len = len;
    chunk->n_sent = 0;
    memcpy(chunk->bytes, &wire, sizeof(wire));
    if (frame->len)
        memcpy(chunk->bytes + sizeof(wire), body, frame->len);
    *link->last = chunk;
    link->last = &chunk->next;
    link->n_queued += len;
    flush(link);
    return COLL_OK;
}

void coll__link_shut(struct coll__link *link)
{
    if (!coll__link_is_up(link) || link->is_shutting)
        return;
    link->is_shutting = 1;
    if (!link->first)
        finish_output(link);
}

/* ---- the source --------------------------------------------------------- */

static void link_ready(struct coll__source *source, uint32_t events)
{
    struct coll__link *link = (struct coll__link *)source;
    int rc;

    if (events & EPOLLOUT) {
        flush(link);
        if (!link->first)
            finish_output(link);
    }
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)))
        return;
    while ((rc = read_some(link)) > 0)
        ;
    if (rc < 0)
        snap(link);
}

static void link_expired(struct coll__source *source) { (void)source; }

static void link_dropped(struct coll__source *source)
{
    forget((struct coll__link *)source);
}

int coll__link_open(struct coll__link *link, int fd)
{
    link->source = (struct coll__source){
        .fd = fd,
        .events = EPOLLIN,
        .ready = link_ready,
        .expired = link_expired,
        .dropped = link_dropped,
    };
    link->last = &link->first;
    if (!coll__reactor_add(&link->source))
        return COLL_OK;
    link->source.fd = -1;
    close(fd);
    return COLL_ERR_SYSTEM;
}

void coll__link_close(struct coll__link *link)
{
    coll__reactor_remove(&link->source);
    if (link->last)
        forget(link);
}
