/* SPDX-License-Identifier: BSD-3-Clause */
/* args.c - the command line of coll_plan. */
#include "tools/plan/tool.h"
#include "lib/type/op.h"
#include "lib/type/signature.h"
#include "tools/common/program.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS (1 << 20)
#define MAX_PROVEN 512 /* ranks of --check --all */

/* ---- values --------------------------------------------------------------- */

/* Send and receive have no plan. */
static const char *planned_name(int i)
{
    return coll_collective_name(coll__of_all(i));
}

static const char *type_name(int i)
{
    return coll_type_name((enum coll_type)i);
}

static const char *op_name(int i) { return coll_op_name((enum coll_op)i); }

/* Join n names by '|'. */
static void list_names(char *text, size_t room, const char *(*name)(int), int n)
{
    size_t len = 0;

    for (int i = 0; i < n && len < room; i++)
        len += (size_t)snprintf(text + len, room - len, "%s%s", i ? "|" : "",
                                name(i));
}

static int take_collective(const struct program *p, const char *text,
                           void *into)
{
    struct job *job = into;
    char known[256];
    int i;

    list_names(known, sizeof(known), planned_name, COLL__N_OF_ALL);
    i = program_word(text, known);
    if (i < 0)
        return program_refuse_value(p, "collective", text, known);
    job->collective = coll__of_all(i);
    job->has_collective = 1;
    return 0;
}

static int take_number(const struct program *p, const char *text, int most,
                       int *value)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (end == text || *end || n < 1 || n > most)
        return program_refuse(
            p,
            "--ranks %s is not valid: it must be a whole number from 1 to %d",
            text, most);
    *value = (int)n;
    return 0;
}

/* "16" or "1:65" */
static int take_ranks(const struct program *p, const char *text, void *into)
{
    const char *colon = strchr(text, ':');
    struct job *job = into;
    char first[32];
    int rc;

    if (!colon)
        return take_number(p, text, MAX_RANKS, &job->ranks);
    snprintf(first, sizeof(first), "%.*s", (int)(colon - text), text);
    rc = take_number(p, first, MAX_PROVEN, &job->ranks);
    if (!rc)
        rc = take_number(p, colon + 1, MAX_PROVEN, &job->ranks_to);
    if (!rc && job->ranks_to < job->ranks)
        rc = program_refuse(p, "--ranks %s: the last is below the first", text);
    return rc;
}

static int take_algo(const struct program *p, const char *text, void *into)
{
    ((struct job *)into)->algo = text;
    return coll__algo_check(text)
               ? program_refuse(p, "--algo: %s",
                                strchr(coll_last_error(), ' ') + 1)
               : 0;
}

static int set_action(const struct program *p, struct job *job,
                      enum action action)
{
    if (job->action != ACTION_NONE && job->action != action)
        return program_refuse(
            p, "only one action can be given; see coll_plan --help");
    job->action = action;
    return 0;
}

#define TAKE_ACTION(name, action)                                              \
    static int name(const struct program *p, const char *text, void *into)     \
    {                                                                          \
        (void)text;                                                            \
        return set_action(p, into, action);                                    \
    }
TAKE_ACTION(take_explain, ACTION_EXPLAIN)
TAKE_ACTION(take_dump, ACTION_DUMP)
TAKE_ACTION(take_dot, ACTION_DOT)
TAKE_ACTION(take_check, ACTION_CHECK)
TAKE_ACTION(take_simulate, ACTION_SIMULATE)

static int take_crossover(const struct program *p, const char *text, void *into)
{
    ((struct job *)into)->svg = text;
    return set_action(p, into, ACTION_CROSSOVER);
}

/* ---- options -------------------------------------------------------------- */

#define AT(field) offsetof(struct job, field)

static char types[192], ops[160]; /* the words of --type and --op */

