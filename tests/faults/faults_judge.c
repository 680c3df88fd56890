/* SPDX-License-Identifier: BSD-3-Clause */
/* faults_judge.c - was it right what the ranks of a case saw?
 *
 * - Whatever the library called a success has the right result.
 * - Nobody fails before something has happened, nor where the victim is no
 *   member, nor because of a rank that goes on again.
 * - Where a member died, whoever cannot go on gets COLL_ERR_PEER with the
 *   victim's number in that communicator, and within `soon` of the death.
 * - Nobody else dies of it, and nothing stays.
 *
 * Only of a rank that died before it had told anyone who it is can nobody know:
 * there the deadline is the answer.  And UCX 1.13 ends some processes by its own
 * assertions when a peer dies while connections are made; what follows is another
 * death, and such cases are counted by themselves.
 */
#include "tests/faults/faults.h"
#include "lib/util/util.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct judge {
    const struct fault_case *c;
    const struct board *board;
    const struct ending *e;
    struct verdict *v;
    double struck, dead_at; /* 0: it never came, or nobody died */
};

__attribute__((format(printf, 3, 4))) static void find(struct judge *j, int bit,
                                                       const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (bit & ~j->v->bits && !*j->v->words)
        vsnprintf(j->v->words, sizeof(j->v->words), format, args);
    va_end(args);
    j->v->bits |= bit;
}

/* Does the sentence name "rank N", N ending there? */
static int names_rank(const char *words, int rank)
{
    char name[32];
    int len = snprintf(name, sizeof(name), "rank %d", rank);

    for (const char *at = words; (at = strstr(at, name)); at += len)
        if (!isdigit((unsigned char)at[len]))
            return 1;
    return 0;
}

static const struct seen *seen_of(const struct judge *j, int r, int step)
{
    return &j->board->ranks[r].seen[step];
}

/* Did the victim end before any other rank could have heard of it?  Who it is it
 * proves by two messages. */
static int is_unknown(const struct judge *j)
{
    int victim = j->c->fault.victim;

    return atomic_load(&j->board->ranks[victim].at) <= 1 &&
           !seen_of(j, victim, 0)->is_over &&
           atomic_load(&j->board->ranks[victim].n_sent) < 2;
}

/* A communicator made while its parent's member died, which some of a color
 * have and others do not: those who have it may lose any of the others. */
static int is_torn(const struct judge *j, int comm, int r)
{
    const struct script *s = &j->c->script;
    int n_with = 0, n_without = 0;

    for (int i = 0; i < s->n_steps; i++) {
        if (s->steps[i].made != comm ||
            (s->steps[i].kind != STEP_SPLIT && s->steps[i].kind != STEP_DUP))
            continue;
        for (int q = 0; q < s->size; q++) {
            if (!script_shares(s, comm, r, q))
                continue;
            n_with += seen_of(j, q, i)->is_over &&
                      seen_of(j, q, i)->status == COLL_OK;
            n_without += !seen_of(j, q, i)->is_over ||
                         seen_of(j, q, i)->status != COLL_OK;
        }
    }
    return n_with && n_without;
}

/* Who comes late to rank 0, which has given the job up for the death of another,
 * learns no more than that it is gone. */
static int is_left_by_root(const struct judge *j, int i, const char *words)
{
    const struct seen *root = seen_of(j, 0, 0);

    return i == 0 && names_rank(words, 0) && root->is_over &&
           root->status == COLL_ERR_PEER;
}

