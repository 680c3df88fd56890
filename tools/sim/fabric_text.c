/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_text.c - read a topology: what each line adds to a fabric.
 *
 *   software overhead 400ns gap 100ns gamma 10GB/s
 *   host KIND ... end        parts and links of one kind of host
 *   hosts 16 KIND            how many of them; in order
 *   network RULE ...         the network between their NICs
 *
 * tests/topo/README is the reference.  The file is not trusted: each count is checked
 * against a limit before it is used.
 */
#include "include/coll/coll.h"
#include "tools/sim/fabric_words.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(void)
{
    log_error("topo", "no memory left for the description of a fabric; free "
                      "some memory");
    return COLL_ERR_NOMEM;
}

/* ---- parts --------------------------------------------------------------- */

/* What a line may say of a part. */
struct part_line {
    char name[FABRIC_NAME];
    int count;         /* 0: one, without a number */
    const char *in;    /* the parts that hold them, or NULL */
    double beta, latency; /* of the link to these; beta 0: no cost */
    struct graph_part part;
};

static int find_part(const struct graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_parts; i++)
        if (!strcmp(graph->parts[i].name, name))
            return i;
    return -1;
}

static int add_edge(struct parser *parser, const struct graph_edge *edge)
{
    if (parser->block->n_edges == FABRIC_MAX_EDGES)
        return coll__parse_fail(parser, "more than %d links; describe it more "
                                        "coarsely",
                                FABRIC_MAX_EDGES);
    return coll__graph_edge(parser->block, edge) < 0 ? no_memory() : COLL_OK;
}

static int may_hold(enum graph_kind outer, enum graph_kind inner)
{
    return outer <= GRAPH_SOCKET && (inner >= GRAPH_SEAT || inner <= outer);
}

static int add_part(struct parser *parser, struct part_line *line, int i,
                    int within)
{
    struct graph_part part = line->part;
    struct graph_edge edge = {.b = within,
                              .latency = line->latency,
                              .beta = line->beta,
                              .share = line->beta};

    memcpy(part.name, line->name, sizeof(part.name));
    if (line->count)
        snprintf(part.name, sizeof(part.name), "%.24s%u", line->name,
                 (unsigned)i % FABRIC_MAX_PARTS);
    part.within = within;
    if (within >= 0 && !may_hold(parser->block->parts[within].kind, part.kind))
        return coll__parse_fail(parser, "'%s' in '%s': parts hold seats, nics "
                                        "and parts of their own kind or before "
                                        "it in cache, switch, numa, socket",
                                part.name, parser->block->parts[within].name);
    if (find_part(parser->block, part.name) >= 0)
        return coll__parse_fail(parser, "two parts are called '%s'; rename "
                                        "one",
                                part.name);
    if (parser->block->n_parts == FABRIC_MAX_PARTS)
        return coll__parse_fail(parser, "more than %d parts; describe it more "
                                        "coarsely",
                                FABRIC_MAX_PARTS);
    edge.a = coll__graph_part(parser->block, &part);
    if (edge.a < 0)
        return no_memory();
    return within < 0 ? COLL_OK : add_edge(parser, &edge);
}

/* Place n parts in m others, evenly and in order. */
static int add_parts(struct parser *parser, struct part_line *line)
{
    int in[FABRIC_MAX_PARTS], n_in = 0, rc = COLL_OK;
    int n = line->count ? line->count : 1;

    if (line->in)
        rc = coll__parse_parts(parser, line->in, in, &n_in);
    if (rc == COLL_OK && n_in > n)
        return coll__parse_fail(parser, "%d parts in %d others: '%.40s' names "
                                        "too many",
                                n, n_in, line->in);
    for (int i = 0; i < n && rc == COLL_OK; i++)
        rc = add_part(parser, line, i,
                      n_in ? in[(long long)i * n_in / n] : -1);
    return rc;
}

static int read_part(struct parser *parser, enum graph_kind kind)
{
    struct part_line line = {.part = {.kind = kind, .inner = -1}};
    struct field fields[] = {
        {"in", FIELD_WORD, &line.in},
        {"bandwidth", FIELD_RATE, &line.beta},
        {"latency", FIELD_TIME, &line.latency},
        {NULL, FIELD_RATE, &line.part.beta},
        {NULL, FIELD_TIME, &line.part.latency},
        {NULL, FIELD_COUNT, NULL},
    };
    int rc = coll__parse_name(parser, "the name", line.name);

    if (kind == GRAPH_SEAT) {
        fields[3].key = "port";
        fields[4].key = "port_latency";
    } else if (kind == GRAPH_NIC) {
        fields[3].key = "speed";
        fields[4] = (struct field){"state", FIELD_STATE, &line.part.is_down};
    }
    if (rc == COLL_OK && parser->at < parser->n_words &&
        strchr("0123456789", parser->words[parser->at][0]))
        rc = coll__parse_count(parser, "the number of parts", FABRIC_MAX_PARTS,
                               &line.count);
    if (rc == COLL_OK)
        rc = coll__parse_fields(parser, fields);
    if (rc)
        return rc;
    if (fields[3].key && !(line.part.beta > 0))
        return coll__parse_fail(parser, "'%s' has no '%s'; add one such as "
                                        "'%s 25GB/s'",
                                line.name, fields[3].key, fields[3].key);
    if (line.latency > 0 && !(line.beta > 0))
        return coll__parse_fail(parser, "latency without bandwidth; add one "
                                        "such as 'bandwidth 25GB/s'");
    if (line.beta > 0 && !line.in)
        return coll__parse_fail(parser, "bandwidth to nothing; say in which "
                                        "part '%s' is by 'in PART'",
                                line.name);
    return add_parts(parser, &line);
}

