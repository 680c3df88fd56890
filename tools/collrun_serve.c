/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_serve.c - node 0 gives the other nodes their seats, before the job begins, and
 * also later to hosts that are found while it runs. */
#include "tools/collrun_serve.h"
#include "tools/collrun.h"
#include "tools/collrun_endpoint.h"
#include "tools/collrun_fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAUSE 1000 /* ms, until agents are looked at again */

/* A client that has connected and is no node yet. */
struct guest {
    struct coll__words link;
    unsigned char nonce[COLL__NONCE_BYTES]; /* drawn for it */
    int has_drawn;                          /* and it has, too */
    double deadline;
};

struct reception {
    int n;
    struct guest guests[SERVE_GUESTS];
};

static void turn_away(int fd)
{
    char greeting[SERVE_GREETING] = SERVE_FULL;

    send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

static void greet(struct reception *r, int fd)
{
    char greeting[SERVE_GREETING] = SERVE_MAGIC;
    struct guest *guest = &r->guests[r->n];

    endpoint_prepare(fd);
    coll__auth_random(guest->nonce, COLL__NONCE_BYTES);
    memcpy(greeting + strlen(SERVE_MAGIC), guest->nonce, COLL__NONCE_BYTES);
    guest->link = (struct coll__words){.fd = fd};
    guest->has_drawn = 0;
    guest->deadline = now() + SERVE_TIME;
    send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL);
    r->n++;
}

static int is_free(const struct seat *seat)
{
    return seat->link.fd < 0 && !seat->is_gone;
}

/* Find a seat (a node number) for a client, or the reason why there is none. */
static struct seat *find_seat(const struct nodes *nodes, int rank, int n_nodes,
                              char reason[COLL__WORD])
{
    if (!nodes->fleet && n_nodes != nodes->n_nodes)
        snprintf(reason, COLL__WORD, "no it has --nnodes %d, not %d",
                 nodes->n_nodes, n_nodes);
    else if (rank >= 0 && is_free(&nodes->seats[rank]))
        return &nodes->seats[rank];
    else if (rank >= 0)
        snprintf(reason, COLL__WORD, "no another is --node-rank %d", rank);
    else
        for (int i = 1; i < nodes->n_nodes; i++)
            if (is_free(&nodes->seats[i]))
                return &nodes->seats[i];
    if (!*reason)
        snprintf(reason, COLL__WORD, "no all its nodes are there");
    return NULL;
}

/* A host that comes when the job runs has the places behind all others. */
static void seat_late(struct nodes *nodes, struct seat *seat)
{
    seat->first = nodes->n_places;
    nodes->n_places += seat->n;
    seat->is_new = 1;
    nodes_go(nodes, (int)(seat - nodes->seats));
}

/* A client has proved that it knows the job's key, and says which node it is. */
static int welcome(struct nodes *nodes, struct guest *guest, const char *word)
{
    int rank, n_nodes, n;
    char reason[COLL__WORD] = "";
    struct seat *seat;

    if (sscanf(word, "node %d %d %d", &rank, &n_nodes, &n) != 3 || rank < -1 ||
        rank == 0 || rank >= nodes->n_nodes || n < 1)
        snprintf(reason, sizeof(reason), "no its --node-rank is wrong");
    seat = *reason ? NULL : find_seat(nodes, rank, n_nodes, reason);
    if (!seat) {
        coll__words_put(&guest->link, reason);
        return -1;
    }
    seat->link = guest->link;
    seat->n = n;
    seat->has_come = 1;
    endpoint_say_where(seat->link.fd, seat->where, sizeof(seat->where));
    coll__words_put(&seat->link, "seat");
    if (nodes->n_places)
        seat_late(nodes, seat);
    return 1;
}

