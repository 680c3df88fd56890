/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.c - call a function in a child process first, to see whether it survives.
 *
 * hwloc trusts that an XML file describes a possible machine and may crash if it does
 * not.  So a file from outside is loaded in a child process first.  The answer comes
 * through a pipe, so it is not lost if the program reaps all of its children.
 */
#include "lib/topo/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIAL_SECONDS 10

/* Die quietly: without the program's signal handlers, its stderr and core files. */
static void become_expendable(void)
{
    static const int signals[] = {SIGALRM, SIGSEGV, SIGBUS,
                                  SIGABRT, SIGFPE,  SIGILL};
    struct rlimit none = {0, 0};
    int null = open("/dev/null", O_WRONLY);
    sigset_t all;

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    setrlimit(RLIMIT_CORE, &none);
    if (null >= 0)
        dup2(null, STDERR_FILENO);
    alarm(TRIAL_SECONDS);
}

static void try_it(int (*work)(const char *arg), const char *arg, int fd)
{
    char answer;

    become_expendable();
    answer = work(arg) == 0;
    _exit(write(fd, &answer, 1) != 1);
}

int coll__survives(int (*work)(const char *arg), const char *arg)
{
    int pipes[2];
    char answer = 0;
    ssize_t n;
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC))
        return -1;
    pid = fork();
    if (!pid)
        try_it(work, arg, pipes[1]);
    close(pipes[1]);
    if (pid > 0) { /* also if signals interrupt the wait */
        while ((n = read(pipes[0], &answer, 1)) < 0 && errno == EINTR)
            ;
        if (n != 1)
            answer = 0;
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(pipes[0]);
    return pid < 0 ? -1 : answer;
}
