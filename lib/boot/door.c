/* SPDX-License-Identifier: BSD-3-Clause */
/* door.c - the listening side: sockets, visitors that are being judged, gates.
 *
 * Everything here is under the reactor's lock.  A visitor has ten seconds and
 * two fixed-size messages to prove itself; when too many wait, the oldest goes.
 */
#include "lib/boot/door.h"
#include "lib/boot/knock.h"
#include "lib/boot/reactor.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_VISITORS 1024
#define PATIENCE 10.0 /* s, for one visitor */
#define PAUSE 0.1     /* s without accept() when descriptors run out */
#define MAX_LISTENERS 64
#define MAX_PAST 8

struct visitor {
    struct coll__source source;  /* first */
    struct visitor *prev, *next; /* by age */
    struct coll__hello hello;    /* as it came */
    unsigned char nonce[COLL__NONCE_BYTES];
    struct proof proof;
    size_t n_read;  /* of the hello, then of the proof */
    int is_greeted; /* the hello is whole and answered */
};

static struct {
    struct coll__source *listeners[MAX_LISTENERS];
    int is_spare[MAX_LISTENERS]; /* for one rendezvous: nobody else is told */
    struct visitor *oldest, *newest;
    int n_visitors;
    int has_complained; /* that descriptors ran out */
    struct coll__gate *gates;
    /* Rendezvous that are over: who comes for the next one is early. */
    struct {
        unsigned char group[COLL__GROUP_BYTES];
        uint32_t generation;
    } past[MAX_PAST];
    int n_past;
} door;

/* ---- gates -------------------------------------------------------------- */

void coll__gate_add(struct coll__gate *gate)
{
    coll__auth_group(gate->secret, gate->group);
    gate->next = door.gates;
    door.gates = gate;
}

void coll__gate_remove(struct coll__gate *gate)
{
    struct coll__gate **at = &door.gates;

    while (*at && *at != gate)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = gate->next;
    if (gate->kind == DOOR_BOOT) {
        int i = door.n_past++ % MAX_PAST;

        memcpy(door.past[i].group, gate->group, COLL__GROUP_BYTES);
        door.past[i].generation = gate->generation;
    }
}

static struct coll__gate *find_gate(const struct coll__hello *hello)
{
    for (struct coll__gate *g = door.gates; g; g = g->next)
        if (!memcmp(g->group, hello->group, COLL__GROUP_BYTES) &&
            g->kind == le32toh(hello->kind) && g->rank == le32toh(hello->to) &&
            g->generation == le32toh(hello->generation))
            return g;
    return NULL;
}

/* Say whether the hello is for a rendezvous that is still to begin. */
static int is_early(const struct coll__hello *hello)
{
    uint32_t generation = le32toh(hello->generation);

    if (le32toh(hello->kind) != DOOR_BOOT)
        return 0;
    for (struct coll__gate *g = door.gates; g; g = g->next)
        if (!memcmp(g->group, hello->group, COLL__GROUP_BYTES) &&
            generation > g->generation)
            return 1;
    for (int i = 0; i < MAX_PAST && i < door.n_past; i++)
        if (!memcmp(door.past[i].group, hello->group, COLL__GROUP_BYTES) &&
            generation > door.past[i].generation)
            return 1;
    return 0;
}

/* ---- visitors ----------------------------------------------------------- */

/* Take the visitor off the list; its socket is closed or somebody else's. */
static void forget(struct visitor *v)
{
    *(v->prev ? &v->prev->next : &door.oldest) = v->next;
    *(v->next ? &v->next->prev : &door.newest) = v->prev;
    door.n_visitors--;
    free(v);
}

static void turn_away(struct visitor *v, const char *why)
{
    char who[COLL__ADDR_TEXT];

    coll__net_peer_text(v->source.fd, who);
    log_warn("boot", "dropped a connection from %s: %s", who, why);
    coll__reactor_remove(&v->source);
    forget(v);
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

    if (answer == ANSWER_EARLY) { /* an ordinary thing: it will come again */
        say(v, &no, sizeof(no));
        coll__reactor_remove(&v->source);
        forget(v);
        return;
    }
    say(v, &no, sizeof(no));
    turn_away(v, "it does not belong to this job");
}

static void greet(struct visitor *v)
{
    struct challenge challenge = {.answer = htole32(ANSWER_PROVE)};
    struct coll__gate *gate = find_gate(&v->hello);

    if (!gate) {
        refuse(v, is_early(&v->hello) ? ANSWER_EARLY : ANSWER_UNKNOWN);
        return;
    }
    coll__auth_random(v->nonce, sizeof(v->nonce));
    memcpy(challenge.nonce, v->nonce, sizeof(v->nonce));
    coll__door_mac(gate->secret, "listener", &v->hello, v->nonce,
                   challenge.mac);
    v->is_greeted = 1;
    v->n_read = 0;
    if (say(v, &challenge, sizeof(challenge)))
        turn_away(v, "it went away");
}

static struct coll__hello to_host(const struct coll__hello *wire)
{
    struct coll__hello hello = *wire;

    hello.kind = le32toh(wire->kind);
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
    unsigned char mac[COLL__MAC_BYTES];
    int fd;

    if (!gate) {
        turn_away(v, "its group has gone");
        return;
    }
    coll__door_mac(gate->secret, "connector", &v->hello, v->nonce, mac);
    if (!coll__auth_equal(mac, v->proof.mac)) {
        turn_away(v, "it could not prove this job's secret");
        return;
    }
    fd = coll__reactor_release(&v->source);
    forget(v);
    gate->arrived(gate, fd, &hello);
}

