/* SPDX-License-Identifier: BSD-3-Clause */
/* side_by_side.c - divide the tests of a program among processes.
 *
 * The processes are forked before main() begins, so that each of them is a whole run of
 * the program, with fewer tests. */
#include "tests/support/side_by_side.h"

#undef _tcase_add_test

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHARE "TEST_SHARE" /* which share a process has */

enum { SHARES = 4, SKIPPED = 77 };

struct sum {
    int checks, failures, errors;
};

static int n_shares = 1, my_share, n_seen;

void side_by_side_add(TCase *tcase, const TTest *test, int signal, int status,
                      int first, int end)
{
    for (int i = first; i < end; i++)
        if (n_seen++ % n_shares == my_share)
            _tcase_add_test(tcase, test, signal, status, i, i + 1);
}

/* Is there to be one process: for a debugger, for a choice of tests, for one log? */
static int is_one(void)
{
    static const char *const names[] = {
        "CK_RUN_CASE",          "CK_RUN_SUITE",          "CK_LOG_FILE_NAME",
        "CK_XML_LOG_FILE_NAME", "CK_TAP_LOG_FILE_NAME"};
    const char *fork_mode = getenv("CK_FORK");

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (getenv(names[i]))
            return 1;
    return fork_mode && !strcmp(fork_mode, "no");
}

/* Print what a process said, and add up its tests. */
static void tell(int fd, struct sum *sum)
{
    FILE *file = fdopen(fd, "r");
    char line[4096];
    int checks, failures, errors;

    if (!file)
        return;
    rewind(file);
    while (fgets(line, sizeof(line), file)) {
        fputs(line, stdout);
        if (sscanf(line, "%*d%%: Checks: %d, Failures: %d, Errors: %d", &checks,
                   &failures, &errors) == 3) {
            sum->checks += checks;
            sum->failures += failures;
            sum->errors += errors;
        }
    }
    fclose(file);
}

/* The program's status: 0, SKIPPED where all processes say so, or 1. */
static int end_of(const pid_t *pids, const int *fds)
{
    struct sum sum = {0, 0, 0};
    int n_well = 0, n_skipped = 0;

    for (int i = 0; i < SHARES; i++) {
        int status = 1;

        if (waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status)) {
            n_well += WEXITSTATUS(status) == 0;
            n_skipped += WEXITSTATUS(status) == SKIPPED;
        }
        tell(fds[i], &sum);
    }
    if (n_skipped == SHARES)
        return SKIPPED;
    printf("%d%%: Checks: %d, Failures: %d, Errors: %d\n",
           sum.checks
               ? 100 * (sum.checks - sum.failures - sum.errors) / sum.checks
               : 0,
           sum.checks, sum.failures, sum.errors);
    return n_well != SHARES;
}

/* Start the process of my_share; 0 in it, else its id. */
static pid_t start(int fd)
{
    pid_t parent = getpid(), pid = fork();
    char share[16];

    if (pid)
        return pid;
    snprintf(share, sizeof(share), "%d", my_share);
    setenv(SHARE, share, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    close(fd);
    return 0;
}

/* A program that is given arguments runs as they say.  One that starts itself again keeps
 * its share. */
__attribute__((constructor)) static void divide(int argc)
{
    const char *share = getenv(SHARE);
    pid_t pids[SHARES];
    int fds[SHARES], status;

    if (is_one() || argc > 1)
        return;
    n_shares = SHARES;
    my_share = share ? atoi(share) : 0;
    if (share)
        return;
    for (my_share = 0; my_share < SHARES; my_share++) {
        fds[my_share] = memfd_create("said", MFD_CLOEXEC);
        pids[my_share] = start(fds[my_share]);
        if (!pids[my_share])
            return;
    }
    status = end_of(pids, fds);
    fflush(stdout);
    _exit(status);
}
