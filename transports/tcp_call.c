/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_call.c - how connections are made, if both ranks may call. */
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "transports/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* s, after which a rank that was not accepted calls again: the other rank may have died
 * since */
#define AGAIN 0.25
#define AWAY                                                                   \
    1.0 /* s between two looks at a call: its rank computed, or was stopped */

/* Which rank makes the connection with a higher rank. */
enum caller { NOBODY, US, THEM };

static _Atomic(unsigned char) *place(const struct tcp *tcp, int rank,
                                     int channel)
{
    return &tcp->callers[coll__lane(channel, rank, tcp->base.size)];
}

/* Store the caller; returns 0 if there is one already. */
static int claim(struct tcp *tcp, int rank, int channel, enum caller who)
{
    unsigned char nobody = NOBODY;

    return atomic_compare_exchange_strong_explicit(
        place(tcp, rank, channel), &nobody, (unsigned char)who,
        memory_order_relaxed, memory_order_relaxed);
}

static enum caller caller(const struct tcp *tcp, int rank, int channel)
{
    return atomic_load_explicit(place(tcp, rank, channel),
                                memory_order_relaxed);
}

/* ---- the word ------------------------------------------------------------ */

#define WORD "come in"
#define WORD_BYTES (sizeof(WORD) + COLL__SEAL_BYTES)

/* Make the answer by which the lower rank accepts a call; returns its length.  With
 * encryption it is a record with a key of its own, used only once. */
static size_t make_word(const unsigned char *session,
                        unsigned char word[WORD_BYTES])
{
    struct coll__seal seal;

    if (!session) {
        memcpy(word, WORD, sizeof(WORD));
        return sizeof(WORD);
    }
    coll__seal_init(&seal, session, "word");
    coll__seal_put(&seal, word, WORD, sizeof(WORD));
    coll__auth_wipe(&seal, sizeof(seal));
    return WORD_BYTES;
}

/* Read the answer.  1: it is complete; 0: not yet; -1: the connection was closed; -2:
 * other bytes have arrived. */
