/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.c - spin, then yield, then nap.
 *
 * A yield takes one to five microseconds and gives the core to the rank that it
 * waits for, so ranks that share cores do not spin at all, and look at the clock
 * at every eighth yield; a wake-up across cores costs ten times that, so naps come
 * late, and they are bounded (1 ms) so that a failure is noticed soon.
 */
#include "lib/exec/wait.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <sched.h>
#include <string.h>

#define YIELDS 8u /* between two looks at the clock */
#define NAP_FIRST 50e-6
#define NAP_LAST 1e-3

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void coll__wait_init(struct coll__wait *wait, int is_crowded)
{
    const char *mode = coll__param_text(PARAM_WAIT);

    *wait = (struct coll__wait){.n_spins = is_crowded ? 0 : 1000,
                                .yield_s = is_crowded ? 2e-3 : 20e-3};
    if (!strcmp(mode, "spin"))
        wait->n_spins = ~0u;
    else if (!strcmp(mode, "yield"))
        *wait = (struct coll__wait){.n_spins = 16, .yield_s = 1e9};
    else if (!strcmp(mode, "block"))
        *wait = (struct coll__wait){.n_spins = 16, .yield_s = 50e-6};
}

static void nap(struct coll__wait *wait)
{
    struct timespec t = {0, (long)(wait->nap_s * 1e9)};

    nanosleep(&t, NULL);
    wait->nap_s *= 1.5;
    if (wait->nap_s > NAP_LAST)
        wait->nap_s = NAP_LAST;
}

int coll__wait_idle(struct coll__wait *wait)
{
    unsigned n = wait->n_idle++;
    double now;

    if (n < wait->n_spins) {
        relax();
        return (n & 0xfff) == 0xfff;
    }
    if ((n - wait->n_spins) % YIELDS) {
        sched_yield();
        return 0;
    }
    now = coll__now();
    if (n == wait->n_spins) {
        wait->idle_since = now;
        wait->nap_s = NAP_FIRST;
    }
    if (now - wait->idle_since < wait->yield_s) {
        sched_yield();
    } else {
        nap(wait);
        wait->n_idle = n; /* and nap again */
    }
    return 1;
}
