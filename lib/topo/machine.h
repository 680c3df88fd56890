/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.h - a machine as a tree of our own: the sources (hwloc.c, verbs.c, nics.c) fill
 * it in, and the writer (render.c) reads it.
 */
#ifndef COLL_LIB_TOPO_MACHINE_H
#define COLL_LIB_TOPO_MACHINE_H

#include "lib/topo/inside.h"
#include "lib/topo/topo.h"

#include <sched.h>

enum coll__part_kind {
    PART_MACHINE,
    PART_PACKAGE,
    PART_GROUP, /* of cores: a die, a cluster */
    PART_NUMA,
    PART_L3,
    PART_L2,
    PART_CORE,
    PART_SWITCH, /* of PCIe */
    PART_NIC,
    PART_GPU
};

/* NVLink to another GPU. */
struct coll__part_link {
    const struct coll__part *to;
    double gbytes; /* GB/s */
};

/* One part; its parent owns it. */
struct coll__part {
    enum coll__part_kind kind;
    int index;      /* the system's number, -1 none */
    uint64_t bytes; /* memory or cache; 0 unknown */
    char name[96];  /* host, processor model, device; "" none */
    char cpus[64];  /* of a core: "0,64" */
    double quota;   /* of a machine: how many cores' time may be used, 0 all */
    struct coll__nic nic;
    char uuid[48];                 /* of a GPU, "" unknown */
    struct coll__part_link *links; /* of a GPU, its own */
    int n_links;
    const void *source;                     /* of a switch: hwloc's object */
    struct coll__part *first, *last, *next; /* children, sibling */
};

struct coll__hwloc; /* hwloc's description, kept to write the XML */

struct coll__topo {
    struct coll__part *machine;
    struct coll__hwloc *hwloc;
};

/* Add a new part below parent; without a parent (NULL) it is a root.  Returns NULL if
 * there is no memory. */
struct coll__part *coll__part_add(struct coll__part *parent,
                                  enum coll__part_kind kind, int index);
void coll__part_free(struct coll__part *part);

/* Join two GPUs by NVLink; 0, or -1 without memory. */
int coll__part_join(struct coll__part *a, struct coll__part *b, double gbytes);

/* Return the GPU at that PCI address below part, or NULL. */
struct coll__part *coll__part_gpu(struct coll__part *part, const char *bus);

/* Write the names of the NICs nearest to a GPU, with commas, RDMA devices only if there
 * are any; "" if no NIC is nearer than the others. */
void coll__part_near(const struct coll__part *machine,
                     const struct coll__part *gpu, char *names, size_t len);

/* Add a NIC below its PCIe switch, else its NUMA node, else the machine.  Returns a
 * status, not logged. */
int coll__topo_add_nic(struct coll__topo *topo, const struct coll__nic *nic);

/* Return the NUMA node with this index below part, or NULL. */
struct coll__part *coll__part_numa(struct coll__part *part, int index);

/* Fill in topo->hwloc and the tree from the file, or from this machine if it is NULL.
 * GPUs are included; NICs only from a file.  Logs its errors. */
int coll__hwloc_load(struct coll__topo *topo, const char *file);

/* Fill in topo->machine alone, with its NICs, from a file that has been read.  The caller
 * frees it by coll__part_free().  Returns a status, logged. */
int coll__hwloc_tree(const struct coll__hwloc *hwloc, struct coll__topo *topo);

/* hwloc's part of that alone. */
int coll__hwloc_open(const char *file, struct coll__hwloc **hwloc);
void coll__hwloc_free(struct coll__hwloc *hwloc);

/* Find the part that a device at this PCI address belongs below: its switch, its NUMA
 * node, or the machine.  NULL: hwloc does not know it, or no memory. */
struct coll__part *coll__hwloc_holder(struct coll__topo *topo, const char *bus);

/* Find the distances of the NUMA nodes in hwloc's latency matrix. */
void coll__hwloc_inside(const struct coll__hwloc *hwloc,
                        struct coll__inside *inside);

/* Write hwloc's XML into *text; the caller frees it. */
int coll__hwloc_xml(const struct coll__hwloc *hwloc, char **text);

/* A PCI device: its vendor, product, class and address. */
struct coll__pci {
    unsigned class_id, vendor, device;
    unsigned domain, bus, slot;
};

/* Is it a GPU for computing, by vendor, product and class? */
int coll__pci_computes(const struct coll__pci *pci);

/* Add the RDMA ports, or the network interfaces, of this machine. */
int coll__verbs_load(struct coll__topo *topo);
int coll__net_load(struct coll__topo *topo);

/* Add the interfaces of a folder like /sys/class/net. */
int coll__net_load_from(struct coll__topo *topo, const char *net_dir);

/* Return an interface's speed in Gbit/s, 0 if unknown. */
double coll__net_gbits(const char *net_dir, const char *name);

/* Return the data rate of an RDMA port in Gbit/s from the numbers of ibv_query_port(); 0
 * if we do not know them. */
double coll__verbs_gbits(unsigned speed, unsigned width, int is_ethernet);

/* Call work(arg) in a child process.  Returns 1 if it returned 0; 0 if it did not,
 * crashed or took long; -1 if no child can be made (errno). */
int coll__survives(int (*work)(const char *arg), const char *arg);

/* For each kind of part, find the part that holds all processors of a set of len bytes;
 * -1 if none does.  Returns a status, logged. */
int coll__hwloc_within(const struct coll__hwloc *hwloc, const cpu_set_t *set,
                       size_t len, int32_t within[COLL__WITHIN]);

/* A set of processors; the owner frees it by CPU_FREE(). */
struct coll__cores {
    cpu_set_t *set;
    size_t len; /* bytes */
};

/* Find the processors that a process of this host may run on; -1 if unknown. */
int coll__cores_of(pid_t pid, struct coll__cores *cores);

/* Find processors of this machine that none of the n ranks is bound to.  If there are
 * any, prefer cores without a bound rank, and cores near rank `me`. *spare has space for
 * them.  Returns how many processors are free in all, near or not; 0 also if this is
 * unknown. */
int coll__hwloc_spare(const struct coll__cores *ranks, int n, int me,
                      struct coll__cores *spare);

/* Call ask() on the machine that the file describes.  Returns ask()'s status, or why the
 * file cannot be read, logged.
 *
 * Threads:   any; ask() runs under a lock and calls only hwloc.
 * Cost:      a stat().  The file is read, first in a child process, the first time and
 *            whenever it has changed.
 */
int coll__kept_ask(const char *file,
                   int (*ask)(const struct coll__hwloc *hwloc, void *arg),
                   void *arg);

/* Do so for this host, from the kernel's files. */
void coll__topo_within(const cpu_set_t *set, size_t len,
                       int32_t within[COLL__WITHIN]);

/* Write the PCI address of the device behind DIR/device; "" if it is not on PCI. */
void coll__read_bus(const char *dir, char bus[16]);

/* Write the tree as text or dot; status, not logged. */
int coll__part_text(const struct coll__part *machine, char **text);
int coll__part_dot(const struct coll__part *machine, char **text);

#endif
