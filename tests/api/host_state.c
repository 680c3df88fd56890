/* SPDX-License-Identifier: BSD-3-Clause */
/* host_state.c - a rank that compares what belongs to its program before and after
 * each step of a communicator's life: signals, environment, standard streams, locale,
 * umask, floating-point state, working directory and limits.
 *
 * `host_state hup` creates a communicator and raises SIGHUP, of which it has to die.
 */
#include "include/coll/coll.h"

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_MAX (1 << 18)
#define RESTORER 0x04000000u /* the C library sets it in each call */

extern char **environ;
static int n_faults;

/* ---- what a program has of its own ------------------------------------------- */

static void tell_signals(FILE *to)
{
    sigset_t blocked;

    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int s = 1; s < NSIG; s++) {
        struct sigaction action;

        if (sigaction(s, NULL, &action))
            continue; /* the C library's own */
        fprintf(to, "signal %d: handler %p flags %x blocked %d\n", s,
                action.sa_flags & SA_SIGINFO ? (void *)action.sa_sigaction
                                             : (void *)action.sa_handler,
                (unsigned)action.sa_flags & ~RESTORER,
                sigismember(&blocked, s));
    }
}

static void tell_streams(FILE *to)
{
    FILE *const streams[] = {stdin, stdout, stderr};

    for (int i = 0; i < 3; i++)
        fprintf(to, "stream %d: flags %x close-on-exec %d line %d bytes %zu\n",
                i, (unsigned)fcntl(i, F_GETFL), fcntl(i, F_GETFD),
                __flbf(streams[i]) != 0, __fbufsize(streams[i]));
}

static void tell_numbers(FILE *to)
{
    fprintf(to, "rounding %d traps %x\n", fegetround(),
            (unsigned)fegetexcept());
#if defined(__x86_64__)
    fprintf(to, "mxcsr %x\n", __builtin_ia32_stmxcsr() & ~0x3fu); /* no flags */
#elif defined(__aarch64__)
    unsigned long fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fprintf(to, "fpcr %lx\n", fpcr);
#endif
}

static void tell_process(FILE *to)
{
    static const int limits[] = {RLIMIT_NOFILE, RLIMIT_CORE, RLIMIT_STACK,
                                 RLIMIT_MEMLOCK};
    char folder[4096];
    mode_t mask = umask(0);
    int death = 0;

    umask(mask);
    prctl(PR_GET_PDEATHSIG, &death);
    fprintf(to, "umask %o folder %s locale %s\n", (unsigned)mask,
            getcwd(folder, sizeof(folder)), setlocale(LC_ALL, NULL));
    fprintf(to,
            "thread's locale %p priority %d parent's death %d dumpable %d\n",
            (void *)uselocale(NULL), getpriority(PRIO_PROCESS, 0), death,
            prctl(PR_GET_DUMPABLE));
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct rlimit limit;

        getrlimit((__rlimit_resource_t)limits[i], &limit);
        fprintf(to, "limit %d: %llu of %llu\n", limits[i],
                (unsigned long long)limit.rlim_cur,
                (unsigned long long)limit.rlim_max);
    }
}

/* In words, one matter a line; the caller frees it. */
static char *state(void)
{
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    if (!to)
        exit(1);
    tell_signals(to);
    tell_streams(to);
    tell_numbers(to);
    tell_process(to);
    for (char **at = environ; *at; at++)
        fprintf(to, "environment %p: %s\n", (void *)*at, *at);
    fclose(to);
    return text;
}

/* ---- comparing ---------------------------------------------------------------- */

/* Print the lines of one text that the other has not. */
static void print_lacking(const char *text, const char *other, const char *when)
{
    char *copy = strdup(text), *rest = copy, *line;

    while ((line = strsep(&rest, "\n")))
        if (*line && !strstr(other, line))
            fprintf(stderr, "%s: %s\n", when, line);
    free(copy);
}

static void compare(const char *before, const char *when)
{
    char *now = state(), label[64];

    if (strcmp(before, now) != 0) {
        n_faults++;
        print_lacking(before, now, "before");
        snprintf(label, sizeof(label), "after %s", when);
        print_lacking(now, before, label);
    }
    free(now);
}

/* What exec() leaves is known: no handlers, and the default arithmetic. */
static void check_linking(void)
{
    for (int s = 1; s < NSIG; s++) {
        struct sigaction action;

        if (!sigaction(s, NULL, &action) && action.sa_handler != SIG_DFL &&
            action.sa_handler != SIG_IGN) {
            n_faults++;
            fprintf(stderr, "after linking: signal %d has a handler\n", s);
        }
    }
    if (fegetround() != FE_TONEAREST || fegetexcept()) {
        n_faults++;
        fprintf(stderr, "after linking: arithmetic is not the default\n");
    }
}

/* As a program may have them. */
static void make_own(void)
{
    signal(SIGUSR1, SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
    umask(027);
    setlocale(LC_ALL, "");
    fesetround(FE_UPWARD);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* FTZ, DAZ */
#endif
}

static int work(struct coll_comm *comm)
{
    static float in[N_MAX], out[N_MAX];
    int status = COLL_OK;

    for (size_t n = 1; n <= N_MAX && !status; n *= 64)
        status = coll_allreduce(in, out, n, COLL_F32, COLL_SUM, comm, NULL);
    return status;
}

static int check(int status, const char *call)
{
    if (status)
        fprintf(stderr, "%s: %s\n", call, coll_last_error());
    return status;
}

int main(int argc, char **argv)
{
    struct coll_comm *comm;
    char *before;

    check_linking();
    make_own();
    before = state();
    if (check(coll_comm_create_env(&comm, NULL), "coll_comm_create_env"))
        return 1;
    compare(before, "coll_comm_create_env");
    if (argc > 1 && !strcmp(argv[1], "hup"))
        raise(SIGHUP);
    if (check(work(comm), "coll_allreduce"))
        return 1;
    compare(before, "coll_allreduce");
    if (check(coll_comm_destroy(comm), "coll_comm_destroy"))
        return 1;
    compare(before, "coll_comm_destroy");
    free(before);
    return n_faults ? 3 : 0;
}
