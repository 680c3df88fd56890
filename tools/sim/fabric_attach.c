/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_attach.c - a network whose switches and cables are listed one by one: read which
 * NIC is attached to which switch. */
#include "include/coll/coll.h"
#include "tools/sim/fabric_int.h"

#include <stdio.h>
#include <stdlib.h>

/* Attach the hosts of one line that are in this run. */
static void attach_run(struct net *net, const struct attach *line,
                       const struct run *run, int n_nics)
{
    int end = run->first_host + run->n_hosts;

    if (line->nic >= n_nics)
        return;
    for (int h = line->first > run->first_host ? line->first : run->first_host;
         h <= line->last && h < end; h++) {
        int *nics = net->attach + run->first_nic +
                    (h - run->first_host) * n_nics;

        for (int i = 0; i < n_nics; i++)
            if (line->nic < 0 || line->nic == i)
                nics[i] = line->part;
    }
}

static int attach_all(struct net *net, const struct coll__fabric *fabric)
{
    net->attach = malloc(((size_t)fabric->n_nics + 1) * sizeof(int));
    if (!net->attach)
        return COLL_ERR_NOMEM;
    for (int i = 0; i < fabric->n_nics; i++)
        net->attach[i] = -1;
    for (int a = 0; a < net->n_attachs; a++)
        for (int i = 0; i < fabric->n_runs; i++)
            attach_run(net, &net->attachs[a], &fabric->runs[i],
                       fabric->kinds[fabric->runs[i].kind].n_nics);
    return COLL_OK;
}

const char *coll__attach_finish(struct net *net,
                                const struct coll__fabric *fabric, char *why,
                                size_t len)
{
    int path[COLL__ROUTE_MAX], last = -1, *attach;

    snprintf(why, len,
             "no memory for the network's routes, or more than %d switches; "
             "describe it more coarsely",
             FABRIC_MAX_INNER);
    if (coll__graph_finish(&net->graph) || attach_all(net, fabric))
        return why;
    attach = net->attach;
    for (int i = 0; i < fabric->n_nics; i++) {
        if (attach[i] < 0) {
            snprintf(why, len,
                     "network card %d, counted over all hosts, is attached to "
                     "no switch; add a line such as 'attach 0-15 SWITCH'",
                     i);
            return why;
        }
        if (attach[i] == last)
            continue;
        last = attach[i];
        if (coll__graph_path(&net->graph, attach[0], last, path) < 0) {
            snprintf(why, len,
                     "no path between the switches '%s' and '%s'; add a "
                     "'link'",
                     net->graph.parts[attach[0]].name,
                     net->graph.parts[last].name);
            return why;
        }
    }
    net->n_links = 2 * net->graph.n_edges;
    return NULL;
}
