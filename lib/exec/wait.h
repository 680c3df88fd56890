/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.h - what to do while nothing moves.
 *
 * Three stages: spin on the own core, give the core to whoever else wants it,
 * sleep in naps.  COLL_WAIT and the crowd (more ranks on this host than cores)
 * decide how long each stage lasts; something that moves leads back to the
 * first.
 */
#ifndef COLL_LIB_EXEC_WAIT_H
#define COLL_LIB_EXEC_WAIT_H

struct coll__wait {
    unsigned n_spins;    /* polls before the first yield */
    double yield_s;      /* time of yielding before the first nap */
    unsigned n_idle;     /* polls since something moved */
    double idle_since;   /* clock, set at the first yield */
    double nap_s;        /* the next nap */
};

/* Prepare by COLL_WAIT; is_crowded: ranks outnumber the cores they share. */
void coll__wait_init(struct coll__wait *wait, int is_crowded);

/* Something moved. */
static inline void coll__wait_moved(struct coll__wait *wait)
{
    wait->n_idle = 0;
}

/* Nothing moved: spin, yield or nap.  Returns 1 when it took long enough (a
 * yield or a nap) that looking at the clock costs nothing, else 0. */
int coll__wait_idle(struct coll__wait *wait);

#endif
