/* SPDX-License-Identifier: BSD-3-Clause */
/* prices.h - what links cost: measured, and made one on all ranks. */
#ifndef COLL_LIB_COMM_PRICES_H
#define COLL_LIB_COMM_PRICES_H

#include "lib/comm/comm.h"

/* ---- prices.c ------------------------------------------------------------ */

/* Make `worst` as dear as the link; what it has none of yet has alpha 0. */
void coll__link_dearer(struct coll__link *worst, const struct coll__link *link);

/* What a rank tells the others of its links. */
struct coll__offer {
    double near[4], far[4]; /* alpha, beta, gap, once; ..., gap, share */
    float numa, package;    /* struct coll__inside */
    uint32_t via;           /* a digest of the device, 0 none */
    int32_t is_known;       /* its speed is */
};
void coll__comm_offer(const struct coll_comm *comm, struct coll__offer *offer);

/* Take the dearest of all: into links and inside.
 *
 * Result:    the first rank whose way to other hosts is of unknown speed, -1
 *            when there is none; the same on every rank.  COLL_ERR_NOMEM,
 *            logged.
 */
int coll__comm_take_offers(struct coll_comm *comm,
                           const struct coll__offer *offers);

/* Make all ranks' prices of links one, from offers[size], alike on all.  Where a
 * way between hosts is of unknown speed, and the tuning file says nothing, it is
 * measured once, or inherited from `parent` (which may be NULL).  Collective;
 * logged. */
int coll__comm_prices_agree(struct coll_comm *comm,
                            const struct coll__offer *offers,
                            const struct coll_comm *parent);

/* ---- measure.c ----------------------------------------------------------- */

/* Time messages from rank a to rank b and back, in a row, and both ways at once: both
 * call it, and a gets the result.
 *
 * Errors:    COLL_ERR_TIMEOUT, COLL_ERR_NOMEM, the transport's, logged.
 * Cost:      a few ms; 1 MiB at most at a time, each way.
 */
int coll__comm_measure(struct coll_comm *comm, int a, int b,
                       struct coll__measured *measured);

#endif
