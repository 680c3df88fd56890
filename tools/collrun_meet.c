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
 *
 * Node 0's side is collrun_serve.c.
 */
#include "tools/collrun.h"
#include "tools/collrun_endpoint.h"
#include "tools/collrun_fleet.h"
#include "tools/collrun_nodes.h"
#include "tools/collrun_serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAUSE 200 /* ms, between two calls */

struct meeting {
    struct nodes *nodes;
    int node_rank; /* of the user's, or -1 */
    double deadline, seconds;
};

/* Listen, if the endpoint is on this host and no other collrun listens; else errno says
 * why not. */
static void try_to_serve(struct nodes *nodes)
{
    errno = EADDRNOTAVAIL;
    if (endpoint_is_here(nodes->host, nodes->port))
        nodes->listen_fd = endpoint_listen(nodes->host, nodes->port);
    if (nodes->listen_fd >= 0)
        nodes->port = endpoint_port(nodes->listen_fd);
}

/* Read node 0's greeting: 1; 0 nothing came; -1 and the reason. */
static int hear_greeting(struct coll__words *link, const char **wrong)
{
    struct pollfd pfd = {.fd = link->fd, .events = POLLIN};
    double deadline = now() + 2 * SERVE_TIME;
    int is_there;

    while (!(is_there = coll__words_fill(link, SERVE_GREETING)) &&
           now() < deadline)
        poll(&pfd, 1, PAUSE);
    if (is_there <= 0)
        return 0;
    if (!memcmp(link->held, SERVE_MAGIC, strlen(SERVE_MAGIC)))
        return 1;
    *wrong = !memcmp(link->held, SERVE_FULL, strlen(SERVE_FULL))
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
    memcpy(theirs, link->held + strlen(SERVE_MAGIC), COLL__NONCE_BYTES);
    coll__auth_random(mine, COLL__NONCE_BYTES);
    coll__words_init(link, 0, m->nodes->key, mine, theirs);
    if (send(link->fd, mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine))
        return 0;
    snprintf(word, sizeof(word), "node %d %d %d", m->node_rank,
             m->nodes->n_nodes, m->nodes->n);
    if (coll__words_put(link, word))
        return 0;
    if (link_await(link, now() + 2 * SERVE_TIME, word) < 0) {
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
    struct coll__words link = {
        .fd = endpoint_call(nodes->host, nodes->port, SERVE_TIME)};
    const char *wrong = "";
    int what;

    if (link.fd < 0)
        return 0;
    endpoint_prepare(link.fd);
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

    if (link_await(&m->nodes->seats[0].link, m->deadline + SERVE_TIME, word) >
            0 &&
        !nodes_read_order(word, &m->nodes->order))
        return 0;
    complain("node 0 (%s) did not start the job; see its own output",
             m->nodes->seats[0].where);
    return EXIT_FAILURE;
}

static int meet(struct meeting *m)
{
    struct nodes *nodes = m->nodes;
    int what = 0;

    while (!what) {
        if (m->node_rank <= 0)
            try_to_serve(nodes);
        if (nodes->listen_fd >= 0 && nodes->fleet && fleet_start(nodes))
            return EXIT_FAILURE;
        if (nodes->listen_fd >= 0)
            return serve_all(nodes, m->deadline, m->seconds);
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
double nodes_patience(void)
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
    nodes->fleet = o->fleet;
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
    m->seconds = nodes_patience();
    m->deadline = now() + m->seconds;
    has_secret = link_key(run_id, m->nodes->key);
    if (has_secret >= 0)
        status = meet(m);
    *nodes = m->nodes;
    if (status)
        nodes_close(m->nodes);
    else if (!has_secret && !m->nodes->order.node &&
             !endpoint_is_loopback(o->endpoint_host))
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
    serve_close(nodes);
    fleet_close(nodes);
    for (int i = 0; i < nodes->n_nodes; i++)
        coll__words_close(&nodes->seats[i].link);
    if (nodes->listen_fd >= 0)
        close(nodes->listen_fd);
    explicit_bzero(nodes->key, sizeof(nodes->key));
    explicit_bzero(&nodes->order, sizeof(nodes->order));
    free(nodes->seats);
    free(nodes);
}