static const struct program_option options[] = {
    {.name = "", .help = "Actions"},
    {"explain", 0, OPTION_CALL, 0, NULL, NULL,
     .help =
         "print every algorithm, or those of --algo, with its predicted time, "
         "and why the first one wins",
     .take = take_explain},
    {"dump", 0, OPTION_CALL, 0, NULL, NULL,
     .help = "print the plans as a plan file, which COLL_PLAN_FILE reads",
     .take = take_dump},
    {"dot", 0, OPTION_CALL, 0, NULL, NULL,
     .help = "print the plans as a graph for graphviz", .take = take_dot},
    {"check", 0, OPTION_CALL, 0, NULL, NULL,
     .help = "prove the plans of the chosen algorithm, or those of FILE",
     .take = take_check},
    {"all", 0, OPTION_SWITCH, AT(all), NULL, NULL,
     .help = "with --check: prove every algorithm over a range of ranks"},
    {"simulate", 0, OPTION_CALL, 0, NULL, NULL,
     .help = "run all ranks' plans on the links of --topology",
     .take = take_simulate},
    {"crossover", 0, OPTION_CALL, 0, "SVG", NULL,
     .help = "draw each algorithm's time from 8 B to 1 GiB to this file",
     .take = take_crossover},
    {.name = "", .help = "Operation"},
    {"collective", 'c', OPTION_CALL, 0, "NAME", NULL,
     .help = "such as allreduce or broadcast", .take = take_collective},
    {"ranks", 'n', OPTION_CALL, 0, "N", NULL,
     .help = "number of ranks; FIRST:LAST with --check --all",
     .take = take_ranks},
    {"bytes", 'b', OPTION_SIZE, AT(bytes), "SIZE", "1M",
     .help = "size of the call's count, such as 64K or 1M"},
    {"type", 't', OPTION_CHOICE, AT(type), types, "f32",
     .help = "type of the elements"},
    {"op", 'o', OPTION_CHOICE, AT(op), ops, "sum", .help = "reduction"},
    {"root", 'r', OPTION_INT, AT(root), "R", "0",
     .help = "rank that sends to all or receives from all",
     .most = MAX_RANKS - 1},
    {"in-place", 0, OPTION_SWITCH, AT(in_place), NULL, NULL,
     .help = "the input and the output are one buffer"},
    {"order", 0, OPTION_CHOICE, AT(order), "free|canonical|ranks", "free",
     .help = "in which order elements are reduced; canonical: that of "
             "reproducible mode; ranks: that of the ranks"},
    {.name = "", .help = "Machine and algorithm"},
    {"topology", 0, OPTION_TEXT, AT(topology), "FILE", NULL,
     .help = "the machine (default: hosts of 8 ranks each)"},
    {"placement", 0, OPTION_CHOICE, AT(placement), "block|cyclic", "block",
     .help = "how ranks are placed on hosts"},
    {"algo", 'a', OPTION_CALL, 0, "NAME", NULL,
     .help = "take this algorithm, or the best of NAME,NAME..., instead of the "
             "best of all",
     .take = take_algo},
    {"chunk", 0, OPTION_SIZE, AT(chunk), "SIZE", "128K",
     .help = "size of the pipeline's chunks; 0: messages stay whole"},
    {.name = "", .help = "Output"},
    {"rank", 0, OPTION_INT, AT(rank), "R", NULL,
     .help = "dump or draw the plan of this rank alone", .most = MAX_RANKS - 1},
    {"json", 0, OPTION_SWITCH, AT(json), NULL, NULL,
     .help = "print JSON, with --explain, --dump, --check and --simulate"},
    {.name = NULL},
};

static const char notes[] =
    "A plan file is lines of words; '#' begins a comment.  It begins with:\n"
    "  coll_plan 1               always the first line\n"
    "  collective allreduce      also: type, ranks, count (elements)\n"
    "  op sum                    these may be left out: op, order free, root "
    "0,\n"
    "                            algorithm NAME, chunk 0, edges inferred or "
    "listed\n"
    "\n"
    "Each rank follows with its steps, which are numbered from 0.  A step "
    "names bytes\nof the buffers in, out and tmp:\n"
    "  rank 0 tmp 16 in_place    bytes of tmp; in_place if in and out are one\n"
    "  0 copy out[0,16) from in[0,16)\n"
    "  1 send peer 1 out[0,16)\n"
    "  2 recv peer 1 tmp[0,16)\n"
    "  3 reduce out[0,16) from tmp[0,16) left waits for 1 2\n"
    "\n"
    "The kinds of steps are copy, reduce, scale (divides, for avg), send, "
    "recv,\nrecv_reduce and order (moves nothing: what uses the first span "
    "waits for the\nsecond).  'recv_reduce peer 1 out[0,16) with in[0,16)' "
    "combines the message with\nin, not with out.  'left' makes the message "
    "the left operand.  'waits for' needs\n'edges listed'.  Collectives whose "
    "names end in v have lines of one number for\neach rank below the line of "
    "a rank: in_counts, in_displs, out_counts, out_displs.\nThe sends to one "
    "peer, and the receives from one, keep the order of the list.\n";

