/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_history.c - read the files that each rank writes for COLL_HISTORY, and report the
 * call in which ranks are missing or differ.
 *
 * In the files, all ranks of a communicator have the same id for it.  Each series of its
 * calls is judged by itself.  If two ranks differ in a call that both files still hold,
 * the first such call is reported.  Else the first call that has not ended on all ranks
 * is reported; the ranks that have not begun it are missing.
 */
#include "tools/common/program.h"
#include <coll/coll.h>

#include <jansson.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED 16                   /* ranks that a line names */
#define MOST ((json_int_t)1 << 53) /* the most calls that a rank can have counted */

static const struct program_option options[] = {
    {"json", 'j', OPTION_SWITCH, 0, NULL, NULL, .help = "print JSON"},
    {.name = NULL},
};

static const struct program program = {
    .name = "coll_history",
    .usage = "[OPTION]... FILE...",
    .about = "Say which ranks are missing in which call, by the files that the "
             "ranks have written\nto COLL_HISTORY when a communicator failed "
             "or at a SIGUSR2.",
    .notes = "Exit status: 0 when no rank is missing and all ranks call the "
             "same; 1 when not; 2\nwhen a file is not one of COLL_HISTORY.\n",
    .options = options,
    .most_words = -1,
};

/* One rank's records of one communicator. */
struct part {
    json_t *comm;
    double clock; /* as it was written, s */
};

/* A communicator, with the ranks whose files were read. */
struct group {
    const char *id;
    int size, n_parts;
    json_t *ranks;
    struct part *parts; /* [size]; comm is NULL for a rank without a file */
};

/* The finding in a series of calls. */
enum finding { FOUND_NOTHING, FOUND_MISSING, FOUND_MISMATCH, FOUND_WAITING };

struct verdict {
    enum finding finding;
    const char *series;
    json_int_t seq;
    double waited; /* s, of the rank that waits longest; 0: not known */
};

static json_t *files;
static struct group *groups;
static int n_groups, size_of_job;

