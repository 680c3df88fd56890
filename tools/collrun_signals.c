/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_signals.c - which signals collrun takes, and what the ranks get. */
#include "tools/collrun_job.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>

static int is_ignored(int signal)
{
    struct sigaction now;

    return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}

void signals_take(struct signals *signals)
{
    static const int taken[] = {SIGUSR1, SIGUSR2, SIGINT, SIGTERM,
                                SIGHUP,  SIGQUIT, SIGTSTP};
    const struct sigaction usual = {.sa_handler = SIG_DFL},
                           ignored = {.sa_handler = SIG_IGN};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        if (!is_ignored(taken[i])) /* by nohup, or a shell's trap */
            sigaddset(&set, taken[i]);
    sigprocmask(SIG_BLOCK, &set, &signals->mask);
    sigaction(SIGCHLD, &usual,
              &signals->child); /* else none can be waited for */
    sigaction(SIGPIPE, &ignored, &signals->pipe);
    signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void signals_give_back(const struct signals *signals)
{
    const char *history = getenv("COLL_HISTORY");
    const char *metrics = getenv("COLL_METRICS");

    sigaction(SIGCHLD, &signals->child, NULL);
    sigaction(SIGPIPE, &signals->pipe, NULL);
    if ((history && *history) || (metrics && *metrics))
        signal(SIGUSR2, SIG_IGN);
    sigprocmask(SIG_SETMASK, &signals->mask, NULL);
}
