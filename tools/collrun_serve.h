/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_serve.h - node 0 gives the other nodes their seats. */
#ifndef COLL_TOOLS_COLLRUN_SERVE_H
#define COLL_TOOLS_COLLRUN_SERVE_H

#include "tools/collrun_nodes.h"

#define SERVE_MAGIC "COLLRUN3"
#define SERVE_FULL "COLLFULL"
#define SERVE_GREETING (sizeof(SERVE_MAGIC) - 1 + COLL__NONCE_BYTES)
#define SERVE_TIME 5.0 /* s, for a client to prove itself */
#define SERVE_GUESTS 64

/* Wait until all nodes are there: 0, or the exit status after an error message. */
int serve_all(struct nodes *nodes, double deadline, double seconds);

/* Fill in the descriptors to poll; returns their number, SERVE_GUESTS + 1 at most. */
int serve_fds(const struct nodes *nodes, struct pollfd *fds);

/* Greet clients and hear what they say.  Where no node may come any more, they are turned
 * away. */
void serve_guests(struct nodes *nodes);

void serve_close(struct nodes *nodes);

#endif
