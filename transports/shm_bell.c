/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_bell.c - a rank sleeps, and is woken by what is stored for it.
 *
 *   who publishes                     who goes to sleep
 *   1  full (or tail) = k + 1         1  word = ASLEEP
 *   2  light fence                    2  fence of all
 *   3  word == ASLEEP? wake it        3  looks at full (or tail), once more
 *                                     4  sleeps while word == ASLEEP
 *
 * Each stores and then loads what the other one stores.  The fence of all stands
 * in for a full one between 1 and 3 on the left: what is stored before it there is
 * seen at 3 on the right, and what is loaded after it there sees the word.  So
 * one of the two notices the other, no wake-up is lost, and publishing costs a
 * load that stays in the cache.
 *
 * The word stays ASLEEP until somebody rings, also when its rank is long awake
 * for another reason: so it may sleep again without another fence, and whoever
 * publishes next makes one system call too many.  A rank whose fence does not
 * reach all others (lib/util/fence.h), or that must count its looks, says that it
 * has to look by itself.
 */
#include "transports/shm.h"
#include "lib/util/futex.h"

static int has_shared_cell(const struct shm *shm)
{
    for (size_t i = 0; i < shm->n_cells; i++)
        if (shm->cell_state[i].n_lines > 1)
            return 1;
    return 0;
}

/* Does a message wait for a cell that perhaps nobody gives back, or may come to
 * that?  After some looks it does without, which nobody announces (shm_out.c). */
static int is_kept_out(const struct shm *shm)
{
    for (int i = 0; i < shm->n_lanes; i++) {
        const struct shm_out *out = &shm->out[i];

        if (out->first && out->first->len > shm->slot &&
            (out->n_denied || has_shared_cell(shm)))
            return 1;
    }
    return 0;
}

int shm__arm(struct coll__tp *tp, struct coll__bell *bell)
{
    struct shm *shm = (struct shm *)tp;

    if (!shm->bell) /* no other rank is in reach */
        return 1;
    bell->word = &shm->bell->word;
    bell->value = SHM_ASLEEP;
    if (atomic_load_explicit(bell->word, memory_order_relaxed) != SHM_ASLEEP) {
        atomic_store_explicit(bell->word, SHM_ASLEEP, memory_order_relaxed);
        if (shm->rings_surely && coll__fence_all())
            shm->rings_surely = 0;
    }
    return shm->rings_surely && !is_kept_out(shm);
}

/* Of several that publish at once, one makes the call. */
void shm__wake(struct shm *shm, struct shm_bell *bell)
{
    if (atomic_exchange_explicit(&bell->word, SHM_AWAKE,
                                 memory_order_relaxed) != SHM_ASLEEP)
        return;
    shm->base.n_woken += coll__futex_wake(FUTEX_SHARED, &bell->word) > 0;
}