static int take_word(int fd, const unsigned char *session)
{
    unsigned char want[WORD_BYTES], got[WORD_BYTES];
    size_t len = make_word(session, want);
    ssize_t n = recv(fd, got, len, MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    if (memcmp(got, want, (size_t)n) != 0)
        return -2;
    if ((size_t)n < len)
        return 0;
    return recv(fd, got, len, MSG_DONTWAIT) == (ssize_t)len ? 1 : -2;
}

/* ---- it stands ----------------------------------------------------------- */

static void tell(const struct tcp_conn *conn, const struct coll__addr *addr)
{
    char at[COLL__ADDR_TEXT], name[COLL__INTERFACE_NAME];

    coll__net_interface_to(addr, name);
    coll__net_peer_text(conn->fd, at);
    log_info("tcp", "rank %d is at %s, by %s%s%s%s", conn->rank, at,
             *name ? name : "an interface without a name",
             *conn->connector.why ? " (not at " : "", conn->connector.why,
             *conn->connector.why ? ")" : "");
}

static void no_memory(struct tcp *tcp, const struct tcp_conn *conn)
{
    tcp__lose(tcp, conn, COLL_ERR_NOMEM,
              "gets no connection: no memory; free some");
}

static void unwatched(struct tcp *tcp, struct tcp_conn *conn)
{
    conn->state = TCP_CONNECTED;
    tcp__lose(tcp, conn, COLL_ERR_SYSTEM,
              "gets no connection: epoll cannot watch it");
}

/* Mark the connection as connected; session is its key, or NULL without encryption. */
static void stand(struct tcp *tcp, struct tcp_conn *conn,
                  const struct coll__addr *addr, const unsigned char *session,
                  int calls)
{
    conn->state = TCP_CONNECTED;
    if (session && !tcp__make_crypts(conn, session, calls)) {
        no_memory(tcp, conn);
        return;
    }
    conn->out.is_ready = conn->in.is_ready = 1;
    if (conn->channel == 0 && coll__log_wants(COLL_LOG_INFO, "tcp"))
        tell(conn, addr);
}

/* End a call of this rank, which has failed or is not needed any more. */
void tcp__end_call(struct tcp *tcp, struct tcp_conn *conn)
{
    if (conn->state != TCP_DIALING && conn->state != TCP_ASKING)
        return;
    if (conn->call)
        coll__connector_end(conn->call);
    conn->call = NULL;
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    coll__auth_wipe(conn->connector.session, sizeof(conn->connector.session));
    conn->state = TCP_AWAITED;
    conn->deadline = coll__now() + AGAIN;
    tcp->n_calling--;
}

/* ---- to call ------------------------------------------------------------- */

/* Is it time to call? */
static int may_begin(struct tcp *tcp, const struct tcp_conn *conn)
{
    tcp__take_arrivals(tcp);
    if (conn->out.status)
        return 0;
    if (conn->state == TCP_AWAITED)
        return coll__now() >= conn->deadline;
    return conn->state == TCP_UNUSED;
}

/* May this rank prove itself?  The lower rank claims the connection here.  Before this
 * point it may still leave the connection to the other rank, and no rank waits for it. */
static int may_prove(void *arg)
{
    const struct tcp_conn *conn = arg;
    struct tcp *tcp = conn->tcp;

    return conn->rank < tcp->base.rank ||
           claim(tcp, conn->rank, conn->channel, US) ||
           caller(tcp, conn->rank, conn->channel) == US; /* an earlier try */
}

int tcp__count_ways(const struct tcp_card *card)
{
    char names[COLL__MAX_ADDRS][COLL__INTERFACE_NAME];
    int i = 0;

    for (; i < card->n_alike; i++) {
        coll__net_interface_to(&card->addrs[i], names[i]);
        if (!*names[i])
            break;
        for (int k = 0; k < i; k++)
            if (!coll__net_are_alike(names[k], names[i]))
                return i;
    }
    return i > 1 ? i : 1;
}

/* List all of the other rank's addresses.  If there are several equal networks, the
 * first one to try is chosen by the channel, by the rail and by the lower rank's number on
 * its host, whichever rank calls. */
static void choose_way(const struct tcp *tcp, struct tcp_conn *conn)
{
    const struct tcp_card *card = &tcp->cards[conn->rank];
    int lower = min_int(conn->rank, tcp->base.rank);
    int n = tcp__count_ways(card);
    int turn = tcp->cards[lower].seat % n + conn->channel % COLL__CHANNELS +
               conn->channel / COLL__CHANNELS;

    for (int i = 0; i < card->n_addrs; i++)
        conn->addrs[i] = card->addrs[i < n ? (turn + i) % n : i];
}

static void begin(struct tcp *tcp, struct tcp_conn *conn)
{
    const struct tcp_card *card = &tcp->cards[conn->rank];

    if (!may_begin(tcp, conn))
        return;
    choose_way(tcp, conn);
    conn->connector = (struct coll__connector){
        .addrs = conn->addrs,
        .n_addrs = card->n_addrs,
        .n_ports = 1,
        .secret = tcp->secret,
        .hello = {.kind = GATE_DATA,
                  .from = (uint32_t)tcp->base.rank,
                  .to = (uint32_t)conn->rank,
                  .size = (uint32_t)tcp->base.size,
                  .generation = (uint32_t)conn->channel},
        .may_prove = may_prove,
        .arg = conn,
    };
    conn->looked = coll__now();
    conn->deadline = conn->looked + tcp->timeout;
    conn->call = coll__connector_begin(&conn->connector);
    if (!conn->call) {
        no_memory(tcp, conn);
        return;
    }
    conn->state = TCP_DIALING;
    tcp->n_calling++;
}

/* Has the other rank's host published only loopback addresses? */
static int has_loopback_alone(const struct tcp_card *card)
{
    int i = 0;

    while (i < card->n_addrs && coll__net_is_loopback(&card->addrs[i]))
        i++;
    return i == card->n_addrs;
}

static const char *remedy(const struct tcp *tcp, const struct tcp_conn *conn)
{
    if (conn->connector.is_want)
        return "";
    if (!tcp->is_near[conn->rank] &&
        has_loopback_alone(&tcp->cards[conn->rank]))
        return "; its host has no other address, or COLL_NET_FAMILY and "
               "COLL_NET_INTERFACE there allow none";
    return "; is no firewall between? (COLL_NET_INTERFACE and COLL_NET_PORTS "
           "choose where it listens)";
}

/* Lose a rank that cannot be reached; after a deadline too, connector.why says what
 * became of its addresses. */
static void unreachable(struct tcp *tcp, struct tcp_conn *conn)
{
    char why[COLL__CONNECTOR_TEXT + 200];

    snprintf(why, sizeof(why), "%s (%s)%s",
             conn->connector.is_silent ? "is on a host that has fallen silent"
                                       : "cannot be reached",
             conn->connector.why, remedy(tcp, conn));
    tcp__lose(tcp, conn,
              conn->connector.is_want ? COLL_ERR_SYSTEM : COLL_ERR_PEER, why);
}

/* The call is through. */
static void connected(struct tcp *tcp, struct tcp_conn *conn)
{
    const unsigned char *session =
        conn->connector.is_sealed ? conn->connector.session : NULL;

    coll__net_allow_stalls(conn->fd);
    tcp->n_calling--;
    if (tcp__watch(tcp, conn->fd, conn->rank, conn->channel))
        unwatched(tcp, conn);
    else
        stand(tcp, conn, &conn->connector.addrs[conn->connector.at], session,
              1);
    coll__auth_wipe(conn->connector.session, sizeof(conn->connector.session));
}

/* Is there time left for the call?  Not counted is what passes while this rank does not
 * look, as it computes or is stopped: the answer may have come long ago. */
static int has_time(struct tcp_conn *conn)
{
    double now = coll__now();

    if (now - conn->looked > AWAY)
        conn->deadline += now - conn->looked;
    conn->looked = now;
    return now < conn->deadline;
}

static int connector(struct tcp *tcp, struct tcp_conn *conn)
{
    int fd = -1, rc = coll__connector_step(conn->call, &fd);

    if (rc == COLL_IN_PROGRESS && has_time(conn))
        return 0;
    coll__connector_end(conn->call);
    conn->call = NULL;
    if (rc != COLL_OK) {
        tcp__end_call(tcp, conn);
        unreachable(tcp, conn);
        return 1;
    }
    conn->fd = fd;
    conn->state = TCP_ASKING;
    if (conn->rank > tcp->base.rank)
        connected(tcp, conn);
    return 1;
}

/* Wait for the lower rank to accept the call, or to call itself. */
static int ask(struct tcp *tcp, struct tcp_conn *conn)
{
    int is_said = take_word(
        conn->fd, conn->connector.is_sealed ? conn->connector.session : NULL);

    if (!is_said && has_time(conn))
        return 0;
    if (is_said == 1) {
        connected(tcp, conn);
        return 1;
    }
    tcp__end_call(tcp, conn);
    if (is_said != -1)
        tcp__lose(tcp, conn, COLL_ERR_PEER,
                  is_said ? "answers a call with something else than its word"
                          : "takes a call and says nothing");
    return 1;
}

int tcp__connect(struct tcp *tcp, struct tcp_conn *conn)
{
    if (conn->state == TCP_UNUSED || conn->state == TCP_AWAITED)
        begin(tcp, conn);
    if (conn->state == TCP_DIALING)
        return connector(tcp, conn);
    return conn->state == TCP_ASKING ? ask(tcp, conn) : 0;
}

/* ---- to be called -------------------------------------------------------- */

/* Is the call accepted?  A higher rank is answered at once: the answer is the first thing
 * sent, since no other thread knows this connection yet.  If that rank was accepted
 * before, it has lost that connection: see tcp__take_arrivals(). */
static int lets_in(struct tcp *tcp, const struct tcp_arrival *call)
{
    unsigned char word[WORD_BYTES];
    size_t len;

    if (call->rank < 0 || call->rank >= tcp->base.size ||
        call->rank == tcp->base.rank)
        return 0;
    if (call->rank < tcp->base.rank)
        return 1;
    if (!claim(tcp, call->rank, call->channel, THEM))
        return caller(tcp, call->rank, call->channel) == THEM;
    len = make_word(call->is_sealed ? call->session : NULL, word);
    /* if that rank has gone, the next send to it will fail */
    (void)!send(call->fd, word, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return 1;
}

/* Add the connection to the list before epoll can report it. */
void tcp__arrived(struct coll__gate *gate, int fd,
                  const struct coll__hello *hello, const unsigned char *session)
{
    struct tcp *tcp = gate->owner;
    struct tcp_arrival *new = malloc(sizeof(*new));

    if (!new) {
        close(fd);
        return;
    }
    *new = (struct tcp_arrival){.fd = fd,
                                .rank = (int)hello->from,
                                .channel = (int)gate->generation,
                                .is_sealed = session != NULL};
    if (session)
        memcpy(new->session, session, sizeof(new->session));
    if (!lets_in(tcp, new)) {
        free(new);
        close(fd);
        return;
    }
    coll__net_allow_stalls(fd);
    new->next = atomic_load_explicit(&tcp->arrived, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&tcp->arrived, &new->next,
                                                  new, memory_order_release,
                                                  memory_order_relaxed))
        ;
    tcp__watch(tcp, fd, (int)hello->from, (int)gate->generation);
}

/* Use another rank's connection, and drop this rank's own attempt. tcp__arrived() has
 * added the socket to epoll already, but could not report a failure; so do it again. */
static void adopt(struct tcp *tcp, struct tcp_conn *conn,
                  const struct tcp_arrival *call)
{
    int err = tcp__watch(tcp, call->fd, conn->rank, conn->channel);
    struct coll__addr from;

    tcp__end_call(tcp, conn);
    conn->fd = call->fd;
    conn->connector.why[0] = '\0';
    if (err && err != EEXIST) {
        unwatched(tcp, conn);
        return;
    }
    coll__net_peer(call->fd, &from);
    stand(tcp, conn, &from, call->is_sealed ? call->session : NULL, 0);
}

/* Refuse a rank that has come twice, or if there is no memory. */
static void refuse(struct tcp *tcp, const struct tcp_conn *conn,
                   const struct tcp_arrival *call)
{
    close(call->fd);
    if (!conn && call->rank > tcp->base.rank) /* it may come again */
        atomic_store_explicit(place(tcp, call->rank, call->channel), NOBODY,
                              memory_order_relaxed);
    if (conn && call->rank > tcp->base.rank)
        tcp__broken(tcp, conn, 0);
}

void tcp__take_arrivals(struct tcp *tcp)
{
    struct tcp_arrival *next,
        *list =
            atomic_exchange_explicit(&tcp->arrived, NULL, memory_order_acquire);

    for (; list; list = next) {
        struct tcp_conn *conn = tcp__conn(tcp, list->rank, list->channel);

        next = list->next;
        if (!conn || conn->state == TCP_CONNECTED || conn->out.status)
            refuse(tcp, conn, list);
        else
            adopt(tcp, conn, list);
        coll__auth_wipe(list->session, sizeof(list->session));
        free(list);
    }
}