/* ---- links --------------------------------------------------------------- */

struct link_line {
    int a[FABRIC_MAX_PARTS], b[FABRIC_MAX_PARTS], n_a, n_b;
    struct graph_edge edge;
};

static int read_link_line(struct parser *parser, struct link_line *line)
{
    int rc, cables = 1;
    const struct field fields[] = {
        {"bandwidth", FIELD_RATE, &line->edge.beta},
        {"latency", FIELD_TIME, &line->edge.latency},
        {"cables", FIELD_COUNT, &cables},
        {NULL, FIELD_COUNT, NULL},
    };

    line->edge = (struct graph_edge){0};
    if (parser->n_words < 3)
        return coll__parse_fail(parser, "a link has two ends; write 'link A B "
                                        "bandwidth 25GB/s'");
    parser->at = 3;
    rc = coll__parse_parts(parser, parser->words[1], line->a, &line->n_a);
    if (rc == COLL_OK)
        rc = coll__parse_parts(parser, parser->words[2], line->b, &line->n_b);
    if (rc == COLL_OK)
        rc = coll__parse_fields(parser, fields);
    if (rc == COLL_OK && !(line->edge.beta > 0))
        return coll__parse_fail(parser, "a link without bandwidth; add one "
                                        "such as 'bandwidth 25GB/s'");
    line->edge.share = line->edge.beta / cables;
    return rc;
}

static int has(const int *parts, int n, int part)
{
    for (int i = 0; i < n; i++)
        if (parts[i] == part)
            return 1;
    return 0;
}

/* Join every part of A with every part of B, each pair once. */
static int link_all(struct parser *parser, struct link_line *line)
{
    int rc = COLL_OK;

    for (int i = 0; i < line->n_a; i++) {
        int is_both = has(line->b, line->n_b, line->a[i]);

        for (int j = 0; j < line->n_b && rc == COLL_OK; j++) {
            line->edge.a = line->a[i];
            line->edge.b = line->b[j];
            if (line->edge.a == line->edge.b ||
                (is_both && line->edge.a > line->edge.b &&
                 has(line->a, line->n_a, line->edge.b)))
                continue;
            rc = add_edge(parser, &line->edge);
        }
    }
    return rc;
}

/* Join the first of A with the first of B, and so on. */
static int link_pairs(struct parser *parser, struct link_line *line)
{
    int rc = COLL_OK;

    if (line->n_a != line->n_b)
        return coll__parse_fail(parser, "pairs of %d and %d parts; name equally "
                                        "many",
                                line->n_a, line->n_b);
    for (int i = 0; i < line->n_a && rc == COLL_OK; i++) {
        line->edge.a = line->a[i];
        line->edge.b = line->b[i];
        if (line->edge.a == line->edge.b)
            return coll__parse_fail(parser, "a link from a part to itself; "
                                            "name another one");
        rc = add_edge(parser, &line->edge);
    }
    return rc;
}

static int read_link(struct parser *parser, int is_pairs)
{
    struct link_line *line = malloc(sizeof(*line));
    int rc = line ? read_link_line(parser, line) : no_memory();

    if (rc == COLL_OK)
        rc = is_pairs ? link_pairs(parser, line) : link_all(parser, line);
    free(line);
    return rc;
}

/* ---- blocks -------------------------------------------------------------- */

/* Read a line of a host or of a network of links. */
static int read_block_line(struct parser *parser)
{
    static const char *const kinds[] = {
        [GRAPH_CACHE] = "cache", [GRAPH_SWITCH] = "switch",
        [GRAPH_NUMA] = "numa",   [GRAPH_SOCKET] = "socket",
        [GRAPH_SEAT] = "seat",     [GRAPH_NIC] = "nic"};
    int is_net = parser->block == &parser->fabric->net.graph;
    const char *word = parser->words[parser->at++];

    if (!strcmp(word, "link") || !strcmp(word, "pair"))
        return read_link(parser, *word == 'p');
    if (!strcmp(word, "attach") && is_net)
        return coll__parse_attach(parser);
    for (int k = 0; k <= GRAPH_NIC; k++)
        if (!strcmp(word, kinds[k]) && (!is_net || k == GRAPH_SWITCH))
            return read_part(parser, (enum graph_kind)k);
    return coll__parse_fail(
        parser, "'%.40s' is none of %s", word,
        is_net ? "switch, link, pair, attach and end"
               : "cache, numa, switch, socket, seat, nic, link, pair and end");
}

int coll__parse_block(struct parser *parser, struct graph *block)
{
    int rc, opened = parser->line;

    parser->block = block;
    while ((rc = coll__parse_line(parser)) == 1) {
        if (!strcmp(parser->words[0], "end")) {
            parser->at = 1;
            return coll__parse_fields(parser, &(struct field){.key = NULL});
        }
        rc = read_block_line(parser);
        if (rc)
            return rc;
    }
    return rc ? rc
              : coll__parse_fail(parser, "no 'end' to what line %d began; add "
                                         "one",
                                 opened);
}
