/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous.c - the rendezvous: messages, and the choice between its two sides (rank 0,
 * the other ranks). */
#include "lib/boot/rendezvous.h"
#include "lib/net/auth.h"
#include "lib/net/listener.h"
#include "lib/net/reactor.h"
#include "lib/net/tree.h"
#include "lib/boot/rendezvous_msg.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Send words whose body has len bytes. */
static int put(int fd, struct tcp_words *words, size_t len, double deadline)
{
    words->head.len = htole64(len);
    return coll__net_write(fd, words, sizeof(words->head) + len, deadline);
}

int coll__rendezvous_put(int fd, enum tcp_type type, const void *bytes,
                         size_t len, double deadline)
{
    struct tcp_words words = {.head = {.type = htole32(type)}};

    memcpy(words.body, bytes, len);
    return put(fd, &words, len, deadline);
}

void coll__rendezvous_put_error(int fd, int status, const char *text)
{
    struct tcp_words words = {.head = {.type = htole32(TCP_ERROR),
                                       .fault = htole32((uint32_t)-status)}};
    size_t len = min_size(strlen(text), TCP_TEXT - 1);

    memcpy(words.body, text, len); /* its 0 is there */
    put(fd, &words, len + 1, coll__now() + TELL_TIME);
}

int coll__rendezvous_read(int fd, struct tcp_words *words)
{
    size_t head = sizeof(words->head), want;
    ssize_t n;

    for (;;) {
        want = head;
        if (words->n_read >= head) {
            if (tcp_len(words) > sizeof(words->body))
                return -1;
            want += tcp_len(words);
            if (words->n_read == want)
                break;
        }
        n = recv(fd, (char *)words + words->n_read, want - words->n_read, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        words->err = n < 0 ? errno : 0;
        if (n <= 0)
            return -1;
        words->n_read += (size_t)n;
    }
    words->n_read = 0;
    if (tcp_type(words) == TCP_ERROR)
        words->body[sizeof(words->body) - 1] = '\0';
    return 1;
}

void coll__rendezvous_lost(int rank, const char *where,
                           const struct tcp_words *words, char text[TCP_TEXT])
{
    snprintf(text, TCP_TEXT, "rank %d (at %s) %s", rank, where,
             coll__net_is_silence(words->err)
                 ? COLL__SILENT_TEXT
                 : "died while the job was forming; see its own output");
}

int coll__rendezvous_fault(const struct tcp_words *words)
{
    uint32_t fault = le32toh(words->head.fault);

    return fault && fault <= (uint32_t)-COLL_ERR_INTERNAL ? -(int)fault
                                                          : COLL_ERR_BOOTSTRAP;
}

int coll__rendezvous_is_this_host(const char *host)
{
    return !strncmp(host, "127.", 4) || !strcmp(host, "::1") ||
           !strcmp(host, "[::1]") || !strcmp(host, "localhost");
}

/* Make a port number from the words, by FNV-1a.  The port is above those that servers
 * use, and at least COLL__MAX_PORTS ports follow it. */
uint16_t coll__rendezvous_port_of(const char *words)
{
    uint32_t hash = 2166136261u;

    for (const char *c = words; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return (uint16_t)(20000 + hash % 40000);
}

int coll__rendezvous_resolve(struct coll__rendezvous_spec *spec,
                             const char *host, uint16_t port)
{
    int n;

    if (!spec->rank && !coll__rendezvous_is_this_host(host)) {
        spec->addrs[0] = (struct coll__addr){.family = 6};
        coll__net_set_port(&spec->addrs[0], port);
        spec->n_addrs = 1;
        return COLL_OK;
    }
    n = coll__net_resolve(host, port, spec->addrs);
    if (n < 0)
        return n;
    spec->n_addrs = n;
    return COLL_OK;
}

int coll__rendezvous_listen(const struct coll__rendezvous_spec *spec)
{
    int n = spec->n_addrs * spec->n_ports, status = COLL_ERR_SYSTEM;

    if (spec->listen_fd >= 0)
        return coll__listener_adopt(spec->listen_fd, spec->is_brief);
    if (spec->is_home)
        return COLL_OK;
    for (int i = 0; status && i < n; i++) {
        struct coll__addr at = spec->addrs[i / spec->n_ports];
        int port = coll__net_port(&at) + i % spec->n_ports;

        coll__net_set_port(&at, (uint16_t)port);
        status = coll__listener_open_at(&at, i < n - 1);
    }
    return status;
}

/* Begin to use the reactor; even a rank 0 that lacks descriptors needs it, to tell the
 * others so. */
static int begin(const struct coll__rendezvous_spec *spec)
{
    int status = coll__reactor_get();

    if (status || !spec->rank || !coll__rendezvous_join_lacks(spec))
        return status;
    coll__reactor_put();
    return COLL_ERR_SYSTEM;
}

int coll__rendezvous_open(struct coll__boot *boot,
                          const struct coll__rendezvous_spec *spec)
{
    int status;

    boot->rank = spec->rank;
    boot->size = spec->size;
    boot->is_one_host = 1;
    boot->state = NULL;
    if (spec->size == 1) {
        if (spec->listen_fd >= 0)
            close(spec->listen_fd);
        coll__auth_random(boot->secret, sizeof(boot->secret));
        return COLL_OK;
    }
    status = begin(spec);
    if (status) {
        if (spec->listen_fd >= 0)
            close(spec->listen_fd);
        if (spec->rank)
            coll__rendezvous_join_excuse(spec, status);
        return status;
    }
    status = spec->rank ? coll__rendezvous_join_open(boot, spec)
                        : coll__rendezvous_root_open(boot, spec);
    if (status)
        coll__reactor_put();
    return status;
}

int coll__rendezvous_meet_again(struct coll__boot *boot,
                                struct coll__rendezvous_spec *spec,
                                atomic_uint *n_opened)
{
    int status;

    spec->generation =
        atomic_fetch_add_explicit(n_opened, 1, memory_order_relaxed);
    status = coll__rendezvous_open(boot, spec);
    coll__auth_wipe(spec->secret, sizeof(spec->secret));
    return status;
}

int coll__rendezvous_places(struct coll__boot *boot, const void *in, size_t len,
                            void *out)
{
    char *blocks = out;
    size_t parent = (size_t)coll__tree_parent(boot->rank, boot->size);

    memmove(blocks + len * (size_t)boot->rank, in, len);
    if (!boot->state)
        return COLL_OK;
    if (len > TCP_BLOCK_MAX) {
        log_error("boot", "a place of %zu bytes is too long", len);
        return COLL_ERR_INVALID;
    }
    if (!boot->rank)
        return coll__rendezvous_root_places(boot, in, len);
    return coll__rendezvous_join_places(boot, in, len, blocks + len * parent);
}

void coll__rendezvous_tell(struct coll__boot *boot, int status,
                           const char *text)
{
    if (!boot->state)
        return;
    if (boot->rank)
        coll__rendezvous_join_tell(boot, status, text);
    else
        coll__rendezvous_root_tell(boot, status, text);
}

void coll__rendezvous_close(struct coll__boot *boot)
{
    coll__auth_wipe(boot->secret, sizeof(boot->secret));
    if (!boot->state)
        return;
    if (boot->rank)
        coll__rendezvous_join_close(boot);
    else
        coll__rendezvous_root_close(boot);
    boot->state = NULL;
    coll__reactor_put();
}
