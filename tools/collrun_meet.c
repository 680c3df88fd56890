/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_meet.c - how the collruns of a job meet and get their node numbers.
 *
 * The collrun that can listen at the endpoint is node 0, the server.  It greets each
 * connection with a nonce.  The client draws a nonce too, and says which node it is, in a
 * message sealed with a key made from both nonces and the job's key.  A client that
 * cannot do that is rejected, and so is one that comes too late.
 *
 *   node 0                          another node
 *          <- connects -
 *          - MAGIC, nonce ->
 *          <- nonce, "node ..." -      (sealed from here on)
 *          - "seat" or "no ..." ->
 *          - "go ..." ->               when all are there
 */
#include "tools/collrun.h"
#include "tools/collrun_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC "COLLRUN2"
#define FULL "COLLFULL"
#define GREETING (sizeof(MAGIC) - 1 + COLL__NONCE_BYTES)
#define MAX_GUESTS 64
#define GUEST_TIME 5.0 /* s, to prove oneself */
#define PAUSE 200      /* ms, between two calls */
#define SILENCE 10     /* s, until a host that does not answer is gone */

/* A client that has connected and is no node yet. */
struct guest {
    struct coll__words link;
    unsigned char nonce[COLL__NONCE_BYTES]; /* drawn for it */
    int has_drawn;                   /* and it has, too */
    double deadline;
};

struct meeting {
    struct nodes *nodes;
    int node_rank; /* of the user's, or -1 */
    double deadline, seconds;
    int n_guests;
    struct guest guests[MAX_GUESTS];
};

/* ---- sockets --------------------------------------------------------------- */

static int is_loopback(const char *host)
{
    return !strncmp(host, "127.", 4) || !strcmp(host, "::1") ||
           !strcmp(host, "localhost");
}

static int listen_at(const struct sockaddr *at, socklen_t len)
{
    int fd =
        socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, off = 0;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (at->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (!bind(fd, at, len) && !listen(fd, 4096))
        return fd;
    off = errno;
    close(fd);
    errno = off;
    return -1;
}

/* A host's own name may resolve to 127.0.1.1, which other hosts cannot reach.  So listen
 * on every interface, unless the endpoint is a loopback name. */
int nodes_listen(const struct nodes *nodes, int port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = six.sin6_port};
    int is_six = !strcmp(nodes->host, "::1"), fd = -1;

    if (is_six)
        six.sin6_addr = in6addr_loopback;
    else if (is_loopback(nodes->host))
        four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (is_six || !four.sin_addr.s_addr)
        fd = listen_at((struct sockaddr *)&six, sizeof(six));
    if (fd < 0 && !is_six && (four.sin_addr.s_addr || errno != EADDRINUSE))
        fd = listen_at((struct sockaddr *)&four, sizeof(four));
    return fd;
}

/* Is the address on this host?  Only then can it be bound. */
static int is_mine(const struct addrinfo *a)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } at;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), can_bind;

    memcpy(&at, a->ai_addr, a->ai_addrlen);
    at.six.sin6_port = 0; /* at the same place in both */
    can_bind = fd >= 0 && !bind(fd, &at.any, a->ai_addrlen);
    if (fd >= 0)
        close(fd);
    return can_bind;
}

/* Look the endpoint up; NULL: it cannot be resolved now. */
static struct addrinfo *look_up(const struct nodes *nodes)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    char port[16];

    snprintf(port, sizeof(port), "%d", nodes->port);
    return getaddrinfo(nodes->host, port, &hints, &list) ? NULL : list;
}

/* Listen, if the endpoint is on this host and no other collrun listens; else errno says
 * why not. */
static void try_to_serve(struct nodes *nodes)
{
    struct addrinfo *list = look_up(nodes);
    int is_here = 0;

    for (struct addrinfo *a = list; a && !is_here; a = a->ai_next)
        is_here = is_mine(a);
    if (list)
        freeaddrinfo(list);
    if (is_here)
        nodes->listen_fd = nodes_listen(nodes, nodes->port);
    else
        errno = EADDRNOTAVAIL;
}

/* Have a host that is cut off, or has lost its power, noticed as soon as ranks notice
 * it. */
