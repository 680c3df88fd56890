/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_fleet.c - the hosts that node 0 reaches by agents. */
#include "tools/collrun_fleet.h"
#include "tools/collrun_agents.h"
#include "tools/collrun_discovery.h"
#include "tools/collrun_hosts.h"
#include "tools/collrun_nodes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST_WORDS 2.0 /* s, for the agents to end by themselves */

struct fleet {
    struct options options; /* of node 0 */
    const char *run_id;
    struct hosts hosts; /* with which the job begins; this host is the first */
    struct discovery *discovery; /* NULL: there is no script */
};

/* ---- before the job ---------------------------------------------------------- */

/* Put this host first: it is node 0. */
static int put_first(struct hosts *hosts)
{
    char name[HOST_NAME_MAX + 1] = "";
    struct host here;
    int i = 0;

    while (i < hosts->n_hosts && !agents_is_here(hosts->host[i].name))
        i++;
    if (i == hosts->n_hosts) {
        gethostname(name, sizeof(name) - 1);
        complain("with --min-np, collrun runs on one of the hosts, and %s is "
                 "none of them",
                 name);
        return EXIT_USAGE;
    }
    here = hosts->host[i];
    memmove(hosts->host + 1, hosts->host, (size_t)i * sizeof(here));
    hosts->host[0] = here;
    return 0;
}

static int read_hosts(struct fleet *fleet, const struct options *options)
{
    if (options->discovery_script) {
        fleet->discovery = discovery_open(options->discovery_script);
        return fleet->discovery
                   ? discovery_begin(fleet->discovery, options, &fleet->hosts)
                   : EXIT_USAGE;
    }
    if (hosts_read(options, &fleet->hosts))
        return EXIT_USAGE;
    if (!hosts_chose_slots(&fleet->hosts))
        return 0;
    complain("--include and --exclude with slots do not go with --min-np; name "
             "hosts alone");
    return EXIT_USAGE;
}

static void fleet_free(struct fleet *fleet)
{
    if (!fleet)
        return;
    discovery_close(fleet->discovery);
    hosts_fini(&fleet->hosts);
    free(fleet);
}

int fleet_plan(const struct options *options, const char *run_id,
               struct fleet **fleet)
{
    struct fleet *f = calloc(1, sizeof(*f));
    int status = EXIT_FAILURE;

    if (!f)
        complain("out of memory");
    else if (!agents_draw_secret())
        status = read_hosts(f, options);
    if (!status)
        status = put_first(&f->hosts);
    if (status) {
        fleet_free(f);
        return status;
    }
    f->run_id = run_id;
    f->options = *options;
    f->options.n = f->hosts.host[0].n;
    f->options.n_nodes = f->hosts.n_hosts;
    f->options.is_far = 1;
    f->options.node_rank = 0;
    f->options.fleet = f;
    snprintf(f->options.endpoint, sizeof(f->options.endpoint), "%s",
             agents_address_for(f->hosts.host[f->hosts.n_hosts > 1].name));
    f->options.endpoint_host = f->options.endpoint;
    f->options.endpoint_port = 0;
    *fleet = f;
    return 0;
}

const struct options *fleet_options(const struct fleet *fleet)
{
    return &fleet->options;
}

/* ---- agents ------------------------------------------------------------------ */

static int start_agent(struct nodes *nodes, int node)
{
    const struct errand errand = {.options = &nodes->fleet->options,
                                  .host = nodes->seats[node].host,
                                  .node = node,
                                  .n = nodes->seats[node].n,
                                  .port = nodes->port,
                                  .run_id = nodes->fleet->run_id};

    nodes->seats[node].agent = agent_start(&errand);
    return nodes->seats[node].agent ? 0 : -1;
}

int fleet_start(struct nodes *nodes)
{
    struct hosts *hosts = &nodes->fleet->hosts;
    int rc = 0;

    for (int i = 0; i < hosts->n_hosts && !rc; i++) {
        nodes->seats[i].host = strdup(hosts->host[i].name);
        nodes->seats[i].n = hosts->host[i].n;
        if (!nodes->seats[i].host) {
            complain("out of memory");
            return -1;
        }
        rc = i ? start_agent(nodes, i) : 0;
    }
    return rc;
}

/* Has this seat's agent ended without a node that has come?  That is said once. */
static int has_failed(struct seat *seat)
{
    int how;

    if (!seat->agent || seat->is_gone || seat->link.fd >= 0 || seat->has_come ||
        !agent_has_ended(seat->agent, &how))
        return 0;
    seat->is_gone = 1;
    agent_pump(seat->agent);
    complain("no collrun could be started on %s: the agent (--rsh-agent) ended "
             "with status %d",
             seat->host,
             WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how));
    return 1;
}

