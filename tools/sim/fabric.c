/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric.c - create and destroy a fabric, and number its seats and links.
 *
 * The order of links: host after host; in each host the links of the seats (out, in), of
 * the NICs (to the network, from it) and of the edges (each way); then the network's.
 */
#include "include/coll/coll.h"
#include "tools/sim/fabric_int.h"
#include "lib/trace/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT (1 << 20) /* bytes of a file */

static int no_memory(void)
{
    log_error("topo", "no memory left for the description of a fabric; free "
                      "some memory");
    return COLL_ERR_NOMEM;
}

/* ---- counts -------------------------------------------------------------- */

/* A file may describe more than the numbers here can count. */
static int count_run(struct coll__fabric *fabric, struct run *run)
{
    const struct graph *kind = &fabric->kinds[run->kind];
    long long per_host =
        2LL * (kind->n_seats + kind->n_nics + kind->n_edges);
    long long seats = fabric->n_seats + (long long)run->n_hosts * kind->n_seats;
    long long links = fabric->n_links + run->n_hosts * per_host;
    long long nics = fabric->n_nics + (long long)run->n_hosts * kind->n_nics;

    if (seats > FABRIC_MAX_SEATS || nics > FABRIC_MAX_SEATS ||
        links > FABRIC_MAX_LINKS)
        return COLL_ERR_INVALID;
    run->first_host = fabric->n_hosts;
    run->first_seat = fabric->n_seats;
    run->first_nic = fabric->n_nics;
    run->first_link = fabric->n_links;
    fabric->n_hosts += run->n_hosts;
    fabric->n_seats = (int)seats;
    fabric->n_nics = (int)nics;
    fabric->n_links = (int)links;
    return COLL_OK;
}

static int count_all(struct coll__fabric *fabric, const char *path)
{
    for (int i = 0; i < fabric->n_runs; i++)
        if (count_run(fabric, &fabric->runs[i])) {
            log_error("topo",
                      "%s: more than %d seats or network cards, or %d links; "
                      "describe fewer hosts",
                      path, FABRIC_MAX_SEATS, FABRIC_MAX_LINKS);
            return COLL_ERR_INVALID;
        }
    fabric->net_link = fabric->n_links;
    if (!fabric->n_hosts) {
        log_error("topo", "%s: no hosts; add a line such as 'hosts 16 NAME'",
                  path);
        return COLL_ERR_INVALID;
    }
    return COLL_OK;
}

/* ---- what must hold ------------------------------------------------------ */

static int refuse(const char *path, const char *why)
{
    log_error("topo", "%s: %s", path, why);
    return COLL_ERR_INVALID;
}

/* Seats must reach each other; with a network, they must reach NICs too. */
static int check_kind(const struct graph *kind, int has_net, const char *path)
{
    char why[256];
    int a, b;

    if (!coll__graph_is_joined(kind, &a, &b)) {
        snprintf(why, sizeof(why),
                 "host %s: no path from '%s' to '%s'; add a 'link' (seats and "
                 "network cards pass nothing on)",
                 kind->name, kind->parts[a].name, kind->parts[b].name);
        return refuse(path, why);
    }
    for (int s = 0; s < kind->n_seats && has_net; s++)
        if (kind->nic[s] < 0) {
            snprintf(why, sizeof(why),
                     "host %s: '%s' reaches no active network card; add one by "
                     "'nic NAME in PART speed 100Gb/s'",
                     kind->name, kind->parts[kind->seats[s]].name);
            return refuse(path, why);
        }
    return COLL_OK;
}

static int finish_net(struct coll__fabric *fabric, const char *path)
{
    char text[256];
    const char *why;

    if (fabric->n_hosts > 1 && fabric->net.kind == NET_NONE)
        return refuse(path, "several hosts and no network between them; add a "
                            "line such as 'network switch latency 500ns'");
    why = coll__net_finish(&fabric->net, fabric, text, sizeof(text));
    if (why)
        return refuse(path, why);
    if (fabric->net.n_links > FABRIC_MAX_LINKS - fabric->n_links)
        return refuse(path, "the network has too many links; make it smaller");
    fabric->n_links += fabric->net.n_links;
    return COLL_OK;
}

static int finish(struct coll__fabric *fabric, const char *path)
{
    int rc = COLL_OK;

    for (int k = 0; k < fabric->n_kinds && rc == COLL_OK; k++) {
        rc = coll__graph_finish(&fabric->kinds[k]);
        if (rc == COLL_ERR_NOMEM)
            return no_memory();
        if (rc == COLL_ERR_INVALID)
            return refuse(path, "a host has more than 512 parts with several "
                                "links, or longer paths than 26 links; describe "
                                "it more coarsely");
    }
    rc = count_all(fabric, path);
    for (int i = 0; i < fabric->n_runs && rc == COLL_OK; i++)
        rc = check_kind(&fabric->kinds[fabric->runs[i].kind],
                        fabric->n_hosts > 1, path);
    return rc == COLL_OK ? finish_net(fabric, path) : rc;
}

