/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.h - what to do while nothing moves.
 *
 * Three stages: spin on the own core, give the core to whoever else wants it,
 * sleep until something comes.  COLL_WAIT and the crowd (more ranks on this machine
 * than cores) decide how long each stage lasts; something that moves leads back to
 * the first.
 */
#ifndef COLL_LIB_EXEC_WAIT_H
#define COLL_LIB_EXEC_WAIT_H

#include "lib/exec/sleep.h"

struct coll__routes;

struct coll__wait {
    unsigned n_spins;    /* polls before the first yield */
    double yield_s;      /* time of yielding before the first sleep */
    double brief_s;      /* the same where waits outlast that */
    double patience;     /* of the two the one of this wait */
    unsigned n_idle;     /* polls since something moved */
    unsigned n_before;   /* the same of the wait before this one */
    unsigned n_late;     /* waits in a row that one of the first yields ended */
    unsigned n_shy;      /* waits that are still to begin by yielding */
    double idle_since;   /* clock, set at the first yield */
    double sleep_s;      /* the next sleep, at most */
    double lasted;       /* from the first yield on, as far as is known */
    int is_armed;        /* sleep next, if nothing moves before */
    int has_slept;       /* since the last wait that began by spinning */
    unsigned n_woken;    /* of the others, by this rank: transport.h */
    const struct coll__routes *routes; /* whose bells wake it, or NULL: none */
    struct coll__sleep sleep;
};

/* Prepare by COLL_WAIT; is_crowded: ranks outnumber the cores they share; routes
 * (NULL: what is waited for comes in silence) must outlive it. */
void coll__wait_init(struct coll__wait *wait, int is_crowded,
                     const struct coll__routes *routes);

/* Something moved. */
static inline void coll__wait_moved(struct coll__wait *wait)
{
    wait->n_before = wait->n_idle;
    wait->n_idle = 0;
    wait->is_armed = 0;
}

/* Nothing moved: spin, yield or sleep; is_alone: nothing else than the routes is
 * to be looked at meanwhile.  Returns 1 when it took long enough (a yield or a
 * sleep) that looking at the clock costs nothing, else 0. */
int coll__wait_idle(struct coll__wait *wait, int is_alone);

#endif