int fleet_has_failed(struct nodes *nodes)
{
    int how, n = 0;
    pid_t pid;

    fleet_pump(nodes);
    while ((pid = tree_reap(-1, &how, WNOHANG)) > 0)
        fleet_take_end(nodes, pid, how);
    for (int i = 1; i < nodes->n_nodes; i++)
        n += has_failed(&nodes->seats[i]);
    return n;
}

int fleet_fds(const struct nodes *nodes, struct pollfd *fds)
{
    int n = 0;

    for (int i = 1; i < nodes->n_nodes; i++)
        if (nodes->seats[i].agent) {
            agent_fds(nodes->seats[i].agent, fds + n);
            n += 2;
        }
    if (nodes->fleet->discovery)
        fds[n++] = (struct pollfd){.fd = discovery_fd(nodes->fleet->discovery),
                                   .events = POLLIN};
    return n;
}

void fleet_pump(struct nodes *nodes)
{
    for (int i = 1; i < nodes->n_nodes; i++)
        if (nodes->seats[i].agent)
            agent_pump(nodes->seats[i].agent);
}

void fleet_take_end(struct nodes *nodes, pid_t pid, int how)
{
    for (int i = 1; i < nodes->n_nodes; i++)
        if (nodes->seats[i].agent &&
            agent_take_end(nodes->seats[i].agent, pid, how))
            return;
    if (nodes->fleet->discovery)
        discovery_take_end(nodes->fleet->discovery, pid, how);
}

void fleet_close(struct nodes *nodes)
{
    double deadline = now() + LAST_WORDS;

    if (!nodes->fleet)
        return;
    for (int i = 0; i < nodes->n_nodes; i++) {
        agent_close(nodes->seats[i].agent, deadline);
        free(nodes->seats[i].host);
    }
    fleet_free(nodes->fleet);
    nodes->fleet = NULL;
}

/* ---- hosts that come and go --------------------------------------------------- */

/* Find the last seat of this host, or NULL. */
static struct seat *seat_of(const struct nodes *nodes, const char *host)
{
    int i = nodes->n_nodes - 1;

    while (i >= 0 && strcmp(nodes->seats[i].host, host) != 0)
        i--;
    return i < 0 ? NULL : &nodes->seats[i];
}

static const struct host *find(const struct hosts *hosts, const char *name)
{
    for (int i = 0; i < hosts->n_hosts; i++)
        if (!strcmp(hosts->host[i].name, name))
            return &hosts->host[i];
    return NULL;
}

/* Add a seat for a new host, and start an agent there. */
static void add(struct nodes *nodes, const struct host *host)
{
    int i = nodes->n_nodes;
    struct seat *seats =
        realloc(nodes->seats, (size_t)(i + 1) * sizeof(*seats));
    char *name = strdup(host->name);

    if (seats)
        nodes->seats = seats;
    if (!seats || !name) { /* the next list may be luckier */
        free(name);
        return;
    }
    nodes->n_nodes = i + 1;
    seats[i] =
        (struct seat){.link.fd = -1, .host = name, .n = host->n, .is_done = 1};
    complain("%s is a new host, for %d rank%s", host->name, host->n,
             host->n == 1 ? "" : "s");
    if (start_agent(nodes, i))
        seats[i].is_gone = 1;
}

/* Compare the seats with the hosts that the script names now. */
static void compare(struct nodes *nodes, const struct hosts *hosts)
{
    for (int i = 0; i < hosts->n_hosts; i++) {
        const struct seat *seat = seat_of(nodes, hosts->host[i].name);

        if (!seat || (seat->is_gone && seat->is_unlisted))
            add(nodes, &hosts->host[i]);
    }
    for (int i = 0; i < nodes->n_nodes; i++) {
        struct seat *seat = &nodes->seats[i];
        int was_unlisted = seat->is_unlisted;

        seat->is_unlisted = !find(hosts, seat->host);
        if (seat->is_unlisted && !was_unlisted && !seat->is_gone)
            complain("%s is no longer among the hosts; nothing more is started "
                     "there",
                     seat->host);
    }
}

void fleet_look(struct nodes *nodes)
{
    struct discovery *discovery = nodes->fleet->discovery;
    struct hosts *hosts;

    for (int i = 1; i < nodes->n_nodes; i++)
        has_failed(&nodes->seats[i]);
    if (!discovery)
        return;
    hosts = discovery_look(discovery, &nodes->fleet->options);
    if (!hosts)
        return;
    compare(nodes, hosts);
    hosts_fini(hosts);
    free(hosts);
}

double fleet_next(const struct nodes *nodes)
{
    return nodes->fleet->discovery ? discovery_next(nodes->fleet->discovery)
                                   : 0;
}