/* ---- life ---------------------------------------------------------------- */

static int read_text(const char *path, char **text, size_t *len)
{
    FILE *file = fopen(path, "rb");
    char *new = malloc(MAX_TEXT + 1);
    int rc = COLL_OK;

    if (!file) {
        log_error("topo", "cannot open the topology %s: %s; give the path of "
                          "a file that can be read",
                  path, strerror(errno));
        rc = errno == ENOENT ? COLL_ERR_INVALID : COLL_ERR_SYSTEM;
    } else if (!new) {
        rc = no_memory();
    } else {
        *len = fread(new, 1, MAX_TEXT + 1, file);
        if (ferror(file)) {
            log_error("topo", "cannot read the topology %s: %s; give the path "
                              "of a file",
                      path, strerror(errno));
            rc = COLL_ERR_SYSTEM;
        } else if (*len > MAX_TEXT) {
            rc = refuse(path, "longer than 1 MiB; describe alike hosts by one "
                              "'host' and a count");
        }
    }
    if (file)
        fclose(file);
    if (rc)
        free(new);
    else
        *text = new;
    return rc;
}

static int load_text(struct coll__fabric *fabric, const char *path)
{
    char *text;
    size_t len;
    int rc = read_text(path, &text, &len);

    if (rc)
        return rc;
    text[len] = '\0';
    rc = coll__fabric_parse(fabric, path, text, len);
    free(text);
    return rc;
}

/* Name the fabric after the file, without folders and extension. */
static void name_after(struct coll__fabric *fabric, const char *path)
{
    const char *slash = strrchr(path, '/');

    snprintf(fabric->name, sizeof(fabric->name), "%s",
             slash ? slash + 1 : path);
    for (char *c = fabric->name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '_';
    if (strrchr(fabric->name, '.'))
        *strrchr(fabric->name, '.') = '\0';
}

int coll__fabric_load(const char *path, struct coll__fabric **fabric)
{
    struct coll__fabric *new = calloc(1, sizeof(*new));
    size_t len = strlen(path);
    int rc;

    if (!new)
        return no_memory();
    *new = (struct coll__fabric){
        .overhead = 500e-9, .gap = 100e-9, .gamma = 1 / 10e9};
    name_after(new, path);
    if (len > 4 && !strcmp(path + len - 4, ".xml"))
        rc = coll__fabric_of_hwloc(new, path);
    else
        rc = load_text(new, path);
    if (rc == COLL_OK)
        rc = finish(new, path);
    if (rc == COLL_OK)
        *fabric = new;
    else
        coll__fabric_destroy(new);
    return rc;
}

void coll__fabric_destroy(struct coll__fabric *fabric)
{
    if (!fabric)
        return;
    for (int k = 0; k < fabric->n_kinds; k++)
        coll__graph_fini(&fabric->kinds[k]);
    coll__graph_fini(&fabric->net.graph);
    free(fabric->net.attach);
    free(fabric->net.attachs);
    free(fabric->kinds);
    free(fabric->runs);
    free(fabric);
}

/* ---- questions ----------------------------------------------------------- */

const char *coll__fabric_name(const struct coll__fabric *fabric)
{
    return fabric->name;
}

int coll__fabric_n_hosts(const struct coll__fabric *fabric)
{
    return fabric->n_hosts;
}

int coll__fabric_n_seats(const struct coll__fabric *fabric)
{
    return fabric->n_seats;
}

int coll__fabric_n_links(const struct coll__fabric *fabric)
{
    return fabric->n_links;
}

double coll__fabric_overhead(const struct coll__fabric *fabric)
{
    return fabric->overhead;
}

double coll__fabric_gap(const struct coll__fabric *fabric)
{
    return fabric->gap;
}

double coll__fabric_gamma(const struct coll__fabric *fabric)
{
    return fabric->gamma;
}

int coll__fabric_host(const struct coll__fabric *fabric, int seat)
{
    return coll__fabric_place(fabric, seat).host;
}

int coll__fabric_nic(const struct coll__fabric *fabric, int seat,
                     const char **name)
{
    struct fabric_place at = coll__fabric_place(fabric, seat);
    int nic = at.kind->nic[at.local];

    *name = nic < 0 ? "" : at.kind->parts[at.kind->nics[nic]].name;
    return nic;
}
