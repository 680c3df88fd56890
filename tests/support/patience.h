/* SPDX-License-Identifier: BSD-3-Clause */
/* patience.h - how long to wait for what should come, and how often to try.
 *
 * Limits are written down as they would do on a quiet machine, ten times over.
 * Under a sanitizer, and where others compute as well, everything takes longer:
 * `make check` sets CK_TIMEOUT_MULTIPLIER, which Check applies to the limits of
 * its cases, and all other limits are multiplied here.
 */
#ifndef COLL_TESTS_PATIENCE_H
#define COLL_TESTS_PATIENCE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__SANITIZE_THREAD__) /* gcc */
#define IS_THREAD_SANITIZED 1
#elif defined(__has_feature) /* clang */
#define IS_THREAD_SANITIZED __has_feature(thread_sanitizer)
#else
#define IS_THREAD_SANITIZED 0
#endif

/* The limit of so many seconds, here. */
static inline double patient(double seconds)
{
    const char *text = getenv("CK_TIMEOUT_MULTIPLIER");
    double factor = text ? strtod(text, NULL) : 1;

    return seconds * (factor > 1 ? factor : 1);
}

/* The same as the deadline of the library's waits, where none should end. */
static inline void patient_timeout(double seconds)
{
    char text[32];

    snprintf(text, sizeof(text), "%.0f", patient(seconds));
    setenv("COLL_TIMEOUT", text, 1);
}

/* Of n rounds that differ by chance alone, those that a variant makes: TEST_QUICK=K
 * takes the K-th part, at least one. */
static inline int part_of(int n)
{
    const char *text = getenv("TEST_QUICK");
    int k = text ? atoi(text) : 1;

    return k > 1 && n > k ? n / k : k > 1 ? 1 : n;
}

/* Wait until a process, which is going to be stopped, has been. */
static inline void patient_stop(long pid)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    char path[32], line[128], *name_end = NULL;

    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    while (!name_end || strncmp(name_end, ") T", 3) != 0) {
        FILE *file = fopen(path, "r");

        if (!file)
            return; /* it has ended */
        name_end = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
        fclose(file);
        nanosleep(&pause, NULL);
    }
}

#endif
