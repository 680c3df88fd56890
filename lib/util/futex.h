/* SPDX-License-Identifier: BSD-3-Clause */
/* futex.h - sleep on a word of memory until another thread wakes the sleepers.
 *
 * A futex orders no other memory accesses: callers publish their data by atomics, and
 * the waking thread must not overlook a sleeper (see the callers).
 */
#ifndef COLL_LIB_UTIL_FUTEX_H
#define COLL_LIB_UTIL_FUTEX_H

#include <stdatomic.h>

/* Who shares the word. */
enum coll__futex { FUTEX_OWN, FUTEX_SHARED };

/* Sleep, if the word still has that value, until a thread wakes the word's sleepers or
 * `timeout` seconds (negative: no limit) have passed.  Wake-ups without a reason
 * happen. */
void coll__futex_wait(enum coll__futex who, atomic_int *word, int value,
                      double timeout);

/* One of several words, and the value that lets a thread sleep. */
struct coll__futex_word {
    enum coll__futex who;
    atomic_int *word;
    int value;
};

/* The same for n words at once (FUTEX_WORDS at most), with a timeout.  Returns 0; or -1
 * without having slept: the kernel (before 5.16) can wait for one word only. */
#define FUTEX_WORDS 16
int coll__futex_wait_any(const struct coll__futex_word *words, int n,
                         double timeout);

/* Wake all threads that sleep on the word.  Returns how many. */
int coll__futex_wake(enum coll__futex who, atomic_int *word);

#endif
