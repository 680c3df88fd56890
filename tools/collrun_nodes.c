/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_nodes.c - messages between the collruns of a running job; collrun_meet.c has
 * how they meet. */
#include "tools/collrun_nodes.h"
#include "tools/collrun.h"
#include "tools/collrun_fleet.h"
#include "tools/collrun_serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Return the first node to which this node has a link: node 0 has links to all others,
 * and every other node only to node 0. */
static int first_other(const struct nodes *nodes)
{
    return nodes->order.node ? 0 : 1;
}

static int last_other(const struct nodes *nodes)
{
    return nodes->order.node ? 0 : nodes->n_nodes - 1;
}

static void tell_all(struct nodes *nodes, const char *word)
{
    for (int i = first_other(nodes); i <= last_other(nodes); i++)
        coll__words_put(&nodes->seats[i].link, word);
}

void nodes_go(struct nodes *nodes, int node)
{
    const struct order *o = &nodes->order;
    struct seat *seat = &nodes->seats[node];
    char word[COLL__WORD];

    snprintf(word, sizeof(word), "go %d %d %d %d %d %d %d %d %d %d %s", node,
             nodes->n_nodes, seat->first, o->size, o->root_port, o->master_port,
             o->lobby_port, o->n_restarts, o->max_restarts, o->min_np,
             o->secret);
    coll__words_put(&seat->link, word);
    seat->is_done = seat->link.fd < 0;
    explicit_bzero(word, sizeof(word));
}

void nodes_fail(struct nodes *nodes, int status, int signal, int may_restart)
{
    char word[COLL__WORD];

    snprintf(word, sizeof(word), "fail %d %d %d", status, signal, may_restart);
    tell_all(nodes, word);
}

void nodes_done(struct nodes *nodes, int status)
{
    char word[COLL__WORD];

    snprintf(word, sizeof(word), "done %d", status);
    if (nodes->order.node)
        coll__words_put(&nodes->seats[0].link, word);
}

void nodes_ended(struct nodes *nodes, int first, int n, int how)
{
    char word[COLL__WORD];

    snprintf(word, sizeof(word), "ended %d %d %d", first, n, how);
    if (nodes->order.node || !first)
        tell_all(nodes, word);
}

void nodes_left(struct nodes *nodes, int place, int how)
{
    char word[COLL__WORD];

    snprintf(word, sizeof(word), "left %d %d", place, how);
    coll__words_put(&nodes->seats[0].link, word);
}

void nodes_start(struct nodes *nodes, int node, int place,
                 const struct due *due)
{
    char word[COLL__WORD];

    snprintf(word, sizeof(word), "start %d %d %d", place, due->newcomer,
             due->restart);
    coll__words_put(&nodes->seats[node].link, word);
}

int nodes_all_done(const struct nodes *nodes)
{
    for (int i = 1; i < nodes->n_nodes; i++)
        if (!nodes->seats[i].is_done)
            return 0;
    return 1;
}

void nodes_end(struct nodes *nodes, int status)
{
    char word[COLL__WORD];

    snprintf(word, sizeof(word), "end %d", status);
    tell_all(nodes, word);
}

int nodes_fds(const struct nodes *nodes, struct pollfd *fds)
{
    int n = 0;

    for (int i = first_other(nodes); i <= last_other(nodes); i++)
        fds[n++] =
            (struct pollfd){.fd = nodes->seats[i].link.fd, .events = POLLIN};
    n += serve_fds(nodes, fds + n);
    if (nodes->fleet)
        n += fleet_fds(nodes, fds + n);
    return n;
}

int nodes_most_fds(const struct nodes *nodes)
{
    return 3 * nodes->n_nodes + SERVE_GUESTS + 2;
}

double nodes_next(const struct nodes *nodes)
{
    return nodes->fleet && !nodes->is_told ? fleet_next(nodes) : 0;
}

void nodes_take_end(struct nodes *nodes, pid_t pid, int how)
{
    if (nodes->fleet)
        fleet_take_end(nodes, pid, how);
}

