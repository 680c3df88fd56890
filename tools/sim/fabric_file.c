/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_file.c - a topology file from its first line to its last: software,
 * hosts and the network's rule. */
#include "include/coll/coll.h"
#include "tools/sim/fabric_words.h"
#include "lib/trace/log.h"

#include <stdlib.h>
#include <string.h>

#define MAX_KINDS 64

/* Add a zeroed item of `size` bytes to an array; NULL: no memory, logged. */
static void *add_item(void **items, int *n, int *cap, size_t size)
{
    int want = *cap ? 2 * *cap : 8;
    char *new = *items;

    if (*n == *cap) {
        new = realloc(*items, (size_t)want * size);
        if (!new) {
            log_error("topo", "no memory left for the description of a "
                              "fabric; free some memory");
            return NULL;
        }
        *items = new;
        *cap = want;
    }
    new += (size_t)*n * size;
    memset(new, 0, size);
    ++*n;
    return new;
}

/* ---- hosts --------------------------------------------------------------- */

static int find_kind(const struct coll__fabric *fabric, const char *name)
{
    for (int k = 0; k < fabric->n_kinds; k++)
        if (!strcmp(fabric->kinds[k].name, name))
            return k;
    return -1;
}

static int n_of_kind(const struct graph *graph, enum graph_kind kind)
{
    int n = 0;

    for (int i = 0; i < graph->n_parts; i++)
        n += graph->parts[i].kind == kind;
    return n;
}

static int read_host(struct parser *parser)
{
    struct coll__fabric *fabric = parser->fabric;
    void *kinds = fabric->kinds;
    char name[FABRIC_NAME];
    struct graph *graph;
    int rc = coll__parse_name(parser, "the host's name", name);

    if (rc == COLL_OK)
        rc = coll__parse_fields(parser, &(struct field){.key = NULL});
    if (rc)
        return rc;
    if (find_kind(fabric, name) >= 0 || fabric->n_kinds == MAX_KINDS)
        return coll__parse_fail(parser, "host %s is there already, or more "
                                        "than %d kinds; remove one",
                                name, MAX_KINDS);
    graph = add_item(&kinds, &fabric->n_kinds, &parser->cap_kinds,
                     sizeof(*graph));
    if (!graph)
        return COLL_ERR_NOMEM;
    fabric->kinds = kinds;
    memcpy(graph->name, name, sizeof(name));
    rc = coll__parse_block(parser, graph);
    if (rc == COLL_OK && !n_of_kind(graph, GRAPH_SEAT))
        return coll__parse_fail(parser, "host %s has no seat for a rank; add "
                                        "one such as 'seat core port 10GB/s'",
                                name);
    return rc;
}

static int read_hosts(struct parser *parser)
{
    struct coll__fabric *fabric = parser->fabric;
    void *runs = fabric->runs;
    char name[FABRIC_NAME];
    struct run *run;
    int n_hosts, kind;
    int rc = coll__parse_count(parser, "the number of hosts", FABRIC_MAX_SEATS,
                               &n_hosts);

    if (rc == COLL_OK)
        rc = coll__parse_name(parser, "the host's name", name);
    if (rc == COLL_OK)
        rc = coll__parse_fields(parser, &(struct field){.key = NULL});
    if (rc)
        return rc;
    kind = find_kind(fabric, name);
    if (kind < 0)
        return coll__parse_fail(parser, "no host is called '%s'; describe it "
                                        "above by 'host %s' ... 'end'",
                                name, name);
    if (fabric->n_runs == FABRIC_MAX_RUNS)
        return coll__parse_fail(parser, "more than %d lines of hosts; put "
                                        "alike ones on one line",
                                FABRIC_MAX_RUNS);
    run = add_item(&runs, &fabric->n_runs, &parser->cap_runs, sizeof(*run));
    if (!run)
        return COLL_ERR_NOMEM;
    fabric->runs = runs;
    run->kind = kind;
    run->n_hosts = n_hosts;
    return COLL_OK;
}

/* ---- the network --------------------------------------------------------- */

/* Read a host's number at the start of text; -1 if there is none. */
static int read_host_number(const char *text, const char **end)
{
    int number = -1;

    for (; *text >= '0' && *text <= '9'; text++) {
        number = 10 * (number < 0 ? 0 : number) + (*text - '0');
        if (number >= FABRIC_MAX_SEATS)
            break; /* a further digit: the number is too long */
    }
    *end = text;
    return number;
}

