/* SPDX-License-Identifier: BSD-3-Clause */
/* futex.h - sleep on a word of memory until another thread wakes the sleepers.
 *
 * A futex orders nothing but itself: what the word stands for is published by
 * atomics, and whoever wakes must not overlook a sleeper (see the callers).
 */
#ifndef COLL_LIB_UTIL_FUTEX_H
#define COLL_LIB_UTIL_FUTEX_H

#include <stdatomic.h>

/* Who shares the word. */
enum coll__futex { FUTEX_OWN, FUTEX_SHARED };

/* Sleep if the word still has that value: until somebody wakes, or `timeout`
 * seconds (negative: for ever) have passed, or for no reason. */
void coll__futex_wait(enum coll__futex who, atomic_int *word, int value,
                      double timeout);

/* One of several words, and the value that lets a thread sleep. */
struct coll__futex_word {
    enum coll__futex who;
    atomic_int *word;
    int value;
};

/* The same on n words at once (FUTEX_WORDS at most), with a timeout.  0; or -1 and
 * it did not sleep: the kernel (before 5.16) waits for one at a time. */
#define FUTEX_WORDS 16
int coll__futex_wait_any(const struct coll__futex_word *words, int n,
                         double timeout);

/* Wake all that sleep on the word; how many these were. */
int coll__futex_wake(enum coll__futex who, atomic_int *word);

#endif
