/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.c - the listening side: visitors (connections that have not proved the
 * secret yet), and gates.
 *
 * Everything here is under the reactor's lock.  A visitor has ten seconds and two
 * fixed-size messages to prove itself.  Visitors may take a part of the process's file
 * descriptors, their seats.  When all seats are taken, the oldest visitor without a
 * complete hello is closed.  A rank sends its hello as soon as it is connected, so
 * strangers cannot keep ranks out, however many they are.
 */
#include "lib/net/listener_int.h"
#include "lib/net/handshake.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIN_SEATS 16
#define MAX_SEATS 1024
#define PROOF_TIME 0.25  /* s, for a proof, while another visitor waits for a seat */
#define REPORT_EVERY 1.0 /* s, between two lines on strangers */
#define MAX_PAST 8

double coll__listener_patience = 10;

struct visitor {
    struct coll__source source;  /* first; its deadline ends the visit */
    struct visitor *prev, *next; /* by age */
    struct coll__hello hello;    /* as it came */
    unsigned char nonce[COLL__NONCE_BYTES];
    struct proof proof;
    size_t n_read;  /* of the hello, then of the proof */
    int is_greeted; /* the hello is whole and answered */
};

static struct {
    struct visitor *oldest, *newest;
    int n_visitors;
    int is_crowded; /* a visitor waits for a seat */
    struct coll__gate *gates;
    /* past: the last finished rendezvous of each group.  A hello for a later rendezvous
     * of such a group is only early.  left: communicators that ended in this process.
     * Ranks of these may still connect, and do not count as strangers. */
    struct past {
        unsigned char group[COLL__GROUP_BYTES];
        uint32_t generation;
    } past[MAX_PAST], left[MAX_PAST];
    int n_past, n_left;
    struct { /* strangers since the last report of them */
        unsigned n;
        double told; /* when the last report was written */
        char last[COLL__ADDR_TEXT + 80];
    } strangers;
} listener;

/* ---- gates -------------------------------------------------------------- */

void coll__gate_add(struct coll__gate *gate)
{
    coll__auth_group(gate->secret, gate->group);
    gate->next = listener.gates;
    listener.gates = gate;
}

static void remember(struct past *past, const struct coll__gate *gate)
{
    memcpy(past->group, gate->group, COLL__GROUP_BYTES);
    past->generation = gate->generation;
}

void coll__gate_remove(struct coll__gate *gate)
{
    struct coll__gate **at = &listener.gates;

    while (*at && *at != gate)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = gate->next;
    if (gate->kind == GATE_BOOT)
        remember(&listener.past[listener.n_past++ % MAX_PAST], gate);
    else if (gate->kind == GATE_CTRL ||
             (gate->kind == GATE_DATA && gate->generation == 0))
        remember(&listener.left[listener.n_left++ % MAX_PAST], gate);
    if (!listener.gates)
        coll__listener_close();
}

static uint32_t kind_of(const struct coll__hello *hello)
{
    return le32toh(hello->kind) & ~HELLO_IS_SEALED;
}

static int is_sealed(const struct coll__hello *hello)
{
    return (le32toh(hello->kind) & HELLO_IS_SEALED) != 0;
}

static struct coll__gate *find_gate(const struct coll__hello *hello)
{
    for (struct coll__gate *g = listener.gates; g; g = g->next)
        if (!memcmp(g->group, hello->group, COLL__GROUP_BYTES) &&
            g->kind == kind_of(hello) && g->rank == le32toh(hello->to) &&
            g->generation == le32toh(hello->generation))
            return g;
    return NULL;
}

/* Is the hello for a rendezvous that has not begun yet? */
static int is_early(const struct coll__hello *hello)
{
    uint32_t generation = le32toh(hello->generation);

    if (kind_of(hello) != GATE_BOOT)
        return 0;
    for (struct coll__gate *g = listener.gates; g; g = g->next)
        if (!memcmp(g->group, hello->group, COLL__GROUP_BYTES) &&
            (g->kind == GATE_HOME || generation > g->generation))
            return 1;
    for (int i = 0; i < MAX_PAST && i < listener.n_past; i++)
        if (!memcmp(listener.past[i].group, hello->group, COLL__GROUP_BYTES) &&
            generation > listener.past[i].generation)
            return 1;
    return 0;
}

