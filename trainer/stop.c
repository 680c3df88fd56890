/* SPDX-License-Identifier: BSD-3-Clause */
/* stop.c - the signals that a thread waits for, and the most urgent one of all
 * ranks.
 *
 * Who owns what: that thread writes `asked`, the training thread the other two.
 * No other memory depends on them, so that relaxed order suffices.
 */
#include "trainer/stop.h"
#include "trainer/clock.h"
#include "trainer/ddp.h"
#include "trainer/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#define INTERVAL 0.1 /* seconds until all ranks know of a signal */

/* In increasing order of precedence: SIGUSR1 comes last, since it also saves. */
static const int signals[] = {SIGINT, SIGTERM, SIGUSR1};

#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

static atomic_int asked; /* 1 + the index of the most urgent signal so far */
static atomic_int is_caught, was_caught;

/* Return 1 if a further signal needs no action: a run that is ending after SIGUSR1
 * saves and ends anyway. */
static int is_served(int signal)
{
    return signal == SIGUSR1 &&
           atomic_load_explicit(&was_caught, memory_order_relaxed);
}

/* Note the first signal of each kind.  Returns 1 if this was the first, or if the
 * signal is ignored. */
static int note(int signal)
{
    static int has_come[N_SIGNALS];

    for (int i = 0; i < (int)N_SIGNALS; i++) {
        if (signals[i] != signal)
            continue;
        if (has_come[i] ||
            !atomic_load_explicit(&is_caught, memory_order_relaxed))
            return is_served(signal);
        has_come[i] = 1;
        if (atomic_load_explicit(&asked, memory_order_relaxed) < i + 1)
            atomic_store_explicit(&asked, i + 1, memory_order_relaxed);
    }
    return 1;
}

/* Do what the system does with the signal: end the process, or ignore it. */
static void leave_to_system(int signal)
{
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, signal);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(signal);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
}

static sigset_t set_of_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < N_SIGNALS; i++)
        sigaddset(&set, signals[i]);
    return set;
}

static void *wait_for_signals(void *arg)
{
    sigset_t set = set_of_signals();
    int signal;

    (void)arg;
    for (;;)
        if (!sigwait(&set, &signal) && !note(signal))
            leave_to_system(signal);
    return NULL;
}

int stop_init(void)
{
    sigset_t set = set_of_signals();
    pthread_t thread;
    int rc;

    pthread_sigmask(SIG_BLOCK, &set, NULL);
    rc = pthread_create(&thread, NULL, wait_for_signals, NULL);
    if (rc)
        return train_fail("cannot start a thread that waits for signals: %s; "
                          "see ulimit -u",
                          strerror(rc));
    pthread_setname_np(thread, "coll-signals");
    pthread_detach(thread);
    return 0;
}

void stop_catch(void)
{
    atomic_store_explicit(&is_caught, 1, memory_order_relaxed);
    atomic_store_explicit(&was_caught, 1, memory_order_relaxed);
}

void stop_release(void)
{
    atomic_store_explicit(&is_caught, 0, memory_order_relaxed);
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
    int own = atomic_load_explicit(&asked, memory_order_relaxed);
    double start = now(), most[3] = {own, INTERVAL};

    *signal = signal_of(d->size == 1 ? own : 0);
    pace->n_new = 0;
    if ((d->size == 1 && !d->is_elastic) ||
        (pace->left > 0 && --pace->left > 0))
        return 0;
    if (pace->every)
        most[1] = (start - pace->since) / (double)pace->every;
    most[2] = ddp_waiting(d);
    if (ddp_max(d, most, 3))
        return -1;
    pace->since = now();
    pace->every = pace->left =
        stop_every(pace->every ? pace->every : 1, most[1]);
    *signal = signal_of(most[0]);
    pace->n_new = (int)most[2];
    return 0;
}
