/* SPDX-License-Identifier: BSD-3-Clause */
/* test_load.c - plan files: what is written can be read back; what is wrong is
 * named by file, line and field; whatever the bytes, a file is refused or
 * proven, never believed. */
#include "lib/proof/proof.h"
#include "lib/proof/prove.h"
#include "lib/util/util.h"
#include "lib/type/signature.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *text_of(const struct coll__plans *plans, size_t *len)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, len);

    coll__plans_dump(plans, to);
    fclose(to);
    return text;
}

/* ---- what is written is read back ----------------------------------------- */

static void expect_equal_numbers(const size_t *a, const size_t *b, int n)
{
    ck_assert_int_eq(a == NULL, b == NULL);
    for (int i = 0; i < n && a; i++)
        ck_assert_uint_eq(a[i], b[i]);
}

static void expect_equal_problems(const struct coll__problem *a,
                                  const struct coll__problem *b)
{
    ck_assert_int_eq(a->collective, b->collective);
    ck_assert_int_eq(a->type, b->type);
    ck_assert_int_eq(a->op, b->op);
    ck_assert_int_eq(a->is_user_op, b->is_user_op);
    ck_assert_int_eq(a->order, b->order);
    ck_assert_int_eq(a->root, b->root);
    ck_assert_int_eq(a->nranks, b->nranks);
    ck_assert_int_eq(a->rank, b->rank);
    ck_assert_uint_eq(a->count, b->count);
    ck_assert_int_eq(a->in_place, b->in_place);
    expect_equal_numbers(a->in_counts, b->in_counts, a->nranks);
    expect_equal_numbers(a->in_displs, b->in_displs, a->nranks);
    expect_equal_numbers(a->out_counts, b->out_counts, a->nranks);
    expect_equal_numbers(a->out_displs, b->out_displs, a->nranks);
}

static void expect_equal_spans(const struct coll__span *a,
                               const struct coll__span *b)
{
    ck_assert_int_eq(a->buf, b->buf);
    ck_assert_uint_eq(a->off, b->off);
    ck_assert_uint_eq(a->len, b->len);
}

static void expect_equal_plans(const struct coll__plan *a,
                               const struct coll__plan *b)
{
    ck_assert_int_eq(a->n_steps, b->n_steps);
    ck_assert_uint_eq(a->tmp_len, b->tmp_len);
    for (int i = 0; i < a->n_steps; i++) {
        const struct coll__step *x = &a->steps[i], *y = &b->steps[i];

        ck_assert_int_eq(x->kind, y->kind);
        ck_assert_int_eq(x->peer, y->peer);
        ck_assert_uint_eq(x->src_first, y->src_first);
        if (coll__step_writes_dst(x->kind))
            expect_equal_spans(&x->dst, &y->dst);
        if (coll__step_reads_src(x->kind))
            expect_equal_spans(&x->src, &y->src);
        ck_assert_int_eq(a->n_deps[i], b->n_deps[i]);
        ck_assert_int_eq(a->same[i], b->same[i]);
        ck_assert_int_eq(a->first_after[i + 1], b->first_after[i + 1]);
    }
    for (int e = 0; e < a->first_after[a->n_steps]; e++)
        ck_assert_int_eq(a->after[e], b->after[e]);
}

static void there_and_back(const struct coll__plans *plans)
{
    struct coll__plans again;
    size_t len = 0;
    char *text = text_of(plans, &len), why[256] = "";

    ck_assert_msg(coll__plans_parse("back", text, len, &again) == COLL_OK,
                  "%s", coll_last_error());
    ck_assert_str_eq(plans->algorithm, again.algorithm);
    for (int r = 0; r < plans->pbs[0].nranks; r++) {
        expect_equal_problems(&plans->pbs[r], &again.pbs[r]);
        expect_equal_plans(&plans->plans[r], &again.plans[r]);
    }
    ck_assert_msg(coll__plans_check(&again, 1, why, sizeof(why)) == COLL_OK,
                  "%s", why);
    coll__plans_fini(&again);
    free(text);
}

