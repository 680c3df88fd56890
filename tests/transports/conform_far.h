/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_far.h - ranks of the suite that are processes of different hosts.
 *
 * `conform RANK SIZE ADDRESS PORT`, started on each host, plays one rank of every
 * case.  The ranks of a case meet at rank 0's port: what the mapping of a
 * world is to ranks of one host, sockets to rank 0 are to these.  A rank that
 * fails closes its socket, which stops the others.
 */
#ifndef COLL_TESTS_CONFORM_FAR_H
#define COLL_TESTS_CONFORM_FAR_H

#include "tests/transports/conform.h"

/* Who this process is; size 0: all ranks of a case are here. */
struct conform_far {
    int rank, size;
    const char *address; /* of rank 0, and its port */
    const char *port;
};
extern struct conform_far conform_far;

/* Take them from the program's arguments; 0 where these cannot be understood. */
int conform_far_args(int argc, char **argv);

/* Meet the other ranks of this case; ends the rank where they do not come. */
void conform_far_join(struct rank *rank);

/* Gather len bytes of each rank. */
void conform_far_gather(struct rank *rank, const void *in, size_t len,
                        void *out);

/* Wait for all ranks, and poll meanwhile. */
void conform_far_meet(struct rank *rank);

/* Stop here if another rank has gone, which is not the victim. */
void conform_far_check(struct rank *rank);

#endif
