/* SPDX-License-Identifier: BSD-3-Clause */
/* faults.h - random faults among ranks: what happens, to whom, and the verdict.
 *
 * A case is drawn from (seed, number): a script of operations that all ranks
 * follow, one rank of them that something befalls, and when.  Its ranks are
 * processes, made and watched by one keeper, who also kills and stops.  What each
 * rank saw lies on a board that all of them share; the judge reads it when all
 * have ended.
 *
 *   faults_script.c  draws the script; is a rank
 *   faults_case.c    draws a case; is the keeper
 *   faults_judge.c   says what was right
 *   faults.c         the program: its cases, and the report
 *
 * many.h runs the cases side by side; crash.h ends a rank in the middle of a call of
 * libc.
 */
#ifndef COLL_TESTS_FAULTS_H
#define COLL_TESTS_FAULTS_H

#include "tests/support/oracle.h"

#include <stdatomic.h>
#include <sys/types.h>

#define FAULTS_RANKS 9
#define FAULTS_STEPS 24
#define FAULTS_COMMS 6

/* ---- the script ---------------------------------------------------------- */

/* X(name, text): what all ranks of a communicator do together. */
#define FAULTS_STEP_MAP(X)                                                     \
    X(CREATE, "create")                                                        \
    X(CALL, "operation")                                                       \
    X(REQUESTS, "requests")                                                    \
    X(RING, "ring of messages")                                                \
    X(SPLIT, "split")                                                          \
    X(DUP, "dup")                                                              \
    X(DESTROY, "destroy")

enum step_kind {
#define X(name, text) STEP_##name,
    FAULTS_STEP_MAP(X)
#undef X
        N_STEP_KINDS
};

struct step {
    enum step_kind kind;
    int comm;      /* on which one, an index */
    int made;      /* the index of what CREATE, SPLIT and DUP make */
    uint64_t seed; /* of the operations, drawn for the size that it has here */
};

/* A communicator's index stands for one on each rank: after a split each color
 * has its own, of its own size. */
struct script {
    int size, n_steps, n_comms;
    struct step steps[FAULTS_STEPS];
    int color[FAULTS_COMMS][FAULTS_RANKS]; /* -1: in none */
    int is_reversed[FAULTS_COMMS];         /* ranks from high to low */
};

void script_draw(struct script *s, int size, uint64_t *state);

/* Is r together with q in that communicator?  Which rank has it there, and how
 * many are there? */
int script_shares(const struct script *s, int comm, int r, int q);
int script_rank_in(const struct script *s, int comm, int r);
int script_size_of(const struct script *s, int comm, int r);

const char *script_step_name(enum step_kind kind);

/* ---- the case ------------------------------------------------------------ */

/* X(name, text): what befalls the victim. */
#define FAULTS_KIND_MAP(X)                                                     \
    X(NONE, "none")                                                            \
    X(STOP, "stop, go on")                                                     \
    X(STALL, "stall")                                                          \
    X(KILL, "kill")                                                            \
    X(EXIT, "exit")                                                            \
    X(CRASH, "crash")

enum fault_kind {
#define X(name, text) FAULT_##name,
    FAULTS_KIND_MAP(X)
#undef X
        N_FAULT_KINDS
};

struct fault {
    enum fault_kind kind;
    int victim, step;
    double delay;  /* after the victim came to the step, s (KILL, STOP) */
    double length; /* for how long (STOP, STALL), s */
    int n_calls;   /* of libc from there on (CRASH) */
    int how;       /* the signal, or 0 for an exit (CRASH); the status (EXIT) */
};

/* That a case goes by. */
#define FAULTS_TRANSPORTS 5
extern const char *const faults_transports[FAULTS_TRANSPORTS];

struct fault_case {
    unsigned seed, number;
    const char *transports;
    struct script script;
    struct fault fault;
    double soon;     /* how long survivors may take to notice, s */
    int is_secluded; /* whatever lies in /dev/shm or /tmp was left by it */
    double timeout;  /* COLL_TIMEOUT; longer than all stops and stalls */
};

void case_draw(struct fault_case *c, unsigned seed, unsigned number,
               double soon);

/* ---- the board ----------------------------------------------------------- */

enum { STEP_SKIPPED = 100 }; /* beside enum coll_status */

/* What a rank saw of a step. */
struct seen {
    int is_begun, is_over;
    int status;   /* what the library said, or STEP_SKIPPED */
    int is_wrong; /* a result, or what came after a failure */
    double begin, end;
    char words[256];
};

/* Written by its rank, read by the keeper when it has ended; what both use
 * meanwhile is atomic. */
struct fault_rank {
    atomic_int at;         /* steps begun */
    atomic_int n_sent;     /* messages to sockets */
    atomic_int is_ucx;     /* an assertion of UCX ended it */
    _Atomic double struck; /* when the fault came, 0 when it did not */
    struct seen seen[FAULTS_STEPS];
};

struct board {
    struct coll_unique_id id;
    atomic_int has_id;
    atomic_int is_off; /* rank 0 ended without one */
    struct fault_rank ranks[FAULTS_RANKS];
};

/* Be that rank; the process's exit status. */
int script_play(const struct fault_case *c, int rank, struct board *board);

/* ---- the verdict --------------------------------------------------------- */

/* X(name, text): bits; 0 is right. */
#define FAULTS_VERDICT_MAP(X)                                                  \
    X(UNKNOWABLE, "where nothing can be known")                                \
    X(UCX, "ended by UCX")                                                     \
    X(HANG, "hang")                                                            \
    X(ABORT, "aborted survivor")                                               \
    X(WRONG, "wrong status or result")                                         \
    X(LEFTOVER, "leftover")

enum {
#define X(name, text) VERDICT_AT_##name,
    FAULTS_VERDICT_MAP(X)
#undef X
        N_VERDICTS
};

enum {
#define X(name, text) VERDICT_##name = 1 << VERDICT_AT_##name,
    FAULTS_VERDICT_MAP(X)
#undef X
};

/* What the library cannot help. */
#define VERDICT_PARDONED (VERDICT_UNKNOWABLE | VERDICT_UCX)

/* What the keeper saw. */
struct ending {
    double dead_at; /* when the victim was found dead; 0: it was not */
    int status[FAULTS_RANKS];  /* as from waitpid() */
    int is_late[FAULTS_RANKS]; /* it had to be killed */
    char left[128];            /* a file or process that stayed; "" */
};

struct verdict {
    int bits;
    int has_struck;  /* the fault came before the victim had ended */
    char words[400]; /* the first thing that was wrong */
};

void faults_judge(const struct fault_case *c, const struct board *board,
                  const struct ending *e, struct verdict *v);

/* Run the case in child processes, and judge. */
void case_run(const struct fault_case *c, int is_verbose, struct verdict *v);

#endif