static void trials_there_and_back(const struct coll__algo *algo,
                                  enum coll_collective collective, int p,
                                  const struct coll__view views[COLL__N_VIEWS])
{
    struct coll__trial t;

    for (int i = 0; coll__trial_at(i, collective, p, views, &t); i++) {
        struct coll__cast cast;
        struct coll__plans plans;

        ck_assert_int_eq(coll__cast_init(&cast, &t), COLL_OK);
        if (coll__plans_build(&plans, algo, cast.pbs, t.chunk) == COLL_OK) {
            there_and_back(&plans);
            coll__plans_fini(&plans);
        }
        coll__cast_fini(&cast);
    }
}

START_TEST(every_plan_is_read_back_as_it_was)
{
    struct coll__view views[COLL__N_VIEWS];

    ck_assert_int_eq(coll__views_init(views, _i), COLL_OK);
    for (int i = 0; coll__algos[i]; i++)
        for (int k = 0; k < COLL__N_OF_ALL; k++)
            if (coll__algos[i]->serves & 1u << coll__of_all(k))
                trials_there_and_back(coll__algos[i], coll__of_all(k), _i,
                                      views);
    coll__views_fini(views);
}
END_TEST

/* ---- what is wrong is named ----------------------------------------------- */

#define HEAD                                                                   \
    "coll_plan 1\ncollective allreduce # of two\ntype i32\nranks 2\ncount 4\n" \
    "edges listed\n"
#define RANK(r, peer)                                      \
    "rank " #r " tmp 16\n0 copy out[0,16) from in[0,16)\n" \
    "1 send peer " #peer " in[0,16)\n"                     \
    "2 recv peer " #peer " tmp[0,16)\n"                    \
    "3 reduce out[0,16) from tmp[0,16) waits for 0 2\n"

/* Read it and prove it; the sentence is in why or coll_last_error(). */
static int judge(const char *text, size_t len, char *why, size_t why_len)
{
    struct coll__plans plans;
    int rc = coll__plans_parse("x.plan", text, len, &plans);

    if (rc) {
        ck_assert_int_eq(strncmp(coll_last_error(), "x.plan:", 7), 0);
        snprintf(why, why_len, "%s", coll_last_error());
        return rc;
    }
    rc = coll__plans_check(&plans, 2, why, why_len);
    coll__plans_fini(&plans);
    return rc;
}

START_TEST(a_plan_by_hand_is_proven)
{
    char why[256] = "";

    ck_assert_msg(judge(HEAD RANK(0, 1) "\n" RANK(1, 0),
                        strlen(HEAD RANK(0, 1) "\n" RANK(1, 0)), why,
                        sizeof(why)) == COLL_OK, "%s", why);
}
END_TEST

