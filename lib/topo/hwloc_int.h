/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc_int.h - what hwloc.c and hwloc_io.c share; no other file includes hwloc.h. */
#ifndef COLL_LIB_TOPO_HWLOC_INT_H
#define COLL_LIB_TOPO_HWLOC_INT_H

#include "lib/topo/machine.h"

#include <hwloc.h>

struct coll__hwloc {
    hwloc_topology_t topology;
};

/* Log that there is no memory; return COLL_ERR_NOMEM. */
int coll__hwloc_no_memory(void);

/* Copy a name, with only the characters that are safe on a terminal and in dot's quotes:
 * a file's names may hold anything. from may be NULL. */
void coll__hwloc_name(char *to, size_t len, const char *from);

/* Hang the GPUs into the tree, and the NICs too if it was read from a file. */
int coll__hwloc_devices(struct coll__topo *topo, int has_nics);

#endif
