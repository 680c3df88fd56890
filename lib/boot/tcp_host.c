/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_host.c - rank 0 at the rendezvous: let in who proves the secret, until
 * every rank is there.
 *
 * Connections arrive on the reactor's thread, which fills in the state under
 * its lock; the caller waits for them and then owns it alone.
 */
#include "lib/boot/door.h"
#include "lib/boot/reactor.h"
#include "lib/boot/tcp.h"
#include "lib/boot/tcp_msg.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct host {
    struct coll__gate gate; /* first */
    struct tcp_state *state;
    pthread_cond_t changed;
    int n_missing;
    char fault[TCP_TEXT]; /* why the job cannot form; "" while it can */
};

/* Find what is wrong with who came; writes a sentence, or nothing. */
static void find_fault(struct host *host, int fd,
                       const struct coll__hello *hello)
{
    int size = host->state->n_fds;
    char who[COLL__ADDR_TEXT];

    coll__net_peer_text(fd, who);
    if (hello->size != (uint32_t)size)
        snprintf(host->fault, sizeof(host->fault),
                 "rank %u (pid %u at %s) "
                 "says the job has %u ranks, rank 0 says %d; give every rank "
                 "the same number",
                 hello->from, hello->pid, who, hello->size, size);
    else if (!hello->from || hello->from >= (uint32_t)size)
        snprintf(host->fault, sizeof(host->fault),
                 "a second process (pid %u "
                 "at %s) calls itself rank %u of %d; give every process a rank "
                 "of its own",
                 hello->pid, who, hello->from, size);
    else if (host->state->fds[hello->from] >= 0)
        snprintf(host->fault, sizeof(host->fault),
                 "two processes came as rank "
                 "%u (the second is pid %u at %s); give every process a rank "
                 "of its own",
                 hello->from, hello->pid, who);
}

static void arrived(struct coll__gate *gate, int fd,
                    const struct coll__hello *hello)
{
    struct host *host = (struct host *)gate;

    if (!host->fault[0])
        find_fault(host, fd, hello);
    if (host->fault[0]) {
        coll__tcp_tell_all(&fd, 1, host->fault);
        close(fd);
    } else {
        host->state->fds[hello->from] = fd;
        host->n_missing--;
    }
    pthread_cond_broadcast(&host->changed);
}

/* Write "rank 3", "ranks 3 and 5" or "ranks 3, 5, 6, ... (9 in all)". */
static void name_missing(const struct tcp_state *state, int n_missing,
                         char *text, size_t len)
{
    int n_named = 0;
    size_t at = (size_t)snprintf(text, len, n_missing > 1 ? "ranks" : "rank");

    for (int r = 1; r < state->n_fds && n_named < 8; r++)
        if (state->fds[r] < 0)
            at += (size_t)snprintf(text + at, len - at, "%s %d",
                                   n_named++ ? "," : "", r);
    if (n_missing > n_named)
        snprintf(text + at, len - at, ", ... (%d in all)", n_missing);
}

/* Wait until all are there; lock held. */
static void wait_for_all(struct host *host, double deadline, double timeout)
{
    char missing[128];

    while (host->n_missing && !host->fault[0])
        if (coll__reactor_wait(&host->changed, deadline))
            break;
    if (!host->n_missing || host->fault[0])
        return;
    name_missing(host->state, host->n_missing, missing, sizeof(missing));
    snprintf(host->fault, sizeof(host->fault),
             "%s did not join within %.3g s; "
             "were all %d ranks started, and can they reach rank 0?",
             missing, timeout, host->state->n_fds);
}

/* Have a listening socket at the address that all know. */
static int open_door(const struct coll__tcp_spec *spec)
{
    struct coll__addr at = spec->addrs[0];
    uint16_t port = coll__net_port(&at);
    int status = COLL_ERR_SYSTEM;

    if (spec->listen_fd >= 0)
        return coll__door_adopt(spec->listen_fd, spec->is_brief);
    for (int i = 0; status && i < spec->n_ports; i++) {
        coll__net_set_port(&at, (uint16_t)(port + i));
        status = coll__door_open_at(&at, i < spec->n_ports - 1);
    }
    return status;
}

static int receive_all(struct host *host, const struct coll__tcp_spec *spec,
                       double deadline)
{
    double timeout = deadline - coll__now();
    int status;

    coll__reactor_lock();
    coll__gate_add(&host->gate);
    coll__reactor_unlock();
    status = open_door(spec);
    coll__reactor_lock();
    if (!status)
        wait_for_all(host, deadline, timeout);
    coll__gate_remove(&host->gate);
    if (!status && spec->is_brief)
        coll__door_close_spare(spec->listen_fd);
    coll__reactor_unlock();
    if (!host->fault[0])
        return status;
    coll__tcp_tell_all(host->state->fds, host->state->n_fds, host->fault);
    log_error("boot", "%s", host->fault);
    return COLL_ERR_BOOTSTRAP;
}

int coll__tcp_host(const struct coll__tcp_spec *spec, double deadline,
                   struct tcp_state **state)
{
    size_t n = (size_t)spec->size;
    struct host host = {.n_missing = spec->size - 1};
    int status;

    host.state = malloc(sizeof(*host.state) + n * sizeof(int));
    if (!host.state) {
        log_error("boot", "no memory for a job of %d ranks", spec->size);
        if (spec->listen_fd >= 0)
            close(spec->listen_fd);
        return COLL_ERR_NOMEM;
    }
    host.state->n_fds = spec->size;
    for (size_t i = 0; i < n; i++)
        host.state->fds[i] = -1;
    host.gate.kind = DOOR_BOOT;
    host.gate.generation = spec->generation;
    host.gate.arrived = arrived;
    memcpy(host.gate.secret, spec->secret, COLL__SECRET_BYTES);
    coll__reactor_cond_init(&host.changed);

    status = receive_all(&host, spec, deadline);
    pthread_cond_destroy(&host.changed);
    coll__auth_wipe(host.gate.secret, COLL__SECRET_BYTES);
    if (status)
        coll__tcp_state_free(host.state);
    else
        *state = host.state;
    return status;
}
