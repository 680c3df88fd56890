/* SPDX-License-Identifier: BSD-3-Clause */
/* faults_case.c - draws a case, and is its keeper: starts the ranks, kills, stops
 * and wakes the victim, waits for all of them, and looks for what they left. */
#include "tests/faults/faults.h"
#include "tests/faults/many.h"
#include "tests/support/seclude.h"
#include "lib/util/util.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- drawing ------------------------------------------------------------- */

enum place { AT_CREATE, AT_OPERATION, AT_SPLIT, AT_DESTROY, N_PLACES };

static enum place place_of(enum step_kind kind)
{
    return kind == STEP_CREATE                      ? AT_CREATE
           : kind == STEP_SPLIT || kind == STEP_DUP ? AT_SPLIT
           : kind == STEP_DESTROY                   ? AT_DESTROY
                                                    : AT_OPERATION;
}

/* A step of the victim's: first one of the places, then one of its steps. */
static int draw_step(const struct script *s, int victim, uint64_t *state)
{
    int steps[FAULTS_STEPS], n = 0;

    while (!n) {
        enum place place = (enum place)oracle_random(state, N_PLACES);

        for (int i = 0; i < s->n_steps; i++)
            if (place_of(s->steps[i].kind) == place &&
                s->color[s->steps[i].comm][victim] >= 0)
                steps[n++] = i;
    }
    return steps[oracle_random(state, (unsigned)n)];
}

static void draw_fault(struct fault *f, const struct script *s, uint64_t *state)
{
    static const enum fault_kind kinds[] = {
        FAULT_NONE,  FAULT_STOP, FAULT_STOP,  FAULT_STOP,  FAULT_STALL,
        FAULT_STALL, FAULT_KILL, FAULT_KILL,  FAULT_KILL,  FAULT_KILL,
        FAULT_EXIT,  FAULT_EXIT, FAULT_CRASH, FAULT_CRASH, FAULT_CRASH,
        FAULT_CRASH, FAULT_CRASH};
    static const int signals[] = {SIGKILL, SIGSEGV, SIGABRT, SIGTERM, 0};

    f->kind = kinds[oracle_random(state, ARRAY_LEN(kinds))];
    f->victim = (int)oracle_random(state, (unsigned)s->size);
    f->step = draw_step(s, f->victim, state);
    f->delay = many_scale(state, 10e-6, 30e-3);
    /* beyond all that is tried again after a second, or any */
    f->length = oracle_random(state, 2) ? many_scale(state, 1.2, 3)
                                        : many_scale(state, 0.02, 1.2);
    f->n_calls = (int)many_scale(state, 1, 400);
    f->how = f->kind == FAULT_CRASH
                 ? signals[oracle_random(state, ARRAY_LEN(signals))]
                 : (int)oracle_random(state, 4);
}

const char *const faults_transports[FAULTS_TRANSPORTS] = {
    "self,shm", "self,ucx", "self,shm,ucx", "self,tcp", "self,shm,tcp"};

void case_draw(struct fault_case *c, unsigned seed, unsigned number,
               double soon)
{
    uint64_t state = many_state(seed, number);
    int size;

    *c = (struct fault_case){
        .seed = seed, .number = number, .soon = soon, .timeout = 5 + 3 * soon};
    c->transports = faults_transports[oracle_random(&state, FAULTS_TRANSPORTS)];
    size = 2 + (int)oracle_random(&state, FAULTS_RANKS - 1);
    script_draw(&c->script, size, &state);
    draw_fault(&c->fault, &c->script, &state);
}

/* ---- what stays ---------------------------------------------------------- */

/* Processes that the ranks made and left are the keeper's now. */
static void find_orphans(char *left, size_t len)
{
    if (waitpid(-1, NULL, WNOHANG) == 0)
        snprintf(left, len, "a process that a rank had made");
}

/* ---- the keeper ---------------------------------------------------------- */

struct keeper {
    const struct fault_case *c;
    struct board *board;
    struct ending *e;
    pid_t pids[FAULTS_RANKS];
    int n_alive, is_stopped;
    double due; /* of the next thing to do to the victim; 0: not yet known */
};

static void be_rank(const struct fault_case *c, int rank, struct board *board)
{
    char number[32];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(number, sizeof(number), "%g", c->timeout);
    setenv("COLL_TIMEOUT", number, 1);
    setenv("COLL_TRANSPORTS", c->transports, 1);
    exit(script_play(c, rank, board));
}

static void start(struct keeper *k)
{
    fflush(NULL);
    for (int r = 0; r < k->c->script.size; r++) {
        k->pids[r] = fork();
        if (k->pids[r] == 0)
            be_rank(k->c, r, k->board);
        if (k->pids[r] < 0) {
            perror("check_faults: fork");
            exit(2);
        }
        k->n_alive++;
    }
}

