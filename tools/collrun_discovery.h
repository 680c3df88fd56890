/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_discovery.h - ask the script of --host-discovery-script which hosts there
 * are, every second. */
#ifndef COLL_TOOLS_COLLRUN_DISCOVERY_H
#define COLL_TOOLS_COLLRUN_DISCOVERY_H

#include <sys/types.h>

struct discovery;
struct hosts;
struct options;

/* NULL after an error message: the script cannot be run. */
struct discovery *discovery_open(const char *script);
void discovery_close(struct discovery *discovery); /* NULL: does nothing */

/* Ask until there are enough hosts to begin with: 0, or the exit status after an error
 * message.  *hosts is zero before. */
int discovery_begin(struct discovery *discovery, const struct options *options,
                    struct hosts *hosts);

/* Return a descriptor to poll, or -1. */
int discovery_fd(const struct discovery *discovery);

/* Return when it is time for discovery_look() (s), or 0. */
double discovery_next(const struct discovery *discovery);

/* Start the script if it is time, and read what it prints.  Returns the hosts when there
 * are others than the last time, for free(); their names stay.  Else NULL. */
struct hosts *discovery_look(struct discovery *discovery,
                             const struct options *options);

/* A child has ended. */
void discovery_take_end(struct discovery *discovery, pid_t pid, int how);

#endif
