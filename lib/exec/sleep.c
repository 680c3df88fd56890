/* SPDX-License-Identifier: BSD-3-Clause */
/* sleep.c - sleep on futexes, or on files.
 *
 * News is a counter.  A thread with news raises it and then checks for sleepers.  A
 * thread that goes to sleep first announces itself; then the kernel compares the counter
 * with its value when the bells were armed, before the last poll.  All of these
 * accesses are in one order (seq_cst).  So the last poll sees the news, or the news see
 * the sleeper, or the kernel finds another value and does not let the thread sleep.
 */
#include "lib/exec/sleep.h"
#include "lib/util/futex.h"
#include "lib/util/util.h"

#include <poll.h>
#include <time.h>

static atomic_int news;
static atomic_int n_sleepers;

void coll__sleep_news(void)
{
    atomic_fetch_add_explicit(&news, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&n_sleepers, memory_order_seq_cst))
        coll__futex_wake(FUTEX_OWN, &news);
}

void coll__sleep_arm(struct coll__sleep *sleep, struct coll__tp *const *tps,
                     int n)
{
    sleep->news = atomic_load_explicit(&news, memory_order_seq_cst);
    sleep->n_bells = 0;
    sleep->is_sure = n <= COLL__SLEEP_BELLS;
    for (int t = 0; t < n && t < COLL__SLEEP_BELLS; t++) {
        struct coll__bell *bell = &sleep->bells[sleep->n_bells];

        *bell = (struct coll__bell){.fd = -1};
        if (!tps[t]->ops->arm(tps[t], bell))
            sleep->is_sure = 0;
        sleep->n_bells += bell->word || bell->fd >= 0;
    }
}

/* Sleep on all words and on news at once, if the kernel can; else on the first word, or
 * on news if there is no word. */
static void wait_for_words(const struct coll__sleep *sleep, double seconds)
{
    struct coll__futex_word words[COLL__SLEEP_BELLS + 1];
    int n = sleep->n_bells;

    for (int b = 0; b < n; b++)
        words[b] = (struct coll__futex_word){FUTEX_SHARED, sleep->bells[b].word,
                                             sleep->bells[b].value};
    words[n] = (struct coll__futex_word){FUTEX_OWN, &news, sleep->news};
    if (n && !coll__futex_wait_any(words, n + 1, seconds))
        return;
    coll__futex_wait(words[0].who, words[0].word, words[0].value,
                     n > 1 ? min_double(seconds, COLL__NAP) : seconds);
}

static void wait_for_files(struct pollfd *files, int n, double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};

    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    ppoll(files, (nfds_t)n, &time, NULL);
}

/* Collect the bells that are files.  Returns their number. */
static int list_files(const struct coll__sleep *sleep,
                      struct pollfd files[COLL__SLEEP_BELLS])
{
    int n = 0;

    for (int b = 0; b < sleep->n_bells; b++)
        if (sleep->bells[b].fd >= 0)
            files[n++] = (struct pollfd){sleep->bells[b].fd, POLLIN, 0};
    return n;
}

void coll__sleep(const struct coll__sleep *sleep, double seconds)
{
    struct pollfd files[COLL__SLEEP_BELLS];
    int n_files = list_files(sleep, files);

    atomic_fetch_add_explicit(&n_sleepers, 1, memory_order_seq_cst);
    if (n_files)
        wait_for_files(files, n_files,
                       n_files < sleep->n_bells ? min_double(seconds, COLL__NAP)
                                                : seconds);
    else
        wait_for_words(sleep, seconds);
    atomic_fetch_sub_explicit(&n_sleepers, 1, memory_order_seq_cst);
}
