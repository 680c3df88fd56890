/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_hosts.h - a list of hosts, for collrun_hostlist.c, _choose.c and _hosts.c. */
#ifndef COLL_TOOLS_COLLRUN_HOSTS_H
#define COLL_TOOLS_COLLRUN_HOSTS_H

#include "tools/collrun.h"

#define MAX_HOSTS 4096

struct host {
    char *name;
    int n;           /* ranks */
    int *slots;      /* [n] which of its slots they take, or NULL: the first */
    int by_number;   /* the user said which ones */
    char *is_marked; /* [n] while they are chosen */
};

struct hosts {
    int n_hosts, n_ranks;
    struct host host[MAX_HOSTS];
    char *text; /* that the names lie in */
};

/* Read what --hosts or --hostfile say, of which --include or --exclude chooses, cut to
 * -n, --nnodes and --npernode.
 *
 * Shapes:    *hosts is zero.
 * Result:    0, or -1, and why has been said.
 */
int hosts_read(const struct options *options, struct hosts *hosts);

/* Leave what --include or --exclude say; 0, or -1, and why has been said. */
int hosts_choose(const struct options *options, struct hosts *hosts);

/* Were slots chosen by number?  Then each rank is told its host's, by a text. */
int hosts_chose_slots(const struct hosts *hosts);
char *hosts_write_slots(const struct hosts *hosts);

/* Find those of a rank's host in such a text, which is cut up: "0,2", or "" or NULL
 * where all are to be seen. */
const char *hosts_find_slots(char *list, int rank);

#endif
