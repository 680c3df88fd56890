/* SPDX-License-Identifier: BSD-3-Clause */
/* test_compare.c - what benchmarks/compare rests on: content that gives every
 * wrong result away, the harness barrier, the model of the limits, and how the
 * libraries are started. */
#include "tests/support/suite.h"
#include "benchmarks/rivals/compare.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_P = 9, MAX_N = 500 };

/* All ranks' buffers of one operation. */
struct job_data {
    struct peer_case cases[MAX_P];
    float *in[MAX_P], *out[MAX_P];
};

static struct job_data make_job(enum peer_op op, int p, size_t count, int root,
                                uint32_t salt)
{
    struct job_data j;

    for (int r = 0; r < p; r++) {
        struct peer_case *c = &j.cases[r];

        *c = (struct peer_case){.op = op,
                                .rank = r,
                                .ranks = p,
                                .root = root,
                                .count = count,
                                .salt = salt};
        j.in[r] = calloc(peer_in_len(c) + 1, sizeof(float));
        j.out[r] = calloc(peer_out_len(c) + 1, sizeof(float));
        ck_assert(j.in[r] && j.out[r]);
        peer_fill(c, j.in[r], j.out[r]);
    }
    return j;
}

static void free_job(struct job_data *j, int p)
{
    for (int r = 0; r < p; r++) {
        free(j->in[r]);
        free(j->out[r]);
    }
}

static float sum_of(const struct job_data *j, int p, size_t i)
{
    float sum = 0;

    for (int r = 0; r < p; r++)
        sum += j->in[r][i];
    return sum;
}

/* The operation by its definition. */
static void carry_out(struct job_data *j, int p)
{
    enum peer_op op = j->cases[0].op;
    size_t n = j->cases[0].count;

    for (int r = 0; r < p; r++)
        for (size_t i = 0; i < n; i++) {
            size_t mine = (size_t)r * n + i;

            if (op == PEER_ALLREDUCE)
                j->out[r][i] = sum_of(j, p, i);
            else if (op == PEER_REDUCE_SCATTER)
                j->out[r][i] = sum_of(j, p, mine);
            else if (op == PEER_BROADCAST)
                j->out[r][i] = j->out[j->cases[0].root][i];
            for (int q = 0; q < p; q++)
                if (op == PEER_ALLGATHER)
                    j->out[r][(size_t)q * n + i] = j->in[q][i];
                else if (op == PEER_ALLTOALL)
                    j->out[r][(size_t)q * n + i] = j->in[q][mine];
        }
}

/* _i: the operation. */
START_TEST(right_results_pass)
{
    static const size_t counts[] = {1, 2, 7, 64, MAX_N};

    for (int p = 2; p <= MAX_P; p++)
        for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
            struct job_data j = make_job((enum peer_op)_i, p, counts[k], p / 2,
                                         77 * (uint32_t)p);

            carry_out(&j, p);
            for (int r = 0; r < p; r++)
                ck_assert_uint_eq(peer_verify(&j.cases[r], j.out[r]), 0);
            free_job(&j, p);
        }
}
END_TEST

START_TEST(one_wrong_element_is_found)
{
    int p = 4;
    struct job_data j = make_job((enum peer_op)_i, p, MAX_N, 1, 3);

    carry_out(&j, p);
    for (int r = 0; r < p; r++) {
        size_t last = peer_out_len(&j.cases[r]) - 1;

        j.out[r][0] += 1;
        ck_assert_uint_eq(peer_verify(&j.cases[r], j.out[r]), 1);
        j.out[r][last] = -j.out[r][last];
        ck_assert_uint_eq(peer_verify(&j.cases[r], j.out[r]), 2);
        j.out[r][last / 2] = 0;
        ck_assert_uint_eq(peer_verify(&j.cases[r], j.out[r]), 3);
    }
    free_job(&j, p);
}
END_TEST

