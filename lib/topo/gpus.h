/* SPDX-License-Identifier: BSD-3-Clause */
/* gpus.h - how near the GPUs of a host's ranks are to each other, and what a message
 * between two of them costs.
 *
 * Each rank says where its own GPU is: by UUID, which PCI bridges are above it, by its
 * NUMA node; and to which others NVLink joins it.  What all have said is the same on
 * every rank, and so is what is made of it.
 */
#ifndef COLL_LIB_TOPO_GPUS_H
#define COLL_LIB_TOPO_GPUS_H

#include "lib/topo/topo.h"

#include <stddef.h>
#include <stdint.h>

/* What is between two GPUs, the nearest first. */
enum coll__near {
    NEAR_GPU, /* it is the same one */
    NEAR_NVLINK,
    NEAR_SWITCH, /* of PCIe */
    NEAR_SOCKET, /* or NUMA node */
    NEAR_HOST,   /* or not known */
    COLL__N_NEAR
};

#define COLL__GPU_ABOVE 8

/* Where one is; travels between ranks. */
struct coll__gpu_place {
    unsigned char uuid[16];
    uint32_t above[COLL__GPU_ABOVE]; /* PCI bridges, the outermost first */
    int32_t n_above;
    int32_t numa;  /* its NUMA node, -1 not known */
    int32_t major; /* of its compute capability, 0 not known */
    int32_t pid;   /* of the rank's process */
    double pcie;   /* bytes a second of its slot, 0 not known */
};

/* Fill in above, n_above, numa and pcie from a folder like /sys/bus/pci/devices; what
 * it does not tell is as not known. */
void coll__gpu_read(const char *pci_dir, const char *bus,
                    struct coll__gpu_place *place);

/* The same of this host, or of the GPU with place's UUID, else at that place on PCI, in
 * COLL_TOPO_FILE where that is set.  A file that cannot be read says nothing; logged by
 * those who read it. */
void coll__gpu_find(const char *bus, struct coll__gpu_place *place);

/* Does COLL_TOPO_FILE know both GPUs?  Then 1 where NVLink joins them and 0 where not;
 * else -1. */
int coll__gpu_file_nvlink(const unsigned char a[16], const unsigned char b[16]);

/* How near two of n ranks are.  nvlink[n * n]: rank i says of rank j's GPU that NVLink
 * joins it to its own; one of them is enough. */
enum coll__near coll__gpu_near(const struct coll__gpu_place *places, int n,
                               const unsigned char *nvlink, int i, int j);

/* What a message between two ranks that near costs, as struct coll__level of
 * lib/plan/view.h has it; share is of all that leave such a part at once. */
struct coll__gpu_price {
    double alpha, beta, share, gap; /* s, s a byte, s a byte, s */
};
struct coll__gpu_price coll__gpu_price(enum coll__near near,
                                       const struct coll__gpu_place *a,
                                       const struct coll__gpu_place *b);

/* What NVLink of that compute capability moves to one other GPU, bytes a second; the
 * driver does not say. */
double coll__gpu_nvlink_rate(int major);

/* "GPU-66616b65-...", as nvidia-smi has it. */
void coll__gpu_uuid_text(const unsigned char uuid[16], char text[48]);

/* A GPU as a driver knows it. */
struct coll__gpu_seen {
    char bus[16], name[64];
    unsigned char uuid[16];
    double nvlink; /* bytes a second to another one that it joins */
};

/* Add to the description of this machine what a driver says; nvlink[n * n] is 1 where
 * NVLink joins two.  A status, logged. */
int coll__topo_add_gpus(struct coll__topo *topo,
                        const struct coll__gpu_seen *gpus, int n,
                        const unsigned char *nvlink);

/* color[n]: ranks that are joined by messages that near at most have the same one, the
 * lowest rank among them. */
void coll__gpu_color(enum coll__near most, const unsigned char *near, int n,
                     int *color);

/* Improve a ring through n ranks, so that as few as can be found of its messages go as
 * far as the farthest, then as the next; near[n * n] is enum coll__near.  The same on
 * all ranks.  Returns 1 when it has changed.
 *
 * Cost:      exact for 8 ranks and fewer, else about n^3.
 */
int coll__gpu_ring(const unsigned char *near, int n, int *ring);

#endif
