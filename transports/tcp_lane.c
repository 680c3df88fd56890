/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_lane.c - connections: how lanes come, and how they are lost. */
#include "transports/tcp.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/util/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS 64       /* taken at once */
#define LOOK_EVERY 0.25 /* s */

/* What an event tells of the lane. */
#define IS_OUT ((uint64_t)1 << 63)

/* Nothing comes back on a sender's lane but that. */
#define ENDED (EPOLLRDHUP | EPOLLHUP | EPOLLERR)

struct tcp_lane *tcp__lane(struct tcp *tcp, struct tcp_lane **lanes, int rank,
                           int channel)
{
    struct tcp_lane **at = &lanes[coll__lane(channel, rank, tcp->base.size)];
    struct tcp_lane *lane = *at;

    if (lane)
        return lane;
    lane = calloc(1, sizeof(*lane));
    if (!lane) {
        log_error("tcp", "no memory for a connection to rank %d; free some",
                  rank);
        return NULL;
    }
    lane->rank = rank;
    lane->channel = channel;
    lane->fd = -1;
    lane->last = &lane->first;
    lane->status = tcp->lost[rank];
    *at = lane;
    return lane;
}

static void end_lane(struct tcp_lane *lane, int status)
{
    if (!lane || lane->status)
        return;
    lane->status = status;
    while (lane->first)
        tcp_end_first(lane, status);
}

/* Who has lost one connection to a process has lost all. */
void tcp__lose(struct tcp *tcp, const struct tcp_lane *lane, int status,
               const char *why)
{
    int rank = lane->rank;

    if (tcp->lost[rank])
        return;
    tcp->lost[rank] = status;
    if (!tcp->failure || !atomic_load(tcp->failure)) /* else it is no news */
        log_error("tcp", "rank %d %s", rank, why);
    for (int c = 0; c < COLL__CHANNELS; c++) {
        end_lane(tcp->out[coll__lane(c, rank, tcp->base.size)], status);
        end_lane(tcp->in[coll__lane(c, rank, tcp->base.size)], status);
    }
}

