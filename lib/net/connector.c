/* SPDX-License-Identifier: BSD-3-Clause */
/* connector.c - connect to one of several addresses.  Each address has a struct line,
 * which connects, proves the secret, and tries again after a pause when an attempt
 * fails.
 *
 * A line keeps its last result for error messages.  An attempt that the deadline cuts
 * short has no result, so the line keeps the result before.
 */
#include "lib/net/connector.h"
#include "lib/net/handshake.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_START 0.25 /* s, between two addresses' starts */
#define CONNECT_TIME (COLL__SILENCE / 2.0) /* s, for one attempt */
#define UNHEARD 2      /* attempts, and COLL__SILENCE: the host is silent */
#define PROBE_TIME 2.0 /* s, for one of several candidate ports */
#define FIRST_PAUSE 0.01
#define LAST_PAUSE 0.25
#define FOREIGN_PAUSE 1.0 /* s, after an answer from a stranger */
#define WARN_AFTER 10.0   /* s */
#define LOOK_EVERY 0.1    /* s, between two calls of is_over() */

enum step { STEP_PAUSE, STEP_CONNECT, STEP_ANSWER };

/* The result of an attempt, from the least informative to the most. */
enum heard {
    HEARD_NOTHING,
    HEARD_REFUSED,
    HEARD_ERROR, /* err: its errno */
    HEARD_NO_SYN,
    HEARD_NO_WORD,
    HEARD_END,
    HEARD_EARLY,
    HEARD_FALSE,
    HEARD_OTHERWISE,
    HEARD_UNKNOWN
};

struct line {
    const struct coll__addr *addr;
    int port; /* 0 to n_ports - 1 */
    enum step step;
    int fd;       /* -1 in a pause */
    double begun; /* when this attempt began */
    double until; /* when the pause or this attempt ends */
    double pause;
    enum heard heard;
    int err;        /* of HEARD_ERROR */
    int heard_port; /* its port */
    int n_unheard;  /* attempts in a row without an answer from the host */
    double unheard_since;
    struct coll__hello wire;
    struct challenge challenge;
    size_t n_read;
};

struct coll__call {
    struct coll__connector *connector;
    struct line lines[COLL__MAX_ADDRS];
    double warn_at;
    unsigned generation; /* of the process; a child inherits the parent's sockets */
};

/* ---- what has been heard ------------------------------------------------ */

static const char *meaning(const struct line *line)
{
    switch (line->heard) {
    case HEARD_NOTHING:
        return line->step == STEP_ANSWER  ? "it takes the connection and says "
                                            "nothing"
               : line->step == STEP_PAUSE ? "not tried"
                                          : "no answer";
    case HEARD_REFUSED:
        return "connection refused";
    case HEARD_ERROR:
        return coll__net_error(line->err);
    case HEARD_NO_SYN:
        return "no answer";
    case HEARD_NO_WORD:
        return "it takes the connection and says nothing";
    case HEARD_END:
        return "it closed the connection";
    case HEARD_EARLY:
        return "rank 0 has not come there yet, or no room";
    case HEARD_FALSE:
        return "it could not prove the job's secret";
    case HEARD_OTHERWISE:
        return "it has another COLL_NET_ENCRYPT; set the same on all ranks";
    default:
        return "it knows no such job";
    }
}

static struct coll__addr place(const struct line *line, int port)
{
    struct coll__addr addr = *line->addr;

    coll__net_set_port(&addr, (uint16_t)(coll__net_port(&addr) + port));
    return addr;
}

/* Write "10.0.0.1:5000: connection refused; [::1]:5000: no answer". */
static void explain(struct coll__call *call)
{
    struct coll__connector *connector = call->connector;
    size_t at = 0;

    connector->why[0] = '\0';
    for (int i = 0; i < connector->n_addrs && at < sizeof(connector->why);
         i++) {
        const struct line *line = &call->lines[i];
        struct coll__addr addr = place(line, line->heard_port);
        char where[COLL__ADDR_TEXT];

        if (i == connector->at)
            continue;
        coll__net_text(&addr, where);
        connector->is_want |=
            line->heard == HEARD_ERROR && coll__files_lack(line->err);
        connector->is_otherwise |= line->heard == HEARD_OTHERWISE;
        connector->is_strange |=
            line->heard == HEARD_UNKNOWN || line->heard == HEARD_FALSE;
        at +=
            (size_t)snprintf(connector->why + at, sizeof(connector->why) - at,
                             "%s%s: %s", at ? "; " : "", where, meaning(line));
    }
}

