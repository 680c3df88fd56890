/* SPDX-License-Identifier: BSD-3-Clause */
/* cell.c - one operation, size and number of ranks, by all libraries in turns.
 *
 * A first visit to each library warms it up and tells how long one operation
 * takes; the fastest library decides the batch for all.  Then come rounds.  In a round
 * each library is measured once, and each round begins with another library, so that
 * drift affects all alike.  The figure of a round is the median of its samples; that of
 * the cell is the median of its rounds.
 */
#include "benchmarks/rivals/compare.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_SECONDS 100e-6  /* that a batch should take */
#define BATCH_BYTES (1 << 20) /* that its inputs may have */
#define SLOW 2.0              /* s: an operation that takes longer is
                               * measured once */
#define LONG 0.05             /* s: a batch that takes longer is made smaller */
/* a slow library that takes this many times as long as the fastest is not measured at
 * larger sizes */
#define HOPELESS 4

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median(double *values, int n)
{
    if (!n)
        return 0;
    qsort(values, (size_t)n, sizeof(*values), by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* ---- one command -------------------------------------------------------- */

static struct answer answer; /* of the last command; too large for a stack */
static double patience;      /* s to wait for one */

/* Return a salt that no earlier command had. */
static uint32_t next_salt(void)
{
    static uint32_t salt;

    return salt += PEER_MAX_SAMPLES * 64;
}

static int ask(struct cell *cell, struct job *job, struct outcome *outcome,
               struct peer_command command)
{
    command.verb = PEER_MEASURE;
    command.op = (int)cell->op;
    command.bytes = cell->bytes;
    command.is_crowded = cell->ranks > cores_list(NULL);
    command.is_bound = command.is_crowded || job->place->hosts;
    command.salt = next_salt();
    answer.n = 0;
    if (job_measure(job, &command, now_seconds() + command.seconds + patience,
                    &answer)) {
        outcome->status = FAILED;
        return -1;
    }
    if (answer.status == PEER_UNSUPPORTED) {
        outcome->status = NO_OPERATION;
        return -1;
    }
    outcome->wrong += answer.wrong;
    return 0;
}

static void add_round(struct outcome *outcome)
{
    if (answer.n && outcome->n_rounds < MAX_ROUNDS)
        outcome->rounds[outcome->n_rounds++] = median(answer.seconds, answer.n);
}

/* ---- the first visit ---------------------------------------------------- */

/* Return the seconds of one operation; the first of several warms up. */
static double probe(struct cell *cell, struct job *job, struct outcome *outcome)
{
    struct peer_command some = {
        .batch = 1, .min_samples = 1, .max_samples = 30, .seconds = 0.02};
    int is_first_only;

    if (ask(cell, job, outcome, some))
        return 0;
    outcome->status = MEASURED;
    is_first_only = answer.n == 1;
    if (is_first_only && answer.seconds[0] > SLOW) {
        outcome->is_slow = 1;
        outcome->batch = 1;
        add_round(outcome);
    }
    return is_first_only ? answer.seconds[0]
                         : median(answer.seconds + 1, answer.n - 1);
}

/* Choose how many operations are in a batch: the same number for all libraries except
 * very slow ones.
 */
static void set_batches(struct cell *cell, const double *each)
{
    double fastest = 0, wanted;

    for (int f = 0; f < N_FORMS; f++)
        if (each[f] > 0 && (!fastest || each[f] < fastest))
            fastest = each[f];
    wanted = fastest > 0 ? BATCH_SECONDS / fastest : 1;
    if (cell->bytes && wanted > (double)BATCH_BYTES / (double)cell->bytes)
        wanted = (double)BATCH_BYTES / (double)cell->bytes;
    if (wanted > PEER_MAX_BATCH)
        wanted = PEER_MAX_BATCH;
    for (int f = 0; f < N_FORMS; f++) {
        double n = wanted;

        if (each[f] * n > LONG)
            n = LONG / each[f];
        cell->outcomes[f].batch = n > 1 ? (int)n : 1;
    }
}

/* ---- rounds ------------------------------------------------------------- */

static void keep_single(struct outcome *outcome)
{
    size_t n = (size_t)(outcome->n_single + answer.n);
    double *more = realloc(outcome->single, n * sizeof(*more));

    if (!more)
        return;
    memcpy(more + outcome->n_single, answer.seconds,
           (size_t)answer.n * sizeof(*more));
    outcome->single = more;
    outcome->n_single = (int)n;
}

/* Small operations are also timed one by one, to find the slowest.  Memory from the
 * library's own allocator is new for each command, too.  It is warmed up at any size,
 * since other ranks map a buffer at its first use.  All buffers are mapped when each
 * rank has been the root of a broadcast. */
static void visit(struct cell *cell, struct job *job, struct outcome *outcome,
                  double seconds)
{
    struct peer_command batches = {.batch = outcome->batch,
                                   .warm_up = cell->bytes < 1 << 20,
                                   .min_samples = 1,
                                   .max_samples = PEER_MAX_SAMPLES,
                                   .seconds = seconds};
    struct peer_command single = {.batch = 1,
                                  .min_samples = 1,
                                  .max_samples = PEER_MAX_SAMPLES,
                                  .seconds = seconds};

    if (job->form->options[0])
        batches.warm_up = cell->op == PEER_BROADCAST
                              ? (cell->ranks - 1) / outcome->batch + 1
                              : 1;
    if (ask(cell, job, outcome, batches))
        return;
    add_round(outcome);
    if (cell->bytes <= 8 && !ask(cell, job, outcome, single))
        keep_single(outcome);
}

static void one_round(struct cell *cell, struct job *jobs, int round,
                      double seconds)
{
    for (int i = 0; i < N_FORMS && !caught; i++) {
        int f = (i + round) % N_FORMS;
        struct outcome *outcome = &cell->outcomes[f];

        if (outcome->status == MEASURED && !outcome->is_slow && jobs[f].is_up)
            visit(cell, &jobs[f], outcome, seconds);
    }
}

/* ---- what comes out ----------------------------------------------------- */

static void summarise(struct outcome *outcome)
{
    double sorted[MAX_ROUNDS];
    int n = outcome->n_rounds;

    if (outcome->status == MEASURED && !n)
        outcome->status = FAILED;
    if (!n)
        return;
    memcpy(sorted, outcome->rounds, sizeof(sorted));
    outcome->median = median(sorted, n);
    if (outcome->median > 0)
        outcome->spread = (sorted[n - 1] - sorted[0]) / outcome->median;
    if (outcome->n_single) {
        median(outcome->single, outcome->n_single);
        outcome->p99 = outcome->single[(outcome->n_single * 99) / 100];
    }
    free(outcome->single);
    outcome->single = NULL;
}

static void judge(struct cell *cell)
{
    struct outcome *ours = &cell->outcomes[0];

    for (int f = 0; f < N_FORMS; f++)
        summarise(&cell->outcomes[f]);
    for (int f = 0; f < N_FORMS; f++) {
        struct outcome *o = &cell->outcomes[f];

        if (!forms[f].is_own && !forms[f].is_measure && o->status == MEASURED &&
            !o->wrong &&
            (!cell->best || o->median < cell->outcomes[cell->best].median))
            cell->best = f;
    }
    cell->spread = ours->spread;
    if (!cell->best || ours->status != MEASURED || !(ours->median > 0))
        return;
    cell->ratio = cell->outcomes[cell->best].median / ours->median;
    if (cell->outcomes[cell->best].spread > cell->spread)
        cell->spread = cell->outcomes[cell->best].spread;
}

/* Return 1 if a smaller size took this library long, but not the others. */
static int is_hopeless(const struct cell *before, int f)
{
    double fastest;

    if (forms[f].is_own || !before || !(before->outcomes[0].median > 0))
        return 0;
    fastest = before->outcomes[before->best].median;
    if (before->outcomes[0].median < fastest)
        fastest = before->outcomes[0].median;
    return before->outcomes[f].status == TOO_SLOW ||
           (before->outcomes[f].is_slow &&
            before->outcomes[f].median > HOPELESS * fastest);
}

void cell_measure(struct cell *cell, const struct cell *before,
                  struct job *jobs, const struct args *args, double allowance)
{
    double each[N_FORMS] = {0}, end = now_seconds() + allowance;
    double seconds = args->seconds;

    patience = args->patience;
    for (int f = 0; f < N_FORMS && !caught; f++)
        if (is_hopeless(before, f))
            cell->outcomes[f].status = TOO_SLOW;
        else if (jobs[f].is_up)
            each[f] = probe(cell, &jobs[f], &cell->outcomes[f]);
    set_batches(cell, each);
    for (int round = 0; round < args->rounds && !caught; round++) {
        double start = now_seconds();

        one_round(cell, jobs, round, seconds);
        if (now_seconds() + (now_seconds() - start) > end &&
            (round || args->is_quick))
            break; /* the time allows no more */
    }
    judge(cell);
}
