/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_far.c - ranks on different hosts meet by sockets to rank 0. */
#include "tests/transports/conform_far.h"
#include "tests/support/patience.h"
#include "lib/util/util.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK_EVERY 64 /* polls */

struct conform_far conform_far;
static int sockets[MAX_RANKS]; /* of rank 0: to each; of the others: [0] */
static int n_checks;

int conform_far_args(int argc, char **argv)
{
    if (argc == 1)
        return 1;
    if (argc != 5) {
        fprintf(stderr, "Usage: conform [RANK SIZE ADDRESS PORT]\n");
        return 0;
    }
    conform_far = (struct conform_far){.rank = atoi(argv[1]),
                                       .size = atoi(argv[2]),
                                       .address = argv[3],
                                       .port = argv[4]};
    return conform_far.size > 1 && conform_far.size <= MAX_RANKS &&
           conform_far.rank >= 0 && conform_far.rank < conform_far.size;
}

/* The others that this rank has a socket to: from first to one before last. */
static int first_of(const struct rank *rank) { return rank->me ? 0 : 1; }
static int last_of(const struct rank *rank)
{
    return rank->me ? 1 : rank->size;
}

/* ---- bytes -------------------------------------------------------------- */

static void put(struct rank *rank, int to, const void *bytes, size_t len)
{
    ssize_t n = send(sockets[to], bytes, len, MSG_NOSIGNAL);

    EXPECT(rank, n == (ssize_t)len, "rank %d has gone: %s", to,
           strerror(errno));
}

static void get(struct rank *rank, int from, void *bytes, size_t len)
{
    struct pollfd file = {.fd = sockets[from], .events = POLLIN};
    int limit = (int)(patient(WAIT_SECONDS) * 1e3);
    ssize_t n;

    for (size_t at = 0; at < len; at += (size_t)n) {
        EXPECT(rank, poll(&file, 1, limit) == 1, "rank %d did not come", from);
        n = recv(file.fd, (char *)bytes + at, len - at, 0);
        EXPECT(rank, n > 0, "rank %d has gone", from);
    }
}

/* ---- who is there ------------------------------------------------------- */

static struct addrinfo *find_place(struct rank *rank)
{
    struct addrinfo want = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    EXPECT(rank,
           !getaddrinfo(conform_far.address, conform_far.port, &want, &found),
           "no such address: %s", conform_far.address);
    return found;
}

/* Each says who it is and what it plays, so that no case meets another one. */
static void greet(struct rank *rank, int other)
{
    int mine[2] = {rank->me, rank->index}, theirs[2];

    put(rank, other, mine, sizeof(mine));
    get(rank, other, theirs, sizeof(theirs));
    EXPECT(rank, theirs[1] == rank->index && (rank->me || theirs[0] == other),
           "rank %d plays %d there", theirs[0], theirs[1]);
}

/* The ranks come in any order: a socket's place is its rank's. */
static void accept_one(struct rank *rank, int listener)
{
    struct pollfd file = {.fd = listener, .events = POLLIN};
    int fd, who[2];

    EXPECT(rank, poll(&file, 1, (int)(patient(WAIT_SECONDS) * 1e3)) == 1,
           "a rank did not come");
    fd = accept(listener, NULL, NULL);
    EXPECT(rank, fd >= 0, "%s", strerror(errno));
    EXPECT(rank, recv(fd, who, sizeof(who), MSG_PEEK | MSG_WAITALL) ==
                         (ssize_t)sizeof(who) &&
                     who[0] > 0 && who[0] < rank->size);
    sockets[who[0]] = fd;
    greet(rank, who[0]);
}

static void accept_all(struct rank *rank, const struct addrinfo *place)
{
    int listener = socket(place->ai_family, SOCK_STREAM, 0), one = 1;

    EXPECT(rank, listener >= 0, "%s", strerror(errno));
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    EXPECT(rank,
           !bind(listener, place->ai_addr, place->ai_addrlen) &&
               !listen(listener, MAX_RANKS),
           "%s", strerror(errno));
    for (int n = 1; n < rank->size; n++)
        accept_one(rank, listener);
    close(listener);
}

/* Rank 0 may be in the case before, and refuse. */
static void call(struct rank *rank, const struct addrinfo *place)
{
    double deadline = coll__now() + patient(WAIT_SECONDS);
    int fd = socket(place->ai_family, SOCK_STREAM, 0);

    while (connect(fd, place->ai_addr, place->ai_addrlen)) {
        EXPECT(rank, coll__now() < deadline, "rank 0 is not there: %s",
               strerror(errno));
        close(fd);
        usleep(20000);
        fd = socket(place->ai_family, SOCK_STREAM, 0);
    }
    sockets[0] = fd;
    greet(rank, 0);
}

void conform_far_join(struct rank *rank)
{
    struct addrinfo *place = find_place(rank);

    if (rank->me)
        call(rank, place);
    else
        accept_all(rank, place);
    freeaddrinfo(place);
}

/* ---- together ----------------------------------------------------------- */

void conform_far_gather(struct rank *rank, const void *in, size_t len,
                        void *out)
{
    size_t all = (size_t)rank->size * len;

    if (rank->me) {
        put(rank, 0, in, len);
        get(rank, 0, out, all);
        return;
    }
    memcpy(out, in, len);
    for (int r = 1; r < rank->size; r++)
        get(rank, r, (char *)out + (size_t)r * len, len);
    for (int r = 1; r < rank->size; r++)
        put(rank, r, out, all);
}

static int has_word(struct rank *rank, int from)
{
    char word;
    ssize_t n = recv(sockets[from], &word, 1, MSG_DONTWAIT);

    EXPECT(rank, n > 0 || (n < 0 && errno == EAGAIN), "rank %d has gone", from);
    return n > 0;
}

/* The others say that they came; rank 0, once it has heard of all, that all did. */
void conform_far_meet(struct rank *rank)
{
    double deadline = coll__now() + patient(WAIT_SECONDS);
    int at = first_of(rank);

    if (rank->me)
        put(rank, 0, "m", 1);
    while (at < last_of(rank)) {
        EXPECT(rank, coll__now() < deadline, "the others did not come");
        if (has_word(rank, at))
            at++;
        else
            conform_poll(rank);
    }
    for (int r = 1; !rank->me && r < rank->size; r++)
        put(rank, r, "m", 1);
}

void conform_far_check(struct rank *rank)
{
    char word;

    if (conform_victim(rank) >= 0 || ++n_checks % CHECK_EVERY)
        return;
    for (int r = first_of(rank); r < last_of(rank); r++) {
        ssize_t n = recv(sockets[r], &word, 1, MSG_PEEK | MSG_DONTWAIT);

        EXPECT(rank, n > 0 || (n < 0 && errno == EAGAIN), "rank %d has gone",
               r);
    }
}
