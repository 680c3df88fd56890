/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.c - spin, then yield, then sleep.
 *
 * A yield takes one to five microseconds and gives the core to the rank that it
 * waits for, so ranks that share cores do not spin at all, and look at the clock
 * at every eighth yield; a wake-up across cores costs ten times that, so sleep
 * comes late.  Whatever comes ends it; but deadlines and what else is looked at
 * by the clock have no bell, so it is bounded, and what may come in silence
 * bounds it more.
 *
 * Ranks of real-time priority that share cores sleep after 50 us, since no rank of a
 * lower priority can run while they yield.
 *
 * A wait that outlasts the yields is mostly followed by others that do, and then a
 * wake-up is little beside the wait, and the yields are for nothing: they end soon, until
 * a wait comes for which they would have been worth it.
 */
#include "lib/exec/wait.h"
#include "lib/exec/exec.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"
#include "lib/util/yield.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define SPINS 1000u
#define YIELDS 8u /* between two looks at the clock */
#define LATE 2    /* waits that spun in vain, and then a yield ended them */
#define SHY 64u   /* waits that do not spin then, before one tries again */
#define PEER_S                                                                 \
    2e-3 /* from a yield to the next wait; a program that computes takes
                     * longer */
#define BRIEF 50e-6 /* s of yielding where waits are longer than all of it */
#define SLEEP_FIRST 50e-6
#define SLEEP_LAST 20e-3

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Does the kernel have a part in each look?  Then a yield costs no more than the look,
 * and may give the core to the rank that is waited for: on a host of its own, but on
 * this machine.  Two hosts of two ranks on two cores took 150 us for 8 bytes with 32
 * looks before the first yield, 105 with 8, 85 with none; two of one rank the same. */
static int asks_kernel(const struct coll__routes *routes)
{
    for (int t = 0; routes && t < routes->n_all; t++)
        if (routes->all[t]->asks_kernel)
            return 1;
    return 0;
}

static void warn_of_real_time(const char *mode)
{
    static atomic_flag has_warned = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&has_warned))
        log_warn(
            "exec",
            "COLL_WAIT=%s is taken for block: this rank has a real-time "
            "priority and shares its cores with other ranks, which could not "
            "run while it waits; unset COLL_WAIT, or start no more ranks than "
            "cores",
            mode);
}

/* COLL_WAIT, but for ranks that would keep their peers from running. */
static const char *mode_for(int is_crowded)
{
    const char *mode = coll__param_text(PARAM_WAIT);

    if (!is_crowded || !coll__is_real_time())
        return mode;
    if (!strcmp(mode, "spin") || !strcmp(mode, "yield"))
        warn_of_real_time(mode);
    return "block";
}

void coll__wait_init(struct coll__wait *wait, int is_crowded,
                     const struct coll__routes *routes)
{
    const char *mode = mode_for(is_crowded);

    *wait = (struct coll__wait){
        .n_spins = is_crowded || asks_kernel(routes) ? 0 : SPINS,
        .yield_s = is_crowded ? 2e-3 : 20e-3,
        .brief_s = is_crowded ? 2e-3 : BRIEF};
    if (!strcmp(mode, "spin"))
        wait->n_spins = ~0u;
    else if (!strcmp(mode, "yield"))
        *wait =
            (struct coll__wait){.n_spins = 16, .yield_s = 1e9, .brief_s = 1e9};
    else if (!strcmp(mode, "block"))
        *wait = (struct coll__wait){
            .n_spins = 16, .yield_s = BRIEF, .brief_s = BRIEF};
    wait->patience = wait->yield_s;
    wait->routes = routes;
}

/* Arm the bells and have the caller look once more; or, when that was in vain,
 * sleep: 1. */
static int rest(struct coll__wait *wait, int is_alone)
{
    const struct coll__routes *routes = wait->routes;
    double most;

    if (!wait->is_armed)
        coll__sleep_arm(&wait->sleep, routes ? routes->all : NULL,
                        routes ? routes->n_all : 0);
    wait->is_armed = !wait->is_armed && routes;
    if (wait->is_armed)
        return 0;
    most = routes && is_alone && wait->sleep.is_sure ? SLEEP_LAST : COLL__NAP;
    coll__sleep(&wait->sleep, min_double(wait->sleep_s, most));
    wait->sleep_s = min_double(wait->sleep_s * 1.5, SLEEP_LAST);
    wait->has_slept = 1;
    wait->lasted = coll__now() - wait->idle_since;
    return 1;
}

static unsigned count_woken(const struct coll__wait *wait)
{
    const struct coll__routes *routes = wait->routes;
    unsigned n = 0;

    for (int t = 0; routes && t < routes->n_all; t++)
        n += routes->all[t]->n_woken;
    return n;
}

/* Has one of two ranks that exchange messages slept, then the kernel may have put
 * both on one core. */
static int has_slept(struct coll__wait *wait)
{
    unsigned n_woken = count_woken(wait);
    int is_late = wait->has_slept || n_woken != wait->n_woken;

    wait->has_slept = 0;
    wait->n_woken = n_woken;
    return is_late;
}

/* The wait before this one spun in vain.  Did one of the first yields end it, and
 * was it not a stranger who got the core? */
static int was_peers_core(const struct coll__wait *wait)
{
    return wait->n_before <= wait->n_spins + YIELDS &&
           coll__now() - wait->idle_since < PEER_S;
}

/* If wait after wait does so, the kernel has put both on one core as well: programs
 * that nobody told of have the others.  That may pass. */
static int is_kept_waiting(struct coll__wait *wait)
{
    if (wait->n_shy)
        return --wait->n_shy > 0;
    if (wait->n_before <= wait->n_spins) { /* as it mostly is */
        wait->n_late = 0;
        return 0;
    }
    wait->n_late = was_peers_core(wait) ? wait->n_late + 1 : 0;
    if (wait->n_late < LATE)
        return 0;
    wait->n_late = LATE - 1; /* the next one that is late will do */
    wait->n_shy = SHY;
    return 1;
}

/* A wait begins: would spinning keep the one from the core that it waits for? */
static int is_shy(struct coll__wait *wait)
{
    int is_late = has_slept(wait);

    return is_kept_waiting(wait) || is_late;
}

/* The first yield of a wait: for how long, by the one before that was not brief. */
static void begin_to_yield(struct coll__wait *wait, double now)
{
    if (wait->lasted >= wait->yield_s)
        wait->patience = wait->brief_s;
    else if (wait->lasted >= wait->brief_s)
        wait->patience = wait->yield_s;
    wait->lasted = 0;
    wait->idle_since = now;
    wait->sleep_s = SLEEP_FIRST;
}

int coll__wait_idle(struct coll__wait *wait, int is_alone)
{
    unsigned n = wait->n_idle++;
    double now;

    if (n == 0 && wait->n_spins && is_shy(wait)) {
        n = wait->n_spins;
        wait->n_idle = n + 1;
    }
    if (n < wait->n_spins) {
        relax();
        return (n & 0xfff) == 0xfff;
    }
    if ((n - wait->n_spins) % YIELDS) {
        sched_yield();
        return 0;
    }
    now = coll__now();
    if (n == wait->n_spins)
        begin_to_yield(wait, now);
    wait->lasted = now - wait->idle_since;
    if (wait->lasted < wait->patience) {
        sched_yield();
        return 1;
    }
    wait->n_idle = n; /* and here again */
    return rest(wait, is_alone);
}
