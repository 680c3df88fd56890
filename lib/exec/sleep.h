/* SPDX-License-Identifier: BSD-3-Clause */
/* sleep.h - how a thread sleeps until there is something to do.
 *
 * It says what it is going to sleep on, looks once more whether there is
 * anything to do, and sleeps if there is not:
 *
 *     coll__sleep_arm(&sleep, tps, n);
 *     poll; something came: that was it
 *     coll__sleep(&sleep, seconds);
 *
 * Other ranks wake it by the bells of the transports (transports/transport.h),
 * other threads of its own process by coll__sleep_news().
 */
#ifndef COLL_LIB_EXEC_SLEEP_H
#define COLL_LIB_EXEC_SLEEP_H

#include "transports/transport.h"

#define COLL__SLEEP_BELLS 8
#define COLL__NAP 1e-3 /* s, between two looks at what may come in silence */

struct coll__sleep {
    struct coll__bell bells[COLL__SLEEP_BELLS];
    int n_bells;
    int is_sure; /* whatever comes rings; else it may come in silence */
    int news;    /* that this thread knows */
};

/* Arm the bells of n transports.
 *
 * Threads:   who may call these transports.
 * Cost:      transport.h's arm() of each; no allocation.
 */
void coll__sleep_arm(struct coll__sleep *sleep, struct coll__tp *const *tps,
                     int n);

/* Sleep until one of them rings, or there is news, or so many seconds have
 * passed; also for no reason.  Not at all if one rang since they were
 * armed.  Where the kernel cannot wait for all of them at once it is for a nap at
 * most, and news may come as late as `seconds`. */
void coll__sleep(const struct coll__sleep *sleep, double seconds);

/* Wake all threads of this process that sleep: what this thread has stored
 * before concerns them.  Any thread.  Cost: no system call while nobody sleeps. */
void coll__sleep_news(void);

#endif