/* Has the host been silent?  It may be down, or a firewall drops packets to it.  Two
 * attempts are needed: one alone may only mean that no thread served this line. */
static int is_silent(const struct line *line)
{
    return line->n_unheard >= UNHEARD &&
           coll__now() - line->unheard_since >= COLL__SILENCE;
}

/* Is it useless to try this line again? */
static int is_hopeless(const struct coll__connector *connector,
                       const struct line *line)
{
    if (is_silent(line))
        return 1;
    switch (line->heard) {
    case HEARD_UNKNOWN:
    case HEARD_OTHERWISE:
    case HEARD_FALSE:
        return connector->n_ports == 1;
    case HEARD_REFUSED:
        return !connector->is_patient;
    case HEARD_ERROR: /* a route may come up, but none to this host itself */
        return !connector->is_patient || line->err == ENETDOWN ||
               coll__files_lack(line->err) || coll__net_is_loopback(line->addr);
    default:
        return 0;
    }
}

/* Return COLL_IN_PROGRESS while some line may still succeed. */
static int verdict(const struct coll__call *call)
{
    int status = COLL_ERR_SYSTEM, n_silent = 0;

    for (int i = 0; i < call->connector->n_addrs; i++) {
        const struct line *line = &call->lines[i];

        if (!is_hopeless(call->connector, line))
            return COLL_IN_PROGRESS;
        if (line->heard >= HEARD_FALSE)
            status = COLL_ERR_PEER;
        n_silent += is_silent(line);
    }
    call->connector->is_silent = n_silent == call->connector->n_addrs;
    return call->connector->is_silent ? COLL_ERR_PEER : status;
}

/* ---- one line ----------------------------------------------------------- */

/* Count the attempts in a row without any answer from the host. */
static void count_silence(struct line *line, enum heard heard, int err)
{
    if (heard != HEARD_NO_SYN && !(heard == HEARD_ERROR && err == EHOSTUNREACH))
        line->n_unheard = 0;
    else if (!line->n_unheard++)
        line->unheard_since = line->begun;
}

/* End a failed attempt: go on with the next port, or pause. */
static void hang_up(struct coll__call *call, struct line *line,
                    enum heard heard, int err)
{
    double now = coll__now(), pause = 0;

    if (line->fd >= 0)
        close(line->fd);
    line->fd = -1;
    line->step = STEP_PAUSE;
    count_silence(line, heard, err);
    if (call->connector->n_ports == 1 || heard >= line->heard) {
        line->heard = heard;
        line->err = err;
        line->heard_port = line->port;
    }
    line->port = (line->port + 1) % call->connector->n_ports;
    if (!line->port) {
        pause = line->pause;
        line->pause = 2 * pause < LAST_PAUSE ? 2 * pause : LAST_PAUSE;
        if (is_hopeless(call->connector, line))
            pause = FOREIGN_PAUSE;
    }
    line->until = now + pause;
    if (line + 1 < call->lines + call->connector->n_addrs &&
        line[1].heard == HEARD_NOTHING && line[1].step == STEP_PAUSE)
        line[1].until = now; /* the next address need not wait for its turn */
}

/* End an attempt that failed with err.  A reset means that a process was there: it is
 * seen when a connection comes at the moment at which a socket begins to listen. */
static void fail(struct coll__call *call, struct line *line, int err)
{
    hang_up(call, line,
            err == ECONNREFUSED ? HEARD_REFUSED
            : err == ECONNRESET ? HEARD_END
            : err == ETIMEDOUT  ? HEARD_NO_SYN
                                : HEARD_ERROR,
            err);
}

/* The connection is up: send the hello. */
static void greet(struct coll__call *call, struct line *line)
{
    struct coll__connector *connector = call->connector;

    coll__handshake_hello(connector->secret, &connector->hello, &line->wire);
    line->step = STEP_ANSWER;
    line->n_read = 0;
    line->until = connector->n_ports > 1 ? coll__now() + PROBE_TIME : 1e300;
    if (send(line->fd, &line->wire, sizeof(line->wire), MSG_NOSIGNAL) !=
        (ssize_t)sizeof(line->wire))
        hang_up(call, line, HEARD_END, 0);
}

