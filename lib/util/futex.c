/* SPDX-License-Identifier: BSD-3-Clause */
/* futex.c - the system calls of futexes, for which glibc has no functions. */
#include "lib/util/futex.h"
#include "lib/util/util.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* From kernel 5.16; the headers may be older. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#define WAITV_32 2u

struct waitv {
    uint64_t value, address;
    uint32_t flags, reserved;
};

static int command(enum coll__futex who, int what)
{
    return who == FUTEX_OWN ? what | FUTEX_PRIVATE_FLAG : what;
}

void coll__futex_wait(enum coll__futex who, atomic_int *word, int value,
                      double timeout)
{
    struct timespec time;

    time.tv_sec = (time_t)timeout;
    time.tv_nsec = (long)((timeout - (double)time.tv_sec) * 1e9);
    syscall(SYS_futex, word, command(who, FUTEX_WAIT), value,
            timeout < 0 ? NULL : &time, NULL, 0);
}

int coll__futex_wake(enum coll__futex who, atomic_int *word)
{
    return (int)syscall(SYS_futex, word, command(who, FUTEX_WAKE), INT_MAX,
                        NULL, NULL, 0);
}

int coll__futex_wait_any(const struct coll__futex_word *words, int n,
                         double timeout)
{
    struct waitv all[FUTEX_WORDS];
    struct timespec until;
    double end = coll__now() + timeout;

    for (int w = 0; w < n; w++)
        all[w] =
            (struct waitv){(uint32_t)words[w].value, (uintptr_t)words[w].word,
                           WAITV_32 | (uint32_t)command(words[w].who, 0), 0};
    until.tv_sec = (time_t)end;
    until.tv_nsec = (long)((end - (double)until.tv_sec) * 1e9);
    if (syscall(SYS_futex_waitv, all, n, 0, &until, CLOCK_MONOTONIC) >= 0)
        return 0;
    return errno == ENOSYS || errno == EPERM ? -1 : 0;
}