/* Is the hello for a communicator that this process has left? */
static int is_late(const struct coll__hello *hello)
{
    for (int i = 0; i < MAX_PAST && i < listener.n_left; i++)
        if ((kind_of(hello) == GATE_DATA || kind_of(hello) == GATE_CTRL) &&
            !memcmp(listener.left[i].group, hello->group, COLL__GROUP_BYTES))
            return 1;
    return 0;
}

/* ---- strangers ---------------------------------------------------------- */

double coll__listener_report(void)
{
    double now = coll__now(), due = listener.strangers.told + REPORT_EVERY;

    if (!listener.strangers.n)
        return 0;
    if (now < due)
        return due;
    if (listener.strangers.n == 1)
        log_warn("boot", "dropped a connection from %s",
                 listener.strangers.last);
    else
        log_warn("boot", "dropped %u connections, the last from %s",
                 listener.strangers.n, listener.strangers.last);
    listener.strangers.n = 0;
    listener.strangers.told = now;
    return 0;
}

/* Note a stranger for the next report.  Any program can connect, so there is not one
 * line of the log per stranger. */
static void note(int fd, const char *why)
{
    char who[COLL__ADDR_TEXT];
    double due;

    coll__net_peer_text(fd, who);
    snprintf(listener.strangers.last, sizeof(listener.strangers.last), "%s: %s",
             who, why);
    listener.strangers.n++;
    due = coll__listener_report();
    if (due > 0)
        coll__listener_remind(due);
}

/* ---- visitors ----------------------------------------------------------- */

/* Remove the visitor from the list; the caller closes its socket or hands it on. */
static void forget(struct visitor *v)
{
    *(v->prev ? &v->prev->next : &listener.oldest) = v->next;
    *(v->next ? &v->next->prev : &listener.newest) = v->prev;
    listener.n_visitors--;
    free(v);
    if (listener.is_crowded)
        coll__listener_resume();
    listener.is_crowded = 0;
}

static void dismiss(struct visitor *v)
{
    coll__reactor_remove(&v->source);
    forget(v);
}

static void turn_away(struct visitor *v, const char *why)
{
    note(v->source.fd, why);
    dismiss(v);
}

