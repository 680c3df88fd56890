/* SPDX-License-Identifier: BSD-3-Clause */
/* stop.c - a flag that signals set, and the largest of all ranks'. */
#include "trainer/stop.h"
#include "trainer/ddp.h"

#include <signal.h>
#include <stddef.h>

/* In the order of what goes before what: to save is more. */
static const int signals[] = {SIGINT, SIGTERM, SIGUSR1};

#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* The index of the greatest that came, plus 1; written by the handler. */
static volatile sig_atomic_t asked;

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

int stop_asked(struct ddp *d, int *signal)
{
    double most = asked;

    if (d->size > 1 && ddp_max(d, &most, 1))
        return -1;
    *signal = most > 0 ? signals[(int)most - 1] : 0;
    return 0;
}
