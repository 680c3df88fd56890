/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fake_cublaslt_rules.c - what the stand-in of cuBLASLt answers to wrong arguments.
 * For descriptors it is what cuBLAS 13.1 has answered, for products what its reference
 * says. */
#include "tests/fake_cudnn/dnn_fixture.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <string.h>

#define SET(what, object, attribute, type, value)                              \
    dnn.cublasLt##what##SetAttribute(object, attribute, &(type){value},        \
                                     sizeof(type))

/* ---- descriptors --------------------------------------------------------- */

START_TEST(layouts_answer_as_cublaslt_does)
{
    cublasLtMatrixLayout_t l = NULL;

#define CREATE(...) dnn.cublasLtMatrixLayoutCreate(__VA_ARGS__)
#define SET_LAYOUT(name, type, value)                                          \
    SET(MatrixLayout, l, CUBLASLT_MATRIX_LAYOUT_##name, type, value)
    dnn_open();
    LT(INVALID_VALUE, CREATE(NULL, CUDA_R_32F, 4, 5, 4));
    LT(SUCCESS, CREATE(&l, (cudaDataType)99, 4, 5, 4));
    LT(SUCCESS, CREATE(&l, CUDA_R_32F, 0, 5, 4));
    LT(SUCCESS, CREATE(&l, CUDA_R_32F, 4, 5, -1));
    LT(SUCCESS, CREATE(&l, CUDA_R_32F, 4, 5, 4));
    LT(SUCCESS, SET_LAYOUT(ORDER, int32_t, CUBLASLT_ORDER_ROW));
    LT(SUCCESS, SET_LAYOUT(ORDER, int32_t, 77));
    LT(INVALID_VALUE, SET_LAYOUT(ORDER, int64_t, 1));
    LT(INVALID_VALUE, SET_LAYOUT(ORDER, int16_t, 1));
    LT(SUCCESS, SET_LAYOUT(LD, int64_t, -2));
    LT(INVALID_VALUE, SET_LAYOUT(LD, int32_t, 5));
    LT(SUCCESS, SET_LAYOUT(ROWS, uint64_t, 0));
    LT(SUCCESS, SET_LAYOUT(BATCH_COUNT, int32_t, 0));
    LT(INVALID_VALUE,
       SET(MatrixLayout, l, (cublasLtMatrixLayoutAttribute_t)20, int32_t, 0));
    LT(INVALID_VALUE, dnn.cublasLtMatrixLayoutSetAttribute(
                          l, CUBLASLT_MATRIX_LAYOUT_ORDER, NULL, 4));
    LT(SUCCESS, dnn.cublasLtMatrixLayoutDestroy(l));
    LT(SUCCESS, dnn.cublasLtMatrixLayoutDestroy(NULL));
    l = NULL;
    LT(INVALID_VALUE, SET_LAYOUT(ORDER, int32_t, 1));
#undef CREATE
#undef SET_LAYOUT
}
END_TEST

START_TEST(descriptions_of_products_answer_as_cublaslt_does)
{
    cublasLtMatmulDesc_t d = NULL;

#define CREATE(...) dnn.cublasLtMatmulDescCreate(__VA_ARGS__)
#define SET_DESC(name, type, value)                                            \
    SET(MatmulDesc, d, CUBLASLT_MATMUL_DESC_##name, type, value)
    dnn_open();
    LT(INVALID_VALUE, CREATE(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(SUCCESS, CREATE(&d, (cublasComputeType_t)999, CUDA_R_32F));
    LT(SUCCESS, CREATE(&d, CUBLAS_COMPUTE_32F, (cudaDataType)999));
    LT(SUCCESS, CREATE(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(SUCCESS, SET_DESC(TRANSA, int32_t, CUBLAS_OP_T));
    LT(SUCCESS, SET_DESC(TRANSA, int32_t, 9));
    LT(INVALID_VALUE, SET_DESC(TRANSA, int8_t, 1));
    LT(SUCCESS, SET_DESC(EPILOGUE, uint32_t, 777));
    LT(INVALID_VALUE, SET_DESC(EPILOGUE, uint64_t, 4));
    LT(SUCCESS, SET_DESC(BIAS_POINTER, void *, &d));
    LT(INVALID_VALUE, SET_DESC(BIAS_POINTER, int32_t, 0));
    LT(SUCCESS, SET_DESC(BIAS_DATA_TYPE, int32_t, CUDA_R_32F));
    LT(SUCCESS, SET_DESC(POINTER_MODE, int32_t, 7));
    LT(SUCCESS, SET_DESC(SCALE_TYPE, int32_t, 555));
    LT(INVALID_VALUE,
       SET(MatmulDesc, d, (cublasLtMatmulDescAttributes_t)9, int32_t, 1));
    LT(INVALID_VALUE,
       SET(MatmulDesc, d, (cublasLtMatmulDescAttributes_t)99, int32_t, 1));
    LT(INVALID_VALUE, dnn.cublasLtMatmulDescSetAttribute(
                          d, CUBLASLT_MATMUL_DESC_TRANSA, NULL, 4));
    LT(SUCCESS, dnn.cublasLtMatmulDescDestroy(d));
    LT(SUCCESS, dnn.cublasLtMatmulDescDestroy(NULL));
#undef CREATE
#undef SET_DESC
}
END_TEST

START_TEST(preferences_answer_as_cublaslt_does)
{
    cublasLtMatmulPreference_t p = NULL;

#define SET_PREF(name, type, value)                                            \
    SET(MatmulPreference, p, CUBLASLT_MATMUL_PREF_##name, type, value)
    dnn_open();
    LT(INVALID_VALUE, dnn.cublasLtMatmulPreferenceCreate(NULL));
    LT(SUCCESS, dnn.cublasLtMatmulPreferenceCreate(&p));
    LT(SUCCESS, SET_PREF(MAX_WORKSPACE_BYTES, uint64_t, 1 << 20));
    LT(INVALID_VALUE, SET_PREF(MAX_WORKSPACE_BYTES, uint32_t, 1 << 20));
    LT(SUCCESS, SET_PREF(MIN_ALIGNMENT_A_BYTES, uint32_t, 3));
    LT(SUCCESS, SET_PREF(REDUCTION_SCHEME_MASK, uint32_t, 0));
    LT(INVALID_VALUE,
       SET(MatmulPreference, p, (cublasLtMatmulPreferenceAttributes_t)99,
           uint32_t, 0));
    LT(SUCCESS, dnn.cublasLtMatmulPreferenceDestroy(p));
    LT(SUCCESS, dnn.cublasLtMatmulPreferenceDestroy(NULL));
#undef SET_PREF
}
END_TEST

START_TEST(words_are_as_of_cublaslt)
{
    dnn_open();
    ck_assert_uint_eq(dnn.cublasLtGetVersion(), CUBLAS_VERSION);
    ck_assert_str_eq(dnn.cublasLtGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED),
                     "the requested functionality is not supported");
    ck_assert_str_eq(dnn.cublasLtGetStatusString((cublasStatus_t)2),
                     "unrecognized status");
    LT(INVALID_VALUE, dnn.cublasLtCreate(NULL));
    LT(INVALID_VALUE, dnn.cublasLtDestroy(NULL));
}
END_TEST

START_TEST(a_destroyed_layout_ends_the_process)
{
    cublasLtMatrixLayout_t l;

    dnn_open();
    LT(SUCCESS, dnn.cublasLtMatrixLayoutCreate(&l, CUDA_R_32F, 4, 5, 4));
    LT(SUCCESS, dnn.cublasLtMatrixLayoutDestroy(l));
    SET(MatrixLayout, l, CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t, 1);
}
END_TEST

/* ---- products ------------------------------------------------------------ */

/* A 4 x 6 product of inner length 5, which is right until a test changes it. */
struct product {
    cublasLtHandle_t h;
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t layout[4]; /* a, b, c, d */
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found[4];
    void *at[4], *workspace;
    size_t workspace_len;
    float alpha, beta;
};

static void describe(struct product *p)
{
    static const uint64_t rows[] = {4, 5, 4, 4}, cols[] = {5, 6, 6, 6};

    LT(SUCCESS,
       dnn.cublasLtMatmulDescCreate(&p->op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    for (int i = 0; i < 4; i++)
        LT(SUCCESS,
           dnn.cublasLtMatrixLayoutCreate(&p->layout[i], CUDA_R_32F, rows[i],
                                          cols[i], (int64_t)rows[i]));
    LT(SUCCESS, dnn.cublasLtMatmulPreferenceCreate(&p->preference));
}

static void start(struct product *p)
{
    memset(p, 0, sizeof(*p));
    dnn_open();
    fake_start();
    LT(SUCCESS, dnn.cublasLtCreate(&p->h));
    for (int i = 0; i < 4; i++)
        p->at[i] = (void *)(uintptr_t)fake_memory(256);
    p->workspace_len = 4096;
    p->workspace = (void *)(uintptr_t)fake_memory(p->workspace_len);
    p->alpha = 1;
    describe(p);
}

static cublasStatus_t choose(struct product *p, int most, int *n)
{
    return dnn.cublasLtMatmulAlgoGetHeuristic(
        p->h, p->op, p->layout[0], p->layout[1], p->layout[2], p->layout[3],
        p->preference, most, p->found, n);
}

/* With the first algorithm that was found, or without one. */
static cublasStatus_t multiply(const struct product *p, int has_algo)
{
    return dnn.cublasLtMatmul(p->h, p->op, &p->alpha, p->at[0], p->layout[0],
                              p->at[1], p->layout[1], &p->beta, p->at[2],
                              p->layout[2], p->at[3], p->layout[3],
                              has_algo ? &p->found[0].algo : NULL, p->workspace,
                              p->workspace_len, NULL);
}

/* Both when it is asked for an algorithm and when it is to run. */
static void refused(struct product *p, cublasStatus_t status)
{
    int n = -1;

    ck_assert_int_eq(choose(p, 1, &n), status);
    ck_assert_int_eq(n, 0);
    ck_assert_int_eq(multiply(p, 0), status);
}

#define INVALID CUBLAS_STATUS_INVALID_VALUE
#define UNSUPPORTED CUBLAS_STATUS_NOT_SUPPORTED

static void set_op(struct product *p, cublasLtMatmulDescAttributes_t name,
                   int32_t value)
{
    LT(SUCCESS, SET(MatmulDesc, p->op, name, int32_t, value));
}

START_TEST(shapes_that_do_not_fit_are_invalid)
{
    static const struct {
        int matrix;
        uint64_t rows, cols;
        int64_t ld;
    } wrong[] = {{0, 4, 6, 4}, {0, 3, 5, 3}, {1, 5, 5, 5}, {1, 4, 6, 4},
                 {2, 4, 5, 4}, {3, 5, 6, 5}, {0, 4, 5, 3}, {0, 4, 5, -4},
                 {1, 0, 6, 5}, {3, 4, 0, 4}};
    struct product p;

    start(&p);
    LT(SUCCESS, multiply(&p, 0));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        cublasLtMatrixLayout_t right = p.layout[wrong[i].matrix];

        LT(SUCCESS, dnn.cublasLtMatrixLayoutCreate(&p.layout[wrong[i].matrix],
                                                   CUDA_R_32F, wrong[i].rows,
                                                   wrong[i].cols, wrong[i].ld));
        refused(&p, INVALID);
        p.layout[wrong[i].matrix] = right;
    }
    LT(SUCCESS, multiply(&p, 0));
}
END_TEST

START_TEST(layouts_that_are_missing_are_not_supported)
{
    struct product p;

    start(&p);
#define SET_LAYOUT(i, name, value)                                             \
    LT(SUCCESS, SET(MatrixLayout, p.layout[i], CUBLASLT_MATRIX_LAYOUT_##name,  \
                    int32_t, value))
    SET_LAYOUT(0, ORDER, 77);
    refused(&p, INVALID);
    SET_LAYOUT(0, ORDER, CUBLASLT_ORDER_COL32);
    refused(&p, UNSUPPORTED);
    SET_LAYOUT(0, ORDER, CUBLASLT_ORDER_ROW); /* too short for a row of 5 */
    refused(&p, INVALID);
    SET_LAYOUT(0, ORDER, CUBLASLT_ORDER_COL);
    SET_LAYOUT(1, BATCH_COUNT, 0);
    refused(&p, INVALID);
    SET_LAYOUT(1, BATCH_COUNT, 2);
    refused(&p, UNSUPPORTED);
    SET_LAYOUT(1, BATCH_COUNT, 1);
    SET_LAYOUT(0, TYPE, CUDA_R_16BF);
    refused(&p, UNSUPPORTED);
    SET_LAYOUT(1, TYPE, CUDA_R_16BF);
    LT(SUCCESS, multiply(&p, 0));
    SET_LAYOUT(3, TYPE, CUDA_R_16BF);
    refused(&p, UNSUPPORTED);
    SET_LAYOUT(2, TYPE, CUDA_R_16BF);
    LT(SUCCESS, multiply(&p, 0));
    set_op(&p, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, CUBLAS_COMPUTE_32F_FAST_TF32);
    refused(&p, UNSUPPORTED);
#undef SET_LAYOUT
}
END_TEST

START_TEST(operations_that_are_missing_are_not_supported)
{
    struct product p;

    start(&p);
    set_op(&p, CUBLASLT_MATMUL_DESC_TRANSA, 9);
    refused(&p, INVALID);
    set_op(&p, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    refused(&p, INVALID); /* it does not fit any more */
    set_op(&p, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N);
    set_op(&p, CUBLASLT_MATMUL_DESC_TRANSC, CUBLAS_OP_T);
    refused(&p, UNSUPPORTED);
    set_op(&p, CUBLASLT_MATMUL_DESC_TRANSC, CUBLAS_OP_N);
    set_op(&p, CUBLASLT_MATMUL_DESC_SCALE_TYPE, CUDA_R_16BF);
    refused(&p, UNSUPPORTED);
    set_op(&p, CUBLASLT_MATMUL_DESC_SCALE_TYPE, CUDA_R_32F);
    set_op(&p, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, CUBLAS_COMPUTE_16F);
    refused(&p, UNSUPPORTED);
    set_op(&p, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, CUBLAS_COMPUTE_32F);
    set_op(&p, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
    refused(&p, UNSUPPORTED);
    set_op(&p, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_HOST);
    set_op(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU);
    refused(&p, UNSUPPORTED);
    set_op(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, 7777);
    refused(&p, INVALID);
    set_op(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    LT(INVALID_VALUE, multiply(&p, 0)); /* which bias? */
    LT(SUCCESS, SET(MatmulDesc, p.op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, void *,
                    p.at[0]));
    LT(SUCCESS, multiply(&p, 0));
    set_op(&p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
    refused(&p, UNSUPPORTED);
}
END_TEST

START_TEST(the_preference_says_which_algorithms_there_are)
{
    struct product p;
    int n = -1;

    start(&p);
    LT(SUCCESS, choose(&p, 4, &n)); /* no workspace, unless it is asked for */
    ck_assert_int_eq(n, 1);
    ck_assert_uint_eq(p.found[0].workspaceSize, 0);
    LT(SUCCESS, SET(MatmulPreference, p.preference,
                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t, 4096));
    LT(SUCCESS, choose(&p, 4, &n));
    ck_assert_int_eq(n, 2);
    ck_assert_uint_gt(p.found[0].workspaceSize, 0);
    ck_assert_uint_le(p.found[0].workspaceSize, 4096);
    ck_assert_uint_eq(p.found[1].workspaceSize, 0);
    LT(SUCCESS, p.found[0].state);
    LT(SUCCESS, multiply(&p, 1));
    p.workspace_len = p.found[0].workspaceSize - 1;
    LT(INVALID_VALUE, multiply(&p, 1));
    LT(SUCCESS, multiply(&p, 0));
    p.workspace_len++;
    p.workspace = (char *)p.workspace + 128; /* 256 is asked for */
    LT(INVALID_VALUE, multiply(&p, 1));
    LT(INVALID_VALUE, choose(&p, 0, &n));
    LT(INVALID_VALUE, dnn.cublasLtMatmulAlgoGetHeuristic(
                          p.h, p.op, p.layout[0], p.layout[1], p.layout[2],
                          p.layout[3], NULL, 1, p.found, &n));
}
END_TEST

START_TEST(an_algorithm_is_of_one_kind_of_product)
{
    struct product p;
    int n = -1;

    start(&p);
    memset(&p.found[0], 0, sizeof(p.found[0]));
    LT(INVALID_VALUE, multiply(&p, 1));
    LT(SUCCESS, choose(&p, 1, &n));
    LT(SUCCESS, multiply(&p, 1));
    set_op(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU);
    LT(NOT_SUPPORTED, multiply(&p, 1));
}
END_TEST

START_TEST(all_arguments_are_given)
{
    struct product p, other;

    start(&p);
    other = p;
    other.h = NULL;
    LT(NOT_INITIALIZED, multiply(&other, 0));
    other = p;
    other.op = NULL;
    LT(INVALID_VALUE, multiply(&other, 0));
    for (int i = 0; i < 4; i++) {
        other = p;
        other.layout[i] = NULL;
        LT(INVALID_VALUE, multiply(&other, 0));
        other = p;
        other.at[i] = NULL;
        LT(INVALID_VALUE, multiply(&other, 0));
    }
    other = p;
    other.at[2] = other.at[3]; /* in place: the layouts have to be alike */
    LT(SUCCESS, multiply(&other, 0));
    LT(SUCCESS,
       dnn.cublasLtMatrixLayoutCreate(&other.layout[2], CUDA_R_32F, 4, 6, 5));
    LT(INVALID_VALUE, multiply(&other, 0));
    LT(INVALID_VALUE,
       dnn.cublasLtMatmul(p.h, p.op, NULL, p.at[0], p.layout[0], p.at[1],
                          p.layout[1], &p.beta, p.at[2], p.layout[2], p.at[3],
                          p.layout[3], NULL, NULL, 0, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_cublaslt_rules");
    TCase *tc = suite_case(suite, "descriptors", 20);

    tcase_add_test(tc, layouts_answer_as_cublaslt_does);
    tcase_add_test(tc, descriptions_of_products_answer_as_cublaslt_does);
    tcase_add_test(tc, preferences_answer_as_cublaslt_does);
    tcase_add_test(tc, words_are_as_of_cublaslt);
    tcase_add_test_raise_signal(tc, a_destroyed_layout_ends_the_process,
                                SIGABRT);
    tc = suite_case(suite, "products", 20);
    tcase_add_test(tc, shapes_that_do_not_fit_are_invalid);
    tcase_add_test(tc, layouts_that_are_missing_are_not_supported);
    tcase_add_test(tc, operations_that_are_missing_are_not_supported);
    tcase_add_test(tc, the_preference_says_which_algorithms_there_are);
    tcase_add_test(tc, an_algorithm_is_of_one_kind_of_product);
    tcase_add_test(tc, all_arguments_are_given);
    return suite_run(suite);
}