static const struct {
    const char *text, *words;
} wrong[] = {
    {"", "x.plan:1: this is no plan file"},
    {"<xml/>", "x.plan:1: this is no plan file"},
    {"coll_plan 2\n", "x.plan:1: version 2"},
    {"coll_plan 1\ncollective allsum\n", "x.plan:2: collective: there is no "
                                         "'allsum'; there are: allreduce"},
    {"coll_plan 1\ncollective send\n", "x.plan:2: collective: there is no"},
    {"coll_plan 1\ntype f31\n", "x.plan:2: type: there is no 'f31'"},
    {"coll_plan 1\nranks 0\n", "x.plan:2: ranks 0 is not within 1 to 1024"},
    {"coll_plan 1\nranks 99999999999999999999\n", "too large"},
    {"coll_plan 1\nranks -1\n", "x.plan:2: ranks: '-1' is not a whole number"},
    {"coll_plan 1\nranks 2\nranks 2\n", "x.plan:3: ranks stands twice"},
    {"coll_plan 1\nranks 2 3\n", "x.plan:2: '3' is not expected here"},
    {"coll_plan 1\ncolour red\n", "x.plan:2: 'colour' is no field"},
    {"coll_plan 1\nranks 2\nrank 0\n", "x.plan:3: the head has no collective"},
    {"coll_plan 1\ncollective allreduce\ntype i32\nranks 2\n"
     "count 9223372036854775807\nrank 0\n",
     "larger than the address space"},
    {"coll_plan 1\ncollective broadcast\ntype i32\nranks 2\nroot 2\n"
     "count 4\nrank 0\n",
     "root 2 is not within 0 to 1"},
    {HEAD, "rank 0's part is missing"},
    {HEAD RANK(0, 1), "rank 1's part is missing"},
    {HEAD "rank 1\n", "x.plan:7: rank 1 stands where rank 0 must"},
    {HEAD "rank 2\n", "x.plan:7: rank 2 is not within 0 to 1"},
    {HEAD "rank 0 tmp\n", "x.plan:7: tmp: a number is missing"},
    {HEAD "rank 0 tmp 18446744073709551615\n", "x.plan:7: tmp"},
    {HEAD "rank 0 count 5\n", "same count on every rank"},
    {HEAD "rank 0\nin_counts 1 2\n", "x.plan:8: in_counts: allreduce has none"},
    {HEAD "rank 0\n1 scale out[0,16)\n", "x.plan:8: step 1 stands where step "
                                         "0 must"},
    {HEAD "rank 0\nx\n", "x.plan:8: 'x' is neither a step's number"},
    {HEAD "rank 0\n0 add out[0,16)\n", "x.plan:8: step: there is no 'add'"},
    {HEAD "rank 0\n0 send peer 9 in[0,16)\n", "x.plan:8: peer 9 is not within "
                                              "0 to 1"},
    {HEAD "rank 0\n0 send peer 0 in[0,16)\n", "peer 0 is this rank itself"},
    {HEAD "rank 0\n0 send in[0,16)\n", "x.plan:8: send: 'peer' must follow"},
    {HEAD "rank 0\n0 send peer 1 in[0,20)\n", "ends behind rank 0's in, which "
                                              "has 16 bytes"},
    {HEAD "rank 0\n0 send peer 1 in[0,18446744073709551615)\n", "ends behind"},
    {HEAD "rank 0\n0 send peer 1 in[8,4)\n", "is no span such as"},
    {HEAD "rank 0\n0 send peer 1 in[2,6)\n", "whole elements of 4 bytes"},
    {HEAD "rank 0\n0 recv peer 1 in[0,16)\n", "IN is read only"},
    {HEAD "rank 0\n0 recv peer 1 tmp[0,16)\n", "ends behind rank 0's tmp"},
    {HEAD "rank 0\n0 copy out[0,16) in[0,16)\n", "'from' and the source"},
    {HEAD "rank 0\n0 copy out[0,16) from in[0,8)\n", "have 8 and 16 bytes"},
    {HEAD "rank 0\n0 copy out[0,8) from out[4,12)\n", "overlap"},
    {HEAD "rank 0\n0 recv_reduce peer 1 out[0,16) with\n", "x.plan:8: with: a "
                                                           "span such as"},
    {HEAD "rank 0\n0 recv_reduce peer 1 out[0,16) with in[0,8)\n", "have 8 and "
                                                                   "16 bytes"},
    {HEAD "rank 0\n0 recv_reduce peer 1 out[0,8) with out[4,12)\n", "overlap"},
    {HEAD "rank 0\n0 recv peer 1 out[0,8) with in[0,8)\n", "'with' is not "
                                                           "expected here"},
    {HEAD "rank 0\n0 scale out[0,4) left\n", "'left' is not expected here"},
    {HEAD "rank 0\n0 scale out[0,4) waits for 0\n", "no step before step 0"},
    {HEAD "rank 0\n0 copy out[0,4) from in[0,4)\n"
          "1 scale out[0,4) waits for 1\n",
     "x.plan:9: waits for 1 is not within 0 "
     "to 0"},
    {HEAD "rank 0\n0 copy out[0,4) from in[0,4)\n"
          "1 scale out[0,4) waits\n",
     "x.plan:9: waits: 'for' must follow"},
    {"coll_plan 1\ncollective allgatherv\ntype i32\nranks 2\ncount 4\n"
     "rank 0\n0 copy out[0,4) from in[0,4)\n",
     "rank 0 has no out_counts"},
    {"coll_plan 1\ncollective allgatherv\ntype i32\nranks 2\ncount 4\n"
     "rank 0\nout_counts 1 9223372036854775807\n0 scale out[0,4)\n",
     "larger than the address space"},
    {"coll_plan 1\ncollective allgatherv\ntype i32\nranks 2\ncount 4\n"
     "rank 0\nout_counts 1\n",
     "x.plan:7: out_counts: a number is missing"},
    {"coll_plan 1\ncollective allgatherv\ntype i32\nranks 2\ncount 4\n"
     "rank 0\nout_counts 0 1\nrank 1\nout_counts 1 1\n",
     "other counts than"},
};

