/* SPDX-License-Identifier: BSD-3-Clause */
/* prices.h - what links cost: measured, and agreed on by all ranks. */
#ifndef COLL_LIB_COMM_PRICES_H
#define COLL_LIB_COMM_PRICES_H

#include <stdint.h>

struct coll__link;
struct coll__measured;
struct coll_comm;

/* ---- prices.c ------------------------------------------------------------ */

/* Make `worst` at least as expensive as the link.  If worst->alpha is 0, `worst` has no
 * price yet. */
void coll__link_dearer(struct coll__link *worst, const struct coll__link *link);

/* What a rank tells the others of its links. */
struct coll__offer {
    double near[4], far[4]; /* alpha, beta, gap, once; ..., gap, share */
    float numa, package;    /* struct coll__inside */
    uint32_t via;           /* a digest of the device, 0 none */
    int32_t is_known;       /* its speed is */
};
void coll__comm_offer(const struct coll_comm *comm, struct coll__offer *offer);

/* Take the most expensive of all offers, into comm->links.
 *
 * Result:    the first rank whose link to other hosts has an unknown speed, or -1;
 *            the same on every rank.  COLL_ERR_NOMEM, logged.
 */
int coll__comm_take_offers(struct coll_comm *comm,
                           const struct coll__offer *offers);

/* Agree on the prices of links, from offers[size], which are the same on all ranks.  If
 * the speed between hosts is unknown and the tuning file does not say it, it is
 * inherited from `parent` (which may be NULL), or measured.  Collective; a status,
 * logged. */
int coll__comm_prices_agree(struct coll_comm *comm,
                            const struct coll__offer *offers,
                            const struct coll_comm *parent);

/* ---- measure.c ----------------------------------------------------------- */

/* Time messages between ranks a and b, of one host or two: there and back, several in a
 * row, and both ways at once.  Both ranks call it, and rank a gets the result.
 *
 * Errors:    COLL_ERR_TIMEOUT, COLL_ERR_NOMEM, the transport's, logged.
 * Cost:      a few ms; 1 MiB at most at a time, each way.
 */
int coll__comm_measure(struct coll_comm *comm, int a, int b,
                       struct coll__measured *measured);

#endif
