/* SPDX-License-Identifier: BSD-3-Clause */
/* routes.h - which transport joins this rank to each rank. */
#ifndef COLL_LIB_EXEC_ROUTES_H
#define COLL_LIB_EXEC_ROUTES_H

#include "transports/transport.h"

struct coll__stream_tp; /* transports/stream.h */

struct coll__routes {
    struct coll__tp **to; /* [size] */
    struct coll__tp **all;
    int n_all;
    int n_local; /* ranks of this host */
    struct coll__stream_tp
        *streams; /* between streams of the ranks' devices; or NULL */
    int looks; /* how many times more to poll for a message that is due, before the rank
                * does anything else */
    int is_shared; /* ranks share cores: use `looks` only for messages of ranks on other
                    * cores */
};

/* Let all transports make progress, without blocking: returns how much moved, or a
 * negative status. */
int coll__routes_poll(const struct coll__routes *routes);

#endif
