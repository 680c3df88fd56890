/* SPDX-License-Identifier: BSD-3-Clause */
/* stop.c - a flag that signals set, and the largest of all ranks'. */
#include "trainer/stop.h"
#include "trainer/ddp.h"

#include <signal.h>
#include <time.h>

#define INTERVAL 0.1 /* s, until a signal is heard of */

/* In the order of what goes before what: to save is more. */
static const int signals[] = {SIGINT, SIGTERM, SIGUSR1};

#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* The index of the greatest that came, plus 1; written by the handler. */
static volatile sig_atomic_t asked;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void on_signal(int signal)
{
    for (size_t i = 0; i < N_SIGNALS; i++)
        if (signals[i] == signal && asked < (int)i + 1)
            asked = (int)i + 1;
}

void stop_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = SA_RESTART | (int)SA_RESETHAND};

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < N_SIGNALS; i++)
        sigaction(signals[i], &action, NULL);
}

void stop_release(void)
{
    for (size_t i = 0; i < N_SIGNALS; i++)
        signal(signals[i], SIG_DFL);
}

const char *stop_name(int signal)
{
    return signal == SIGUSR1   ? "SIGUSR1"
           : signal == SIGTERM ? "SIGTERM"
                               : "SIGINT";
}

size_t stop_every(size_t was, double seconds)
{
    double steps = INTERVAL / seconds;

    if (steps > 2 * (double)was)
        return 2 * was;
    return steps > 1 ? (size_t)steps : 1;
}

static int signal_of(double most)
{
    return most > 0 ? signals[(int)most - 1] : 0;
}

int stop_asked(struct ddp *d, struct stop_pace *pace, int *signal)
{
    double start = now(), most[2] = {asked, INTERVAL};

    *signal = signal_of(d->size == 1 ? asked : 0);
    if (d->size == 1 || (pace->left > 0 && --pace->left > 0))
        return 0;
    if (pace->every)
        most[1] = (start - pace->since) / (double)pace->every;
    if (ddp_max(d, most, 2))
        return -1;
    pace->since = now();
    pace->every = pace->left =
        stop_every(pace->every ? pace->every : 1, most[1]);
    *signal = signal_of(most[0]);
    return 0;
}