/* Serve a client.  0: not done yet; 1: it has a seat; -1: it is rejected. */
static int hear_guest(struct nodes *nodes, struct guest *guest)
{
    unsigned char theirs[COLL__NONCE_BYTES];
    char word[COLL__WORD], where[64];
    int is_there;

    if (!guest->has_drawn) {
        is_there = coll__words_fill(&guest->link, COLL__NONCE_BYTES);
        if (is_there <= 0)
            return is_there;
        memcpy(theirs, guest->link.held, COLL__NONCE_BYTES);
        coll__words_init(&guest->link, 1, nodes->key, guest->nonce, theirs);
        guest->has_drawn = 1;
    }
    is_there = coll__words_take(&guest->link, word);
    if (is_there > 0)
        return welcome(nodes, guest, word);
    if (is_there < 0) {
        endpoint_say_where(guest->link.fd, where, sizeof(where));
        complain("a node at %s was refused: it does not know this job's "
                 "--rdzv-id, or not its COLL_JOB_SECRET",
                 where);
    }
    return is_there;
}

void serve_guests(struct nodes *nodes)
{
    struct reception *r = nodes->reception;
    int fd, n = 0;

    while (nodes->listen_fd >= 0 && (!r || r->n < SERVE_GUESTS) &&
           (fd = accept4(nodes->listen_fd, NULL, NULL,
                         SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
        if (r)
            greet(r, fd);
        else
            turn_away(fd);
    for (int i = 0; r && i < r->n; i++) {
        struct guest *guest = &r->guests[i];
        int what = hear_guest(nodes, guest);

        if (!what && now() < guest->deadline)
            r->guests[n++] = *guest;
        else if (what <= 0)
            coll__words_close(&guest->link);
    }
    if (r)
        r->n = n;
}

int serve_fds(const struct nodes *nodes, struct pollfd *fds)
{
    const struct reception *r = nodes->reception;
    int n = 0;

    for (; r && n < r->n; n++)
        fds[n] = (struct pollfd){.fd = r->guests[n].link.fd, .events = POLLIN};
    if (nodes->listen_fd >= 0 && n < SERVE_GUESTS) /* else they wait */
        fds[n++] = (struct pollfd){.fd = nodes->listen_fd, .events = POLLIN};
    return n;
}

void serve_close(struct nodes *nodes)
{
    struct reception *r = nodes->reception;

    for (int i = 0; r && i < r->n; i++)
        coll__words_close(&r->guests[i].link);
    free(r);
    nodes->reception = NULL;
}

/* ---- before the job begins --------------------------------------------------- */

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
static void await_any(struct nodes *nodes)
{
    struct pollfd fds[SERVE_GUESTS + 1];

    poll(fds, (nfds_t)serve_fds(nodes, fds), PAUSE);
    serve_guests(nodes);
}

static int await_all(struct nodes *nodes, double deadline, double seconds)
{
    int n;

    while ((n = n_missing(nodes))) {
        if (now() > deadline) {
            complain("%d of %d nodes did not come to %s:%d within %g s "
                     "(COLL_TIMEOUT)%s",
                     n, nodes->n_nodes, nodes->host, nodes->port, seconds,
                     nodes->fleet ? "; can they reach this address?"
                                  : "; start collrun there, with the same "
                                    "--rdzv-id");
            return EXIT_FAILURE;
        }
        if (nodes->fleet && fleet_has_failed(nodes))
            return EXIT_FAILURE;
        await_any(nodes);
    }
    return 0;
}

int serve_all(struct nodes *nodes, double deadline, double seconds)
{
    int status = EXIT_FAILURE;

    nodes->reception = calloc(1, sizeof(*nodes->reception));
    if (nodes->reception)
        status = await_all(nodes, deadline, seconds);
    else
        complain("out of memory");
    if (!nodes->fleet)
        serve_close(nodes);
    for (int i = 0; i < nodes->n_nodes; i++) {
        nodes->seats[i].first = nodes->n_places;
        nodes->n_places += nodes->seats[i].n;
    }
    nodes->order.size = nodes->n_places;
    return status;
}