/* attach FIRST[-LAST] SWITCH [nic N]: hosts, counted from 0. */
int coll__parse_attach(struct parser *parser)
{
    struct net *net = &parser->fabric->net;
    int nic = 0, n_parts, first, last, parts[FABRIC_MAX_PARTS], rc;
    const struct field fields[] = {{"nic", FIELD_COUNT, &nic},
                                   {NULL, FIELD_COUNT, NULL}};
    void *items = net->attachs;
    struct attach *attach;
    const char *end;

    if (parser->n_words < 3)
        return coll__parse_fail(parser, "write 'attach 0-15 SWITCH', or "
                                        "'attach 3 SWITCH nic 1'");
    first = last = read_host_number(parser->words[1], &end);
    if (first >= 0 && *end == '-')
        last = read_host_number(end + 1, &end);
    if (*end || first < 0 || last < first)
        return coll__parse_fail(parser, "hosts '%.40s' are no number or range "
                                        "such as 0-15",
                                parser->words[1]);
    parser->at = 3;
    rc = coll__parse_parts(parser, parser->words[2], parts, &n_parts);
    if (rc == COLL_OK)
        rc = coll__parse_fields(parser, fields);
    if (rc)
        return rc;
    if (n_parts > 1)
        return coll__parse_fail(parser, "hosts attached to several switches; "
                                        "write a line for each");
    attach = add_item(&items, &net->n_attachs, &parser->cap_attach,
                      sizeof(*attach));
    if (!attach)
        return COLL_ERR_NOMEM;
    net->attachs = items;
    *attach = (struct attach){first, last, nic - 1, parts[0]};
    return COLL_OK;
}

static int need(struct parser *parser, double value, const char *key)
{
    return value > 0 ? COLL_OK
                     : coll__parse_fail(parser, "'%s' is missing; add it",
                                        key);
}

/* Build levels of switches with `ports` ports each. */
static int tree_of_ports(struct parser *parser, struct net *net, int ports,
                         int levels, int over)
{
    if (levels > FABRIC_MAX_TREE || levels < 2 || ports < 2 || ports % 2 ||
        ports % (over + 1) || ports > 1024)
        return coll__parse_fail(
            parser, "%d ports on %d levels, oversubscription %d: ports must "
                    "be even, at most 1024, a multiple of the oversubscription "
                    "+ 1; levels 2 to %d",
            ports, levels, over, FABRIC_MAX_TREE);
    net->down[0] = ports / (over + 1) * over;
    net->up[0] = ports - net->down[0];
    for (int l = 1; l < levels; l++) {
        net->down[l] = l == levels - 1 ? ports : ports / 2;
        if (l == levels - 1)
            break;
        if (net->up[l - 1] > FABRIC_MAX_LINKS / net->down[l])
            return coll__parse_fail(parser, "too many cables; give fewer "
                                            "'levels' or 'ports'");
        net->up[l] = net->up[l - 1] * net->down[l];
    }
    net->n_levels = levels;
    return COLL_OK;
}

static int read_tree(struct parser *parser, struct net *net)
{
    int ports = 0, levels = 0, over = 1, up = 0, rc;
    const struct field fields[] = {
        {"bandwidth", FIELD_RATE, &net->beta},
        {"latency", FIELD_TIME, &net->latency},
        {"down", FIELD_COUNTS, net->down},
        {"up", FIELD_COUNTS, net->up},
        {"rails", FIELD_YES, &net->is_rails},
        {"ports", FIELD_COUNT, &ports},
        {"levels", FIELD_COUNT, &levels},
        {"oversubscription", FIELD_COUNT, &over},
        {NULL, FIELD_COUNT, NULL}};

    net->kind = NET_FAT_TREE;
    rc = coll__parse_fields(parser, fields);
    if (rc == COLL_OK)
        rc = need(parser, net->beta, "bandwidth");
    if (rc)
        return rc;
    if (ports && net->down[0])
        return coll__parse_fail(parser, "give either 'ports' or 'down', not "
                                        "both");
    if (ports)
        return tree_of_ports(parser, net, ports, levels, over);
    while (net->n_levels < FABRIC_MAX_TREE && net->down[net->n_levels])
        net->n_levels++;
    while (up < FABRIC_MAX_TREE && net->up[up])
        up++;
    if (!net->n_levels || up != net->n_levels - 1)
        return coll__parse_fail(parser, "%d levels 'down' and %d 'up'; give "
                                        "one less up than down",
                                net->n_levels, up);
    return COLL_OK;
}

