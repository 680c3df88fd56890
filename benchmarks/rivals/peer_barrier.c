/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_barrier.c - the barrier of the harness, the same for all libraries.
 *
 * Each rank counts its arrivals in a cache line of its own and waits until no
 * other rank's count is behind: one exchange of lines, no queue.  The release
 * of a count and its acquire by the others order everything before the barrier
 * before everything after it.
 */
#include "benchmarks/rivals/peer.h"

#include <sched.h>

/* How often a rank looks before it yields: for some microseconds if each rank
 * has a core; hardly at all if the rank that it waits for may need this core.
 */
enum { LOOKS = 5000, LOOKS_CROWDED = 10 };

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

void peer_barrier(struct peer_shared *shared, int rank, int ranks,
                  int is_crowded)
{
    int most = is_crowded ? LOOKS_CROWDED : LOOKS, looks = 0;
    uint32_t mine = shared->arrived[rank].value + 1;

    __atomic_store_n(&shared->arrived[rank].value, mine, __ATOMIC_RELEASE);
    for (int r = 0; r < ranks; r++)
        while ((int32_t)(__atomic_load_n(&shared->arrived[r].value,
                                         __ATOMIC_ACQUIRE) -
                         mine) < 0) {
            if (++looks < most) {
                relax();
            } else {
                looks = 0;
                sched_yield();
            }
        }
}
