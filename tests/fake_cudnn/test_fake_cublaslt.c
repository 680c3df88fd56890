/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fake_cublaslt.c - the stand-in of cuBLASLt: which products there are, what they
 * compute, when, and in which memory. */
#include "tests/fake_cudnn/dnn_fixture.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A product of a test: d = alpha * a * b + beta * c, of m rows, n columns, inner length k.
 * Each matrix is where at[] says: a, b, c, d. */
struct product {
    int m, n, k;
    cublasOperation_t trans[2];
    cublasLtOrder_t order[4];
    int more; /* that each leading dimension is too long */
    enum dnn_number type;
    cudaDataType type_out;
    uint32_t epilogue;
};

struct product_test {
    struct product p;
    cublasLtHandle_t h;
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t layout[4];
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t algo;
    size_t rows[4], cols[4], ld[4], count[4];
    CUdeviceptr at[4], bias, workspace;
    size_t workspace_len;
    float alpha, beta, *was[4], *bias_was;
    CUstream s;
};

static const struct product plain = {
    .m = 5, .n = 7, .k = 9, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};

static enum dnn_number type_of(const struct product_test *t, int i)
{
    return i >= 2 && t->p.type_out == CUDA_R_32F ? DNN_F32 : t->p.type;
}

static cudaDataType cuda_type(const struct product_test *t, int i)
{
    return type_of(t, i) == DNN_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* Where element (i, j) of a matrix lies. */
static size_t place(const struct product_test *t, int which, int i, int j)
{
    size_t row = (size_t)i, col = (size_t)j;

    return t->p.order[which] == CUBLASLT_ORDER_ROW ? row * t->ld[which] + col
                                                   : row + col * t->ld[which];
}

static void measure(struct product_test *t)
{
    const struct product *p = &t->p;
    int is_a = p->trans[0] != CUBLAS_OP_N, is_b = p->trans[1] != CUBLAS_OP_N;

    t->rows[0] = (size_t)(is_a ? p->k : p->m);
    t->cols[0] = (size_t)(is_a ? p->m : p->k);
    t->rows[1] = (size_t)(is_b ? p->n : p->k);
    t->cols[1] = (size_t)(is_b ? p->k : p->n);
    for (int i = 0; i < 4; i++) {
        int is_row = p->order[i] == CUBLASLT_ORDER_ROW;

        if (i >= 2) {
            t->rows[i] = (size_t)p->m;
            t->cols[i] = (size_t)p->n;
        }
        t->ld[i] = (is_row ? t->cols[i] : t->rows[i]) + (size_t)p->more;
        t->count[i] = t->ld[i] * (is_row ? t->rows[i] : t->cols[i]);
    }
}

#define SET(what, object, attribute, value)                                    \
    dnn.cublasLt##what##SetAttribute(object, attribute, &(value), sizeof(value))

static void describe(struct product_test *t)
{
    size_t most = t->workspace_len;

    LT(SUCCESS,
       dnn.cublasLtMatmulDescCreate(&t->op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(SUCCESS,
       SET(MatmulDesc, t->op, CUBLASLT_MATMUL_DESC_TRANSA, t->p.trans[0]));
    LT(SUCCESS,
       SET(MatmulDesc, t->op, CUBLASLT_MATMUL_DESC_TRANSB, t->p.trans[1]));
    LT(SUCCESS,
       SET(MatmulDesc, t->op, CUBLASLT_MATMUL_DESC_EPILOGUE, t->p.epilogue));
    LT(SUCCESS,
       SET(MatmulDesc, t->op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, t->bias));
    for (int i = 0; i < 4; i++) {
        LT(SUCCESS, dnn.cublasLtMatrixLayoutCreate(
                        &t->layout[i], cuda_type(t, i), t->rows[i], t->cols[i],
                        (int64_t)t->ld[i]));
        LT(SUCCESS, SET(MatrixLayout, t->layout[i],
                        CUBLASLT_MATRIX_LAYOUT_ORDER, t->p.order[i]));
    }
    LT(SUCCESS, dnn.cublasLtMatmulPreferenceCreate(&t->preference));
    LT(SUCCESS, SET(MatmulPreference, t->preference,
                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most));
}

static cublasStatus_t choose(struct product_test *t)
{
    int n = -1;
    cublasStatus_t st = dnn.cublasLtMatmulAlgoGetHeuristic(
        t->h, t->op, t->layout[0], t->layout[1], t->layout[2], t->layout[3],
        t->preference, 1, &t->algo, &n);

    ck_assert_int_eq(n, st == CUBLAS_STATUS_SUCCESS);
    return st;
}

static void start(struct product_test *t)
{
    memset(t, 0, sizeof(*t));
    dnn_open();
    fake_start();
    LT(SUCCESS, dnn.cublasLtCreate(&t->h));
    t->s = fake_stream();
    t->workspace_len = 1 << 16;
    t->workspace = fake_memory(t->workspace_len);
}

static void make(struct product_test *t, const struct product *p)
{
    t->p = *p;
    t->alpha = 1;
    t->beta = 0;
    measure(t);
    for (int i = 0; i < 4; i++)
        t->at[i] = fake_memory(4 * t->count[i]);
    t->bias = fake_memory(4 * t->rows[3]);
    describe(t);
}

static void reset(struct product_test *t, unsigned seed)
{
    for (int i = 0; i < 4; i++) {
        t->was[i] =
            dnn_draw(t->count[i], 5 * seed + (unsigned)i, type_of(t, i));
        dnn_write(t->at[i], t->was[i], t->count[i], type_of(t, i));
    }
    t->bias_was = dnn_draw(t->rows[3], 5 * seed + 4, type_of(t, 3));
    dnn_write(t->bias, t->bias_was, t->rows[3], type_of(t, 3));
}

#define AT_DEVICE(at) ((void *)(uintptr_t)(at))

static cublasStatus_t multiply(const struct product_test *t)
{
    return dnn.cublasLtMatmul(
        t->h, t->op, &t->alpha, AT_DEVICE(t->at[0]), t->layout[0],
        AT_DEVICE(t->at[1]), t->layout[1], &t->beta, AT_DEVICE(t->at[2]),
        t->layout[2], AT_DEVICE(t->at[3]), t->layout[3], &t->algo.algo,
        AT_DEVICE(t->workspace), t->workspace_len, (cudaStream_t)t->s);
}

/* ---- plain loops --------------------------------------------------------- */

static double element(const struct product_test *t, int i, int j)
{
    int is_a = t->p.trans[0] != CUBLAS_OP_N,
        is_b = t->p.trans[1] != CUBLAS_OP_N;
    double sum = 0;

    for (int k = 0; k < t->p.k; k++)
        sum += (double)t->was[0][is_a ? place(t, 0, k, i) : place(t, 0, i, k)] *
               t->was[1][is_b ? place(t, 1, j, k) : place(t, 1, k, j)];
    sum = t->alpha * sum + t->beta * t->was[2][place(t, 2, i, j)];
    if (t->p.epilogue & CUBLASLT_EPILOGUE_BIAS)
        sum += t->bias_was[i];
    return t->p.epilogue & CUBLASLT_EPILOGUE_RELU && sum < 0 ? 0 : sum;
}

/* All of d, and what lies between its columns is as it was. */
static int is_right(const struct product_test *t)
{
    double *should = malloc(t->count[3] * sizeof(*should));
    float *is;
    int right;

    for (size_t i = 0; i < t->count[3]; i++)
        should[i] = t->was[3][i];
    for (int i = 0; i < t->p.m; i++)
        for (int j = 0; j < t->p.n; j++)
            should[place(t, 3, i, j)] = element(t, i, j);
    OK(cu.StreamSynchronize(t->s));
    is = dnn_get(t->at[3], t->count[3], type_of(t, 3));
    right = dnn_near(is, should, t->count[3], (size_t)t->p.k, type_of(t, 3));
    free(should);
    return right;
}

/* ---- results ------------------------------------------------------------- */

static const int sizes[][3] = {{1, 1, 1},   {5, 7, 9},    {16, 4, 33},
                               {3, 50, 2},  {64, 48, 40}, {10, 1, 300},
                               {70, 600, 5}};
enum { N_SIZES = (int)(sizeof(sizes) / sizeof(*sizes)) };

/* _i: which of two transposes and three orders. */
START_TEST(products_are_those_of_plain_loops)
{
    struct product_test t;

    start(&t);
    for (int i = 0; i < N_SIZES; i++)
        for (int type = 0; type < 3; type++) {
            struct product p = {.m = sizes[i][0],
                                .n = sizes[i][1],
                                .k = sizes[i][2],
                                .more = i % 3,
                                .type = type ? DNN_BF16 : DNN_F32,
                                .type_out =
                                    type == 1 ? CUDA_R_16BF : CUDA_R_32F,
                                .epilogue = CUBLASLT_EPILOGUE_DEFAULT};

            p.trans[0] = _i & 1 ? CUBLAS_OP_T : CUBLAS_OP_N;
            p.trans[1] = _i & 2 ? CUBLAS_OP_T : CUBLAS_OP_N;
            p.order[0] = _i & 4 ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
            p.order[1] = _i & 8 ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
            p.order[2] = _i & 16 ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
            p.order[3] = p.order[2];
            make(&t, &p);
            reset(&t, (unsigned)_i);
            LT(SUCCESS, choose(&t));
            LT(SUCCESS, multiply(&t));
            ck_assert_msg(is_right(&t), "size %d, type %d", i, type);
            t.alpha = -0.5f;
            t.beta = 2;
            reset(&t, (unsigned)_i);
            LT(SUCCESS, multiply(&t));
            ck_assert_msg(is_right(&t), "added: size %d, type %d", i, type);
        }
}
END_TEST

START_TEST(epilogues_add_a_bias_and_leave_negative_numbers_out)
{
    static const uint32_t epilogues[] = {CUBLASLT_EPILOGUE_RELU,
                                         CUBLASLT_EPILOGUE_BIAS,
                                         CUBLASLT_EPILOGUE_RELU_BIAS};
    struct product_test t;

    start(&t);
    for (int i = 0; i < 3; i++)
        for (int type = 0; type < 2; type++) {
            struct product p = plain;

            p.epilogue = epilogues[i];
            p.type = type ? DNN_BF16 : DNN_F32;
            p.type_out = type ? CUDA_R_16BF : CUDA_R_32F;
            make(&t, &p);
            reset(&t, 3);
            LT(SUCCESS, choose(&t));
            LT(SUCCESS, multiply(&t));
            ck_assert_msg(is_right(&t), "epilogue %d, type %d", i, type);
        }
}
END_TEST

/* 1 + 2^-12 has no room in TF32; a NaN is 0 behind a RELU. */
START_TEST(fast_products_are_coarse_and_relu_drops_nans)
{
    struct product p = {.m = 1, .n = 1, .k = 1};
    const float x = 1 + 0x1p-12f, one = 1, nan = NAN;
    cublasComputeType_t fast = CUBLAS_COMPUTE_32F_FAST_TF32;
    struct product_test t;
    float *is;

    start(&t);
    p.epilogue = CUBLASLT_EPILOGUE_RELU;
    make(&t, &p);
    dnn_write(t.at[0], &x, 1, DNN_F32);
    dnn_write(t.at[1], &one, 1, DNN_F32);
    LT(SUCCESS, SET(MatmulDesc, t.op, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, fast));
    LT(SUCCESS, choose(&t));
    LT(SUCCESS, multiply(&t));
    OK(cu.StreamSynchronize(t.s));
    is = dnn_get(t.at[3], 1, DNN_F32);
    ck_assert_float_eq(is[0], 1);
    dnn_write(t.at[0], &nan, 1, DNN_F32);
    LT(SUCCESS, multiply(&t));
    OK(cu.StreamSynchronize(t.s));
    is = dnn_get(t.at[3], 1, DNN_F32);
    ck_assert_float_eq(is[0], 0);
}
END_TEST

START_TEST(a_result_that_is_not_added_to_may_have_held_anything)
{
    struct product_test t;

    start(&t);
    make(&t, &plain);
    reset(&t, 1);
    LT(SUCCESS, choose(&t));
    OK(cu.MemsetD8(t.at[3], 0xff, 4 * t.count[3]));
    OK(cu.StreamSynchronize(NULL));
    t.at[2] = t.at[3]; /* in place */
    LT(SUCCESS, multiply(&t));
    ck_assert(is_right(&t));
}
END_TEST

/* ---- streams ------------------------------------------------------------- */

START_TEST(a_product_runs_in_the_turn_of_its_stream)
{
    struct product_test t;
    _Atomic uint32_t *gate;

    start(&t);
    make(&t, &plain);
    reset(&t, 1);
    gate = fake_words(1);
    LT(SUCCESS, choose(&t));
    fake_hold(t.s, gate);
    LT(SUCCESS, multiply(&t));
    IS(NOT_READY, cu.StreamQuery(t.s));
    reset(&t, 2);
    atomic_store(gate, 1);
    ck_assert(is_right(&t));
}
END_TEST

START_TEST(products_are_captured_and_replayed)
{
    struct product p = plain;
    struct product_test t;
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;

    start(&t);
    p.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
    make(&t, &p);
    LT(SUCCESS, choose(&t));
    OK(cu.StreamBeginCapture(t.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    t.alpha = 2;
    LT(SUCCESS, multiply(&t));
    OK(cu.StreamEndCapture(t.s, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    for (unsigned seed = 0; seed < 5; seed++) {
        reset(&t, seed);
        OK(cu.GraphLaunch(exec, t.s));
        ck_assert(is_right(&t));
    }
}
END_TEST

START_TEST(a_handle_is_not_made_beside_a_capture)
{
    struct product_test t;
    cublasLtHandle_t other = NULL;
    CUgraph graph = NULL;

    start(&t);
    OK(cu.StreamBeginCapture(t.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    LT(ALLOC_FAILED, dnn.cublasLtCreate(&other));
    ck_assert_ptr_null(other);
    IS(STREAM_CAPTURE_INVALIDATED, cu.StreamEndCapture(t.s, &graph));
}
END_TEST

START_TEST(the_end_of_a_handle_waits_for_its_work)
{
    struct product p = {
        .m = 100, .n = 100, .k = 100, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    struct product_test t;

    start(&t);
    make(&t, &p);
    reset(&t, 1);
    LT(SUCCESS, choose(&t));
    for (int i = 0; i < 5; i++)
        LT(SUCCESS, multiply(&t));
    LT(SUCCESS, dnn.cublasLtDestroy(t.h));
    OK(cu.StreamQuery(t.s));
}
END_TEST

START_TEST(a_stream_of_another_context_fails)
{
    struct product_test t;

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    start(&t);
    make(&t, &plain);
    reset(&t, 1);
    LT(SUCCESS, choose(&t));
    fake_device(1);
    t.s = fake_stream();
    LT(EXECUTION_FAILED, multiply(&t));
}
END_TEST

/* ---- memory -------------------------------------------------------------- */

static CUdeviceptr tail(size_t len)
{
    const size_t granule = (size_t)2 << 20;

    return fake_memory(granule) + granule - len;
}

/* _i: a, b, c, d, the bias, the workspace. */
START_TEST(memory_that_is_too_short_is_a_fault_that_stays)
{
    struct product p = {
        .m = 32, .n = 32, .k = 32, .epilogue = CUBLASLT_EPILOGUE_BIAS};
    struct product_test t;
    CUdeviceptr *places[] = {&t.at[0], &t.at[1], &t.at[2],
                             &t.at[3], &t.bias,  &t.workspace};

    start(&t);
    make(&t, &p);
    reset(&t, 1);
    *places[_i] = tail(_i == 4 ? 64 : 256);
    LT(SUCCESS,
       SET(MatmulDesc, t.op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, t.bias));
    LT(SUCCESS, choose(&t));
    LT(SUCCESS, multiply(&t));
    IS(ILLEGAL_ADDRESS, cu.StreamSynchronize(t.s));
    LT(EXECUTION_FAILED, multiply(&t));
}
END_TEST

/* _i: a, b, c, d. */
START_TEST(memory_has_to_be_aligned_as_the_preference_has_said)
{
    static const cublasLtMatmulPreferenceAttributes_t names[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    struct product_test t;
    uint32_t four = 4, two = 2, three = 3;

    start(&t);
    make(&t, &plain);
    t.at[_i] = fake_memory(4 * t.count[_i] + 4) + 4;
    reset(&t, 1);
    LT(SUCCESS, choose(&t));
    LT(NOT_SUPPORTED, multiply(&t));
    LT(SUCCESS, SET(MatmulPreference, t.preference, names[_i], three));
    LT(INVALID_VALUE, choose(&t));
    LT(SUCCESS, SET(MatmulPreference, t.preference, names[_i], two));
    LT(NOT_SUPPORTED, choose(&t));
    LT(SUCCESS, SET(MatmulPreference, t.preference, names[_i], four));
    LT(SUCCESS, choose(&t));
    LT(SUCCESS, multiply(&t));
    ck_assert(is_right(&t));
}
END_TEST

/* The alignment of a bias is that of its address when the algorithm is chosen. */
START_TEST(a_bias_that_is_less_aligned_than_it_was_is_a_fault)
{
    struct product p = plain;
    CUdeviceptr odd;
    struct product_test t;

    start(&t);
    p.epilogue = CUBLASLT_EPILOGUE_BIAS;
    make(&t, &p);
    odd = fake_memory(4 * t.rows[3] + 4) + 4;
    reset(&t, 1);
    LT(SUCCESS, SET(MatmulDesc, t.op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, odd));
    LT(SUCCESS, choose(&t));
    LT(SUCCESS, multiply(&t));
    OK(cu.StreamSynchronize(t.s));
    LT(SUCCESS,
       SET(MatmulDesc, t.op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, t.bias));
    LT(SUCCESS, choose(&t));
    LT(SUCCESS, SET(MatmulDesc, t.op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, odd));
    LT(SUCCESS, multiply(&t));
    IS(MISALIGNED_ADDRESS, cu.StreamSynchronize(t.s));
}
END_TEST

START_TEST(an_output_or_workspace_that_overlaps_is_spoilt)
{
    struct product p = {
        .m = 20, .n = 20, .k = 20, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    CUdeviceptr workspace;
    struct product_test t;

    start(&t);
    make(&t, &p);
    reset(&t, 1);
    LT(SUCCESS, choose(&t));
    ck_assert_uint_gt(t.algo.workspaceSize, 0);
    workspace = t.workspace;
    for (int i = 0; i < 4; i++) {
        reset(&t, 1);
        t.at[i] = workspace;
        dnn_write(t.at[i], t.was[i], t.count[i], DNN_F32);
        t.beta = 1;
        LT(SUCCESS, multiply(&t));
        ck_assert_msg(!is_right(&t), "matrix %d", i);
        t.at[i] = fake_memory(4 * t.count[i]);
    }
    t.beta = 0;
    reset(&t, 1);
    t.at[3] = t.at[0];
    LT(SUCCESS, multiply(&t));
    ck_assert(!is_right(&t));
}
END_TEST

START_TEST(errors_come_on_demand)
{
    struct product_test t;

    setenv("FAKE_CUDA_FAULT", "cublasLtMatmul:1:701", 1);
    start(&t);
    make(&t, &plain);
    reset(&t, 1);
    LT(SUCCESS, choose(&t));
    LT(EXECUTION_FAILED, multiply(&t));
    LT(SUCCESS, multiply(&t));
    ck_assert(is_right(&t));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_cublaslt");
    TCase *tc = suite_case(suite, "results", 20);

    tcase_add_loop_test(tc, products_are_those_of_plain_loops, 0, 32);
    tcase_add_test(tc, epilogues_add_a_bias_and_leave_negative_numbers_out);
    tcase_add_test(tc, fast_products_are_coarse_and_relu_drops_nans);
    tcase_add_test(tc, a_result_that_is_not_added_to_may_have_held_anything);
    tc = suite_case(suite, "streams", 20);
    tcase_add_test(tc, a_product_runs_in_the_turn_of_its_stream);
    tcase_add_test(tc, products_are_captured_and_replayed);
    tcase_add_test(tc, a_handle_is_not_made_beside_a_capture);
    tcase_add_test(tc, the_end_of_a_handle_waits_for_its_work);
    tcase_add_test(tc, a_stream_of_another_context_fails);
    tc = suite_case(suite, "memory", 20);
    tcase_add_loop_test(tc, memory_that_is_too_short_is_a_fault_that_stays, 0,
                        6);
    tcase_add_loop_test(tc, memory_has_to_be_aligned_as_the_preference_has_said,
                        0, 4);
    tcase_add_test(tc, a_bias_that_is_less_aligned_than_it_was_is_a_fault);
    tcase_add_test(tc, an_output_or_workspace_that_overlaps_is_spoilt);
    tcase_add_test(tc, errors_come_on_demand);
    return suite_run(suite);
}
