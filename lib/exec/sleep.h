/* SPDX-License-Identifier: BSD-3-Clause */
/* sleep.h - how a thread sleeps until there is something to do.
 *
 * The thread arms the bells that are to wake it, polls once more, and sleeps if nothing
 * has come:
 *
 *     coll__sleep_arm(&sleep, tps, n);
 *     poll; return if something came
 *     coll__sleep(&sleep, seconds);
 *
 * Other ranks wake it by the bells of the transports (transports/transport.h),
 * other threads of its own process by coll__sleep_news().
 */
#ifndef COLL_LIB_EXEC_SLEEP_H
#define COLL_LIB_EXEC_SLEEP_H

#include "transports/transport.h"

#define COLL__SLEEP_BELLS 8
#define COLL__NAP 1e-3 /* s, between two polls of what rings no bell */

struct coll__sleep {
    struct coll__bell bells[COLL__SLEEP_BELLS];
    int n_bells;
    int is_sure; /* every event rings a bell */
    int news;    /* that this thread knows */
};

/* Arm the bells of n transports.
 *
 * Threads:   the thread that may call these transports.
 * Cost:      transport.h's arm() of each; no allocation.
 */
void coll__sleep_arm(struct coll__sleep *sleep, struct coll__tp *const *tps,
                     int n);

/* Sleep until a bell rings, there is news, or `seconds` have passed; wake-ups without a
 * reason happen.  Return at once if a bell has rung since the bells were armed.  If the
 * kernel cannot wait for all of them at once, sleep COLL__NAP at most, and see news as
 * late as `seconds`. */
void coll__sleep(const struct coll__sleep *sleep, double seconds);

/* Wake all sleeping threads of this process; they see what this thread stored before.
 * Any thread.  Cost: no system call while no thread sleeps. */
void coll__sleep_news(void);

#endif
