/* SPDX-License-Identifier: BSD-3-Clause */
/* tsc_khz.c - print how many kHz this machine's time stamp counter has; 0: it has
 * none.  An emulated guest sees that counter, and cannot measure it where others
 * use the processor: its clock then runs several times too fast.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define SECONDS 0.2

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static uint64_t ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

int main(void)
{
    double began = now(), took;
    uint64_t n = ticks();

    while (took = now() - began, took < SECONDS)
        ;
    n = ticks() - n;
    printf("%.0f\n", (double)n / took / 1e3);
    return 0;
}
