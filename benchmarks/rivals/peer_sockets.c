/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_sockets.c - no library: plain sockets, one connection for each pair of
 * ranks.  What a few loops around send() and recv() reach is the measure for
 * all others.
 *
 * Large reductions and allgathers go round the ring of ranks, alltoall goes
 * pair by pair, and a large broadcast goes down a chain in pieces; small
 * operations go directly from each rank to each.  Data that must be added are
 * received into a buffer that stays in the cache.
 */
#include "benchmarks/rivals/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SMALL = 8 << 10, PIECE = 128 << 10, PATIENCE = 60 /* s */ };

static int me, n_ranks, is_crowded;
static int fds[PEER_MAX_RANKS];
static char why[640];

/* ---- bytes both ways ---------------------------------------------------- */

/* Bytes to or from a peer; what arrives is added to `with`, unless that is
 * NULL. */
struct flow {
    int peer;
    void *at;
    size_t left;
    const float *with;
};

static int failed(const char *what)
{
    snprintf(why, sizeof(why), "%s: %s", what, strerror(errno));
    return -1;
}

/* Return the bytes that a send() or recv() moved: 0 if the call would block, -1 if it
 * failed. */
static ssize_t moved(ssize_t n, int is_recv)
{
    if (n > 0)
        return n;
    if (!n && is_recv)
        errno = ECONNRESET;
    else if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return failed(is_recv ? "recv" : "send");
}

static ssize_t push(struct flow *flow)
{
    ssize_t n = moved(send(fds[flow->peer], flow->at, flow->left,
                           MSG_DONTWAIT | MSG_NOSIGNAL),
                      0);

    if (n > 0) {
        flow->at = (char *)flow->at + n;
        flow->left -= (size_t)n;
    }
    return n;
}

/* Add what has arrived; an incomplete number waits in the buffer for its rest.
 */
static ssize_t pull_sum(struct flow *flow, size_t *kept)
{
    static float piece[PIECE / sizeof(float)];
    size_t most = flow->left - *kept, n;
    float *to = flow->at;
    ssize_t came;

    if (most > PIECE - *kept)
        most = PIECE - *kept;
    came = moved(
        recv(fds[flow->peer], (char *)piece + *kept, most, MSG_DONTWAIT), 1);
    if (came <= 0)
        return came;
    n = (*kept + (size_t)came) / sizeof(float);
    for (size_t i = 0; i < n; i++)
        to[i] = flow->with[i] + piece[i];
    *kept = (*kept + (size_t)came) % sizeof(float);
    memmove(piece, piece + n, *kept);
    flow->at = to + n;
    flow->with += n;
    flow->left -= n * sizeof(float);
    return came;
}

static ssize_t pull(struct flow *flow, size_t *kept)
{
    ssize_t n;

    if (flow->with)
        return pull_sum(flow, kept);
    n = moved(recv(fds[flow->peer], flow->at, flow->left, MSG_DONTWAIT), 1);
    if (n > 0) {
        flow->at = (char *)flow->at + n;
        flow->left -= (size_t)n;
    }
    return n;
}

static int exchange(struct flow out, struct flow in)
{
    size_t kept = 0;

    while (out.left || in.left) {
        ssize_t came = in.left ? pull(&in, &kept) : 0;
        ssize_t went = out.left ? push(&out) : 0;

        if (came < 0 || went < 0)
            return -1;
        if (!came && !went && is_crowded)
            sched_yield();
    }
    return 0;
}

/* ---- operations --------------------------------------------------------- */

static int around(int rank) { return ((rank % n_ranks) + n_ranks) % n_ranks; }

static struct flow block(int peer, const float *base, size_t count, int b)
{
    size_t first = count * (size_t)around(b) / (size_t)n_ranks;
    size_t end = count * (size_t)(around(b) + 1) / (size_t)n_ranks;

    return (struct flow){around(peer), (void *)(uintptr_t)(base + first),
                         (end - first) * sizeof(float), NULL};
}

/* Send the blocks of out round the ring, this rank's own first. */
static int gather_round(float *out, size_t count, int own)
{
    int rc = 0;

    for (int s = 0; s < n_ranks - 1 && !rc; s++)
        rc = exchange(block(me + 1, out, count, own - s),
                      block(me - 1, out, count, own - s - 1));
    return rc;
}