static const struct program program = {
    .name = "coll_plan",
    .usage = "--collective NAME --ranks N [OPTION]... ACTION\n"
             "--check FILE\n"
             "--check --all --ranks FIRST:LAST",
    .about = "Show how libcoll carries out an operation, here or on another "
             "machine.",
    .notes = notes,
    .options = options,
    .most_words = 1,
};

/* ---- does it make sense together? ----------------------------------------- */

static int check_all_job(const struct job *job)
{
    if (job->action != ACTION_CHECK || job->file)
        return say(2, "--all goes with --check alone, without a file");
    if (!job->ranks_to)
        return say(2, "--check --all needs --ranks FIRST:LAST, such as 1:65");
    return -1;
}

static const char *remedy(const struct coll__op *op, enum coll_type type)
{
    if (coll__type_kind(type) == KIND_PAIR)
        return "--op minloc";
    return coll__op_takes(op, COLL_F32_I32) ? "--type f32_i32" : "--type u32";
}

static int check_op(const struct job *job)
{
    struct coll__op op = {.base = job->op};

    if (!coll__op_takes(&op, job->type) && coll__reduces(job->collective))
        return say(2, "--op %s is for %s, not for %s; add %s",
                   coll_op_name(job->op), coll__op_kinds(&op),
                   coll_type_name(job->type), remedy(&op, job->type));
    if (job->op == COLL_AVG && coll__is_prefix(job->collective))
        return say(2, "--op avg is for reductions over all ranks; take sum");
    return -1;
}

static int check_sizes(const struct job *job)
{
    size_t size = coll_type_size(job->type);

    if (job->bytes % size)
        return say(
            2, "--bytes %zu is no multiple of the %zu bytes of %s; take %zu",
            job->bytes, size, coll_type_name(job->type),
            job->bytes / size * size);
    if (job->bytes > PTRDIFF_MAX / (size_t)job->ranks)
        return say(2,
                   "--bytes %zu for %d ranks is larger than the address space",
                   job->bytes, job->ranks);
    if (job->root >= job->ranks)
        return say(2, "--root %d is not within 0 to %d", job->root,
                   job->ranks - 1);
    if (job->rank >= job->ranks)
        return say(2, "--rank %d is not within 0 to %d", job->rank,
                   job->ranks - 1);
    return -1;
}

/* A name without a collective must be an algorithm of this collective. */
static int check_algo(const struct job *job)
{
    char text[160];

    if (!*job->algo || strpbrk(job->algo, ":,"))
        return -1;
    snprintf(text, sizeof(text), "%s:%s", coll_collective_name(job->collective),
             job->algo);
    return coll__algo_check(text)
               ? say(2, "--algo: %s", strchr(coll_last_error(), ' ') + 1)
               : -1;
}

static int check_job(const struct job *job)
{
    int rc;

    if (job->action == ACTION_NONE)
        return say(2,
                   "name an action, such as --explain; see coll_plan --help");
    if (job->all)
        return check_all_job(job);
    if (job->file)
        return job->action == ACTION_CHECK
                   ? -1
                   : say(2, "unexpected argument %s; see coll_plan --help",
                         job->file);
    if (!job->has_collective)
        return say(2, "name a --collective, such as allreduce");
    if (!job->ranks)
        return say(2, "say how many --ranks there are");
    if (job->ranks_to)
        return say(2, "a range of --ranks goes with --check --all alone");
    if (job->json &&
        (job->action == ACTION_DOT || job->action == ACTION_CROSSOVER))
        return say(
            2, "--json goes with --explain, --dump, --check and --simulate");
    rc = check_op(job);
    if (rc < 0)
        rc = check_algo(job);
    return rc < 0 ? check_sizes(job) : rc;
}

int args_take(int argc, char **argv, struct job *job)
{
    int status, first;

    list_names(types, sizeof(types), type_name, COLL_N_TYPES);
    list_names(ops, sizeof(ops), op_name, COLL_N_OPS);
    program_defaults(&program, job);
    first = program_read(&program, argc, argv, job, &status);
    if (first < 0)
        return status;
    job->file = argv[first]; /* NULL when there is none */
    return check_job(job);
}
