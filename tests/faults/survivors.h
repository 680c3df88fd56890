/* SPDX-License-Identifier: BSD-3-Clause */
/* survivors.h - random deaths among ranks whose survivors go on: agree, shrink, grow.
 *
 * All ranks of a case play the same endless game: operations whose results are
 * checked, agreements, shrinks and one growth, drawn from the communicator's
 * generation and the step.  Victims die in it, each when it comes to a place of its
 * own.  Whoever notices agrees, shrinks, and goes on in the next generation.  The game
 * is over when all victims are gone and the others have summed up that they know.
 *
 *   survivors_rank.c   is a rank
 *   survivors_steps.c  what it does in a step
 *   survivors_gpu.c    operations on streams
 *   survivors_case.c   draws a case; is its keeper, and its judge
 *   survivors.c        the program: its cases, and the report
 */
#ifndef COLL_TESTS_SURVIVORS_H
#define COLL_TESTS_SURVIVORS_H

#include "tests/support/oracle.h"
#include "tests/support/world.h"

#include <pthread.h>
#include <stdatomic.h>

#define SURVIVORS_OLD 9  /* ranks at the beginning, at most */
#define SURVIVORS_ALL 11 /* with newcomers */

/* ---- the case ------------------------------------------------------------ */

/* X(name, text): what the ranks do together. */
#define PLAY_MAP(X)                                                            \
    X(OPERATION, "operation")                                                  \
    X(AGREE, "agree")                                                          \
    X(SHRINK, "shrink")                                                        \
    X(GROW, "grow")

enum play {
#define X(name, text) PLAY_##name,
    PLAY_MAP(X)
#undef X
        N_PLAYS
};

/* X(name, text): how a rank dies. */
#define DEATH_MAP(X)                                                           \
    X(KILL, "kill")                                                            \
    X(STOP, "stop, killed later")                                              \
    X(GIVE_UP, "stop, excluded")                                               \
    X(CRASH, "crash")                                                          \
    X(LEAVE, "leave")

enum death_kind {
#define X(name, text) DEATH_##name,
    DEATH_MAP(X)
#undef X
        N_DEATH_KINDS
};

/* A victim, and when it dies. */
struct death {
    int victim;
    enum play at;
    int nth;       /* when it begins that for the nth time, from 0 on */
    double delay;  /* after that, s (KILL, STOP, GIVE_UP) */
    double length; /* of the stop, s */
    int n_calls;   /* of libc from there on (CRASH) */
    int how;       /* the signal, or 0 for an exit (CRASH) */
};

#define SURVIVORS_TRANSPORTS 4
extern const char *const survivors_transports[SURVIVORS_TRANSPORTS];
enum { ON_GPUS = 3 }; /* of them */

struct survivors_case {
    unsigned seed, number;
    int transports, has_thread, size, n_new;
    enum death_kind kind; /* of all its deaths */
    int n_deaths;
    struct death deaths[SURVIVORS_OLD];
    double soon, timeout; /* timeout: COLL_TIMEOUT */
    int is_secluded;
};

void survivors_draw(struct survivors_case *c, unsigned seed, unsigned number,
                    double soon);

/* Return a rank's death; NULL: it is no victim. */
const struct death *survivors_death(const struct survivors_case *c, int rank);

/* ---- the board ------------------------------------------------------------ */

/* A rank's part: it writes, the keeper reads. */
struct survivor {
    atomic_int is_ucx; /* an assertion of UCX ended it */
    _Atomic double
        due; /* when the keeper is to kill or to stop it; 0: not yet */
    _Atomic double struck; /* when it died */
    _Atomic double good; /* the end of its first operation without any victim */
    atomic_int is_over;  /* it came to the end of the game */
    atomic_int is_wrong;
    char words[256]; /* what it does, or what was wrong */
};

/* What an agreement gave first; the others must get the same. */
struct agreed {
    atomic_int is_known; /* 1: being written, 2: there */
    uint64_t flags;
};

#define SURVIVORS_AGREED 1024

enum { GROWTH_DONE = 1, GROWTH_FAILED = 2 };

struct survivors_board {
    struct coll_unique_id id, grow_id;
    atomic_int has_id, has_grow_id, no_growth;
    atomic_int growth; /* the first rank's outcome; 0: none has returned */
    atomic_int grow_generation, grow_size;
    atomic_uint gone;     /* a set: victims that died, newcomers that ended */
    atomic_uint given_up; /* a set: victims that are stopped and excluded */
    struct survivor ranks[SURVIVORS_ALL];
    struct agreed agreed[SURVIVORS_AGREED];
};

/* ---- a rank ---------------------------------------------------------------- */

struct player {
    const struct survivors_case *c;
    struct survivors_board *board;
    struct survivor *mine;
    const struct death *death; /* NULL: none */
    int n_begun[N_PLAYS];
    int number;           /* in the case */
    struct world_rank me; /* rank and size in comm */
    struct coll_comm *comm;
    pthread_mutex_t
        lock;          /* over comm and excluded, which a second thread reads */
    unsigned excluded; /* a set: given up, and not in comm */
    atomic_int is_through;
    int members[SURVIVORS_ALL]; /* the numbers of comm's ranks */
    int generation, step, n_agreed,
        has_grown; /* n_agreed: in this generation */
    struct oracle_handles handles;
    struct survivors_gpu *gpu; /* NULL: buffers of the host */
};

/* Be the rank with this number; the process's exit status. */
int survivors_play(const struct survivors_case *c, int number,
                   struct survivors_board *board);

/* Note that the rank begins something, and let it die there. */
void player_begins(struct player *p, enum play play);

/* Say that something is wrong, and end the process. */
_Noreturn void player_wrong(struct player *p, const char *what, int rc);

/* ---- steps (survivors_steps.c): each returns a status ---------------------- */

enum { STEP_OVER = 100 }; /* the game's end; beside enum coll_status */

/* Tell each other who is in the communicator. */
int player_meet(struct player *p);

int player_operate(struct player *p);
int player_sum_up(struct player *p);

/* Agree whether all ranks are well, and compare with what others got. */
int player_agree(struct player *p, int is_well);

/* Take the rest of the communicator's living ranks. */
void player_shrink(struct player *p);

int player_grow(struct player *p);
int player_join(struct player *p); /* as a newcomer */

/* Go on in that communicator, the next generation. */
void player_enter(struct player *p, struct coll_comm *comm);

/* ---- GPUs (survivors_gpu.c; without CUDA survivors_no_gpu.c) --------------- */

int survivors_have_gpus(void);
struct survivors_gpu *survivors_gpu_open(int number);

/* Do the call of host buffers on a stream, with copies of them on the device. */
int survivors_gpu_call(struct survivors_gpu *gpu, const struct coll_args *args,
                       size_t in_len, size_t out_len, struct coll_comm *comm);

/* ---- the verdict ----------------------------------------------------------- */

enum { IS_HANG = 1, IS_ABORT = 2, IS_WRONG = 4, IS_STRAY = 8, IS_UCX = 16 };

struct survivors_verdict {
    int bits;
    double
        time; /* from the last death to the last survivor's first operation, s; 0:
                  * unknown */
    char words[400];
};

void survivors_run(const struct survivors_case *c, int is_verbose,
                   struct survivors_verdict *v);

#endif
