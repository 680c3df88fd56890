/* SPDX-License-Identifier: BSD-3-Clause */
/* gpus.h - how near the GPUs of a host's ranks are to each other, and what a message
 * between two of them costs.
 *
 * Each rank publishes where its GPU is: its UUID, the PCI bridges above it, its NUMA
 * node, and the GPUs that NVLink joins it to.  All ranks have the same table and compute
 * the same result from it.
 */
#ifndef COLL_LIB_TOPO_GPUS_H
#define COLL_LIB_TOPO_GPUS_H

#include "lib/topo/topo.h"

#include <stddef.h>
#include <stdint.h>

/* The connection between two GPUs, the nearest first. */
enum coll__near {
    NEAR_GPU, /* it is the same one */
    NEAR_NVLINK,
    NEAR_SWITCH, /* of PCIe */
    NEAR_SOCKET, /* or NUMA node */
    NEAR_HOST,   /* or not known */
    COLL__N_NEAR
};

#define COLL__GPU_ABOVE 8

/* Where a GPU is; ranks exchange this. */
struct coll__gpu_place {
    unsigned char uuid[16];
    uint32_t above[COLL__GPU_ABOVE]; /* PCI bridges, the outermost first */
    int32_t n_above;
    int32_t numa;  /* its NUMA node, -1 not known */
    int32_t major; /* the GPU's compute capability, 0 not known */
    int32_t pid;   /* of the rank's process */
    double pcie;   /* bytes a second of its PCIe slot, 0 not known */
};

/* Fill in above, n_above, numa and pcie from a folder like /sys/bus/pci/devices; what the
 * folder lacks is set to "not known". */
void coll__gpu_read(const char *pci_dir, const char *bus,
                    struct coll__gpu_place *place);

/* Do so from this host or, if COLL_TOPO_FILE is set, from that file: for the GPU with
 * place's UUID, else for the one at its PCI address.  If the file cannot be read, all is
 * "not known"; the reader has logged why. */
void coll__gpu_find(const char *bus, struct coll__gpu_place *place);

/* Does NVLink join two GPUs of COLL_TOPO_FILE? 1 or 0; -1 if the file does not have
 * both. */
int coll__gpu_file_nvlink(const unsigned char a[16], const unsigned char b[16]);

/* Return how near two of n ranks are.  nvlink[i * n + j] is 1 if rank i found that
 * NVLink joins its GPU to rank j's; one of the two ranks is enough. */
enum coll__near coll__gpu_near(const struct coll__gpu_place *places, int n,
                               const unsigned char *nvlink, int i, int j);

/* The cost of a message between two GPUs, in the terms of struct coll__level
 * (lib/plan/view.h).  share: for all messages together that leave the same part of the
 * host. */
struct coll__gpu_price {
    double alpha, beta, share, gap; /* s, s a byte, s a byte, s */
};
struct coll__gpu_price coll__gpu_price(enum coll__near near,
                                       const struct coll__gpu_place *a,
                                       const struct coll__gpu_place *b);

/* Return the NVLink speed from a GPU of this compute capability to one other GPU, in
 * bytes a second; the driver does not tell it. */
double coll__gpu_nvlink_rate(int major);

/* "GPU-66616b65-...", as nvidia-smi writes it. */
void coll__gpu_uuid_text(const unsigned char uuid[16], char text[48]);

/* A GPU as a driver knows it. */
struct coll__gpu_seen {
    char bus[16], name[64];
    unsigned char uuid[16];
    double nvlink; /* bytes a second to another GPU that NVLink joins */
};

/* Add the driver's information on GPUs to the description of this machine; nvlink[n * n]
 * is 1 where NVLink joins two GPUs.  Returns a status, logged. */
int coll__topo_add_gpus(struct coll__topo *topo,
                        const struct coll__gpu_seen *gpus, int n,
                        const unsigned char *nvlink);

/* Group ranks whose GPUs are connected by steps of distance `near` at most: color[r] is
 * the lowest rank of r's group. */
void coll__gpu_color(enum coll__near most, const unsigned char *near, int n,
                     int *color);

/* Improve a ring through n ranks: use as few edges of the farthest kind as possible, then
 * as few of the next kind; near[n * n] is enum coll__near.  All ranks get the same ring.
 * Returns 1 if it has changed.
 *
 * Cost:      exact for 8 ranks and fewer, else about n^3.
 */
int coll__gpu_ring(const unsigned char *near, int n, int *ring);

#endif
