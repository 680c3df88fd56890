/* SPDX-License-Identifier: BSD-3-Clause */
/* inside.h - how much farther a message goes inside a host when it leaves a
 * cache, a NUMA node, a package.
 *
 * A transport's price was measured between cores that share everything.  A cache line
 * from another cache takes longer; one from another NUMA node takes as much longer as the
 * firmware's table of distances says (hwloc and /sys both show it).  So a price is the
 * transport's plus the cost of the distance.  A host with a single level keeps the
 * transport's price.
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

/* Distance of the farthest NUMA node's memory, relative to own memory; 0 if there is no
 * other node or its distance is unknown. */
struct coll__inside {
    double numa;    /* in the same package */
    double package; /* in another one */
};

/* What the distance adds to the price of a transport's link. */
struct coll__farther {
    double alpha; /* s more */
    double copy;  /* multiplies the part of beta that each receiver spends by itself */
    double share; /* s a byte, counting all bytes that leave such a part at once; 0: no
                   * common limit */
};

struct coll__farther coll__inside_price(const struct coll__inside *inside,
                                        enum coll__leaves leaves);

/* Describe this host, or the one in COLL_TOPO_FILE.  If the file cannot be read, nothing
 * is known; the reader has logged why. */
void coll__inside_load(struct coll__inside *inside);

/* Describe a host by folders like /sys/devices/system/node and .../cpu. */
void coll__inside_read(const char *node_dir, const char *cpu_dir,
                       struct coll__inside *inside);

/* Take the larger distance of both for every part. */
void coll__inside_widen(struct coll__inside *inside,
                        const struct coll__inside *other);

#endif