START_TEST(what_is_wrong_is_named)
{
    char why[512] = "";

    ck_assert_int_eq(judge(wrong[_i].text, strlen(wrong[_i].text), why,
                           sizeof(why)), COLL_ERR_INVALID);
    ck_assert_msg(strstr(why, wrong[_i].words), "'%s' without '%s'", why,
                  wrong[_i].words);
}
END_TEST

START_TEST(listed_edges_must_keep_every_hazard)
{
    char why[256] = "", text[] = HEAD RANK(0, 1) RANK(1, 0);
    char *edges = strstr(text, " waits for 0 2");

    memcpy(edges, " waits for 0  ", 14);
    ck_assert_int_eq(judge(text, strlen(text), why, sizeof(why)),
                     COLL_ERR_INVALID);
    ck_assert_str_eq(why, "rank 0 step 3 does not wait for step 2, which "
                          "touches the same bytes");
}
END_TEST

START_TEST(edges_may_go_a_longer_way)
{
    static const char text[] =
        "coll_plan 1\ncollective allreduce\ntype i32\nranks 1\ncount 4\n"
        "edges listed\nrank 0 tmp 16\n0 copy tmp[0,16) from in[0,16)\n"
        "1 copy out[0,8) from tmp[0,8) waits for 0\n"
        "2 copy out[8,16) from tmp[8,16) waits for 1\n";
    char why[256] = "";

    ck_assert_msg(judge(text, strlen(text), why, sizeof(why)) == COLL_OK, "%s",
                  why);
}
END_TEST

/* Each copy doubles the parts: 50 of them would be 2^50. */
START_TEST(doubling_copies_do_not_take_all_memory)
{
    char *text = NULL, why[256] = "";
    size_t len;
    FILE *to = open_memstream(&text, &len);

    fprintf(to, "coll_plan 1\ncollective allreduce\ntype i32\nranks 1\n"
            "count 1\nrank 0 tmp %zu\n0 copy tmp[0,4) from in[0,4)\n"
            "1 copy out[0,4) from in[0,4)\n", (size_t)1 << 52);
    for (int i = 2; i < 50; i++)
        fprintf(to, "%d copy tmp[%zu,%zu) from tmp[0,%zu)\n", i,
                (size_t)1 << i, (size_t)2 << i, (size_t)1 << i);
    fclose(to);
    ck_assert_int_eq(judge(text, len, why, sizeof(why)), COLL_ERR_INVALID);
    free(text);
}
END_TEST

/* ---- mutations ------------------------------------------------------------ */

static uint32_t state;

static uint32_t next(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return n ? state % n : 0;
}

struct text {
    char *at;
    size_t len, cap;
};

/* Replace [from, from + n) by with[m]. */
static void splice(struct text *t, size_t from, size_t n, const char *with,
                   size_t m)
{
    if (t->len - n + m > t->cap)
        return;
    memmove(t->at + from + m, t->at + from + n, t->len - from - n);
    memcpy(t->at + from, with, m);
    t->len += m - n;
}

static void spoil_byte(struct text *t)
{
    if (t->len)
        t->at[next((uint32_t)t->len)] ^= (char)(1 + next(255));
}

static void cut_short(struct text *t) { t->len = next((uint32_t)t->len + 1); }

static void spoil_number(struct text *t)
{
    static const char *const extremes[] = {
        "0", "1", "2", "3", "7", "8", "16", "1023", "1024", "1025",
        "2147483647", "2147483648", "4294967296", "4611686018427387904",
        "9223372036854775807", "9223372036854775808", "18446744073709551615",
        "18446744073709551616", "-1", "00000000000000000000000001", "1e9", ""};
    const char *with = extremes[next(ARRAY_LEN(extremes))];
    size_t from = next((uint32_t)t->len + 1), n = 0;

    while (from < t->len && (t->at[from] < '0' || t->at[from] > '9'))
        from++;
    while (from + n < t->len && t->at[from + n] >= '0' &&
           t->at[from + n] <= '9')
        n++;
    splice(t, from, n, with, strlen(with));
}

