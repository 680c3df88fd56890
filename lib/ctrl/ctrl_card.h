/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_card.h - what the ranks tell each other of themselves and where they listen.
 */
#ifndef COLL_LIB_CTRL_CTRL_CARD_H
#define COLL_LIB_CTRL_CTRL_CARD_H

#include "lib/net/net.h"
#include "lib/net/presence.h"
#include "lib/net/wire.h"

#include <stdint.h>

struct coll__ctrl;

/* Where a rank's process listens. */
struct ctrl_place {
    int32_t n_addrs;   /* negative: the status of its failure to listen */
    int32_t n_lacking; /* missing descriptors, if that is why */
    struct coll__addr addrs[COLL__MAX_ADDRS];
};

/* What a rank tells the others of its process at the start. */
struct ctrl_peer {
    unsigned char
        host[32]; /* hash of boot id and network namespace; changed for
                             * a clone of this rank's host */
    unsigned char process[COLL__PROCESS_BYTES];
    unsigned char presence[COLL__PRESENCE_BYTES];
    uint64_t pid_ns, pid; /* pid_ns 0: not known */
    char host_name[48];
    struct ctrl_place place;
};

/* All below: the reactor's lock not held. */

/* Listen from now on until the end of ctrl: for this rank's children, and for ranks whose
 * parents die later.  The rank's own peer.place gets the addresses. */
void coll__ctrl_offer(struct coll__ctrl *ctrl);

/* status: why a rank has no place, or COLL_OK; judge: log it. */
int coll__ctrl_place_status(const struct ctrl_place *place);
void coll__ctrl_judge_place(const char *name, const struct ctrl_place *place);

#endif
