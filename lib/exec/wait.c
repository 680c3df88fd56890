/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.c - spin, then yield, then sleep.
 *
 * A yield takes one to five microseconds and gives the core to the rank that is waited
 * for.  So ranks that share cores do not spin at all, and read the clock at every
 * eighth yield.  A wake-up across cores costs ten times as much, so sleep comes late.
 * Events with a bell end a sleep.  Deadlines have no bell, so each sleep is bounded; it
 * is shorter still while messages may come without a bell.
 *
 * Ranks of real-time priority that share cores sleep after 50 us, since no rank of a
 * lower priority can run while they yield.
 *
 * A wait that outlasts the yields is mostly followed by others that do.  A wake-up costs
 * little beside such a wait, and its yields are wasted.  So the next waits yield only
 * briefly, until one of them is short enough for yields to pay.
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
#define LATE 2    /* waits in a row that spun in vain, until a yield ended them */
#define SHY 64u   /* waits that do not spin after that, before one tries again */
#define PEER_S                                                                 \
    2e-3 /* s from a yield to the next wait; a program that computes
                     * takes longer */
#define BRIEF 50e-6 /* s of yielding while waits outlast the longer yields */
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

/* Is each poll a system call?  Then a yield costs no more than a poll, and may give the
 * core to the peer, if its "host" is on this machine too.  Two such hosts of two ranks on
 * two cores took 150 us for 8 bytes with 32 polls before the first yield, 105 with 8, 85
 * with none.  Two hosts of one rank each showed no difference. */
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
        log_warn("exec",
                 "COLL_WAIT=%s is replaced by block: this rank has a real-time "
                 "priority and shares its cores with other ranks, which could "
                 "not run while it waits; unset COLL_WAIT, or start no more "
                 "ranks than cores",
                 mode);
}

/* Return COLL_WAIT, or "block" for ranks that would keep their peers from running. */
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

/* The first call arms the bells and returns 0, so that the caller polls once more; the
 * next one sleeps and returns 1. */
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
    most = routes && is_alone && wait->sleep.is_sure && !wait->is_brief
               ? SLEEP_LAST
               : COLL__NAP;
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

/* Has this rank slept, or woken a peer?  Then the kernel may have put both ranks on one
 * core. */
static int has_slept(struct coll__wait *wait)
{
    unsigned n_woken = count_woken(wait);
    int is_late = wait->has_slept || n_woken != wait->n_woken;

    wait->has_slept = 0;
    wait->n_woken = n_woken;
    return is_late;
}

/* The last wait spun in vain.  Did one of its first yields end it, and did this rank wait
 * again so soon that the peer, not another program, must have got the core? */
static int was_peers_core(const struct coll__wait *wait)
{
    return wait->n_before <= wait->n_spins + YIELDS &&
           coll__now() - wait->idle_since < PEER_S;
}

/* If the yields of several waits in a row go to the peer (was_peers_core()), the kernel
 * has put both ranks on one core, since other programs use the other cores.  That may
 * pass, so spin again after a while. */
static int is_kept_waiting(struct coll__wait *wait)
{
    if (wait->n_shy)
        return --wait->n_shy > 0;
    if (wait->n_before <= wait->n_spins) { /* spinning was enough */
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

/* A wait begins: would spinning keep the peer from the core? */
static int is_shy(struct coll__wait *wait)
{
    int is_late = has_slept(wait);

    return is_kept_waiting(wait) || is_late;
}

/* The first yield of a wait: choose how long to yield, by how long the last wait was. */
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
    wait->n_idle = n; /* the next call comes here again */
    return rest(wait, is_alone);
}
