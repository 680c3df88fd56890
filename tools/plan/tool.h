/* SPDX-License-Identifier: BSD-3-Clause */
/* tool.h - what the parts of coll_plan share.
 *
 * Actions return the exit status: 0; or, after one sentence on stderr, 1 for a failure or
 * 2 for wrong usage.
 */
#ifndef COLL_TOOLS_PLAN_TOOL_H
#define COLL_TOOLS_PLAN_TOOL_H

#include "lib/proof/proof.h"
#include "lib/proof/prove.h"
#include "lib/price/select.h"
#include "tools/sim/sim.h"

enum action {
    ACTION_NONE,
    ACTION_EXPLAIN,
    ACTION_DUMP,
    ACTION_DOT,
    ACTION_CHECK,
    ACTION_SIMULATE,
    ACTION_CROSSOVER
};

enum { MAX_ALGOS = 256 };

/* What the command line asks for. */
struct job {
    enum action action;
    enum coll_collective collective;
    int has_collective;
    enum coll_type type;
    enum coll_op op;
    enum coll__order order;
    size_t bytes, chunk;
    int ranks, ranks_to; /* 0: not given; a range for --all only */
    int root, in_place, rank; /* rank -1: all */
    const char *topology, *algo, *file, *svg;
    enum coll__placement placement;
    int all, json;
};

/* The machine that plans are made for. */
struct machine {
    struct coll__fabric *fabric; /* NULL: the standard machine */
    struct coll__view view;
    char what[160];
};

/* The problem of a job on a machine, for all ranks. */
struct cast {
    struct coll__problem *pbs; /* [ranks] */
    size_t *numbers;           /* counts and displs of the v collectives */
};

/* Print "coll_plan: ..." on stderr and return status. */
int say(int status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Print the library's last error.  Returns 1. */
int say_last(void);

/* ---- args.c -------------------------------------------------------------- */

/* -1 to go on with the job, else the exit status. */
int args_take(int argc, char **argv, struct job *job);

/* ---- machine.c ----------------------------------------------------------- */

int machine_init(struct machine *machine, const struct job *job, int ranks);
void machine_fini(struct machine *machine);
int cast_init(struct cast *cast, const struct job *job,
              const struct machine *machine);
void cast_fini(struct cast *cast);

/* List the algorithms of the collective, the fastest first and those that refuse last;
 * with --algo the named ones alone.  Returns their number. */
int candidates(const struct job *job, const struct coll__problem *pb,
               struct coll__candidate list[MAX_ALGOS]);

/* Say that none of the candidates can do it.  Returns 1. */
int say_none(const struct job *job);

/* Return the algorithm that --algo or the prices choose; NULL after an error
 * message. */
const struct coll__algo *choose(const struct job *job,
                                const struct coll__problem *pb);

/* Write "64 MiB" or "12.3 us" into text[24]; returns text. */
const char *bytes_text(size_t bytes, char text[24]);
const char *seconds_text(double seconds, char text[24]);

/* ---- actions ------------------------------------------------------------- */

int explain(const struct job *job);
int dump(const struct job *job);
int draw(const struct job *job);
int check(const struct job *job);
int check_all(const struct job *job);
int simulate(const struct job *job);
int crossover(const struct job *job);

/* ---- json.c -------------------------------------------------------------- */

/* The shares of an algorithm's predicted time. */
struct parts {
    double latency, bandwidth, shared, work;
};

int json_explain(const struct job *job, const struct machine *machine,
                 const struct coll__candidate *list, int n,
                 const struct parts *parts);
int json_dump(const struct coll__plans *plans, int rank);
int json_check(const struct coll__plans *plans, const char *why, int n_slots);
int json_check_all(long n_problems, long n_plans, long n_failed,
                   double seconds);
int json_simulate(const struct job *job, const struct machine *machine,
                  const struct coll__algo *algo, double predicted,
                  const struct coll__sim_result *result);

#endif
