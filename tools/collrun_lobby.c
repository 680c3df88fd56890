/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_lobby.c - serve the newcomers that wait, and the ranks that let them in. */
#include "tools/collrun_lobby.h"
#include "tools/collrun.h"

#include "lib/net/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_STRANGERS 64 /* connections that have not proved the secret */
#define STRANGER_TIME 5.0 /* s, until such a connection may be dropped */
#define EVENTS 16         /* taken at a time */

/* A connection. */
struct guest {
    struct coll__words words;
    unsigned char nonce[COLL__NONCE_BYTES]; /* drawn for it */
    enum { STRANGER, KNOWN, WAITING, SEATED } state;
    int has_drawn;   /* its nonce has come */
    double deadline; /* of a stranger */
    int newcomer;    /* its number, once it waits */
    int rank;        /* that it is to be, once it has a seat */
    int is_taken;    /* lobby_hear() has told that it has a seat */
    struct guest *root; /* who gave it the seat; NULL: that rank has gone */
    struct guest *next;
};

struct lobby {
    int listen_fd, events; /* events: an epoll descriptor */
    unsigned char secret[COLL__SECRET_BYTES];
    struct guest *guests; /* in the order in which they came */
};

struct lobby *lobby_open(int listen_fd, const char *secret)
{
    struct epoll_event event = {.events = EPOLLIN}; /* its pointer is NULL */
    struct lobby *lobby = calloc(1, sizeof(*lobby));

    if (!lobby) {
        complain("out of memory");
        close(listen_fd);
        return NULL;
    }
    lobby->listen_fd = listen_fd;
    lobby->events = epoll_create1(EPOLL_CLOEXEC);
    coll__auth_from_text(secret, lobby->secret);
    if (lobby->events >= 0 && !fcntl(listen_fd, F_SETFL, O_NONBLOCK) &&
        !epoll_ctl(lobby->events, EPOLL_CTL_ADD, listen_fd, &event))
        return lobby;
    complain("cannot wait for newcomers: %s", strerror(errno));
    lobby_close(lobby);
    return NULL;
}

int lobby_fd(const struct lobby *lobby) { return lobby->events; }

/* ---- guests ---------------------------------------------------------------- */

/* End a connection, which `at` points to.  The rank that has given a newcomer its seat is
 * told. */
static void drop(struct lobby *lobby, struct guest **at)
{
    struct guest *guest = *at;
    char word[COLL__WORD];

    *at = guest->next;
    for (struct guest *g = lobby->guests; g; g = g->next)
        if (g->root == guest)
            g->root = NULL;
    if (guest->root) {
        snprintf(word, sizeof(word), "gone %d", guest->rank);
        coll__words_put(&guest->root->words, word);
    }
    coll__words_close(&guest->words);
    free(guest);
}

void lobby_close(struct lobby *lobby)
{
    if (!lobby)
        return;
    while (lobby->guests)
        drop(lobby, &lobby->guests);
    if (lobby->events >= 0)
        close(lobby->events);
    close(lobby->listen_fd);
    coll__auth_wipe(lobby->secret, sizeof(lobby->secret));
    free(lobby);
}

static int count(const struct lobby *lobby, int state)
{
    int n = 0;

    for (const struct guest *g = lobby->guests; g; g = g->next)
        n += (int)g->state == state;
    return n;
}

int lobby_has(const struct lobby *lobby, int newcomer)
{
    const struct guest *g = lobby->guests;

    while (g && (g->state != WAITING || g->newcomer != newcomer))
        g = g->next;
    return g != NULL;
}

void lobby_forget(struct lobby *lobby, int newcomer)
{
    struct guest **at = &lobby->guests;

    while (*at)
        if ((*at)->newcomer == newcomer)
            drop(lobby, at);
        else
            at = &(*at)->next;
}

/* Drop the strangers whose time is over. */
static void drop_strangers(struct lobby *lobby)
{
    struct guest **at = &lobby->guests;

    while (*at)
        if ((*at)->state == STRANGER && now() >= (*at)->deadline)
            drop(lobby, at);
        else
            at = &(*at)->next;
}