/* Another operation's result, or this one's in another place, or nothing. */
START_TEST(what_is_left_over_is_found)
{
    int p = 3;
    struct job_data j = make_job((enum peer_op)_i, p, MAX_N, 1, 9);

    carry_out(&j, p);
    for (int r = 0; r < p; r++) {
        struct peer_case c = j.cases[r];
        size_t len = peer_out_len(&c);

        c.salt++;
        ck_assert_uint_gt(peer_verify(&c, j.out[r]), len * 9 / 10);
        c.salt--;
        memmove(j.out[r], j.out[r] + 1, (len - 1) * sizeof(float));
        ck_assert_uint_gt(peer_verify(&c, j.out[r]), len * 9 / 10);
        memset(j.out[r], 0, len * sizeof(float));
        ck_assert_uint_gt(peer_verify(&c, j.out[r]), len * 9 / 10);
    }
    free_job(&j, p);
}
END_TEST

START_TEST(a_rank_that_is_left_out_is_found)
{
    int p = 5;
    struct job_data j = make_job(PEER_ALLREDUCE, p, MAX_N, 0, 4);

    memset(j.in[2], 0, MAX_N * sizeof(float));
    carry_out(&j, p);
    ck_assert_uint_gt(peer_verify(&j.cases[0], j.out[0]), MAX_N * 9 / 10);
    free_job(&j, p);
}
END_TEST

START_TEST(blocks_in_another_order_are_found)
{
    static const enum peer_op ops[] = {PEER_ALLGATHER, PEER_ALLTOALL};

    for (size_t o = 0; o < ARRAY_LEN(ops); o++) {
        struct job_data j = make_job(ops[o], 2, MAX_N, 0, 4);
        float block[MAX_N];

        carry_out(&j, 2);
        memcpy(block, j.out[0], sizeof(block));
        memcpy(j.out[0], j.out[0] + MAX_N, sizeof(block));
        memcpy(j.out[0] + MAX_N, block, sizeof(block));
        ck_assert_uint_gt(peer_verify(&j.cases[0], j.out[0]), MAX_N);
        free_job(&j, 2);
    }
}
END_TEST

START_TEST(sizes_are_those_of_the_larger_side)
{
    for (int op = 0; op < PEER_BARRIER; op++)
        for (int p = 2; p <= 8; p *= 2) {
            struct peer_case c = {.op = (enum peer_op)op, .ranks = p};
            size_t in, out;

            c.count = peer_count(c.op, 1024, p);
            in = peer_in_len(&c) * sizeof(float);
            out = peer_out_len(&c) * sizeof(float);
            ck_assert_uint_eq(in > out ? in : out, 1024);
            ck_assert_uint_eq(peer_count(c.op, 1, p), 1);
        }
    ck_assert_uint_eq(peer_count(PEER_BARRIER, 1024, 2), 0);
}
END_TEST

/* ---- the harness barrier ------------------------------------------------ */

