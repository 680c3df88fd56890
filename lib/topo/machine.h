/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.h - a machine as a tree of our own: what the sources (hwloc.c,
 * verbs.c, net.c) fill in and the writers (text.c) read.
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
    double quota;   /* of a machine: cores' worth of time, 0 all */
    struct coll__nic nic;
    char uuid[48];                 /* of a GPU, "" unknown */
    struct coll__part_link *links; /* of a GPU, its own */
    int n_links;
    const void *source;                     /* of a switch: hwloc's object */
    struct coll__part *first, *last, *next; /* children, sibling */
};

struct coll__hwloc; /* hwloc's own description, kept for the XML */

struct coll__topo {
    struct coll__part *machine;
    struct coll__hwloc *hwloc;
};

/* Hang a new part below parent; NULL parent: a root.  NULL: no memory. */
struct coll__part *coll__part_add(struct coll__part *parent,
                                  enum coll__part_kind kind, int index);
void coll__part_free(struct coll__part *part);

/* Join two GPUs by NVLink; 0, or -1 without memory. */
int coll__part_join(struct coll__part *a, struct coll__part *b, double gbytes);

/* Return the GPU at that place on PCI below part, or NULL. */
struct coll__part *coll__part_gpu(struct coll__part *part, const char *bus);

/* Name the NICs next to a GPU, those of RDMA where there are, with commas; "" when
 * none is nearer than the others. */
void coll__part_near(const struct coll__part *machine,
                     const struct coll__part *gpu, char *names, size_t len);

/* Hang a NIC below its PCIe switch, else its NUMA node, or below the machine when
 * neither is known.  Status, not logged. */
int coll__topo_add_nic(struct coll__topo *topo, const struct coll__nic *nic);

/* Return the NUMA node with this index below part, or NULL. */
struct coll__part *coll__part_numa(struct coll__part *part, int index);

/* Fill in topo->hwloc and the tree, from the file or, when it is NULL, from
 * this machine (GPUs included, NICs from a file only).  Logs its errors. */
int coll__hwloc_load(struct coll__topo *topo, const char *file);

/* Fill in topo->machine alone, NICs included, of a file that has been read; to be
 * freed by coll__part_free().  A status, logged. */
int coll__hwloc_tree(const struct coll__hwloc *hwloc, struct coll__topo *topo);

/* hwloc's part of that alone. */
int coll__hwloc_open(const char *file, struct coll__hwloc **hwloc);
void coll__hwloc_free(struct coll__hwloc *hwloc);

/* Find the part where a device at that place on PCI hangs: its switch, its NUMA node,
 * the machine.  NULL: hwloc does not know it, or no memory. */
struct coll__part *coll__hwloc_holder(struct coll__topo *topo, const char *bus);

/* Find how far apart the NUMA nodes are, by hwloc's matrix of latencies. */
void coll__hwloc_inside(const struct coll__hwloc *hwloc,
                        struct coll__inside *inside);

/* Write hwloc's XML into *text, to be released by free(). */
int coll__hwloc_xml(const struct coll__hwloc *hwloc, char **text);

/* A PCI device: what it says it is, and where. */
struct coll__pci {
    unsigned class_id, vendor, device;
    unsigned domain, bus, slot;
};

/* Is it a GPU to compute on, by what is known of its kind? */
int coll__pci_computes(const struct coll__pci *pci);

/* Add the RDMA ports, the network interfaces of this machine. */
int coll__verbs_load(struct coll__topo *topo);
int coll__net_load(struct coll__topo *topo);

/* The same of the interfaces that a folder like /sys/class/net lists. */
int coll__net_load_from(struct coll__topo *topo, const char *net_dir);

/* Return the speed of one of them in Gbit/s, 0 where nobody knows. */
double coll__net_gbits(const char *net_dir, const char *name);

/* Return the data rate of an RDMA port in Gbit/s by the numbers that
 * ibv_query_port() gives; 0 for none that we know. */
double coll__verbs_gbits(unsigned speed, unsigned width, int is_ethernet);

/* Call work(arg) in a child process: 1 when it returned 0, 0 when not or when
 * it crashed or took long, -1 when there can be no child (errno). */
int coll__survives(int (*work)(const char *arg), const char *arg);

/* Find the parts of the machine that hold all processors of a set of len bytes;
 * -1 where none does.  A status, logged. */
int coll__hwloc_within(const struct coll__hwloc *hwloc, const cpu_set_t *set,
                       size_t len, int32_t within[COLL__WITHIN]);

/* Processors, to be freed by CPU_FREE(). */
struct coll__cores {
    cpu_set_t *set;
    size_t len; /* bytes */
};

/* Find those that a process of this host may run on; -1 where nobody knows. */
int coll__cores_of(pid_t pid, struct coll__cores *cores);

/* Find the processors of this machine that none of the n ranks is bound to: of
 * cores of which nothing is taken, and near rank `me`, where there are such.
 * *spare has room for them.  Returns how many nobody has in all, near or not; 0
 * also when nothing can be said. */
int coll__hwloc_spare(const struct coll__cores *ranks, int n, int me,
                      struct coll__cores *spare);

/* Ask something about the machine that the file describes; ask()'s status, or
 * why the file cannot be read, logged.
 *
 * Threads:   any; ask() runs under a lock, and calls hwloc alone.
 * Cost:      a stat(); the first time, and when the file has changed, it is read,
 *            in a child process first.
 */
int coll__kept_ask(const char *file,
                   int (*ask)(const struct coll__hwloc *hwloc, void *arg),
                   void *arg);

/* The same of this host, by the kernel's own words. */
void coll__topo_within(const cpu_set_t *set, size_t len,
                       int32_t within[COLL__WITHIN]);

/* Write the place on PCI of the device behind DIR/device; "" when it is on none. */
void coll__read_bus(const char *dir, char bus[16]);

/* Write the tree as text or dot; status, not logged. */
int coll__part_text(const struct coll__part *machine, char **text);
int coll__part_dot(const struct coll__part *machine, char **text);

#endif
