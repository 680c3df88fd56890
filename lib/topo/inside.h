/* SPDX-License-Identifier: BSD-3-Clause */
/* inside.h - how much farther a message goes inside a host when it leaves a
 * cache, a NUMA node, a package.
 *
 * What a transport says of its links was measured between cores that share
 * everything.  A line that comes from another cache takes longer, one from
 * another NUMA node as much longer as the firmware says (its table of
 * distances, which both hwloc and /sys show).  So prices are those of the
 * transport, and what is added for the farther way; a host of a single level
 * keeps the transport's own.
 */
#ifndef COLL_LIB_TOPO_INSIDE_H
#define COLL_LIB_TOPO_INSIDE_H

#include <stddef.h>

/* The largest part of a host that a message leaves. */
enum coll__leaves {
    LEAVES_NONE,
    LEAVES_CACHE,
    LEAVES_NUMA,
    LEAVES_PACKAGE,
    COLL__N_LEAVES
};

/* The farthest memory of another NUMA node, own memory being 1; 0 where there
 * is no such node or nothing is said. */
struct coll__inside {
    double numa;    /* in the same package */
    double package; /* in another one */
};

/* What the way adds to a link of the transport. */
struct coll__farther {
    double alpha; /* s more */
    double copy;  /* times the part of beta that receivers spend alone */
    double share; /* s a byte of all that leaves such a part at once; 0: as
                   * much as all its ranks send */
};

struct coll__farther coll__inside_price(const struct coll__inside *inside,
                                        enum coll__leaves leaves);

/* Describe this host, or the one of COLL_TOPO_FILE; a file that cannot be read
 * says nothing.  Logged by those who read it. */
void coll__inside_load(struct coll__inside *inside);

/* Describe a host by folders like /sys/devices/system/node and .../cpu. */
void coll__inside_read(const char *node_dir, const char *cpu_dir,
                       struct coll__inside *inside);

/* Make every part as far as in the farther of both. */
void coll__inside_widen(struct coll__inside *inside,
                        const struct coll__inside *other);

#endif
