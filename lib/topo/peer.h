/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h - what every rank knows about every other rank. */
#ifndef COLL_LIB_TOPO_PEER_H
#define COLL_LIB_TOPO_PEER_H

#include <stdint.h>

/* Parts of a host that a rank may be bound to, from the inside out. */
enum { WITHIN_CACHE, WITHIN_NUMA, WITHIN_PACKAGE, COLL__WITHIN };

#define COLL__FABRICS 4 /* RDMA networks of a rank, at most */

/* One rank as the others see it; the same table on every rank. */
struct coll__peer {
    char host_id[64];    /* equal ids: perhaps the same host, shm tries it; the part
                          * before the slash is the machine's id */
    uint64_t pid_ns;     /* its pid namespace; the pid is valid only inside it */
    int32_t pid;
    int32_t host;        /* index of its host; hosts are sorted by lowest rank */
    int32_t local_rank;  /* among the ranks of its host */
    int32_t local_size;
    double quota; /* how many cores' time its control group may use; 0: no limit */
    uint32_t quota_group; /* a hash of that control group */
    int32_t n_cores;     /* that its process may run on */
    uint32_t cpuset;     /* a hash of those cores */
    int32_t n_sharers; /* ranks of its machine: those of its host, and of other containers
                        * of the same kernel */
    int32_t local_cores; /* that those may use together */
    uint32_t fabrics[COLL__FABRICS]; /* the RDMA networks on which it has a port that UCX
                                      * may use (lib/topo/rails.h), the best first; 0 ends
                                      * the list */
    int32_t within[COLL__WITHIN]; /* the part that holds all of its cores; -1: none, or
                                   * unknown */
};

#endif