__attribute__((format(printf, 1, 2), noreturn)) static void
die(const char *format, ...)
{
    va_list args;

    fputs("coll_history: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(PROGRAM_USAGE);
}

static void *must(void *memory)
{
    if (!memory)
        die("out of memory");
    return memory;
}

/* ---- reading ------------------------------------------------------------------ */

static json_int_t whole(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static const char *word(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static json_t *series_of(const json_t *comm, const char *name)
{
    json_t *series;
    size_t i;

    json_array_foreach(
        json_object_get(comm, "calls"), i,
        series) if (!strcmp(word(series, "series"), name)) return series;
    return NULL;
}

/* Return the call with this number, or NULL if the rank has forgotten it or not begun
 * it. */
static json_t *call_of(const json_t *comm, const char *name, json_int_t seq)
{
    json_t *last = json_object_get(series_of(comm, name), "last"), *first;
    json_int_t at;

    first = json_array_get(last, 0);
    at = seq - whole(first, "seq");
    if (at >= (json_int_t)json_array_size(last))
        at = (json_int_t)json_array_size(last) - 1;
    for (json_t *call; first && at >= 0; at--) { /* some may be left out */
        call = json_array_get(last, (size_t)at);
        if (call && whole(call, "seq") == seq)
            return call;
        if (call && whole(call, "seq") < seq)
            return NULL;
    }
    return NULL;
}

static struct group *group_of(const json_t *comm)
{
    int size = (int)whole(comm, "size");
    struct group *g;

    for (int i = 0; i < n_groups; i++)
        if (!strcmp(groups[i].id, word(comm, "id")))
            return groups[i].size == size ? &groups[i] : NULL;
    groups = must(realloc(groups, (size_t)(n_groups + 1) * sizeof(*groups)));
    g = &groups[n_groups++];
    *g = (struct group){.id = word(comm, "id"),
                        .size = size,
                        .ranks = json_object_get(comm, "ranks"),
                        .parts = must(calloc((size_t)size, sizeof(*g->parts)))};
    return g;
}

static int is_count(json_int_t n) { return n >= 0 && n <= MOST; }

static int is_series(const json_t *series)
{
    const json_t *call;
    size_t i;

    json_array_foreach(json_object_get(series, "last"), i, call)
    {
        if (!is_count(whole(call, "seq")))
            return 0;
    }
    return is_count(whole(series, "started")) &&
           is_count(whole(series, "ended"));
}

static int has_series(const json_t *comm)
{
    const json_t *calls = json_object_get(comm, "calls"), *series;
    size_t i;

    json_array_foreach(calls, i, series)
    {
        if (!is_series(series))
            return 0;
    }
    return json_is_array(calls);
}

static int is_comm(const json_t *comm)
{
    json_int_t size = whole(comm, "size"), rank = whole(comm, "rank");

    return *word(comm, "id") && size > 0 && size <= 1 << 24 && rank >= 0 &&
           rank < size &&
           json_array_size(json_object_get(comm, "ranks")) == (size_t)size &&
           has_series(comm);
}

static void take(const char *path, const json_t *file, json_t *comm)
{
    struct group *g = is_comm(comm) ? group_of(comm) : NULL;
    struct part *part = g ? &g->parts[whole(comm, "rank")] : NULL;

    if (!part)
        die("%s: one of its communicators is none", path);
    if (part->comm)
        die("%s: another file is of that rank, too; give those of one moment "
            "alone",
            path);
    *part =
        (struct part){comm, json_number_value(json_object_get(file, "clock"))};
    g->n_parts++;
}

static void read_file(const char *path)
{
    json_error_t error;
    json_t *file = json_load_file(path, 0, &error), *comm;
    size_t i;

    if (!file)
        die("cannot read %s: %s", path, error.text);
    if (whole(file, "libcoll_history") != 1)
        die("%s is not what COLL_HISTORY writes", path);
    json_array_append_new(files, file);
    size_of_job = (int)whole(file, "size");
    json_array_foreach(json_object_get(file, "communicators"), i, comm)
        take(path, file, comm);
}

/* ---- judging ------------------------------------------------------------------- */

static json_int_t started(const struct group *g, int rank, const char *series)
{
    return whole(series_of(g->parts[rank].comm, series), "started");
}

static json_int_t ended(const struct group *g, int rank, const char *series)
{
    return whole(series_of(g->parts[rank].comm, series), "ended");
}

static int is_same(const json_t *a, const json_t *b)
{
    return !strcmp(word(a, "what"), word(b, "what")) &&
           whole(a, "root") == whole(b, "root") &&
           whole(a, "count") == whole(b, "count") &&
           whole(a, "way") == whole(b, "way");
}

/* Return the call with this number, from the first rank that still knows it. */
static json_t *first_call(const struct group *g, const char *series,
                          json_int_t seq)
{
    for (int r = 0; r < g->size; r++) {
        json_t *call = call_of(g->parts[r].comm, series, seq);

        if (call)
            return call;
    }
    return NULL;
}

static int do_differ(const struct group *g, const char *series, json_int_t seq)
{
    const json_t *first = first_call(g, series, seq);

    for (int r = 0; r < g->size; r++) {
        const json_t *call = call_of(g->parts[r].comm, series, seq);

        if (call && !is_same(call, first))
            return 1;
    }
    return 0;
}

/* Return how long the rank that waits longest has been in this call. */
static double waited(const struct group *g, const char *series, json_int_t seq)
{
    double most = 0;

    for (int r = 0; r < g->size; r++) {
        const json_t *call = call_of(g->parts[r].comm, series, seq);
        double called = json_number_value(json_object_get(call, "called"));
        double end = json_number_value(json_object_get(call, "ended"));

        if (called > 0 && end <= 0 && g->parts[r].clock - called > most)
            most = g->parts[r].clock - called;
    }
    return most;
}

static struct verdict judge(const struct group *g, const char *series)
{
    json_int_t least = -1, most = 0, all_ended = -1;
    struct verdict v = {.series = series};

    for (int r = 0; r < g->size; r++) {
        json_int_t n = started(g, r, series), done = ended(g, r, series);

        if (!g->parts[r].comm)
            continue;
        least = least < 0 || n < least ? n : least;
        most = n > most ? n : most;
        all_ended = all_ended < 0 || done < all_ended ? done : all_ended;
    }
    for (v.seq = most > 4096 ? most - 4096 : 1; v.seq <= most; v.seq++)
        if (do_differ(g, series, v.seq)) {
            v.finding = FOUND_MISMATCH;
            return v;
        }
    v.seq = all_ended + 1;
    if (v.seq <= most)
        v.finding = least < v.seq ? FOUND_MISSING : FOUND_WAITING;
    v.waited = v.finding ? waited(g, series, v.seq) : 0;
    return v;
}

/* ---- saying -------------------------------------------------------------------- */

/* List the ranks that `is_in` chooses, by their numbers in the first communicator. */
static void print_ranks(const struct group *g, const struct verdict *v,
                        int (*is_in)(const struct group *, int,
                                     const struct verdict *))
{
    int n = 0;

    for (int r = 0; r < g->size; r++)
        if (is_in(g, r, v) && n++ < NAMED)
            printf(" %d", (int)json_integer_value(
                              json_array_get(g->ranks, (size_t)r)));
    if (n > NAMED)
        printf(" ... (%d in all)", n);
}

static int has_no_file(const struct group *g, int rank, const struct verdict *v)
{
    (void)v;
    return !g->parts[rank].comm;
}

static int is_member(const struct group *g, int rank, const struct verdict *v)
{
    (void)g, (void)rank, (void)v;
    return 1;
}

static int is_missing(const struct group *g, int rank, const struct verdict *v)
{
    return g->parts[rank].comm && started(g, rank, v->series) < v->seq;
}

static int is_waiting(const struct group *g, int rank, const struct verdict *v)
{
    return g->parts[rank].comm && started(g, rank, v->series) >= v->seq &&
           ended(g, rank, v->series) < v->seq;
}

static const char *call_text(const struct group *g, const struct verdict *v)
{
    const json_t *call = first_call(g, v->series, v->seq);

    return call ? word(call, "what") : "a call that nobody remembers";
}

/* List each call once, with the ranks that made it. */
static void print_callers(const struct group *g, const struct verdict *v)
{
    for (int r = 0; r < g->size; r++) {
        const json_t *mine = call_of(g->parts[r].comm, v->series, v->seq);
        int is_first = mine != NULL;

        for (int q = 0; q < r && is_first; q++) {
            const json_t *other = call_of(g->parts[q].comm, v->series, v->seq);

            is_first = !other || !is_same(mine, other);
        }
        if (!is_first)
            continue;
        printf("    %s", word(mine, "what"));
        if (whole(mine, "user_tag"))
            printf(" [user tag %llu]",
                   (unsigned long long)whole(mine, "user_tag"));
        putchar(':');
        for (int q = r, n = 0; q < g->size; q++) {
            const json_t *other = call_of(g->parts[q].comm, v->series, v->seq);

            if (other && is_same(mine, other) && n++ < NAMED)
                printf(" %d", (int)json_integer_value(
                                  json_array_get(g->ranks, (size_t)q)));
        }
        putchar('\n');
    }
}

static void print_verdict(const struct group *g, const struct verdict *v)
{
    switch (v->finding) {
    case FOUND_MISMATCH:
        printf("  the ranks differ in call #%lld:\n", (long long)v->seq);
        print_callers(g, v);
        break;
    case FOUND_MISSING:
        printf("  missing in %s: rank", call_text(g, v));
        print_ranks(g, v, is_missing);
        printf("; waiting in it: rank");
        print_ranks(g, v, is_waiting);
        if (v->waited > 0)
            printf(", for %.1f s", v->waited);
        putchar('\n');
        break;
    case FOUND_WAITING:
        printf("  in %s: %s; it has not ended on rank", call_text(g, v),
               g->n_parts < g->size ? "all that have a file" : "all of them");
        print_ranks(g, v, is_waiting);
        putchar('\n');
        break;
    case FOUND_NOTHING:
        break;
    }
}

static void print_where(const struct group *g)
{
    for (int r = 0, n = 0; r < g->size && n < NAMED; r++)
        if (g->parts[r].comm) {
            printf("  rank %d is %s\n",
                   (int)json_integer_value(json_array_get(g->ranks, (size_t)r)),
                   word(g->parts[r].comm, "where"));
            n++;
        }
}

static const char *failure_of(const struct group *g)
{
    for (int r = 0; r < g->size; r++)
        if (*word(g->parts[r].comm, "failure"))
            return word(g->parts[r].comm, "failure");
    return "";
}

static const char *const all_series[] = {"host", "stream", "any order"};

static int print_group(const struct group *g)
{
    int is_wrong = g->n_parts < g->size;

    printf("communicator %s of rank", g->id);
    print_ranks(g, NULL, is_member);
    printf("\n");
    if (is_wrong) {
        printf("  no file of rank");
        print_ranks(g, NULL, has_no_file);
        printf(": it was killed, or has not written one\n");
    }
    if (*failure_of(g))
        printf("  it has failed: %s\n", failure_of(g));
    for (size_t s = 0; s < sizeof(all_series) / sizeof(all_series[0]); s++) {
        struct verdict v = judge(g, all_series[s]);

        print_verdict(g, &v);
        is_wrong |= v.finding == FOUND_MISSING || v.finding == FOUND_MISMATCH;
    }
    print_where(g);
    return is_wrong;
}

/* ---- as JSON -------------------------------------------------------------------- */

static json_t *list(const struct group *g, const struct verdict *v,
                    int (*is_in)(const struct group *, int,
                                 const struct verdict *))
{
    json_t *ranks = json_array();

    for (int r = 0; r < g->size; r++)
        if (is_in(g, r, v))
            json_array_append(ranks, json_array_get(g->ranks, (size_t)r));
    return ranks;
}

static json_t *verdict_json(const struct group *g, const struct verdict *v)
{
    static const char *const words[] = {
        [FOUND_NOTHING] = "none",
        [FOUND_MISSING] = "missing",
        [FOUND_MISMATCH] = "mismatch",
        [FOUND_WAITING] = "waiting",
    };

    return json_pack("{s:s, s:s, s:I, s:s, s:o, s:o, s:f}", "series", v->series,
                     "found", words[v->finding], "seq", v->seq, "call",
                     call_text(g, v), "missing", list(g, v, is_missing),
                     "waiting", list(g, v, is_waiting), "waited", v->waited);
}

static int group_json(const struct group *g, json_t *out)
{
    json_t *found = json_array();
    int is_wrong = g->n_parts < g->size;

    for (size_t s = 0; s < sizeof(all_series) / sizeof(all_series[0]); s++) {
        struct verdict v = judge(g, all_series[s]);

        if (v.finding)
            json_array_append_new(found, verdict_json(g, &v));
        is_wrong |= v.finding == FOUND_MISSING || v.finding == FOUND_MISMATCH;
    }
    json_array_append_new(out, json_pack("{s:s, s:O, s:o, s:s, s:o}", "id",
                                         g->id, "ranks", g->ranks, "no_file",
                                         list(g, NULL, has_no_file), "failure",
                                         failure_of(g), "found", found));
    return is_wrong;
}

static int report(int is_json)
{
    json_t *out = json_array();
    int is_wrong = 0;

    if (!is_json)
        printf("%zu files of %d ranks\n", json_array_size(files), size_of_job);
    for (int i = 0; i < n_groups; i++)
        is_wrong |=
            is_json ? group_json(&groups[i], out) : print_group(&groups[i]);
    if (is_json) {
        json_dumpf(out, stdout, JSON_INDENT(1));
        putchar('\n');
    }
    json_decref(out);
    return is_wrong;
}

/* ---- the command line ------------------------------------------------------------ */

int main(int argc, char **argv)
{
    int is_json = 0, is_wrong, status;
    int first = program_read(&program, argc, argv, &is_json, &status);

    if (first < 0)
        return status;
    if (first == argc)
        die("which files? say coll_history FILE...; see coll_history --help");
    files = must(json_array());
    for (int i = first; i < argc; i++)
        read_file(argv[i]);
    is_wrong = report(is_json);
    for (int i = 0; i < n_groups; i++)
        free(groups[i].parts);
    free(groups);
    json_decref(files);
    return program_finish(&program, is_wrong);
}
