/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_bell.c - an idle rank sleeps, and is woken by a store to its fifos.
 *
 *   who publishes                     who goes to sleep
 *   1  full (or tail) = k + 1         1  word = ASLEEP
 *   2  light fence                    2  fence of all
 *   3  word == ASLEEP? wake it        3  looks at full (or tail), once more
 *                                     4  sleeps while word == ASLEEP
 *
 * Each side stores, then loads what the other side stores.  The sleeper's fence runs on
 * all processes, so it stands in for a full fence between 1 and 3 on the left: stores
 * before it are seen at 3 on the right, and loads after it see the word.  So one side
 * always notices the other, no wake-up is lost, and publishing costs a load that stays in
 * the cache.
 *
 * The word stays ASLEEP until a rank rings, even if its own rank has woken long before
 * for another reason.  So that rank may sleep again without another fence, and the next
 * publisher makes one system call too many.  A rank whose fence does not reach all others
 * (lib/util/fence.h), or that must count its polls, says that it has to poll by itself.
 */
#include "transports/shm.h"
#include "lib/util/futex.h"

static int has_shared_cell(const struct shm *shm)
{
    for (size_t i = 0; i < shm->cells.n; i++)
        if (shm->cells.state[i].n_lines > 1)
            return 1;
    return 0;
}

/* Does a message wait, or may it soon wait, for a cell that may never become free?
 * After some polls the message is sent without a cell (shm_out.c).  No bell rings for
 * that, so this rank must go on polling. */
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

/* If several ranks publish at once, one makes the system call. */
void shm__wake(struct shm *shm, struct shm_bell *bell)
{
    if (atomic_exchange_explicit(&bell->word, SHM_AWAKE,
                                 memory_order_relaxed) != SHM_ASLEEP)
        return;
    shm->base.n_woken += coll__futex_wake(FUTEX_SHARED, &bell->word) > 0;
}