static void prepare(int fd)
{
    int on = 1, interval = SILENCE / 5, count = 4, ms = SILENCE * 1000;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void say_where(int fd, char *where, size_t len)
{
    struct sockaddr_storage at;
    socklen_t at_len = sizeof(at);

    if (getpeername(fd, (struct sockaddr *)&at, &at_len) ||
        getnameinfo((struct sockaddr *)&at, at_len, where, (socklen_t)len, NULL,
                    0, NI_NUMERICHOST))
        snprintf(where, len, "unknown");
    if (!strncmp(where, "::ffff:", 7)) /* IPv4, at a socket of either */
        memmove(where, where + 7, strlen(where + 7) + 1);
}

/* ---- node 0 ---------------------------------------------------------------- */

void nodes_turn_away(int fd)
{
    char greeting[GREETING] = FULL;

    send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void greet(struct meeting *m)
{
    char greeting[GREETING] = MAGIC;
    int fd =
        accept4(m->nodes->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct guest *guest = &m->guests[m->n_guests];

    if (fd < 0)
        return;
    prepare(fd);
    coll__auth_random(guest->nonce, COLL__NONCE_BYTES);
    memcpy(greeting + strlen(MAGIC), guest->nonce, COLL__NONCE_BYTES);
    guest->link = (struct coll__words){.fd = fd};
    guest->has_drawn = 0;
    guest->deadline = now() + GUEST_TIME;
    send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL);
    m->n_guests++;
}

/* Find a seat (a node number) for a client, or the reason why there is none. */
static struct seat *find_seat(const struct meeting *m, int rank, int n_nodes,
                              char reason[COLL__WORD])
{
    struct nodes *nodes = m->nodes;

    if (n_nodes != nodes->n_nodes)
        snprintf(reason, COLL__WORD, "no it has --nnodes %d, not %d",
                 nodes->n_nodes, n_nodes);
    else if (rank >= 0 && nodes->seats[rank].link.fd < 0)
        return &nodes->seats[rank];
    else if (rank >= 0)
        snprintf(reason, COLL__WORD, "no another is --node-rank %d", rank);
    else
        for (int i = 1; i < nodes->n_nodes; i++)
            if (nodes->seats[i].link.fd < 0)
                return &nodes->seats[i];
    if (!*reason)
        snprintf(reason, COLL__WORD, "no all its nodes are there");
    return NULL;
}

/* A client has proved that it knows the job's key, and says which node it is. */
static int welcome(struct meeting *m, struct guest *guest, const char *word)
{
    int rank, n_nodes, n;
    char reason[COLL__WORD] = "";
    struct seat *seat;

    if (sscanf(word, "node %d %d %d", &rank, &n_nodes, &n) != 3 || rank < -1 ||
        rank == 0 || rank >= m->nodes->n_nodes || n < 1)
        snprintf(reason, sizeof(reason), "no its --node-rank is wrong");
    seat = *reason ? NULL : find_seat(m, rank, n_nodes, reason);
    if (!seat) {
        coll__words_put(&guest->link, reason);
        return -1;
    }
    seat->link = guest->link;
    seat->n = n;
    say_where(seat->link.fd, seat->where, sizeof(seat->where));
    coll__words_put(&seat->link, "seat");
    return 1;
}

/* Serve a client.  0: not done yet; 1: it has a seat; -1: it is rejected. */
static int hear_guest(struct meeting *m, struct guest *guest)
{
    unsigned char theirs[COLL__NONCE_BYTES];
    char word[COLL__WORD], where[64];
    int is_there;

    if (!guest->has_drawn) {
        is_there = coll__words_fill(&guest->link, COLL__NONCE_BYTES);
        if (is_there <= 0)
            return is_there;
        memcpy(theirs, guest->link.held, COLL__NONCE_BYTES);
        coll__words_init(&guest->link, 1, m->nodes->key, guest->nonce, theirs);
        guest->has_drawn = 1;
    }
    is_there = coll__words_take(&guest->link, word);
    if (is_there > 0)
        return welcome(m, guest, word);
    if (is_there < 0) {
        say_where(guest->link.fd, where, sizeof(where));
        complain("a node at %s was refused: it does not know this job's "
                 "--rdzv-id, or not its COLL_JOB_SECRET",
                 where);
    }
    return is_there;
}

static void hear_guests(struct meeting *m)
{
    int n = 0;

    for (int i = 0; i < m->n_guests; i++) {
        struct guest *guest = &m->guests[i];
        int what = hear_guest(m, guest);

        if (!what && now() < guest->deadline)
            m->guests[n++] = *guest;
        else if (what <= 0)
            coll__words_close(&guest->link);
    }
    m->n_guests = n;
}

static int n_missing(struct nodes *nodes)
{
    int n = 0;

    for (int i = 1; i < nodes->n_nodes; i++) {
        struct coll__words *link = &nodes->seats[i].link;
        char word[COLL__WORD];

        if (link->fd >= 0 &&
            coll__words_take(link, word)) /* it is gone again */
            coll__words_close(link);
        n += link->fd < 0;
    }
    return n;
}

/* Wait for a connection or a message, a second at most. */
static void await_any(const struct meeting *m)
{
    struct pollfd fds[MAX_GUESTS + 1];
    int n = 0;

    for (; n < m->n_guests; n++)
        fds[n] = (struct pollfd){.fd = m->guests[n].link.fd, .events = POLLIN};
    if (n < MAX_GUESTS) /* else they wait in the backlog */
        fds[n++] = (struct pollfd){.fd = m->nodes->listen_fd, .events = POLLIN};
    poll(fds, (nfds_t)n, 1000);
}

static int serve(struct meeting *m)
{
    struct nodes *nodes = m->nodes;
    int n;

    while ((n = n_missing(nodes))) {
        if (now() > m->deadline) {
            complain("%d of %d nodes did not come to %s:%d within %g s "
                     "(COLL_TIMEOUT); start collrun there, with the same "
                     "--rdzv-id",
                     n, nodes->n_nodes, nodes->host, nodes->port, m->seconds);
            return EXIT_FAILURE;
        }
        await_any(m);
        if (m->n_guests < MAX_GUESTS)
            greet(m);
        hear_guests(m);
    }
    for (int i = 0; i < nodes->n_nodes; i++) {
        nodes->seats[i].first = nodes->order.size;
        nodes->order.size += nodes->seats[i].n;
    }
    for (int i = 0; i < m->n_guests; i++)
        coll__words_close(&m->guests[i].link);
    return 0;
}

/* ---- the others ------------------------------------------------------------ */

static int connect_to(const struct addrinfo *a)
{
    int fd =
        socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int err = 0;
    socklen_t len = sizeof(err);
    struct pollfd pfd = {.fd = fd, .events = POLLOUT};

    if (fd < 0)
        return -1;
    if (!connect(fd, a->ai_addr, a->ai_addrlen) ||
        (errno == EINPROGRESS && poll(&pfd, 1, (int)(GUEST_TIME * 1000)) > 0 &&
         !getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) && !err))
        return fd;
    close(fd);
    return -1;
}

static int dial_all(const struct nodes *nodes)
{
    struct addrinfo *list = look_up(nodes);
    int fd = -1;

    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
        fd = connect_to(a);
    if (list)
        freeaddrinfo(list);
    return fd;
}

/* Read node 0's greeting: 1; 0 nothing came; -1 and the reason. */
static int hear_greeting(struct coll__words *link, const char **wrong)
{
    struct pollfd pfd = {.fd = link->fd, .events = POLLIN};
    double deadline = now() + 2 * GUEST_TIME;
    int is_there;

    while (!(is_there = coll__words_fill(link, GREETING)) && now() < deadline)
        poll(&pfd, 1, PAUSE);
    if (is_there <= 0)
        return 0;
    if (!memcmp(link->held, MAGIC, strlen(MAGIC)))
        return 1;
    *wrong = !memcmp(link->held, FULL, strlen(FULL))
                 ? "the job there has all its nodes"
                 : "what answers there is no collrun of this version";
    return -1;
}

/* Say which node we are: 1 we have a seat; 0 try again; -1 and the reason. */
static int introduce(struct meeting *m, struct coll__words *link,
                     const char **wrong)
{
    static char word[COLL__WORD]; /* *wrong may point there */
    unsigned char mine[COLL__NONCE_BYTES], theirs[COLL__NONCE_BYTES];
    int what = hear_greeting(link, wrong);

    if (what <= 0)
        return what;
    memcpy(theirs, link->held + strlen(MAGIC), COLL__NONCE_BYTES);
    coll__auth_random(mine, COLL__NONCE_BYTES);
    coll__words_init(link, 0, m->nodes->key, mine, theirs);
    if (send(link->fd, mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine))
        return 0;
    snprintf(word, sizeof(word), "node %d %d %d", m->node_rank,
             m->nodes->n_nodes, m->nodes->n);
    if (coll__words_put(link, word))
        return 0;
    if (link_await(link, now() + 2 * GUEST_TIME, word) < 0) {
        *wrong = "the job there has another --rdzv-id or COLL_JOB_SECRET, or "
                 "has just ended";
        return -1;
    }
    *wrong = word + 3; /* "no ..." */
    return strcmp(word, "seat") ? -1 : 1;
}

/* Get a seat from node 0: 1; 0 no server answers; -1 after an error message. */
static int join(struct meeting *m)
{
    struct nodes *nodes = m->nodes;
    struct coll__words link = {.fd = dial_all(nodes)};
    const char *wrong = "";
    int what;

    if (link.fd < 0)
        return 0;
    prepare(link.fd);
    what = introduce(m, &link, &wrong);
    if (what < 0)
        complain("this node was refused at %s:%d: %s", nodes->host, nodes->port,
                 wrong);
    if (what <= 0) {
        coll__words_close(&link);
        return what;
    }
    nodes->seats[0].link = link;
    snprintf(nodes->seats[0].where, sizeof(nodes->seats[0].where), "%.48s:%d",
             nodes->host, nodes->port);
    return 1;
}

/* Wait for the other nodes, and for the order to start. */
static int await_order(struct meeting *m)
{
    char word[COLL__WORD];

    if (link_await(&m->nodes->seats[0].link, m->deadline + GUEST_TIME, word) >
            0 &&
        !nodes_read_order(word, &m->nodes->order))
        return 0;
    complain("node 0 (%s) did not start the job; see its own output",
             m->nodes->seats[0].where);
    return EXIT_FAILURE;
}

/* ---- either ---------------------------------------------------------------- */

static int meet(struct meeting *m)
{
    struct nodes *nodes = m->nodes;
    int what = 0;

    while (!what) {
        if (m->node_rank <= 0)
            try_to_serve(nodes);
        if (nodes->listen_fd >= 0)
            return serve(m);
        if (!m->node_rank) {
            complain("node 0 cannot listen at %s:%d: %s", nodes->host,
                     nodes->port, strerror(errno));
            return EXIT_FAILURE;
        }
        what = join(m);
        if (!what && now() > m->deadline) {
            complain("no job was found at %s:%d within %g s (COLL_TIMEOUT): is "
                     "its collrun running, and the address right?",
                     nodes->host, nodes->port, m->seconds);
            what = -1;
        }
        if (!what)
            poll(NULL, 0, PAUSE);
    }
    return what < 0 ? EXIT_FAILURE : await_order(m);
}

/* Nodes wait for each other as long as ranks do. */
static double patience(void)
{
    const char *text = getenv("COLL_TIMEOUT");
    double seconds = text ? strtod(text, NULL) : 0;

    return seconds > 0 ? seconds : 300;
}

static struct nodes *create(const struct options *o)
{
    struct nodes *nodes = calloc(1, sizeof(*nodes));

    if (!nodes)
        return NULL;
    nodes->seats = calloc((size_t)o->n_nodes, sizeof(*nodes->seats));
    nodes->n_nodes = o->n_nodes;
    nodes->n = o->n;
    nodes->listen_fd = -1;
    nodes->port = o->endpoint_port;
    snprintf(nodes->host, sizeof(nodes->host), "%s", o->endpoint_host);
    if (!nodes->seats) {
        free(nodes);
        return NULL;
    }
    for (int i = 0; i < o->n_nodes; i++)
        nodes->seats[i].link.fd = -1;
    nodes->seats[0].n = o->n;
    return nodes;
}

int nodes_meet(const struct options *o, const char *run_id,
               struct nodes **nodes)
{
    struct meeting *m = calloc(1, sizeof(*m));
    int has_secret, status = EXIT_FAILURE;

    if (m)
        m->nodes = create(o);
    if (!m || !m->nodes) {
        complain("out of memory");
        free(m);
        return status;
    }
    m->node_rank = o->node_rank;
    m->seconds = patience();
    m->deadline = now() + m->seconds;
    has_secret = link_key(run_id, m->nodes->key);
    if (has_secret >= 0)
        status = meet(m);
    *nodes = m->nodes;
    if (status)
        nodes_close(m->nodes);
    else if (!has_secret && !m->nodes->order.node &&
             !is_loopback(o->endpoint_host))
        complain("nodes know each other by --rdzv-id alone; where others share "
                 "the network, set COLL_JOB_SECRET or COLL_JOB_SECRET_FILE on "
                 "all of them");
    free(m);
    return status;
}

void nodes_close(struct nodes *nodes)
{
    if (!nodes)
        return;
    for (int i = 0; i < nodes->n_nodes; i++)
        coll__words_close(&nodes->seats[i].link);
    if (nodes->listen_fd >= 0)
        close(nodes->listen_fd);
    explicit_bzero(nodes->key, sizeof(nodes->key));
    explicit_bzero(&nodes->order, sizeof(nodes->order));
    free(nodes->seats);
    free(nodes);
}
