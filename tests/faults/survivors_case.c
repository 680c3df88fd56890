/* SPDX-License-Identifier: BSD-3-Clause */
/* survivors_case.c - draws a case, is its keeper, and judges. */
#include "tests/faults/many.h"
#include "tests/faults/survivors.h"
#include "tests/support/patience.h"
#include "tests/support/seclude.h"
#include "lib/util/util.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const survivors_transports[SURVIVORS_TRANSPORTS] = {
    "self,shm", "self,ucx", "self,tcp", "self,shm on GPUs"};

/* ---- drawing ------------------------------------------------------------- */

static void draw_death(struct survivors_case *c, struct death *d,
                       uint64_t *state)
{
    static const int signals[] = {SIGKILL, SIGSEGV, SIGABRT, SIGTERM, 0};
    int n_all = c->size + c->n_new;

    do
        d->victim = (int)oracle_random(state, (unsigned)n_all);
    while (survivors_death(c, d->victim) != d);
    d->at = c->kind == DEATH_GIVE_UP
                ? PLAY_OPERATION
                : (enum play)oracle_random(state, c->n_new ? 4 : 3);
    d->nth = d->at == PLAY_OPERATION ? (int)oracle_random(state, 8)
             : d->at == PLAY_GROW    ? 0
                                     : (int)oracle_random(state, 2);
    d->delay = many_scale(state, 10e-6, 10e-3);
    d->length = many_scale(state, 0.01, 0.5);
    d->n_calls = (int)many_scale(state, 1, 400);
    d->how = signals[oracle_random(state, ARRAY_LEN(signals))];
}

const struct death *survivors_death(const struct survivors_case *c, int rank)
{
    for (int i = 0; i < c->n_deaths; i++)
        if (c->deaths[i].victim == rank)
            return &c->deaths[i];
    return NULL;
}

void survivors_draw(struct survivors_case *c, unsigned seed, unsigned number,
                    double soon)
{
    uint64_t state = many_state(seed, number);
    int n;

    *c = (struct survivors_case){
        .seed = seed, .number = number, .soon = soon, .timeout = patient(10)};
    c->transports = (int)oracle_random(
        &state, survivors_have_gpus() ? SURVIVORS_TRANSPORTS : ON_GPUS);
    c->has_thread = (int)oracle_random(&state, 2);
    c->size = 2 + (int)oracle_random(&state, SURVIVORS_OLD - 1);
    c->kind = (enum death_kind)oracle_random(&state, N_DEATH_KINDS);
    if (c->kind != DEATH_GIVE_UP && !oracle_random(&state, 3))
        c->n_new =
            1 + (int)oracle_random(&state, SURVIVORS_ALL - SURVIVORS_OLD);
    n = 1 + (int)oracle_random(&state, 3);
    n = n == 3 ? c->size - 1 : min_int(n, c->size - 1);
    if (c->kind == DEATH_GIVE_UP)
        n = 1; /* an agreement waits for a second one until it is given up, too */
    for (int i = 0; i < n; i++) {
        c->deaths[i].victim = -1;
        c->n_deaths++;
        draw_death(c, &c->deaths[i], &state);
    }
}

/* ---- the keeper ---------------------------------------------------------- */

struct keeper {
    const struct survivors_case *c;
    struct survivors_board *board;
    struct survivors_verdict *v;
    pid_t pids[SURVIVORS_ALL];
    int n_all, n_alive, is_stopped[SURVIVORS_ALL];
};

__attribute__((format(printf, 3, 4))) static void
find(struct keeper *k, int bit, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (!*k->v->words)
        vsnprintf(k->v->words, sizeof(k->v->words), format, args);
    va_end(args);
    k->v->bits |= bit;
}

static void start(struct keeper *k)
{
    char timeout[32];
    const char *names = survivors_transports[k->c->transports];

    snprintf(timeout, sizeof(timeout), "%g", k->c->timeout);
    fflush(NULL);
    for (int r = 0; r < k->n_all; r++) {
        k->pids[r] = fork();
        if (k->pids[r] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setenv("COLL_TIMEOUT", timeout, 1);
            setenv("COLL_TRANSPORTS",
                   k->c->transports == ON_GPUS ? "self,shm" : names, 1);
            exit(survivors_play(k->c, r, k->board));
        }
        if (k->pids[r] < 0) {
            perror("check_survivors: fork");
            exit(2);
        }
        k->n_alive++;
    }
}

static void judge_end(struct keeper *k, int r, int status)
{
    struct survivor *s = &k->board->ranks[r];

    if (atomic_load(&s->is_ucx))
        find(k, IS_UCX, "an assertion of UCX ended rank %d", r);
    else if (atomic_load(&s->is_wrong))
        find(k, IS_WRONG, "rank %d: %s", r, s->words);
    else if (survivors_death(k->c, r) && atomic_load(&s->struck) > 0)
        return;
    else if (WIFSIGNALED(status) || WEXITSTATUS(status))
        find(k, IS_ABORT, "rank %d ended with wait status %#x in %s", r, status,
             s->words);
    else if (r < k->c->size && !atomic_load(&s->is_over))
        find(k, IS_WRONG, "rank %d left in %s", r, s->words);
}