/* Send a few bytes to a socket whose buffer is empty; 0 or -1. */
static int say(struct visitor *v, const void *bytes, size_t len)
{
    return send(v->source.fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len ? 0
                                                                        : -1;
}

static void refuse(struct visitor *v, enum challenge_answer answer)
{
    struct challenge no = {.answer = htole32((uint32_t)answer)};

    say(v, &no, sizeof(no));
    if (answer == ANSWER_EARLY || is_late(&v->hello)) /* not worth a report */
        dismiss(v);
    else
        turn_away(
            v,
            answer == ANSWER_OTHERWISE
                ? "it has another COLL_NET_ENCRYPT; set the same on all ranks"
                : "it does not belong to this job");
}

static void greet(struct visitor *v)
{
    struct challenge challenge = {.answer = htole32(ANSWER_PROVE)};
    struct coll__gate *gate = find_gate(&v->hello);

    if (!gate || gate->is_full) {
        refuse(v, gate || is_early(&v->hello) ? ANSWER_EARLY : ANSWER_UNKNOWN);
        return;
    }
    if (is_sealed(&v->hello) != coll__handshake_seals()) {
        refuse(v, ANSWER_OTHERWISE);
        return;
    }
    coll__auth_random(v->nonce, sizeof(v->nonce));
    memcpy(challenge.nonce, v->nonce, sizeof(v->nonce));
    coll__listener_mac(gate->secret, "listener", &v->hello, v->nonce,
                       challenge.mac);
    v->is_greeted = 1;
    v->n_read = 0;
    if (say(v, &challenge, sizeof(challenge)))
        turn_away(v, "it went away");
}

static struct coll__hello to_host(const struct coll__hello *wire)
{
    struct coll__hello hello = *wire;

    hello.kind = kind_of(wire);
    hello.from = le32toh(wire->from);
    hello.to = le32toh(wire->to);
    hello.size = le32toh(wire->size);
    hello.generation = le32toh(wire->generation);
    hello.pid = le32toh(wire->pid);
    return hello;
}

static void judge(struct visitor *v)
{
    struct coll__gate *gate = find_gate(&v->hello);
    struct coll__hello hello = to_host(&v->hello);
    unsigned char mac[COLL__MAC_BYTES], session[COLL__SECRET_BYTES];
    int fd, seals = is_sealed(&v->hello);

    if (!gate && is_late(&v->hello)) {
        dismiss(v);
        return;
    }
    if (!gate) {
        turn_away(v, "its group has gone");
        return;
    }
    coll__listener_mac(gate->secret, "connector", &v->hello, v->nonce, mac);
    if (!coll__auth_equal(mac, v->proof.mac)) {
        turn_away(v, "it could not prove this job's secret");
        return;
    }
    coll__handshake_session(gate->secret, &v->hello, v->nonce, session);
    fd = coll__reactor_release(&v->source);
    forget(v);
    gate->arrived(gate, fd, &hello, seals ? session : NULL);
    coll__auth_wipe(session, sizeof(session));
}

/* Continue to read `want` bytes to `to`.  Returns 1 if they are complete, 0 if more
 * must come, -1 if the visitor has closed the connection. */
static int take(struct visitor *v, void *to, size_t want)
{
    ssize_t n = recv(v->source.fd, (char *)to + v->n_read, want - v->n_read, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    v->n_read += (size_t)n;
    return v->n_read == want;
}

static void visitor_ready(struct coll__source *source, uint32_t events)
{
    struct visitor *v = (struct visitor *)source;
    int is_whole;

    (void)events;
    is_whole = v->is_greeted ? take(v, &v->proof, sizeof(v->proof))
                             : take(v, &v->hello, sizeof(v->hello));
    if (is_whole < 0 && v->is_greeted)
        dismiss(v); /* a rank that has connected at another address */
    else if (is_whole < 0)
        turn_away(v, "it left before it had proved this job's secret");
    else if (!v->is_greeted && v->n_read >= sizeof(v->hello.magic) &&
             memcmp(v->hello.magic, HELLO_MAGIC, sizeof(v->hello.magic)))
        turn_away(v, "it does not speak this version of libcoll");
    else if (is_whole && v->is_greeted)
        judge(v);
    else if (is_whole)
        greet(v);
}

static void visitor_expired(struct coll__source *source)
{
    turn_away((struct visitor *)source, "it took too long to prove itself");
}

static void visitor_dropped(struct coll__source *source)
{
    forget((struct visitor *)source);
}

/* Return how many seats there are: most descriptors are for other uses. */
static int n_seats(void)
{
    struct rlimit limit;
    rlim_t n = MAX_SEATS;

    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / 4 < n)
        n = limit.rlim_cur / 4;
    return n < MIN_SEATS ? MIN_SEATS : (int)n;
}

int coll__listener_seat(int is_full)
{
    struct visitor *v = listener.oldest;

    if (!is_full && listener.n_visitors < n_seats())
        return 1;
    while (v && v->is_greeted)
        v = v->next;
    if (!v && listener.oldest &&
        coll__now() > listener.oldest->source.deadline -
                          coll__listener_patience + PROOF_TIME)
        v = listener.oldest;
    if (v)
        turn_away(v, "too many connections wait to be judged");
    else
        listener.is_crowded = 1;
    return v != NULL;
}

void coll__listener_admit(int fd)
{
    struct visitor *v = calloc(1, sizeof(*v));

    if (!v || coll__net_adopt(fd)) {
        free(v);
        close(fd);
        return;
    }
    v->source = (struct coll__source){
        .fd = fd,
        .events = EPOLLIN,
        .deadline = coll__now() + coll__listener_patience,
        .ready = visitor_ready,
        .expired = visitor_expired,
        .dropped = visitor_dropped,
    };
    if (coll__reactor_add(&v->source)) {
        free(v);
        close(fd);
        return;
    }
    v->prev = listener.newest;
    *(v->prev ? &v->prev->next : &listener.oldest) = v;
    listener.newest = v;
    listener.n_visitors++;
    visitor_ready(&v->source, EPOLLIN); /* what came with the connection */
}