/* A lost node cannot come back, so the job is not restarted. */
static int lose(struct nodes *nodes, int i, struct nodes_news *news)
{
    struct seat *seat = &nodes->seats[i];
    int was_done = seat->is_done;

    coll__words_close(&seat->link);
    seat->is_done = seat->is_gone = 1;
    nodes->decision = NODES_END;
    nodes->status = EXIT_FAILURE;
    if (was_done && !nodes->order.node)
        return 0;
    complain("node %d (%s) is gone; see its own output", i, seat->where);
    *news = (struct nodes_news){.what = NEWS_FAIL,
                                .node = i,
                                .where = seat->where,
                                .status = EXIT_FAILURE};
    return 1;
}

int nodes_read_order(const char *word, struct order *o)
{
    return sscanf(word, "go %d %d %d %d %d %d %d %d %d %d %64s", &o->node,
                  &o->n_nodes, &o->first, &o->size, &o->root_port,
                  &o->master_port, &o->lobby_port, &o->n_restarts,
                  &o->max_restarts, &o->min_np, o->secret) == 11
               ? 0
               : -1;
}

/* Read a word that the job must act on: 1, or 0 if it is another one. */
static int read_news(const char *word, struct nodes_news *news)
{
    if (sscanf(word, "ended %d %d %d", &news->first, &news->n, &news->how) == 3)
        news->what = NEWS_ENDED;
    else if (sscanf(word, "left %d %d", &news->first, &news->how) == 2)
        news->what = NEWS_LEFT;
    else if (sscanf(word, "start %d %d %d", &news->first, &news->due.newcomer,
                    &news->due.restart) == 3)
        news->what = NEWS_START;
    else if (sscanf(word, "fail %d %d %d", &news->status, &news->signal,
                    &news->may_restart) == 3)
        news->what = NEWS_FAIL;
    else
        return 0;
    return 1;
}

/* Act on a word from node i: 1 if the job must act on it, too. */
static int take(struct nodes *nodes, int i, const char *word,
                struct nodes_news *news)
{
    struct seat *seat = &nodes->seats[i];

    *news = (struct nodes_news){.node = i, .where = seat->where};
    if (read_news(word, news))
        return 1;
    if (sscanf(word, "end %d", &nodes->status) == 1) {
        nodes->decision = NODES_END;
        coll__words_close(&seat->link); /* node 0 goes */
    } else if (!strncmp(word, "done", 4))
        seat->is_done = 1;
    else if (!nodes_read_order(word, &nodes->order))
        nodes->decision = NODES_AGAIN;
    return 0;
}

/* Serve the nodes that come late, and the agents: 1 if a node has come. */
static int hear_others(struct nodes *nodes, struct nodes_news *news)
{
    if (nodes->fleet)
        fleet_pump(nodes);
    if (nodes->is_told) /* the job ends */
        return 0;
    serve_guests(nodes);
    if (nodes->fleet)
        fleet_look(nodes);
    for (int i = 1; i < nodes->n_nodes && !nodes->order.node; i++) {
        struct seat *seat = &nodes->seats[i];

        if (!seat->is_new)
            continue;
        seat->is_new = 0;
        *news = (struct nodes_news){
            .what = NEWS_JOIN, .node = i, .first = seat->first, .n = seat->n};
        return 1;
    }
    return 0;
}

int nodes_hear(struct nodes *nodes, struct nodes_news *news)
{
    char word[COLL__WORD];
    int is_there;

    if (hear_others(nodes, news))
        return 1;
    for (int i = first_other(nodes); i <= last_other(nodes); i++)
        while (nodes->seats[i].link.fd >= 0 &&
               nodes->decision !=
                   NODES_AGAIN) { /* the rest is for the next run */
            is_there = coll__words_take(&nodes->seats[i].link, word);
            if (!is_there)
                break;
            if (is_there < 0 ? lose(nodes, i, news)
                             : take(nodes, i, word, news))
                return 1;
        }
    return 0;
}