static void note_end(struct keeper *k, pid_t pid, int status)
{
    for (int r = 0; r < k->n_all; r++) {
        if (k->pids[r] != pid)
            continue;
        k->pids[r] = 0;
        k->n_alive--;
        judge_end(k, r, status);
        atomic_fetch_or(&k->board->gone, 1u << r);
    }
}

/* Kill or stop a victim, or give it up, when the time has come. */
static void strike(struct keeper *k, const struct death *d)
{
    struct survivor *s = &k->board->ranks[d->victim];
    double due = atomic_load(&s->due), now = coll__now();
    int *is_stopped = &k->is_stopped[d->victim];
    pid_t pid = k->pids[d->victim];

    if (!pid || !(due > 0) || now < due || k->c->kind == DEATH_CRASH)
        return;
    if (k->c->kind != DEATH_KILL && !*is_stopped) {
        kill(pid, SIGSTOP);
        *is_stopped = 1;
        atomic_store(&s->due, now + d->length);
    } else if (k->c->kind != DEATH_GIVE_UP) {
        atomic_store(&s->struck, now);
        kill(pid, SIGKILL);
    } else if (!atomic_load(&s->struck)) {
        atomic_store(&s->struck, now);
        atomic_fetch_or(&k->board->gone, 1u << d->victim);
        atomic_fetch_or(&k->board->given_up, 1u << d->victim);
    }
}

/* Who has been given up is not waited for. */
static int is_anyone_left(const struct keeper *k)
{
    unsigned given_up = atomic_load(&k->board->given_up);

    for (int r = 0; r < k->n_all; r++)
        if (k->pids[r] && !(given_up >> r & 1))
            return 1;
    return 0;
}

static void keep(struct keeper *k)
{
    double end = coll__now() + patient(60);
    int status;
    pid_t pid;

    while (is_anyone_left(k) && coll__now() < end) {
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            note_end(k, pid, status);
        for (int i = 0; i < k->c->n_deaths; i++)
            strike(k, &k->c->deaths[i]);
        usleep(200);
    }
    for (int r = 0; r < k->n_all; r++) {
        if (!k->pids[r])
            continue;
        if (!(atomic_load(&k->board->given_up) >> r & 1))
            find(k, IS_HANG, "rank %d hangs in %s", r,
                 k->board->ranks[r].words);
        kill(k->pids[r], SIGKILL);
        waitpid(k->pids[r], &status, 0);
    }
}

/* ---- the verdict ----------------------------------------------------------- */

/* How long it took from the last death until all survivors had worked again. */
static double find_time(const struct keeper *k)
{
    double died = 0, good = 0;

    for (int r = 0; r < k->n_all; r++) {
        const struct survivor *s = &k->board->ranks[r];

        died = max_double(died, atomic_load(&s->struck));
        if (atomic_load(&s->is_over))
            good = max_double(good, atomic_load(&s->good));
    }
    return max_double(good - died, 0);
}

/* A newcomer that dies in a growth may not have come to its rendezvous yet: then nobody
 * knows it, and the others wait for it until the deadline. */
static int is_in_time(const struct keeper *k)
{
    for (int i = 0; i < k->c->n_deaths; i++) {
        int victim = k->c->deaths[i].victim;

        if (victim >= k->c->size &&
            !strncmp(k->board->ranks[victim].words, "grow", 4))
            return 0;
    }
    return 1;
}

static void look_for_strays(struct keeper *k)
{
    char file[300] = "";

    if (waitpid(-1, NULL, WNOHANG) == 0)
        find(k, IS_STRAY, "a process stayed that a rank had made");
    if (k->c->is_secluded)
        secluded_leftover(file, sizeof(file));
    if (*file)
        find(k, IS_STRAY, "%s stayed", file);
}

void survivors_run(const struct survivors_case *c, int is_verbose,
                   struct survivors_verdict *v)
{
    struct keeper k = {.c = c, .v = v, .n_all = c->size + c->n_new};

    k.board = mmap(NULL, sizeof(*k.board), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (k.board == MAP_FAILED) {
        perror("check_survivors: mmap");
        exit(2);
    }
    *v = (struct survivors_verdict){0};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start(&k);
    keep(&k);
    look_for_strays(&k);
    v->time = is_in_time(&k) ? find_time(&k) : 0;
    if (v->time > c->soon)
        find(&k, IS_HANG, "%.2f s from the last death to an operation",
             v->time);
    for (int r = 0; is_verbose && r < k.n_all; r++)
        printf("  rank %d%s: %s, died %.6f, worked again %.6f\n", r,
               survivors_death(c, r) ? ", a victim" : "",
               k.board->ranks[r].words, atomic_load(&k.board->ranks[r].struck),
               atomic_load(&k.board->ranks[r].good));
    munmap(k.board, sizeof(*k.board));
}