/* Read towards want bytes at to: 1 when they are there, 0 for later, -1 when
 * the visitor is gone. */
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
    if (is_whole < 0)
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

static void admit(int fd)
{
    struct visitor *v;

    if (door.n_visitors == MAX_VISITORS)
        turn_away(door.oldest, "too many connections wait to be judged");
    v = calloc(1, sizeof(*v));
    if (!v || coll__net_adopt(fd)) {
        free(v);
        close(fd);
        return;
    }
    v->source = (struct coll__source){
        .fd = fd,
        .events = EPOLLIN,
        .deadline = coll__now() + PATIENCE,
        .ready = visitor_ready,
        .expired = visitor_expired,
        .dropped = visitor_dropped,
    };
    if (coll__reactor_add(&v->source)) {
        free(v);
        close(fd);
        return;
    }
    v->prev = door.newest;
    *(v->prev ? &v->prev->next : &door.oldest) = v;
    door.newest = v;
    door.n_visitors++;
}

/* ---- listeners ---------------------------------------------------------- */

static void listener_ready(struct coll__source *source, uint32_t events)
{
    int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void)events;
    if (fd >= 0) {
        admit(fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
               errno == ENOBUFS) {
        if (!door.has_complained)
            log_warn("boot", "cannot take a connection: %s; see ulimit -n",
                     strerror(errno));
        door.has_complained = 1;
        coll__reactor_change(source, 0);
        coll__reactor_deadline(source, coll__now() + PAUSE);
    }
}

static void listener_expired(struct coll__source *source)
{
    coll__reactor_change(source, EPOLLIN);
}

static void listener_dropped(struct coll__source *source)
{
    for (int i = 0; i < MAX_LISTENERS; i++)
        if (door.listeners[i] == source)
            door.listeners[i] = NULL;
    free(source);
}

/* A listener that may be told to others, as far as that. */
static int is_lasting(int i, enum coll__reach reach)
{
    return door.listeners[i] && !door.is_spare[i] &&
           coll__net_reach(door.listeners[i]->fd) >= reach;
}

static int has_lasting(enum coll__reach reach)
{
    for (int i = 0; i < MAX_LISTENERS; i++)
        if (is_lasting(i, reach))
            return 1;
    return 0;
}

static int adopt(int fd, int is_brief)
{
    struct coll__source *source = calloc(1, sizeof(*source));
    int i = 0, status;

    while (i < MAX_LISTENERS && door.listeners[i])
        i++;
    if (!source || i == MAX_LISTENERS) {
        log_error("boot", "cannot listen on another port: %s",
                  source ? "this process has too many" : "out of memory");
        free(source);
        close(fd);
        return source ? COLL_ERR_SYSTEM : COLL_ERR_NOMEM;
    }
    *source = (struct coll__source){
        .fd = fd,
        .events = EPOLLIN,
        .ready = listener_ready,
        .expired = listener_expired,
        .dropped = listener_dropped,
    };
    status = coll__reactor_add(source);
    if (status) {
        free(source);
        close(fd);
        return status;
    }
    door.is_spare[i] = is_brief && has_lasting(coll__net_reach(fd));
    door.listeners[i] = source;
    return COLL_OK;
}

void coll__door_close_spare(int fd)
{
    for (int i = 0; i < MAX_LISTENERS; i++) {
        struct coll__source *source = door.listeners[i];

        if (!source || !door.is_spare[i] || source->fd != fd)
            continue;
        coll__reactor_remove(source);
        listener_dropped(source);
    }
}

int coll__door_adopt(int fd, int is_brief)
{
    int status;

    coll__reactor_lock();
    status = adopt(fd, is_brief);
    coll__reactor_unlock();
    return status;
}

static int open_any(enum coll__reach reach,
                    struct coll__addr addrs[COLL__MAX_ADDRS])
{
    int fd, n, status;

    for (int i = 0; i < MAX_LISTENERS; i++) {
        if (!is_lasting(i, reach))
            continue;
        n = coll__net_own_addrs(door.listeners[i]->fd, addrs);
        if (n > 0)
            return n;
    }
    status = coll__net_listen(reach, &fd);
    if (status)
        return status;
    n = coll__net_own_addrs(fd, addrs);
    status = adopt(fd, 0);
    return status ? status : n;
}

int coll__door_open(enum coll__reach reach,
                    struct coll__addr addrs[COLL__MAX_ADDRS])
{
    int n;

    coll__reactor_lock();
    n = open_any(reach, addrs);
    coll__reactor_unlock();
    return n;
}

static int has_port(const struct coll__source *source, uint16_t port)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];

    return source && coll__net_own_addrs(source->fd, addrs) > 0 &&
           coll__net_port(&addrs[0]) == port;
}

int coll__door_open_at(const struct coll__addr *at, int is_quiet)
{
    int fd, status = COLL_OK;

    coll__reactor_lock();
    for (int i = 0; i < MAX_LISTENERS; i++)
        if (has_port(door.listeners[i], coll__net_port(at)))
            goto out;
    status = coll__net_listen_at(at, is_quiet, &fd);
    if (!status)
        status = adopt(fd, 0);
out:
    coll__reactor_unlock();
    return status;
}
