/* SPDX-License-Identifier: BSD-3-Clause */
/* quota.h - how much of the processors' time this process may use.
 *
 * A control group may be given fewer cores than its processes see: in a container
 * with a limit of 2 of 64 cores all 64 are there, and 64 threads that spin use up
 * each period's time in its first 32nd part and then stand still.
 */
#ifndef COLL_LIB_TOPO_QUOTA_H
#define COLL_LIB_TOPO_QUOTA_H

#include <stdint.h>

struct coll__quota {
    double cores;   /* 0: no limit */
    uint32_t group; /* equal for processes that share it; 0 without a limit */
};

/* Find the tightest limit among this process's control group and those around
 * it, of versions 1 (cpu.cfs_quota_us) and 2 (cpu.max).  What cannot be read
 * does not limit.
 *
 * Cost: reads a few small files.
 */
void coll__quota_load(struct coll__quota *quota);

/* The same where /proc and /sys are below root. */
void coll__quota_load_from(const char *root, struct coll__quota *quota);

#endif