/* Small: each to each. */
static int sum_straight(const float *in, float *out, size_t count)
{
    int rc = 0;

    for (int d = 1; d < n_ranks && !rc; d++)
        rc = exchange((struct flow){around(me + d), (void *)(uintptr_t)in,
                                    count * sizeof(float), NULL},
                      (struct flow){around(me - d), out, count * sizeof(float),
                                    d == 1 ? in : out});
    return rc;
}

static int allreduce(const float *in, float *out, size_t count, int root)
{
    int rc = 0;

    (void)root;
    if (count * sizeof(float) <= SMALL || count < (size_t)n_ranks)
        return sum_straight(in, out, count);
    for (int s = 0; s < n_ranks - 1 && !rc; s++) {
        struct flow to = block(me + 1, s ? out : in, count, me - s);
        struct flow from = block(me - 1, out, count, me - s - 1);

        from.with = block(0, in, count, me - s - 1).at;
        rc = exchange(to, from);
    }
    return rc ? rc : gather_round(out, count, me + 1);
}

/* Partial sums alternate between two blocks; the last sum goes to out. */
static int reduce_scatter(const float *in, float *out, size_t count, int root)
{
    static float *sums;
    static size_t room;
    size_t all = count * (size_t)n_ranks;
    int rc = 0;

    (void)root;
    if (room < 2 * count) {
        free(sums);
        room = 2 * count;
        sums = malloc(room * sizeof(float));
        if (!sums)
            return failed("malloc");
    }
    for (int s = 0; s < n_ranks - 1 && !rc; s++) {
        struct flow to = block(me + 1, in, all, me - s - 1);
        struct flow from = block(me - 1, in, all, me - s - 2);

        if (s)
            to.at = sums + (size_t)(s & 1) * count;
        from.with = from.at;
        from.at = s == n_ranks - 2 ? out : sums + (size_t)(~s & 1) * count;
        rc = exchange(to, from);
    }
    return rc;
}

static int allgather(const float *in, float *out, size_t count, int root)
{
    (void)root;
    memcpy(out + (size_t)me * count, in, count * sizeof(float));
    return gather_round(out, count * (size_t)n_ranks, me);
}

static int alltoall(const float *in, float *out, size_t count, int root)
{
    size_t all = count * (size_t)n_ranks;
    int rc = 0;

    (void)root;
    memcpy(out + (size_t)me * count, in + (size_t)me * count,
           count * sizeof(float));
    for (int d = 1; d < n_ranks && !rc; d++)
        rc = exchange(block(me + d, in, all, me + d),
                      block(me - d, out, all, me - d));
    return rc;
}

/* The root sends; every other rank of the chain passes on what it has received.
 */
static int chain(float *out, size_t len, int place)
{
    struct flow in = {around(me - 1), out, 0, NULL};
    struct flow to = {around(me + 1), out, 0, NULL};
    int is_last = place == n_ranks - 1, rc = 0;

    for (size_t at = 0; at < len + PIECE && !rc; at += PIECE) {
        size_t next = at < len ? at + PIECE < len ? PIECE : len - at : 0;

        in.at = (char *)out + at;
        in.left = place ? next : 0;
        rc = exchange(to, in);
        to.at = (char *)out + at;
        to.left = is_last ? 0 : next;
    }
    return rc;
}

static int broadcast(const float *in, float *out, size_t count, int root)
{
    struct flow none = {0, NULL, 0, NULL};
    int rc = 0;

    (void)in;
    if (count * sizeof(float) > SMALL)
        return chain(out, count * sizeof(float), around(me - root));
    if (me != root)
        return exchange(none,
                        (struct flow){root, out, count * sizeof(float), NULL});
    for (int d = 1; d < n_ranks && !rc; d++)
        rc = exchange(
            (struct flow){around(me + d), out, count * sizeof(float), NULL},
            none);
    return rc;
}