static void note_end(struct keeper *k, pid_t pid, int status)
{
    for (int r = 0; r < k->c->script.size; r++) {
        if (k->pids[r] != pid)
            continue;
        k->pids[r] = 0;
        k->n_alive--;
        k->e->status[r] = status;
        if (r == k->c->fault.victim &&
            atomic_load(&k->board->ranks[r].struck) > 0)
            k->e->dead_at = coll__now();
        if (r == 0 && !atomic_load(&k->board->has_id))
            atomic_store(&k->board->is_off, 1);
    }
}

/* Kill the victim, stop it, or let it go on, when the time has come. */
static void strike(struct keeper *k)
{
    const struct fault *f = &k->c->fault;
    struct fault_rank *victim = &k->board->ranks[f->victim];
    pid_t pid = k->pids[f->victim];
    double now = coll__now();

    if ((f->kind != FAULT_KILL && f->kind != FAULT_STOP) || !pid)
        return;
    if (!k->due &&
        atomic_load_explicit(&victim->at, memory_order_acquire) > f->step)
        k->due = now + f->delay;
    if (!k->due || now < k->due)
        return;
    if (k->is_stopped) {
        kill(pid, SIGCONT);
        k->due = now + 1e9;
        return;
    }
    if (!atomic_load(&victim->struck))
        atomic_store(&victim->struck, now);
    kill(pid, f->kind == FAULT_KILL ? SIGKILL : SIGSTOP);
    k->is_stopped = f->kind == FAULT_STOP;
    k->due = now + (k->is_stopped ? f->length : 1e9);
}

/* Those that are still there are killed; they count as late. */
static void end_all(struct keeper *k)
{
    for (int r = 0; r < k->c->script.size; r++)
        if (k->pids[r]) {
            k->e->is_late[r] = 1;
            kill(k->pids[r], SIGKILL);
            waitpid(k->pids[r], &k->e->status[r], 0);
            k->pids[r] = 0;
        }
}

static void keep(struct keeper *k)
{
    double end = coll__now() + 8 * k->c->timeout + 10;
    int status;
    pid_t pid;

    while (k->n_alive && coll__now() < end) {
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            note_end(k, pid, status);
        strike(k);
        usleep(200);
    }
    end_all(k);
}

static void print_case(const struct fault_case *c)
{
    static const char *const kinds[] = {
#define X(name, text) text,
        FAULTS_KIND_MAP(X)
#undef X
    };
    const struct fault *f = &c->fault;

    printf("case %u: %d ranks over %s; rank %d at step %d: %s", c->number,
           c->script.size, c->transports, f->victim, f->step, kinds[f->kind]);
    printf(" (after %.3g ms or %d calls, for %.2g s, how %d)\n", f->delay * 1e3,
           f->n_calls, f->length, f->how);
}

/* What each rank saw. */
static void print_board(const struct fault_case *c, const struct board *b,
                        const struct ending *e)
{
    double zero = b->ranks[0].seen[0].begin;

    for (int r = 0; r < c->script.size; r++) {
        printf(" rank %d%s: wait status %#x%s", r,
               r == c->fault.victim ? ", the victim" : "", e->status[r],
               e->is_late[r] ? ", late" : "");
        if (atomic_load(&b->ranks[r].struck) > 0)
            printf(", struck at %.4f", atomic_load(&b->ranks[r].struck) - zero);
        puts("");
        for (int i = 0; i < c->script.n_steps; i++) {
            const struct step *step = &c->script.steps[i];
            const struct seen *s = &b->ranks[r].seen[i];

            if (!s->is_begun || s->status == STEP_SKIPPED)
                continue;
            printf("  %2d %-16s of %d, rank %d of %d: %8.4f", i,
                   script_step_name(step->kind), step->comm,
                   script_rank_in(&c->script, step->comm, r),
                   script_size_of(&c->script, step->comm, r), s->begin - zero);
            printf(s->is_over ? " to %8.4f: %d%s %s\n" : "\n", s->end - zero,
                   s->status, s->is_wrong ? " WRONG" : "", s->words);
        }
    }
}

void case_run(const struct fault_case *c, int is_verbose, struct verdict *v)
{
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct ending e = {0};
    char file[300] = "";
    struct keeper k = {.c = c, .board = board, .e = &e};

    if (board == MAP_FAILED) {
        perror("check_faults: mmap");
        exit(2);
    }
    if (is_verbose)
        print_case(c);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start(&k);
    keep(&k);
    find_orphans(e.left, sizeof(e.left));
    if (c->is_secluded)
        secluded_leftover(file, sizeof(file));
    if (*file)
        snprintf(e.left, sizeof(e.left), "%.120s", file);
    faults_judge(c, board, &e, v);
    if (is_verbose)
        print_board(c, board, &e);
    munmap(board, sizeof(*board));
}
