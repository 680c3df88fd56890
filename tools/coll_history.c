/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_history.c - read the files that each rank writes for COLL_HISTORY, and report the
 * call in which ranks are missing or differ.
 *
 * In the files, all ranks of a communicator have the same id for it.  Each series of its
 * calls is judged by itself.  If two ranks differ in a call that both files still hold,
 * the first such call is reported.  Else the first call that has not ended on all ranks
 * is reported; the ranks that have not begun it are missing.  With --slow the ranks that
 * come late to their calls are reported instead (coll_history_slow.c).
 */
#include "tools/coll_history.h"
#include "tools/common/program.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define NAMED 16 /* ranks that a line names */

struct choice {
    int is_json, is_slow;
};

static const struct program_option options[] = {
    {"slow", 's', OPTION_SWITCH, offsetof(struct choice, is_slow), NULL, NULL,
     .help = "say which rank comes last to the calls, and how late"},
    {"json", 'j', OPTION_SWITCH, offsetof(struct choice, is_json), NULL, NULL,
     .help = "print JSON"},
    {.name = NULL},
};

static const struct program program = {
    .name = "coll_history",
    .usage = "[OPTION]... FILE...",
    .about = "Say which ranks are missing in which call, by the files that the "
             "ranks have written\nto COLL_HISTORY when a communicator failed "
             "or at a SIGUSR2.  With --slow, say which\nranks come late, by "
             "these files or those of COLL_METRICS.",
    .notes = "Exit status: 0 when no rank is missing and all ranks call the "
             "same, and with --slow;\n1 when not; 2 when a file is not one of "
             "these.\n",
    .options = options,
    .most_words = -1,
};

/* The finding in a series of calls. */
enum finding { FOUND_NOTHING, FOUND_MISSING, FOUND_MISMATCH, FOUND_WAITING };

struct verdict {
    enum finding finding;
    const char *series;
    json_int_t seq;
    double waited; /* s, of the rank that waits longest; 0: not known */
};

/* ---- judging ------------------------------------------------------------------- */

static json_int_t started(const struct history_group *g, int rank,
                          const char *series)
{
    return history_whole(history_series(g->parts[rank].comm, series),
                         "started");
}

static json_int_t ended(const struct history_group *g, int rank,
                        const char *series)
{
    return history_whole(history_series(g->parts[rank].comm, series), "ended");
}

static int is_same(const json_t *a, const json_t *b)
{
    return !strcmp(history_word(a, "what"), history_word(b, "what")) &&
           history_whole(a, "root") == history_whole(b, "root") &&
           history_whole(a, "count") == history_whole(b, "count") &&
           history_whole(a, "way") == history_whole(b, "way");
}

/* Return the call with this number, from the first rank that still knows it. */
static json_t *first_call(const struct history_group *g, const char *series,
                          json_int_t seq)
{
    for (int r = 0; r < g->size; r++) {
        json_t *call = history_call(g->parts[r].comm, series, seq);

        if (call)
            return call;
    }
    return NULL;
}

static int do_differ(const struct history_group *g, const char *series,
                     json_int_t seq)
{
    const json_t *first = first_call(g, series, seq);

    for (int r = 0; r < g->size; r++) {
        const json_t *call = history_call(g->parts[r].comm, series, seq);

        if (call && !is_same(call, first))
            return 1;
    }
    return 0;
}

/* Return how long the rank that waits longest has been in this call. */
static double waited(const struct history_group *g, const char *series,
                     json_int_t seq)
{
    double most = 0;

    for (int r = 0; r < g->size; r++) {
        const json_t *call = history_call(g->parts[r].comm, series, seq);
        double called = json_number_value(json_object_get(call, "called"));
        double end = json_number_value(json_object_get(call, "ended"));

        if (called > 0 && end <= 0 && g->parts[r].clock - called > most)
            most = g->parts[r].clock - called;
    }
    return most;
}

static struct verdict judge(const struct history_group *g, const char *series)
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
static void print_ranks(const struct history_group *g, const struct verdict *v,
                        int (*is_in)(const struct history_group *, int,
                                     const struct verdict *))
{
    int n = 0;

    for (int r = 0; r < g->size; r++)
        if (is_in(g, r, v) && n++ < NAMED)
            printf(" %d", history_rank(g, r));
    if (n > NAMED)
        printf(" ... (%d in all)", n);
}

static int has_no_file(const struct history_group *g, int rank,
                       const struct verdict *v)
{
    (void)v;
    return !g->parts[rank].comm;
}

static int is_member(const struct history_group *g, int rank,
                     const struct verdict *v)
{
    (void)g, (void)rank, (void)v;
    return 1;
}

static int is_missing(const struct history_group *g, int rank,
                      const struct verdict *v)
{
    return g->parts[rank].comm && started(g, rank, v->series) < v->seq;
}

static int is_waiting(const struct history_group *g, int rank,
                      const struct verdict *v)
{
    return g->parts[rank].comm && started(g, rank, v->series) >= v->seq &&
           ended(g, rank, v->series) < v->seq;
}

static const char *call_text(const struct history_group *g,
                             const struct verdict *v)
{
    const json_t *call = first_call(g, v->series, v->seq);

    return call ? history_word(call, "what") : "a call that nobody remembers";
}