static int watch(struct tcp *tcp, int fd, uint64_t name, uint32_t events)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.u64 = name};

    return epoll_ctl(tcp->events, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

/* ---- a sender's ---------------------------------------------------------- */

static int begin(struct tcp *tcp, struct tcp_lane *out)
{
    const struct tcp_card *card = &tcp->cards[out->rank];

    out->dial = (struct coll__dial){
        .addrs = card->addrs,
        .n_addrs = card->n_addrs,
        .n_ports = 1,
        .secret = tcp->secret,
        .hello = {.kind = DOOR_DATA,
                  .from = (uint32_t)tcp->base.rank,
                  .to = (uint32_t)out->rank,
                  .size = (uint32_t)tcp->base.size,
                  .generation = (uint32_t)out->channel},
    };
    out->deadline = coll__now() + tcp->timeout;
    out->call = coll__dial_begin(&out->dial);
    if (!out->call)
        return COLL_ERR_NOMEM;
    tcp->n_calling++;
    return COLL_IN_PROGRESS;
}

static void tell(const struct tcp_lane *out, int fd)
{
    char at[COLL__ADDR_TEXT], name[COLL__INTERFACE_NAME];

    coll__net_way(&out->dial.addrs[out->dial.at], name);
    coll__net_peer_text(fd, at);
    log_info("tcp", "rank %d is at %s, by %s%s%s%s", out->rank, at,
             *name ? name : "an interface without a name",
             *out->dial.why ? " (not at " : "", out->dial.why,
             *out->dial.why ? ")" : "");
}

static void connected(struct tcp *tcp, struct tcp_lane *out, int fd)
{
    uint64_t name =
        (uint64_t)coll__lane(out->channel, out->rank, tcp->base.size) | IS_OUT;
    int err;

    out->fd = fd;
    out->is_ready = 1;
    if (out->channel == 0 && coll__log_wants(COLL_LOG_INFO, "tcp"))
        tell(out, fd);
    if (out->dial.is_sealed) {
        out->crypt = tcp__new_crypt(out->dial.session, 1);
        coll__auth_wipe(out->dial.session, sizeof(out->dial.session));
    }
    if (out->dial.is_sealed && !out->crypt) {
        tcp__lose(tcp, out, COLL_ERR_NOMEM,
                  "gets no connection: no memory; free some");
        return;
    }
    coll__net_allow_stalls(fd);
    err = watch(tcp, fd, name, EPOLLOUT | EPOLLRDHUP);
    if (err)
        tcp__lose(tcp, out, COLL_ERR_SYSTEM,
                  "gets no connection: epoll cannot watch it");
}

static void end_call(struct tcp *tcp, struct tcp_lane *out)
{
    coll__dial_end(out->call);
    out->call = NULL;
    tcp->n_calling--;
}

/* The deadline's own reason is what came of the addresses, too. */
static void unreachable(struct tcp *tcp, struct tcp_lane *out)
{
    char why[COLL__DIAL_TEXT + 200];

    snprintf(why, sizeof(why), "%s (%s)%s",
             out->dial.is_silent ? "is on a host that has fallen silent"
                                 : "cannot be reached",
             out->dial.why,
             out->dial.is_want
                 ? ""
                 : "; is no firewall between? (COLL_NET_INTERFACE and "
                   "COLL_NET_PORTS choose where it listens)");
    tcp__lose(tcp, out, out->dial.is_want ? COLL_ERR_SYSTEM : COLL_ERR_PEER,
              why);
}

int tcp__connect(struct tcp *tcp, struct tcp_lane *out)
{
    int fd = -1, rc = COLL_OK;

    if (!out->call)
        rc = begin(tcp, out);
    if (rc == COLL_ERR_NOMEM) {
        tcp__lose(tcp, out, rc, "gets no connection: no memory; free some");
        return 1;
    }
    rc = coll__dial_step(out->call, &fd);
    if (rc == COLL_IN_PROGRESS && coll__now() < out->deadline)
        return 0;
    end_call(tcp, out);
    if (rc == COLL_OK)
        connected(tcp, out, fd);
    else
        unreachable(tcp, out);
    return 1;
}

/* A connection has ended, as err says, or 0: in order. */
void tcp__broken(struct tcp *tcp, const struct tcp_lane *lane, int err)
{
    char why[160];

    if (coll__net_is_silence(err))
        snprintf(why, sizeof(why), "is on a host that has fallen silent");
    else
        snprintf(why, sizeof(why), "went away: %s; its own messages say why",
                 err ? strerror(err) : "it closed the connection");
    tcp__lose(tcp, lane, COLL_ERR_PEER, why);
}

void tcp__look(struct tcp *tcp)
{
    double now = coll__now(), silence;

    if (now < tcp->look_at)
        return;
    tcp->look_at = now + LOOK_EVERY;
    tcp__hear(tcp);
    for (int c = 0; c < COLL__CHANNELS; c++)
        for (int i = 0; i < tcp->sending[c].n; i++) {
            struct tcp_lane *out = tcp->sending[c].lanes[i];

            if (out->fd >= 0 && coll__net_is_unheard(out->fd, &silence) &&
                silence > COLL__SILENCE)
                tcp__broken(tcp, out, ETIMEDOUT);
        }
}

/* ---- a receiver's -------------------------------------------------------- */

/* It comes into the list before the kernel has anything to say of it. */
void tcp__arrived(struct coll__gate *gate, int fd,
                  const struct coll__hello *hello, const unsigned char *session)
{
    struct tcp *tcp = gate->owner;
    struct tcp_arrival *new = malloc(sizeof(*new));
    uint64_t name = (uint64_t)coll__lane((int)gate->generation,
                                         (int)hello->from, tcp->base.size);

    if (!new || hello->from >= (uint32_t)tcp->base.size) {
        free(new);
        close(fd);
        return;
    }
    *new = (struct tcp_arrival){.fd = fd,
                                .rank = (int)hello->from,
                                .channel = (int)gate->generation,
                                .is_sealed = session != NULL};
    if (session)
        memcpy(new->session, session, sizeof(new->session));
    coll__net_allow_stalls(fd);
    new->next = atomic_load_explicit(&tcp->arrived, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&tcp->arrived, &new->next,
                                                  new, memory_order_release,
                                                  memory_order_relaxed))
        ;
    watch(tcp, fd, name, EPOLLIN);
}

void tcp__take_arrivals(struct tcp *tcp)
{
    struct tcp_arrival *next,
        *list =
            atomic_exchange_explicit(&tcp->arrived, NULL, memory_order_acquire);

    for (; list; list = next) {
        struct tcp_lane *in =
            tcp__lane(tcp, tcp->in, list->rank, list->channel);

        next = list->next;
        if (!in || in->fd >= 0 || in->status ||
            (list->is_sealed &&
             !(in->crypt = tcp__new_crypt(list->session, 0)))) {
            close(list->fd);
        } else {
            in->fd = list->fd;
            in->is_ready = 1;
        }
        coll__auth_wipe(list->session, sizeof(list->session));
        free(list);
    }
}

void tcp__hear(struct tcp *tcp)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(tcp->events, events, EVENTS, 0);

    if (atomic_load_explicit(&tcp->arrived, memory_order_relaxed))
        tcp__take_arrivals(tcp);
    for (int i = 0; i < n; i++) {
        uint64_t name = events[i].data.u64;
        struct tcp_lane **lanes = name & IS_OUT ? tcp->out : tcp->in;
        struct tcp_lane *lane = lanes[name & ~IS_OUT];

        if (!lane)
            continue;
        lane->is_ready = 1;
        if (name & IS_OUT && events[i].events & ENDED)
            tcp__broken(tcp, lane, 0);
    }
}