static int barrier(const float *in, float *out, size_t count, int root)
{
    char byte[2] = {0};
    int rc = 0;

    (void)in;
    (void)out;
    (void)count;
    (void)root;
    for (int d = 1; d < n_ranks && !rc; d++)
        rc = exchange((struct flow){around(me + d), byte, 1, NULL},
                      (struct flow){around(me - d), byte + 1, 1, NULL});
    return rc;
}

/* ---- the beginning ------------------------------------------------------ */

/* Return this rank's address on the interface that is asked for, or the
 * loopback. */
static struct sockaddr_in own_address(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *name = getenv(PEER_INTERFACE);
    struct ifaddrs *all = NULL;

    if (!name || getifaddrs(&all))
        return address;
    for (struct ifaddrs *i = all; i; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET &&
            !strcmp(i->ifa_name, name))
            memcpy(&address, i->ifa_addr, sizeof(address));
    freeifaddrs(all);
    address.sin_port = 0;
    return address;
}

static void path_of(int rank, const char *suffix, char path[512])
{
    const char *folder = getenv(PEER_FOLDER);

    snprintf(path, 512, "%s/sockets.%d%s", folder ? folder : ".", rank, suffix);
}

/* Listen, and write the address where the others look. */
static int open_door(void)
{
    struct sockaddr_in address = own_address();
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char path[512], hidden[512];
    FILE *file;

    path_of(me, "", path);
    path_of(me, ".new", hidden);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) ||
        listen(fd, PEER_MAX_RANKS) ||
        getsockname(fd, (struct sockaddr *)&address, &len))
        return failed("listen");
    file = fopen(hidden, "we");
    if (!file || fwrite(&address, sizeof(address), 1, file) != 1 ||
        fclose(file) || rename(hidden, path))
        return failed(path);
    return fd;
}

static int call(int rank)
{
    struct timespec moment = {0, 1000000};
    struct sockaddr_in address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char path[512];
    FILE *file = NULL;

    path_of(rank, "", path);
    for (int tries = 0; !file && tries < PATIENCE * 1000; tries++) {
        file = fopen(path, "re");
        if (!file)
            nanosleep(&moment, NULL);
    }
    if (!file || fread(&address, sizeof(address), 1, file) != 1 ||
        fclose(file) ||
        connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
        send(fd, &me, sizeof(me), MSG_NOSIGNAL) != sizeof(me))
        return failed("connect");
    fds[rank] = fd;
    return 0;
}

static int answer(int door)
{
    int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC), rank;

    if (fd < 0 || recv(fd, &rank, sizeof(rank), MSG_WAITALL) != sizeof(rank) ||
        rank <= me || rank >= n_ranks)
        return failed("accept");
    fds[rank] = fd;
    return 0;
}

static int init(int *argc, char ***argv, int *rank, int *ranks)
{
    const char *mine = getenv("COLL_RANK"), *all = getenv("COLL_SIZE");
    int door, rc = 0, on = 1;

    (void)argc;
    (void)argv;
    me = mine ? atoi(mine) : 0;
    n_ranks = all ? atoi(all) : 1;
    if (me < 0 || n_ranks > PEER_MAX_RANKS || me >= n_ranks)
        return errno = EINVAL, failed("COLL_RANK");
    is_crowded = n_ranks > sysconf(_SC_NPROCESSORS_ONLN);
    door = open_door();
    if (door < 0)
        return -1;
    for (int r = 0; r < me && !rc; r++)
        rc = call(r);
    for (int r = me + 1; r < n_ranks && !rc; r++)
        rc = answer(door);
    for (int r = 0; r < n_ranks && !rc; r++)
        if (r != me &&
            setsockopt(fds[r], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
            rc = failed("setsockopt");
    close(door);
    *rank = me;
    *ranks = n_ranks;
    return rc;
}

static void fini(void)
{
    for (int r = 0; r < n_ranks; r++)
        if (r != me)
            close(fds[r]);
}

static const char *version(void) { return "TCP, a connection a pair"; }

static const char *error(void) { return why; }

const struct peer_lib peer_lib = {
    .init = init,
    .fini = fini,
    .version = version,
    .error = error,
    .run = {allreduce, broadcast, allgather, reduce_scatter, alltoall, barrier},
};
