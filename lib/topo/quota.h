/* SPDX-License-Identifier: BSD-3-Clause */
/* quota.h - how much of the processors' time this process may use.
 *
 * A control group's quota may be smaller than the cores that its processes see.  In a
 * container with a limit of 2 of 64 cores, all 64 are visible; 64 threads that spin use
 * up the quota in the first 1/32 of each period and are then stopped.
 */
#ifndef COLL_LIB_TOPO_QUOTA_H
#define COLL_LIB_TOPO_QUOTA_H

#include <stdint.h>

struct coll__quota {
    double cores;   /* 0: no limit */
    uint32_t group; /* equal for processes that share the quota; 0 without a limit */
};

/* Find the tightest limit of this process's control group and its parents, of versions 1
 * (cpu.cfs_quota_us) and 2 (cpu.max).  A file that cannot be read does not limit.
 *
 * Cost: reads a few small files.
 */
void coll__quota_load(struct coll__quota *quota);

/* Do so with /proc and /sys below root. */
void coll__quota_load_from(const char *root, struct coll__quota *quota);

#endif