/* _i: the ranks; they count, and none may be ahead of a barrier. */
START_TEST(nobody_leaves_a_barrier_before_all_have_come)
{
    struct {
        struct peer_shared barrier;
        uint32_t counts[MAX_P];
    } *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;

    ck_assert_ptr_ne(shared, MAP_FAILED);
    for (int r = 0; r < _i; r++)
        if (!fork()) {
            for (uint32_t turn = 1; turn <= 2000; turn++) {
                shared->counts[r] = turn;
                peer_barrier(&shared->barrier, r, _i, 1);
                for (int q = 0; q < _i; q++)
                    if (shared->counts[q] != turn)
                        _exit(1);
                peer_barrier(&shared->barrier, r, _i, 1);
            }
            _exit(0);
        }
    for (int r = 0; r < _i; r++) {
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
    munmap(shared, sizeof(*shared));
}
END_TEST

/* ---- limits ------------------------------------------------------------- */

static struct limits flat_limits(double bytes_a_second)
{
    struct limits l = {.n_cores = 2,
                       .n_areas = N_AREAS,
                       .exchange = 100e-9,
                       .round_trip = 300e-9,
                       .yield = 1e-6};

    for (int a = 0; a < N_AREAS; a++) {
        l.areas[a].bytes = (size_t)1 << (15 + 2 * a);
        for (int i = 0; i < 4; i++) {
            l.areas[a].copy[i & 1][i >> 1] = bytes_a_second;
            l.areas[a].sum[i & 1][i >> 1] = bytes_a_second;
        }
    }
    return l;
}

START_TEST(limits_are_bytes_over_bandwidth)
{
    struct limits l = flat_limits(1e9);
    struct cell c = {.op = PEER_ALLREDUCE, .bytes = 1000000, .ranks = 4};

    /* 4 inputs and 4 outputs of 1 MB at 1 GB/s */
    ck_assert_double_eq_tol(model_limit(&c, &l), 8e-3, 1e-9);
    c.op = PEER_BROADCAST; /* one input, three outputs */
    ck_assert_double_eq_tol(model_limit(&c, &l), 4e-3, 1e-9);
    c.op = PEER_ALLGATHER; /* 4 inputs of a quarter, 4 outputs */
    ck_assert_double_eq_tol(model_limit(&c, &l), 5e-3, 1e-9);
    c.op = PEER_REDUCE_SCATTER;
    ck_assert_double_eq_tol(model_limit(&c, &l), 5e-3, 1e-9);
    c.op = PEER_ALLTOALL;
    ck_assert_double_eq_tol(model_limit(&c, &l), 8e-3, 1e-9);
}
END_TEST

START_TEST(small_operations_are_bound_by_latency)
{
    struct limits l = flat_limits(1e12);
    struct cell c = {.op = PEER_ALLREDUCE, .bytes = 8, .ranks = 2};

    ck_assert_double_eq_tol(model_limit(&c, &l), 100e-9, 1e-12);
    c.op = PEER_BARRIER;
    ck_assert_double_eq_tol(model_limit(&c, &l), 100e-9, 1e-12);
    c.ranks = 8; /* four ranks a core, half a round trip each */
    ck_assert_double_eq_tol(model_limit(&c, &l), 2e-6, 1e-12);
}
END_TEST

START_TEST(gpus_share_the_bytes_and_copy_as_fast_as_measured)
{
    struct limits l = flat_limits(1e12);
    struct cell c = {.op = PEER_ALLREDUCE, .bytes = 1000000, .ranks = 4};

    l.n_gpus = 1;
    l.gpu_small = 5e-6;
    ck_assert_double_eq_tol(model_limit(&c, &l), 8e-6, 1e-9);
    l.n_gpus = 2; /* two ranks each */
    ck_assert_double_eq_tol(model_limit(&c, &l), 5e-6, 1e-9);
    l.gpu_small = 1e-6;
    ck_assert_double_eq_tol(model_limit(&c, &l), 4e-6, 1e-9);
    l.n_gpus = 8; /* four of them have a rank */
    ck_assert_double_eq_tol(model_limit(&c, &l), 2e-6, 1e-9);
}
END_TEST

START_TEST(bandwidth_is_that_of_the_size_and_the_better_store)
{
    struct limits l = flat_limits(1e9);
    struct cell c = {.op = PEER_ALLTOALL, .ranks = 2};

    for (int a = 0; a < N_AREAS; a++)
        l.areas[a].copy[1][1] = 4e9 - a * 0.5e9; /* past the cache, all */
    /* 2 p n bytes, half of them in, over two cores: n p / 2 a core */
    c.bytes = l.areas[2].bytes;
    ck_assert_double_eq_tol(model_limit(&c, &l), 4. * (double)c.bytes / 3e9,
                            1e-9);
    c.bytes *= 1 << 10; /* larger than all: the last one's */
    ck_assert_double_eq_tol(model_limit(&c, &l), 4. * (double)c.bytes / 1.5e9,
                            1e-6);
}
END_TEST

START_TEST(kernels_copy_and_add)
{
    enum { N = 4096 };
    static float a[N] __attribute__((aligned(64)));
    static float b[N] __attribute__((aligned(64)));
    static float to[N] __attribute__((aligned(64)));

    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = (float)(3 * i + 1);
    }
    for (int way = 0; way < 4; way++) {
        memset(to, 0, sizeof(to));
        kernel(way & 1, way >> 1)(to, a, b, N);
        for (int i = 0; i < N; i++)
            ck_assert_float_eq(to[i], way & 1 ? a[i] + b[i] : a[i]);
    }
}
END_TEST

