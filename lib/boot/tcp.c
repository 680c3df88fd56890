/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp.c - the rendezvous: open, messages, and the allgather through rank 0. */
#include "lib/boot/tcp.h"
#include "lib/boot/auth.h"
#include "lib/boot/reactor.h"
#include "lib/boot/tcp_msg.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TELL_TIME 0.5 /* s, for the last words to one rank */

struct head {
    uint32_t type, unused; /* little-endian, as all that travels */
    uint64_t len;
};

int coll__tcp_put(int fd, enum tcp_type type, const void *bytes, size_t len,
                  double deadline)
{
    struct head head = {.type = htole32(type), .len = htole64(len)};
    int status = coll__net_write(fd, &head, sizeof(head), deadline);

    return status ? status : coll__net_write(fd, bytes, len, deadline);
}

void coll__tcp_tell_all(const int *fds, int n_fds, const char *text)
{
    for (int i = 0; i < n_fds; i++)
        if (fds[i] >= 0)
            coll__tcp_put(fds[i], TCP_ERROR, text, strlen(text) + 1,
                          coll__now() + TELL_TIME);
}

static int explain(int status, const char *whom)
{
    if (status == COLL_ERR_TIMEOUT)
        log_error("boot",
                  "%s did not answer in time while the job was "
                  "forming; is it alive?",
                  whom);
    else if (status)
        log_error("boot",
                  "%s went away while the job was forming; see its "
                  "own output",
                  whom);
    return status ? COLL_ERR_BOOTSTRAP : COLL_OK;
}

/* Receive the sentence of an error and log it. */
static void take_error(int fd, uint64_t len, const char *whom, double deadline)
{
    char text[TCP_TEXT] = "";

    if (len > sizeof(text) || coll__net_read(fd, text, len, deadline))
        snprintf(text, sizeof(text), "%s gave up", whom);
    text[sizeof(text) - 1] = '\0';
    log_error("boot", "%s", text);
}

int coll__tcp_take(int fd, enum tcp_type type, void *bytes, size_t len,
                   const char *whom, double deadline)
{
    struct head head;
    int status = coll__net_read(fd, &head, sizeof(head), deadline);

    if (status)
        return explain(status, whom);
    if (le32toh(head.type) == TCP_ERROR) {
        take_error(fd, le64toh(head.len), whom, deadline);
        return COLL_ERR_BOOTSTRAP;
    }
    if (le32toh(head.type) != type || le64toh(head.len) != len) {
        log_error("boot",
                  "%s sent %llu bytes where %zu were due; do all ranks "
                  "run the same program with the same libcoll?",
                  whom, (unsigned long long)le64toh(head.len), len);
        return COLL_ERR_BOOTSTRAP;
    }
    return explain(coll__net_read(fd, bytes, len, deadline), whom);
}

void coll__tcp_state_free(struct tcp_state *state)
{
    for (int i = 0; state && i < state->n_fds; i++)
        if (state->fds[i] >= 0)
            close(state->fds[i]);
    free(state);
}

static int is_this_host(const char *host)
{
    return !strncmp(host, "127.", 4) || !strcmp(host, "::1") ||
           !strcmp(host, "localhost");
}

int coll__tcp_resolve(struct coll__tcp_spec *spec, const char *host,
                      uint16_t port)
{
    int n;

    if (!spec->rank && !is_this_host(host)) {
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

/* Rank 0 sends a nonce to all, so that groups that share a job's secret one
 * after another have different secrets of their own. */
static int welcome(const struct coll__tcp_spec *spec, struct tcp_state *state,
                   double deadline, unsigned char nonce[COLL__NONCE_BYTES])
{
    char whom[32];

    if (spec->rank)
        return coll__tcp_take(state->fds[0], TCP_WELCOME, nonce,
                              COLL__NONCE_BYTES, "rank 0",
                              deadline + TELL_TIME);
    coll__auth_random(nonce, COLL__NONCE_BYTES);
    for (int r = 1; r < spec->size; r++) {
        int status = coll__tcp_put(state->fds[r], TCP_WELCOME, nonce,
                                   COLL__NONCE_BYTES, deadline);

        snprintf(whom, sizeof(whom), "rank %d", r);
        if (status)
            return explain(status, whom);
    }
    return COLL_OK;
}

static int meet(struct coll__boot *boot, const struct coll__tcp_spec *spec)
{
    double deadline = coll__now() + boot->timeout;
    unsigned char nonce[COLL__NONCE_BYTES];
    struct tcp_state *state;
    int status = spec->rank ? coll__tcp_join(spec, deadline, &state)
                            : coll__tcp_host(spec, deadline, &state);

    if (status)
        return status;
    status = welcome(spec, state, deadline, nonce);
    if (status) {
        coll__tcp_state_free(state);
        return status;
    }
    coll__auth_mac(spec->secret, "session", nonce, sizeof(nonce), boot->secret);
    boot->state = state;
    return COLL_OK;
}

int coll__tcp_open(struct coll__boot *boot, const struct coll__tcp_spec *spec)
{
    int status;

    boot->rank = spec->rank;
    boot->size = spec->size;
    if (spec->size == 1) {
        if (spec->listen_fd >= 0)
            close(spec->listen_fd);
        coll__auth_random(boot->secret, sizeof(boot->secret));
        boot->state = NULL;
        return COLL_OK;
    }
    status = coll__reactor_get();
    if (status) {
        if (spec->listen_fd >= 0)
            close(spec->listen_fd);
        return status;
    }
    status = meet(boot, spec);
    if (status)
        coll__reactor_put();
    return status;
}

static int gather_as_root(struct tcp_state *state, size_t len, char *out,
                          double deadline)
{
    size_t all = len * (size_t)state->n_fds;
    char whom[32];
    int status;

    for (int r = 1; r < state->n_fds; r++) {
        snprintf(whom, sizeof(whom), "rank %d", r);
        status = coll__tcp_take(state->fds[r], TCP_BLOCK, out + len * (size_t)r,
                                len, whom, deadline);
        if (status) {
            coll__tcp_tell_all(state->fds, state->n_fds, coll_last_error());
            return status;
        }
    }
    for (int r = 1; r < state->n_fds; r++) {
        snprintf(whom, sizeof(whom), "rank %d", r);
        status = explain(
            coll__tcp_put(state->fds[r], TCP_ALL, out, all, deadline), whom);
        if (status)
            return status;
    }
    return COLL_OK;
}

int coll__tcp_allgather(struct coll__boot *boot, const void *in, size_t len,
                        void *out)
{
    double deadline = coll__now() + boot->timeout;
    struct tcp_state *state = boot->state;
    size_t all = len * (size_t)boot->size;
    int status;

    if (len && all / len != (size_t)boot->size) {
        log_error("boot", "the ranks gather too many bytes at the start");
        return COLL_ERR_INVALID;
    }
    memmove((char *)out + len * (size_t)boot->rank, in, len);
    if (!state)
        return COLL_OK;
    if (!boot->rank)
        return gather_as_root(state, len, out, deadline);
    status = explain(coll__tcp_put(state->fds[0], TCP_BLOCK, in, len, deadline),
                     "rank 0");
    if (status)
        return status;
    return coll__tcp_take(state->fds[0], TCP_ALL, out, all, "rank 0",
                          deadline + TELL_TIME);
}

void coll__tcp_close(struct coll__boot *boot)
{
    coll__auth_wipe(boot->secret, sizeof(boot->secret));
    if (!boot->state)
        return;
    coll__tcp_state_free(boot->state);
    boot->state = NULL;
    coll__reactor_put();
}