static void begin(struct coll__call *call, struct line *line)
{
    struct coll__addr addr = place(line, line->port);
    double patience = call->connector->n_ports > 1 ? PROBE_TIME : CONNECT_TIME;
    int fd;

    line->begun = coll__now();
    fd = coll__net_begin_connect(&addr);
    if (fd < 0) {
        fail(call, line, -fd);
        return;
    }
    line->fd = fd;
    line->step = STEP_CONNECT;
    line->until = line->begun + patience;
}

/* Has the listener closed the connection since its answer, because the proof did not come
 * in time?  The caller may have computed meanwhile. */
static int is_closed(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return !n || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* The answer is complete: return the socket if the answer is right, else -1. */
static int judge(struct coll__call *call, struct line *line)
{
    const unsigned char *secret = call->connector->secret;
    struct proof proof;
    int fd = line->fd;

    switch (
        coll__handshake_judge(secret, &line->wire, &line->challenge, &proof)) {
    case HELLO_EARLY:
        hang_up(call, line, HEARD_EARLY, 0);
        return -1;
    case HELLO_OTHERWISE:
        hang_up(call, line, HEARD_OTHERWISE, 0);
        return -1;
    case HELLO_UNKNOWN:
        hang_up(call, line, HEARD_UNKNOWN, 0);
        return -1;
    case HELLO_FALSE:
        hang_up(call, line, HEARD_FALSE, 0);
        return -1;
    case HELLO_IN:
        break;
    }
    if (is_closed(fd) || (call->connector->may_prove &&
                          !call->connector->may_prove(call->connector->arg))) {
        hang_up(call, line, HEARD_END, 0);
        return -1;
    }
    if (send(fd, &proof, sizeof(proof), MSG_NOSIGNAL) !=
        (ssize_t)sizeof(proof)) {
        hang_up(call, line, HEARD_END, 0);
        return -1;
    }
    call->connector->at = (int)(line - call->lines);
    call->connector->is_sealed = coll__handshake_seals();
    coll__handshake_session(secret, &line->wire, line->challenge.nonce,
                            call->connector->session);
    line->fd = -1;
    return fd;
}

/* Continue the attempt of a line whose socket is ready.  Returns the socket if the
 * proof succeeded, else -1. */
static int go_on(struct coll__call *call, struct line *line)
{
    ssize_t n;
    int err;

    if (line->step == STEP_CONNECT) {
        err = coll__net_end_connect(line->fd);
        if (err)
            fail(call, line, -err);
        else
            greet(call, line);
        return -1;
    }
    n = recv(line->fd, (char *)&line->challenge + line->n_read,
             sizeof(line->challenge) - line->n_read, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return -1;
    if (n <= 0) {
        hang_up(call, line, HEARD_END, 0);
        return -1;
    }
    line->n_read += (size_t)n;
    return line->n_read == sizeof(line->challenge) ? judge(call, line) : -1;
}

/* The time of the pause or of the attempt is over. */
static void expire(struct coll__call *call, struct line *line)
{
    if (line->step == STEP_PAUSE)
        begin(call, line);
    else
        hang_up(call, line,
                line->step == STEP_CONNECT ? HEARD_NO_SYN : HEARD_NO_WORD, 0);
}

/* ---- all lines ---------------------------------------------------------- */

static void warn(struct coll__call *call)
{
    explain(call);
    log_warn("boot", "still trying to connect to %s (%s)",
             call->connector->whom, call->connector->why);
    call->warn_at = 1e300;
}

/* Do what is due; returns when the next action is due. */
static double run_due(struct coll__call *call, double deadline)
{
    double now = coll__now(), next = deadline;

    for (int i = 0; i < call->connector->n_addrs; i++) {
        struct line *line = &call->lines[i];

        if (line->until <= now)
            expire(call, line);
    }
    for (int i = 0; i < call->connector->n_addrs; i++)
        if (call->lines[i].until < next)
            next = call->lines[i].until;
    if (now >= call->warn_at)
        warn(call);
    return call->warn_at < next ? call->warn_at : next;
}

/* List the sockets; returns how many. */
static int list_files(const struct coll__call *call,
                      struct pollfd fds[COLL__MAX_ADDRS])
{
    int n = call->connector->n_addrs;

    for (int i = 0; i < n; i++)
        fds[i] = (struct pollfd){
            call->lines[i].fd,
            call->lines[i].step == STEP_CONNECT ? POLLOUT : POLLIN, 0};
    return n;
}

/* Continue the lines whose sockets are ready.  Returns the socket on which the proof
 * succeeded, or -1. */
static int take_ready(struct coll__call *call, const struct pollfd *fds)
{
    int found = -1;

    for (int i = 0; i < call->connector->n_addrs && found < 0; i++)
        if (fds[i].revents)
            found = go_on(call, &call->lines[i]);
    return found;
}

/* Wait until something is ready or due, and do it. */
static int await(struct coll__call *call, double until)
{
    struct pollfd fds[COLL__MAX_ADDRS];
    int n = list_files(call, fds);

    return coll__reactor_poll(fds, n, until) > 0 ? take_ready(call, fds) : -1;
}

static double sooner(double a, double b) { return a < b ? a : b; }

static int run(struct coll__call *call, double deadline)
{
    for (;;) {
        double next = run_due(call, deadline);
        int found = verdict(call);

        if (found < 0)
            return found;
        if (call->connector->is_over) {
            if (call->connector->is_over(call->connector->arg))
                return COLL_ERR_ABORTED;
            next = sooner(next, coll__now() + LOOK_EVERY);
        }
        found = await(call, next);
        if (found >= 0)
            return found;
        if (coll__now() >= deadline)
            return COLL_ERR_TIMEOUT;
    }
}

static void begin_call(struct coll__call *call,
                       struct coll__connector *connector)
{
    double now = coll__now();

    *call = (struct coll__call){.connector = connector,
                                .warn_at = 1e300,
                                .generation = coll__generation_now()};
    connector->at = -1;
    if (connector->whom)
        call->warn_at = now + WARN_AFTER;
    for (int i = 0; i < connector->n_addrs; i++)
        call->lines[i] = (struct line){.addr = &connector->addrs[i],
                                       .fd = -1,
                                       .until = now + i * HEAD_START,
                                       .pause = FIRST_PAUSE};
}

/* Close all lines.  A line that is still connecting sends its hello first, so that the
 * listener does not report a stranger.  In a forked child the sockets are the parent's,
 * which still uses them, so the child sends nothing. */
static void end_call(struct coll__call *call)
{
    struct coll__hello hello;

    for (int i = 0; i < call->connector->n_addrs; i++) {
        struct line *line = &call->lines[i];

        if (line->fd < 0)
            continue;
        if (line->step == STEP_CONNECT &&
            !coll__is_inherited(call->generation)) {
            coll__handshake_hello(call->connector->secret,
                                  &call->connector->hello, &hello);
            (void)!send(line->fd, &hello, sizeof(hello),
                        MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        close(line->fd);
    }
}

int coll__connector(struct coll__connector *connector, double deadline)
{
    struct coll__call call;
    int found;

    begin_call(&call, connector);
    found = run(&call, deadline);
    if (found < 0)
        explain(&call);
    end_call(&call);
    return found;
}

/* ---- without waiting ----------------------------------------------------- */

struct coll__call *coll__connector_begin(struct coll__connector *connector)
{
    struct coll__call *call = malloc(sizeof(*call));

    if (call)
        begin_call(call, connector);
    return call;
}

int coll__connector_step(struct coll__call *call, int *fd)
{
    struct pollfd fds[COLL__MAX_ADDRS];
    int n, rc;

    run_due(call, 1e300);
    rc = verdict(call);
    if (rc != COLL_IN_PROGRESS)
        return rc;
    n = list_files(call, fds);
    *fd = poll(fds, (nfds_t)n, 0) > 0 ? take_ready(call, fds) : -1;
    return *fd < 0 ? COLL_IN_PROGRESS : COLL_OK;
}

void coll__connector_end(struct coll__call *call)
{
    explain(call);
    end_call(call);
    free(call);
}