/* Drop a line, or put a copy of it somewhere. */
static void move_line(struct text *t)
{
    size_t from = next((uint32_t)t->len + 1), end, to;
    char line[256];

    while (from && t->at[from - 1] != '\n')
        from--;
    for (end = from; end < t->len && t->at[end] != '\n';)
        end++;
    end += end < t->len;
    if (end - from > sizeof(line))
        return;
    memcpy(line, t->at + from, end - from);
    if (next(2))
        splice(t, from, end - from, "", 0);
    if (next(3)) {
        to = next((uint32_t)t->len + 1);
        while (to && t->at[to - 1] != '\n')
            to--;
        splice(t, to, 0, line, end - from);
    }
}

static void mutate(struct text *t)
{
    static void (*const ways[])(struct text *) = {
        spoil_byte, spoil_number, spoil_number, move_line, cut_short};
    int n = 1 + (int)next(3);

    for (int i = 0; i < n; i++) /* cut short is rare: it hides the rest */
        ways[next(next(8) ? 4 : 5)](t);
}

/* A valid file of a collective that algorithm a serves. */
static char *valid_text(int a, size_t *len)
{
    struct coll__trial t = {.type = COLL_I32, .nranks = 2 + a % 4, .count = 5,
                            .seed = (unsigned)a};
    struct coll__view view;
    struct coll__cast cast;
    struct coll__plans plans;
    char *text = NULL;
    int k = 0;

    while (!(coll__algos[a]->serves & 1u << k))
        k++;
    t.collective = (enum coll_collective)k;
    ck_assert_int_eq(coll__view_init(&view, t.nranks, 1, NULL), COLL_OK);
    t.view = &view;
    ck_assert_int_eq(coll__cast_init(&cast, &t), COLL_OK);
    if (!coll__is_p2p(t.collective) &&
        coll__plans_build(&plans, coll__algos[a], cast.pbs, 0) == COLL_OK) {
        text = text_of(&plans, len);
        coll__plans_fini(&plans);
    }
    coll__cast_fini(&cast);
    coll__view_fini(&view);
    return text;
}

/* _i: the seed. */
START_TEST(mutated_files_are_refused_or_proven)
{
    int n_algos = 0, n_proven = 0;
    int n_runs = getenv("TEST_LONG")    ? 30000
                 : getenv("TEST_QUICK") ? 200
                                        : 3000;
    char why[512], *copy;

    while (coll__algos[n_algos])
        n_algos++;
    state = (uint32_t)_i * 2654435761u + 1;
    for (int run = 0; run < n_runs; run++) {
        size_t len = 0;
        char *valid = valid_text((int)next((uint32_t)n_algos), &len);
        struct text t = {malloc(2 * len + 1024), len, 2 * len + 1024};
        int rc;

        if (valid)
            memcpy(t.at, valid, len);
        mutate(&t);
        copy = malloc(t.len); /* so that a sanitizer sees its end */
        memcpy(copy, t.at, t.len);
        rc = judge(copy, t.len, why, sizeof(why));
        ck_assert(rc == COLL_OK || rc == COLL_ERR_INVALID ||
                  rc == COLL_ERR_NOMEM);
        n_proven += rc == COLL_OK;
        free(copy);
        free(t.at);
        free(valid);
    }
    ck_assert_int_gt(n_proven, 0); /* a comment or a name may change */
    ck_assert_int_lt(n_proven, n_runs / 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("load");
    TCase *tcase = tcase_create("load");

    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, every_plan_is_read_back_as_it_was, 1, 10);
    tcase_add_test(tcase, a_plan_by_hand_is_proven);
    tcase_add_loop_test(tcase, what_is_wrong_is_named, 0,
                        (int)ARRAY_LEN(wrong));
    tcase_add_test(tcase, listed_edges_must_keep_every_hazard);
    tcase_add_test(tcase, edges_may_go_a_longer_way);
    tcase_add_test(tcase, doubling_copies_do_not_take_all_memory);
    tcase_add_loop_test(tcase, mutated_files_are_refused_or_proven, 0, 4);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