/* List each call once, with the ranks that made it. */
static void print_callers(const struct history_group *g,
                          const struct verdict *v)
{
    for (int r = 0; r < g->size; r++) {
        const json_t *mine = history_call(g->parts[r].comm, v->series, v->seq);
        int is_first = mine != NULL;

        for (int q = 0; q < r && is_first; q++) {
            const json_t *other =
                history_call(g->parts[q].comm, v->series, v->seq);

            is_first = !other || !is_same(mine, other);
        }
        if (!is_first)
            continue;
        printf("    %s", history_word(mine, "what"));
        if (history_whole(mine, "user_tag"))
            printf(" [user tag %llu]",
                   (unsigned long long)history_whole(mine, "user_tag"));
        putchar(':');
        for (int q = r, n = 0; q < g->size; q++) {
            const json_t *other =
                history_call(g->parts[q].comm, v->series, v->seq);

            if (other && is_same(mine, other) && n++ < NAMED)
                printf(" %d", history_rank(g, q));
        }
        putchar('\n');
    }
}

static void print_verdict(const struct history_group *g,
                          const struct verdict *v)
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

static void print_where(const struct history_group *g)
{
    for (int r = 0, n = 0; r < g->size && n < NAMED; r++)
        if (g->parts[r].comm) {
            printf("  rank %d is %s\n", history_rank(g, r),
                   history_word(g->parts[r].comm, "where"));
            n++;
        }
}

static const char *failure_of(const struct history_group *g)
{
    for (int r = 0; r < g->size; r++)
        if (*history_word(g->parts[r].comm, "failure"))
            return history_word(g->parts[r].comm, "failure");
    return "";
}

static const char *const all_series[] = {"host", "stream", "any order"};

/* Print which communicator this is, and which ranks are not known. */
static void print_head(const struct history_group *g)
{
    printf("communicator %s of rank", g->id);
    print_ranks(g, NULL, is_member);
    printf("\n");
    if (g->n_parts < g->size) {
        printf("  no file of rank");
        print_ranks(g, NULL, has_no_file);
        printf(": it was killed, or has not written one\n");
    }
}

static int print_group(const struct history_group *g)
{
    int is_wrong = g->n_parts < g->size;

    print_head(g);
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

static json_t *list(const struct history_group *g, const struct verdict *v,
                    int (*is_in)(const struct history_group *, int,
                                 const struct verdict *))
{
    json_t *ranks = json_array();

    for (int r = 0; r < g->size; r++)
        if (is_in(g, r, v))
            json_array_append(ranks, json_array_get(g->ranks, (size_t)r));
    return ranks;
}

static json_t *verdict_json(const struct history_group *g,
                            const struct verdict *v)
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

static int group_json(const struct history_group *g, json_t *out)
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

static int print_all(const struct histories *all)
{
    int is_wrong = 0;

    for (int i = 0; i < all->n_groups; i++)
        is_wrong |= print_group(&all->groups[i]);
    return is_wrong;
}

static int print_slow(const struct histories *all)
{
    for (int i = 0; i < all->n_groups; i++) {
        print_head(&all->groups[i]);
        history_print_slow(&all->groups[i]);
    }
    return 0;
}

static int all_json(const struct histories *all, json_t *out)
{
    int is_wrong = 0;

    for (int i = 0; i < all->n_groups; i++)
        is_wrong |= group_json(&all->groups[i], out);
    return is_wrong;
}

static int slow_json(const struct histories *all, json_t *out)
{
    for (int i = 0; i < all->n_groups; i++) {
        const struct history_group *g = &all->groups[i];

        json_array_append_new(
            out, json_pack("{s:s, s:O, s:o, s:o}", "id", g->id, "ranks",
                           g->ranks, "no_file", list(g, NULL, has_no_file),
                           "latest_first", history_slow_json(g)));
    }
    return 0;
}

/* Return 1 if a rank is missing or differs, or 0. */
static int report(const struct histories *all, const struct choice *choice)
{
    json_t *out;
    int is_wrong;

    if (!choice->is_json) {
        printf("%zu files of %d ranks\n", json_array_size(all->files),
               all->size_of_job);
        return choice->is_slow ? print_slow(all) : print_all(all);
    }
    out = json_array();
    is_wrong = choice->is_slow ? slow_json(all, out) : all_json(all, out);
    json_dumpf(out, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(out);
    return is_wrong;
}

/* ---- the command line ------------------------------------------------------------ */

int main(int argc, char **argv)
{
    struct choice choice = {0};
    struct histories all = {0};
    int is_wrong, status;
    int first = program_read(&program, argc, argv, &choice, &status);

    if (first < 0)
        return status;
    if (first == argc)
        history_die("which files? say coll_history FILE...; see coll_history "
                    "--help");
    if (history_is_metrics(argv[first])) {
        if (!choice.is_slow)
            history_die("%s is of COLL_METRICS; say coll_history --slow",
                        argv[first]);
        history_slow_metrics(argv + first, argc - first, choice.is_json);
        return program_finish(&program, 0);
    }
    all.files = history_must(json_array());
    for (int i = first; i < argc; i++)
        histories_read(&all, argv[i]);
    is_wrong = report(&all, &choice);
    histories_fini(&all);
    return program_finish(&program, is_wrong);
}
