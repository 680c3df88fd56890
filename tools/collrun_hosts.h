/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_hosts.h - a list of hosts, for collrun_hostlist.c and _hosts.c. */
#ifndef COLL_TOOLS_COLLRUN_HOSTS_H
#define COLL_TOOLS_COLLRUN_HOSTS_H

#include "tools/collrun.h"

#define MAX_HOSTS 4096

struct host {
    char *name;
    int n; /* ranks */
};

struct hosts {
    int n_hosts, n_ranks;
    struct host host[MAX_HOSTS];
    char *text; /* that the names lie in */
};

/* Read what --hosts or --hostfile say, cut to -n, --nnodes and --npernode.
 *
 * Shapes:    *hosts is zero.
 * Result:    0, or -1, and why has been said.
 */
int hosts_read(const struct options *options, struct hosts *hosts);

#endif