static void judge_error(struct judge *j, int r, int i)
{
    const struct script *s = &j->c->script;
    const struct seen *seen = seen_of(j, r, i);
    const struct step *step = &s->steps[i];
    const char *what = script_step_name(step->kind);
    int victim = j->c->fault.victim, comm = step->comm;
    int is_torn_here = is_torn(j, comm, r);

    if (!j->dead_at || seen->end < j->struck) {
        find(j, VERDICT_WRONG,
             "rank %d, step %d, %s: fails though nobody "
             "died: %d, %s",
             r, i, what, seen->status, seen->words);
    } else if (i == 0 && is_unknown(j)) {
        find(j, VERDICT_UNKNOWABLE, "rank %d: %s", r, seen->words);
    } else if (!script_shares(s, comm, r, victim) && !is_torn_here) {
        find(j, VERDICT_WRONG,
             "rank %d, step %d, %s: fails though the dead "
             "one is no member: %d, %s",
             r, i, what, seen->status, seen->words);
    } else if (seen->status != COLL_ERR_PEER) {
        find(j, VERDICT_WRONG,
             "rank %d, step %d, %s: not \"a peer failed\" "
             "but %d, %s",
             r, i, what, seen->status, seen->words);
    } else if (!is_torn_here && !is_left_by_root(j, i, seen->words) &&
               !names_rank(seen->words, script_rank_in(s, comm, victim))) {
        find(j, VERDICT_WRONG,
             "rank %d, step %d, %s: does not name rank %d: "
             "%s",
             r, i, what, script_rank_in(s, comm, victim), seen->words);
    }
}

/* How long a step took from the death on, and whether that is too long. */
static void judge_time(struct judge *j, int r, int i)
{
    const struct seen *seen = seen_of(j, r, i);
    double from = max_double(seen->begin, j->dead_at);
    int bit = i == 0 && is_unknown(j) ? VERDICT_UNKNOWABLE : VERDICT_HANG;

    if (j->dead_at && seen->end - from > j->c->soon)
        find(j, bit, "rank %d, step %d, %s: %.2f s after the death: %d, %s", r,
             i, script_step_name(j->c->script.steps[i].kind), seen->end - from,
             seen->status, seen->words);
}

static void judge_step(struct judge *j, int r, int i)
{
    const struct seen *seen = seen_of(j, r, i);
    const char *what = script_step_name(j->c->script.steps[i].kind);

    if (!seen->is_over) {
        if (j->e->is_late[r] && seen->is_begun)
            find(j, VERDICT_HANG, "rank %d, step %d, %s: never returned", r, i,
                 what);
        return;
    }
    if (seen->status == STEP_SKIPPED)
        return;
    judge_time(j, r, i);
    if (seen->is_wrong)
        find(j, VERDICT_WRONG,
             "rank %d, step %d, %s: a wrong result, or "
             "another status when asked again: %d, %s",
             r, i, what, seen->status, seen->words);
    if (seen->status != COLL_OK)
        judge_error(j, r, i);
}

/* A rank's end as a process. */
static void judge_end(struct judge *j, int r)
{
    int status = j->e->status[r];

    if (j->e->is_late[r])
        find(j, VERDICT_HANG, "rank %d had to be killed", r);
    else if (WIFSIGNALED(status))
        find(j, VERDICT_ABORT, "rank %d was ended by signal %d", r,
             WTERMSIG(status));
    else if (WEXITSTATUS(status))
        find(j, VERDICT_ABORT, "rank %d ended with status %d", r,
             WEXITSTATUS(status));
}

/* Has UCX ended a rank, when another one had died? */
static int is_by_ucx(struct judge *j)
{
    int any = 0;

    for (int r = 0; r < j->c->script.size; r++)
        any |= atomic_load(&j->board->ranks[r].is_ucx);
    if (any && j->dead_at)
        find(j, VERDICT_UCX, "an assertion of UCX ended a survivor");
    return any && j->dead_at;
}

void faults_judge(const struct fault_case *c, const struct board *board,
                  const struct ending *e, struct verdict *v)
{
    struct judge j = {.c = c, .board = board, .e = e, .v = v};
    int victim = c->fault.victim;
    int is_deadly = c->fault.kind == FAULT_KILL ||
                    c->fault.kind == FAULT_EXIT || c->fault.kind == FAULT_CRASH;

    *v = (struct verdict){0};
    j.struck = atomic_load(&board->ranks[victim].struck);
    v->has_struck = j.struck > 0;
    if (is_deadly && j.struck > 0)
        j.dead_at = e->dead_at;
    if (is_by_ucx(&j))
        return;
    for (int r = 0; r < c->script.size; r++) {
        if (j.dead_at && r == victim)
            continue;
        judge_end(&j, r);
        for (int i = 0; i < c->script.n_steps; i++)
            judge_step(&j, r, i);
    }
    if (*e->left)
        find(&j, VERDICT_LEFTOVER, "left: %s", e->left);
}