/* Take a connection, and send this end's nonce. */
static void greet(struct lobby *lobby)
{
    int fd =
        accept4(lobby->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct guest *guest = NULL, **last = &lobby->guests;
    struct epoll_event event = {.events = EPOLLIN};

    if (fd < 0)
        return;
    drop_strangers(lobby);
    if (count(lobby, STRANGER) < MOST_STRANGERS)
        guest = calloc(1, sizeof(*guest));
    if (!guest) {
        close(fd);
        return;
    }
    guest->words.fd = fd;
    guest->deadline = now() + STRANGER_TIME;
    coll__auth_random(guest->nonce, sizeof(guest->nonce));
    while (*last)
        last = &(*last)->next;
    *last = guest;
    event.data.ptr = guest;
    if (epoll_ctl(lobby->events, EPOLL_CTL_ADD, fd, &event) ||
        send(fd, guest->nonce, sizeof(guest->nonce), MSG_NOSIGNAL) !=
            (ssize_t)sizeof(guest->nonce))
        drop(lobby, last);
}

/* ---- words ----------------------------------------------------------------- */

static void tell_waiting(struct lobby *lobby, struct guest *guest)
{
    char word[COLL__WORD];

    snprintf(word, sizeof(word), "waiting %d", count(lobby, WAITING));
    coll__words_put(&guest->words, word);
}

/* Give n newcomers seats; those that came first get them. */
static void give_seats(struct lobby *lobby, struct guest *from,
                       const char *word)
{
    int n, first, size, rank;
    char id[257], seat[COLL__WORD];

    if (sscanf(word, "grow %d %d %d %256s", &n, &first, &size, id) != 4 ||
        n < 1 || n > count(lobby, WAITING)) {
        tell_waiting(lobby, from);
        return;
    }
    rank = first;
    for (struct guest *g = lobby->guests; g && rank < first + n; g = g->next) {
        if (g->state != WAITING)
            continue;
        snprintf(seat, sizeof(seat), "seat %d %d %s", rank, size, id);
        if (coll__words_put(&g->words, seat))
            continue; /* it is gone, and will be dropped */
        g->state = SEATED;
        g->rank = rank++;
        g->root = from;
    }
    coll__auth_wipe(seat, sizeof(seat));
    if (rank == first + n)
        coll__words_put(&from->words, "ok");
    else
        tell_waiting(lobby, from);
}

/* Act on what a guest says. */
static void answer(struct lobby *lobby, struct guest *guest, const char *word)
{
    if (guest->state == STRANGER)
        guest->state = KNOWN;
    if (guest->state != KNOWN)
        return;
    if (sscanf(word, "join %d", &guest->newcomer) == 1)
        guest->state = WAITING;
    else if (!strcmp(word, "count"))
        tell_waiting(lobby, guest);
    else
        give_seats(lobby, guest, word);
}

/* Serve a guest: 0, or -1 if its connection has ended or it is none of the job's. */
static int serve(struct lobby *lobby, struct guest *guest)
{
    unsigned char theirs[COLL__NONCE_BYTES];
    char word[COLL__WORD];
    int is_there;

    if (!guest->has_drawn) {
        is_there = coll__words_fill(&guest->words, sizeof(theirs));
        if (is_there <= 0)
            return is_there;
        memcpy(theirs, guest->words.held, sizeof(theirs));
        coll__words_init(&guest->words, 1, lobby->secret, guest->nonce, theirs);
        guest->has_drawn = 1;
    }
    while ((is_there = coll__words_take(&guest->words, word)) > 0)
        answer(lobby, guest, word);
    coll__auth_wipe(word, sizeof(word));
    return is_there;
}

/* Serve this guest, unless it has been dropped since its event came. */
static void serve_one(struct lobby *lobby, const struct guest *guest)
{
    struct guest **at = &lobby->guests;

    while (*at && *at != guest)
        at = &(*at)->next;
    if (*at && serve(lobby, *at))
        drop(lobby, at);
}

/* Find a newcomer that has got a seat since it was asked for last. */
static int take_seated(struct lobby *lobby, int *newcomer)
{
    for (struct guest *g = lobby->guests; g; g = g->next)
        if (g->state == SEATED && !g->is_taken) {
            *newcomer = g->newcomer;
            g->is_taken = 1;
            return 1;
        }
    return 0;
}

int lobby_hear(struct lobby *lobby, int *newcomer)
{
    struct epoll_event events[EVENTS];
    int n;

    if (take_seated(lobby, newcomer)) /* before it may leave */
        return 1;
    n = epoll_wait(lobby->events, events, EVENTS, 0);
    for (int i = 0; i < n; i++)
        if (events[i].data.ptr)
            serve_one(lobby, events[i].data.ptr);
        else
            greet(lobby);
    return take_seated(lobby, newcomer);
}
