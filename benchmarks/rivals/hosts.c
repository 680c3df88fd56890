/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts.c - several hosts, made of this one by tests/net/hosts: network
 * namespaces, each with a link to a common switch.  Which ranks are where, and
 * what their operations must send over a host's link. */
#include "benchmarks/rivals/compare.h"

#include <stdlib.h>
#include <string.h>

/* ---- words -------------------------------------------------------------- */

int hosts_parse(const char *text, struct hosts *hosts)
{
    int is_even = !strchr(text, '+');
    const char *next = text;

    memset(hosts->placed, 0, sizeof(hosts->placed));
    for (hosts->n = 0; hosts->n < MAX_HOSTS; next++) {
        char *end;
        long value = strtol(next, &end, 10);

        if (end == next || *next < '0' || *next > '9' || value < 1 ||
            value > (is_even ? MAX_HOSTS : PEER_MAX_RANKS))
            return -1;
        if (is_even) {
            hosts->n = (int)value;
            return *end || hosts->n < 2 ? -1 : 0;
        }
        hosts->placed[hosts->n++] = (int)value;
        if (!*end)
            return hosts->n < 2 ? -1 : 0;
        if (*end != '+')
            return -1;
        next = end;
    }
    return -1;
}

int hosts_parse_rate(const char *text, struct hosts *hosts)
{
    static const struct {
        const char *unit;
        double bits;
    } units[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};
    char *end;
    double value = strtod(text, &end);

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (end != text && !strcmp(end, units[i].unit) && value > 0) {
            hosts->rate = text;
            hosts->bytes_a_second = value * units[i].bits / 8;
            return 0;
        }
    return -1;
}

/* ---- the hosts ---------------------------------------------------------- */

/* The script prints the folder, or an error sentence of its own. */
static int read_folder(const char *command, char folder[64])
{
    FILE *answer = popen(command, "re");
    size_t len;

    if (!answer)
        return -1;
    if (!fgets(folder, 64, answer))
        folder[0] = '\0';
    len = strcspn(folder, "\n");
    folder[len] = '\0';
    return pclose(answer) || !len ? -1 : 0;
}

int hosts_up(struct hosts *hosts)
{
    char command[640];

    if (!find_ours(hosts->script, "hosts") || !find_ours(hosts->rsh, "rsh"))
        return say("the script that makes hosts was not found beside this "
                   "program; run make install, or this in the build tree");
    snprintf(command, sizeof(command), "'%s' up %s%s %d", hosts->script,
             hosts->rate ? "-r " : "", hosts->rate ? hosts->rate : "",
             hosts->n);
    hosts->is_up = !read_folder(command, hosts->folder);
    if (hosts->is_up)
        return 0;
    return say("cannot make %d hosts; --hosts wants root and network "
               "namespaces (Debian: iproute2 util-linux)",
               hosts->n);
}

void hosts_down(struct hosts *hosts)
{
    char command[640];

    if (!hosts->is_up)
        return;
    snprintf(command, sizeof(command), "'%s' down '%s'", hosts->script,
             hosts->folder);
    if (system(command))
        say("cannot remove the hosts of %s", hosts->folder);
    hosts->is_up = 0;
}

/* ---- which ranks are where, and what crosses ---------------------------- */

int hosts_place(const struct hosts *hosts, int ranks, int each[MAX_HOSTS])
{
    int all = 0;

    for (int h = 0; h < hosts->n; h++) {
        each[h] = hosts->placed[0] ? hosts->placed[h] : ranks / hosts->n;
        all += each[h];
    }
    return all == ranks && all >= hosts->n;
}

double hosts_crossing(const struct hosts *hosts, enum peer_op op, size_t bytes,
                      int ranks)
{
    double n = (double)bytes, p = ranks, h = hosts->n, most = 0;
    int each[MAX_HOSTS];

    if (!hosts_place(hosts, ranks, each))
        return 0;
    for (int i = 0; i < hosts->n; i++) {
        double here = each[i], crossing = 0;

        if (op ==
            PEER_ALLREDUCE) /* what its sums lack, then what others' made */
            crossing = 2 * (h - 1) / h * n;
        else if (op == PEER_BROADCAST)
            crossing = n;
        else if (op == PEER_ALLGATHER || op == PEER_REDUCE_SCATTER)
            crossing = n * (p - here) / p;
        else if (op == PEER_ALLTOALL)
            crossing = n / p * here * (p - here);
        most = crossing > most ? crossing : most;
    }
    return most;
}
