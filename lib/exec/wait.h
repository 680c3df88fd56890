/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.h - what to do while nothing moves.
 *
 * Three stages: spin, yield the core to other threads, sleep until something comes.
 * COLL_WAIT, and whether there are more ranks than cores on this machine, decide how long
 * each stage lasts.  Progress leads back to the first stage.
 */
#ifndef COLL_LIB_EXEC_WAIT_H
#define COLL_LIB_EXEC_WAIT_H

#include "lib/exec/sleep.h"

struct coll__routes;

struct coll__wait {
    unsigned n_spins;    /* polls before the first yield */
    double yield_s;      /* s of yielding before the first sleep */
    double brief_s;      /* the same while waits outlast yield_s */
    double patience;     /* yield_s or brief_s, for this wait */
    unsigned n_idle;     /* polls since something moved */
    unsigned n_before;   /* the same of the wait before this one */
    unsigned n_late;     /* how many waits in a row one of the first yields ended */
    unsigned n_shy;      /* waits that are still to begin by yielding */
    double idle_since;   /* clock, set at the first yield */
    double sleep_s;      /* the next sleep, at most */
    double lasted;       /* s from the first yield to the last look at the clock */
    int is_brief;        /* no sleep is longer than COLL__NAP */
    int is_armed;        /* sleep next, if nothing moves before */
    int has_slept;       /* since the last wait that began by spinning */
    unsigned n_woken;    /* wake-ups of peers by this rank: transport.h */
    const struct coll__routes *routes; /* whose bells wake it, or NULL: none */
    struct coll__sleep sleep;
};

/* Prepare by COLL_WAIT.  is_crowded: ranks outnumber the cores that they share.  routes
 * must outlive it; NULL: no bell rings for what is waited for. */
void coll__wait_init(struct coll__wait *wait, int is_crowded,
                     const struct coll__routes *routes);

/* Something moved. */
static inline void coll__wait_moved(struct coll__wait *wait)
{
    wait->n_before = wait->n_idle;
    wait->n_idle = 0;
    wait->is_armed = 0;
}

/* Nothing moved: spin, yield or sleep.  is_alone: only the routes have to be polled
 * meanwhile.  Returns 1 if this took so long (yields or a sleep) that reading the clock
 * adds little, else 0. */
int coll__wait_idle(struct coll__wait *wait, int is_alone);

#endif
