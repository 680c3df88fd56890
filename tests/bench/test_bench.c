/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench.c - the benchmarks' data: what they expect is what the kernels
 * give in any order, and one wrong element is found. */
#include "tests/support/suite.h"
#include "benchmarks/bench.h"
#include "lib/device/reduce.h"
#include "lib/type/op.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 20011 /* more than two periods */

static struct bench_case make_case(int type, int op, int ranks)
{
    return (struct bench_case){.type = (enum coll_type)type,
                               .op = (enum coll_op)op,
                               .ranks = ranks,
                               .count = COUNT,
                               .salt = 3};
}

/* Reduce all ranks' inputs: upwards, downwards, or by pairs first. */
static void reduce(struct bench_case *c, int order, char *out, char *in)
{
    struct coll_args args = {.op = c->op, .type = c->type};
    size_t len = c->count * coll_type_size(c->type);
    coll__reduce_fn *op = coll__host_reduce(c->type, c->op);
    struct coll__op kind;

    coll__op_for(&args, c->ranks, &kind);
    for (int i = 0; i < c->ranks; i++) {
        c->rank = order ? c->ranks - 1 - i : i;
        bench_allreduce.fill(c, in);
        if (kind.pre.is_set)
            coll__host_multiply(c->type)(in, in, len, kind.pre.number);
        if (!i)
            memcpy(out, in, len);
        else
            op(out, out, in, len);
    }
    if (c->op == COLL_AVG)
        coll__host_scale(c->type)(out, len, c->ranks);
}

/* _i: the type. */
START_TEST(expected_results_are_those_of_the_kernels_in_any_order)
{
    static const int ranks[] = {1, 2, 3, 7, 8, 64, 127, 300};
    size_t n = ARRAY_LEN(ranks) - (getenv("TEST_QUICK") ? 3 : 0);
    char *out = malloc(COUNT * 16), *in = malloc(COUNT * 16);

    ck_assert(out && in);
    for (int op = 0; op < COLL_N_OPS; op++)
        for (size_t r = 0; r < n; r++)
            for (int order = 0; order < 2; order++) {
                struct bench_case c = make_case(_i, op, ranks[r]);

                if (!coll__host_reduce(c.type, c.op))
                    continue; /* it is not for that type */
                reduce(&c, order, out, in);
                ck_assert_msg(!bench_allreduce.verify(&c, out),
                              "%s of %d ranks", coll_op_name(c.op), c.ranks);
            }
    free(out);
    free(in);
}
END_TEST

START_TEST(every_wrong_element_is_counted)
{
    struct bench_case c = make_case(_i, COLL_MAX, 5);
    size_t size = coll_type_size(c.type);
    unsigned char *out = malloc(COUNT * 16);

    ck_assert_ptr_nonnull(out);
    c.root = c.rank = 2;
    bench_broadcast.fill(&c, out);
    ck_assert_uint_eq(bench_broadcast.verify(&c, out), 0);
    out[0] ^= 1;
    out[8191 * size] ^= 1; /* the first of the second period */
    out[COUNT * size - 1] ^= 0x80;
    ck_assert_uint_eq(bench_broadcast.verify(&c, out), 3);
    free(out);
}
END_TEST

/* Of n elements, how many differ at least from those of another place? */
static size_t differing(enum coll_type type, size_t n)
{
    return type == COLL_BOOL ? n / 4 : n / 2;
}

/* Content that stayed from another run, another rank or another place. */
START_TEST(content_in_the_wrong_place_is_found)
{
    static const size_t shifts[] = {1, 1000, 4096, 8192, 10000};
    struct bench_case c = make_case(_i, COLL_MAX, 4);
    size_t size = coll_type_size(c.type);
    char *out = malloc(COUNT * 16);

    ck_assert_ptr_nonnull(out);
    c.rank = 1; /* the root is 0 */
    bench_broadcast.fill(&c, out);
    ck_assert_uint_gt(bench_broadcast.verify(&c, out),
                      differing(c.type, COUNT));
    c.rank = 0;
    bench_broadcast.fill(&c, out);
    c.salt++;
    ck_assert_uint_gt(bench_broadcast.verify(&c, out),
                      differing(c.type, COUNT));
    c.salt--;
    c.count -= 10000;
    for (size_t i = 0; i < ARRAY_LEN(shifts); i++)
        ck_assert_uint_gt(bench_broadcast.verify(&c, out + shifts[i] * size),
                          differing(c.type, 10000));
    free(out);
}
END_TEST

START_TEST(gathered_blocks_must_be_in_rank_order)
{
    struct bench_case c = make_case(_i, COLL_MAX, 3);
    size_t len = coll_type_size(c.type) * 100;
    char out[3 * 1600], first[1600];

    c.count = 100;
    for (c.rank = 0; c.rank < 3; c.rank++)
        bench_allgather.fill(&c, out + (size_t)c.rank * len);
    ck_assert_uint_eq(bench_allgather.verify(&c, out), 0);
    memcpy(first, out, len);
    memcpy(out, out + len, len);
    memcpy(out + len, first, len);
    ck_assert_uint_gt(bench_allgather.verify(&c, out), differing(c.type, 200));
}
END_TEST

/* What one rank says that it gives is what the other one gets. */
START_TEST(blocks_of_all_ranks_are_told_apart)
{
    enum { RANKS = 3, MOST = 300 };
    size_t size = coll_type_size((enum coll_type)_i), in[RANKS], out[RANKS];
    struct bench_case c = make_case(_i, COLL_MAX, RANKS);
    char *all[RANKS], *got = malloc(RANKS * MOST * size);

    ck_assert_ptr_nonnull(got);
    c.count = 200;
    for (c.rank = 0; c.rank < RANKS; c.rank++) {
        for (int r = 0; r < RANKS; r++)
            in[r] = bench_uneven(&c, c.rank, r);
        c.in_counts = in;
        all[c.rank] = calloc(RANKS * MOST, size);
        ck_assert_ptr_nonnull(all[c.rank]);
        bench_alltoallv.fill(&c, all[c.rank]);
    }
    for (c.rank = 0; c.rank < RANKS; c.rank++) {
        char *to = got;

        for (int r = 0; r < RANKS; r++) {
            const char *from = all[r];

            for (int q = 0; q < c.rank; q++)
                from += bench_uneven(&c, r, q) * size;
            out[r] = bench_uneven(&c, r, c.rank);
            memcpy(to, from, out[r] * size);
            to += out[r] * size;
        }
        c.out_counts = out;
        ck_assert_uint_eq(bench_alltoallv.verify(&c, got), 0);
        memcpy(got, all[c.rank], out[0] * size); /* not the first's */
        if (c.rank)
            ck_assert_uint_gt(bench_alltoallv.verify(&c, got), 20);
    }
    for (int r = 0; r < RANKS; r++)
        free(all[r]);
    free(got);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bench");
    TCase *cases = suite_case(suite, "data", 120);

    tcase_add_loop_test(cases,
                        expected_results_are_those_of_the_kernels_in_any_order,
                        0, COLL_N_TYPES);
    tcase_add_loop_test(cases, every_wrong_element_is_counted, 0, COLL_N_TYPES);
    tcase_add_loop_test(cases, content_in_the_wrong_place_is_found, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(cases, gathered_blocks_must_be_in_rank_order, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(cases, blocks_of_all_ranks_are_told_apart, 0,
                        COLL_N_TYPES);
    return suite_run(suite);
}
