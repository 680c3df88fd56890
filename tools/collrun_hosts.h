/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_hosts.h - a list of hosts, for collrun_hostlist.c, _choose.c and _hosts.c. */
#ifndef COLL_TOOLS_COLLRUN_HOSTS_H
#define COLL_TOOLS_COLLRUN_HOSTS_H

#include "tools/collrun.h"

#include <stdio.h>

#define MAX_HOSTS 4096

struct host {
    char *name;
    int n;           /* ranks */
    int *slots;      /* [n]: the slots that they take; NULL: the first n */
    int by_number;   /* the user said which ones */
    char *is_marked; /* [n] while they are chosen */
};

struct hosts {
    int n_hosts, n_ranks;
    struct host host[MAX_HOSTS];
    char *text; /* that the names lie in */
};

/* Read --hosts or --hostfile, apply --include or --exclude, and cut the list to -n,
 * --nnodes and --npernode.
 *
 * Shapes:    *hosts is zero.
 * Result:    0, or -1 after an error message.
 */
int hosts_read(const struct options *options, struct hosts *hosts);

/* Free what the list holds, also after an error. */
void hosts_fini(struct hosts *hosts);

/* Read the lines of a host file into *hosts, which is zero; 0, or the number of the line
 * that is wrong. */
int hosts_read_lines(FILE *file, struct hosts *hosts,
                     const struct options *options);

/* Cut a list to the ranks with which the job begins; 0, or -1 after an error message. */
int hosts_cut(struct hosts *hosts, const struct options *options);

/* Apply --include or --exclude; 0, or -1 after an error message. */
int hosts_choose(const struct options *options, struct hosts *hosts);

/* Were slots chosen by number?  Then write a text that tells each rank its host's
 * slots. */
int hosts_chose_slots(const struct hosts *hosts);
char *hosts_write_slots(const struct hosts *hosts);

/* Find the slots of a rank's host, such as "0,2", in the text of hosts_write_slots(),
 * which this function changes.  Returns "" or NULL if the rank sees all GPUs. */
const char *hosts_find_slots(char *list, int rank);

#endif