static int read_dragonfly(struct parser *parser, struct net *net)
{
    const struct field fields[] = {
        {"bandwidth", FIELD_RATE, &net->beta},
        {"latency", FIELD_TIME, &net->latency},
        {"groups", FIELD_COUNT, &net->groups},
        {"routers", FIELD_COUNT, &net->routers},
        {"hosts", FIELD_COUNT, &net->hosts},
        {"global", FIELD_COUNT, &net->globals},
        {"global_bandwidth", FIELD_RATE, &net->global_beta},
        {"global_latency", FIELD_TIME, &net->global_latency},
        {NULL, FIELD_COUNT, NULL}};
    int rc;

    net->kind = NET_DRAGONFLY;
    net->global_latency = -1;
    rc = coll__parse_fields(parser, fields);
    if (rc == COLL_OK)
        rc = need(parser, net->beta, "bandwidth");
    if (rc == COLL_OK)
        rc = need(parser, net->groups, "groups");
    if (rc == COLL_OK)
        rc = need(parser, net->routers, "routers");
    if (rc == COLL_OK)
        rc = need(parser, net->hosts, "hosts");
    if (rc == COLL_OK)
        rc = need(parser, net->globals, "global");
    if (net->global_latency < 0)
        net->global_latency = net->latency;
    if (!(net->global_beta > 0))
        net->global_beta = net->beta;
    return rc;
}

static int read_torus(struct parser *parser, struct net *net)
{
    const struct field fields[] = {{"bandwidth", FIELD_RATE, &net->beta},
                                   {"latency", FIELD_TIME, &net->latency},
                                   {"x", FIELD_COUNT, &net->dims[0]},
                                   {"y", FIELD_COUNT, &net->dims[1]},
                                   {"z", FIELD_COUNT, &net->dims[2]},
                                   {NULL, FIELD_COUNT, NULL}};
    int rc;

    net->kind = NET_TORUS;
    net->dims[0] = net->dims[1] = net->dims[2] = 1;
    rc = coll__parse_fields(parser, fields);
    return rc ? rc : need(parser, net->beta, "bandwidth");
}

static int read_plain(struct parser *parser, struct net *net,
                      enum net_kind kind)
{
    const struct field fields[] = {{"latency", FIELD_TIME, &net->latency},
                                   {NULL, FIELD_COUNT, NULL}};
    int rc;

    net->kind = kind;
    rc = coll__parse_fields(parser, fields);
    return rc || kind == NET_SWITCH ? rc
                                    : coll__parse_block(parser, &net->graph);
}

static int read_network(struct parser *parser)
{
    struct net *net = &parser->fabric->net;
    const char *rule =
        parser->at < parser->n_words ? parser->words[parser->at++] : "";

    if (net->kind != NET_NONE)
        return coll__parse_fail(parser, "a second network; remove one");
    if (!strcmp(rule, "switch"))
        return read_plain(parser, net, NET_SWITCH);
    if (!strcmp(rule, "fat_tree"))
        return read_tree(parser, net);
    if (!strcmp(rule, "dragonfly"))
        return read_dragonfly(parser, net);
    if (!strcmp(rule, "torus"))
        return read_torus(parser, net);
    if (!strcmp(rule, "links"))
        return read_plain(parser, net, NET_LINKS);
    return coll__parse_fail(parser, "network '%.40s' is none of switch, "
                                    "fat_tree, dragonfly, torus and links",
                            rule);
}

/* ---- the whole ----------------------------------------------------------- */

static int read_software(struct parser *parser)
{
    struct coll__fabric *fabric = parser->fabric;
    const struct field fields[] = {
        {"overhead", FIELD_TIME, &fabric->overhead},
        {"gap", FIELD_TIME, &fabric->gap},
        {"gamma", FIELD_RATE, &fabric->gamma},
        {NULL, FIELD_COUNT, NULL}};

    return coll__parse_fields(parser, fields);
}

static int read_line(struct parser *parser)
{
    const char *word = parser->words[parser->at++];

    if (!strcmp(word, "software"))
        return read_software(parser);
    if (!strcmp(word, "host"))
        return read_host(parser);
    if (!strcmp(word, "hosts"))
        return read_hosts(parser);
    if (!strcmp(word, "network"))
        return read_network(parser);
    return coll__parse_fail(parser, "'%.40s' is none of software, host, hosts "
                                    "and network",
                            word);
}

int coll__fabric_parse(struct coll__fabric *fabric, const char *path,
                       char *text, size_t len)
{
    struct parser parser = {.fabric = fabric, .path = path, .next = text};
    int rc;

    if (memchr(text, '\0', len)) {
        log_error("topo", "%s: not a text file; give a topology as "
                          "tests/topo/README explains, or a .xml of hwloc",
                  path);
        return COLL_ERR_INVALID;
    }
    while ((rc = coll__parse_line(&parser)) == 1) {
        rc = read_line(&parser);
        if (rc)
            return rc;
    }
    return rc;
}