START_TEST(medians_of_odd_and_even_numbers)
{
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};

    ck_assert_double_eq(median(odd, 3), 3);
    ck_assert_double_eq(median(even, 4), 2.5);
    ck_assert_double_eq(median(even, 0), 0);
}
END_TEST

/* ---- how the libraries are started -------------------------------------- */

static int has_word(const char *const *line, const char *word)
{
    for (; *line; line++)
        if (!strcmp(*line, word))
            return 1;
    return 0;
}

/* _i: the form. */
START_TEST(a_library_is_bound_only_when_each_rank_has_a_core)
{
    int cores = cores_list(NULL);
    const struct form *form = &forms[_i];
    struct place place = {.launcher = "launcher", .peer = "peer"};
    const char *line[MAX_WORDS];
    struct texts texts;
    char wanted[16];

    for (int ranks = 1; ranks <= 2 * cores; ranks++) {
        int n = 0;

        form_line(form, &place, ranks, &texts, line);
        while (line[n])
            n++;
        sprintf(wanted, "%d", ranks);
        ck_assert_str_eq(line[form->together[0] ? 2 : 0], "launcher");
        if (form->options[0])
            ck_assert_str_eq(line[--n], form->options[0]);
        ck_assert_str_eq(line[n - 3], "-n");
        ck_assert_str_eq(line[n - 2], wanted);
        ck_assert_str_eq(line[n - 1], "peer");
        if (form->bound[0])
            ck_assert_int_eq(has_word(line, "core"), ranks <= cores);
        for (int i = 0; form->settings[i]; i++)
            ck_assert(has_word(line, form->settings[i]));
    }
}
END_TEST

START_TEST(own_memory_is_asked_for_by_libcoll_alone)
{
    int n_asking = 0;

    ck_assert(forms[0].is_own && !forms[0].options[0]);
    for (int f = 0; f < N_FORMS; f++) {
        int is_asking = forms[f].options[0] &&
                        !strcmp(forms[f].options[0], PEER_OWN_MEMORY);

        ck_assert_int_eq(forms[f].is_own,
                         !strcmp(forms[f].program, forms[0].program));
        ck_assert(forms[f].is_own || !is_asking);
        n_asking += is_asking;
    }
    ck_assert_int_eq(n_asking, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compare");
    TCase *data = suite_case(suite, "data", 20);
    TCase *rest = suite_case(suite, "rest", 60);

    tcase_add_loop_test(data, right_results_pass, 0, PEER_BARRIER);
    tcase_add_loop_test(data, one_wrong_element_is_found, 0, PEER_BARRIER);
    tcase_add_loop_test(data, what_is_left_over_is_found, 0, PEER_BARRIER);
    tcase_add_test(data, a_rank_that_is_left_out_is_found);
    tcase_add_test(data, blocks_in_another_order_are_found);
    tcase_add_test(data, sizes_are_those_of_the_larger_side);
    tcase_add_loop_test(rest, nobody_leaves_a_barrier_before_all_have_come, 1,
                        6);
    tcase_add_test(rest, limits_are_bytes_over_bandwidth);
    tcase_add_test(rest, small_operations_are_bound_by_latency);
    tcase_add_test(rest, gpus_share_the_bytes_and_copy_as_fast_as_measured);
    tcase_add_test(rest, bandwidth_is_that_of_the_size_and_the_better_store);
    tcase_add_test(rest, kernels_copy_and_add);
    tcase_add_test(rest, medians_of_odd_and_even_numbers);
    tcase_add_loop_test(rest, a_library_is_bound_only_when_each_rank_has_a_core,
                        0, N_FORMS);
    tcase_add_test(rest, own_memory_is_asked_for_by_libcoll_alone);
    return suite_run(suite);
}
