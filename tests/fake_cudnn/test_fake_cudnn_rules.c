/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fake_cudnn_rules.c - what the stand-in of cuDNN answers to wrong arguments.
 * For descriptors it is what cuDNN 9.19 has answered, for convolutions what its API reference
 * says. */
#include "tests/fake_cudnn/conv_fixture.h"
#include "tests/support/suite.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define NHWC CUDNN_TENSOR_NHWC
#define FLOAT CUDNN_DATA_FLOAT

/* ---- cuDNN's descriptors ------------------------------------------------- */

START_TEST(tensors_answer_as_cudnn_does)
{
    cudnnTensorDescriptor_t t = NULL;

#define SET(...) dnn.cudnnSetTensor4dDescriptor(__VA_ARGS__)
#define SET_EX(...) dnn.cudnnSetTensor4dDescriptorEx(__VA_ARGS__)
    dnn_open();
    DNN(BAD_PARAM, dnn.cudnnCreateTensorDescriptor(NULL));
    DNN(SUCCESS, dnn.cudnnCreateTensorDescriptor(&t));
    DNN(BAD_PARAM, SET(NULL, NHWC, FLOAT, 1, 2, 3, 4));
    DNN(BAD_PARAM, SET(t, NHWC, FLOAT, 0, 2, 3, 4));
    DNN(BAD_PARAM, SET(t, NHWC, FLOAT, 1, -2, 3, 4));
    DNN(BAD_PARAM, SET(t, (cudnnTensorFormat_t)7, FLOAT, 1, 2, 3, 4));
    DNN(BAD_PARAM, SET(t, CUDNN_TENSOR_NCHW_VECT_C, FLOAT, 1, 4, 3, 4));
    DNN(BAD_PARAM, SET(t, NHWC, (cudnnDataType_t)99, 1, 2, 3, 4));
    DNN(NOT_SUPPORTED, SET(t, NHWC, FLOAT, 65536, 65536, 1, 1));
    DNN(BAD_PARAM, SET(t, NHWC, FLOAT, 65536, 65536, 65536, 65536));
    DNN(SUCCESS, SET(t, NHWC, FLOAT, 32768, 32768, 1, 1));
    DNN(SUCCESS, SET(t, NHWC, CUDNN_DATA_BFLOAT16, 1, 2, 3, 4));
    DNN(SUCCESS, SET(t, CUDNN_TENSOR_NCHW, FLOAT, 1, 2, 3, 4));
    DNN(BAD_PARAM, SET_EX(NULL, FLOAT, 2, 3, 4, 5, 60, 1, 15, 3));
    DNN(BAD_PARAM, SET_EX(t, FLOAT, 2, 3, 4, 5, 0, 1, 15, 3));
    DNN(BAD_PARAM, SET_EX(t, FLOAT, 0, 3, 4, 5, 61, 1, 15, 3));
    DNN(BAD_PARAM, SET_EX(t, (cudnnDataType_t)50, 3, 3, 4, 5, 60, 1, 15, 3));
    DNN(NOT_SUPPORTED, SET_EX(t, FLOAT, 2, 3, 4, 5, INT_MAX, 1, 15, 3));
    DNN(SUCCESS, SET_EX(t, FLOAT, 2, 3, 4, 5, 60, 1, 15, 3));
    DNN(SUCCESS, SET_EX(t, FLOAT, 2, 3, 4, 5, 60, -1, 15, 3));
    DNN(SUCCESS, SET_EX(t, FLOAT, 2, 3, 4, 5, 1, 1, 1, 1));
    DNN(SUCCESS, dnn.cudnnDestroyTensorDescriptor(t));
    DNN(SUCCESS, dnn.cudnnDestroyTensorDescriptor(NULL));
#undef SET
#undef SET_EX
}
END_TEST

START_TEST(filters_answer_as_cudnn_does)
{
    cudnnFilterDescriptor_t f = NULL;

#define SET(...) dnn.cudnnSetFilter4dDescriptor(__VA_ARGS__)
    dnn_open();
    DNN(BAD_PARAM, dnn.cudnnCreateFilterDescriptor(NULL));
    DNN(SUCCESS, dnn.cudnnCreateFilterDescriptor(&f));
    DNN(BAD_PARAM, SET(NULL, FLOAT, NHWC, 1, 2, 3, 3));
    DNN(BAD_PARAM, SET(f, FLOAT, NHWC, 0, 2, 3, 3));
    DNN(BAD_PARAM, SET(f, FLOAT, NHWC, 1, 2, -3, 3));
    DNN(BAD_PARAM, SET(f, FLOAT, (cudnnTensorFormat_t)9, 1, 2, 3, 3));
    DNN(BAD_PARAM, SET(f, (cudnnDataType_t)77, NHWC, 1, 2, 3, 3));
    DNN(SUCCESS, SET(f, FLOAT, NHWC, 65536, 65536, 1, 1));
    DNN(SUCCESS, SET(f, FLOAT, NHWC, 8, 4, 3, 3));
    DNN(SUCCESS, dnn.cudnnDestroyFilterDescriptor(f));
    DNN(SUCCESS, dnn.cudnnDestroyFilterDescriptor(NULL));
#undef SET
}
END_TEST

START_TEST(convolution_descriptors_answer_as_cudnn_does)
{
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnConvolutionDescriptor_t c = NULL;

#define SET(...) dnn.cudnnSetConvolution2dDescriptor(__VA_ARGS__)
    dnn_open();
    DNN(BAD_PARAM, dnn.cudnnCreateConvolutionDescriptor(NULL));
    DNN(SUCCESS, dnn.cudnnCreateConvolutionDescriptor(&c));
    DNN(BAD_PARAM, SET(NULL, 1, 1, 1, 1, 1, 1, mode, FLOAT));
    DNN(BAD_PARAM, SET(c, -1, 1, 1, 1, 1, 1, mode, FLOAT));
    DNN(BAD_PARAM, SET(c, 1, 1, 0, 1, 1, 1, mode, FLOAT));
    DNN(BAD_PARAM, SET(c, 1, 1, 1, 1, 0, 1, mode, FLOAT));
    DNN(BAD_PARAM, SET(c, 1, 1, 1, 1, 1, -1, mode, FLOAT));
    DNN(BAD_PARAM, SET(c, 1, 1, 1, 1, 1, 1, (cudnnConvolutionMode_t)5, FLOAT));
    DNN(BAD_PARAM, SET(c, 1, 1, 1, 1, 1, 1, mode, (cudnnDataType_t)88));
    DNN(BAD_PARAM, SET(c, 1, 1, 1, 1, 1, 1, mode, CUDNN_DATA_BFLOAT16));
    DNN(BAD_PARAM, SET(c, 1, 1, 1, 1, 1, 1, mode, CUDNN_DATA_INT8));
    DNN(SUCCESS, SET(c, 1, 1, 1, 1, 1, 1, mode, FLOAT));
    DNN(BAD_PARAM, dnn.cudnnSetConvolutionMathType(NULL, CUDNN_FMA_MATH));
    DNN(BAD_PARAM, dnn.cudnnSetConvolutionMathType(c, (cudnnMathType_t)4));
    DNN(BAD_PARAM, dnn.cudnnSetConvolutionMathType(c, (cudnnMathType_t)-1));
    DNN(SUCCESS, dnn.cudnnSetConvolutionMathType(c, CUDNN_FMA_MATH));
    DNN(SUCCESS, dnn.cudnnDestroyConvolutionDescriptor(c));
    DNN(SUCCESS, dnn.cudnnDestroyConvolutionDescriptor(NULL));
#undef SET
}
END_TEST

START_TEST(handles_and_words_are_as_of_cudnn)
{
    char words[64] = "";
    cudnnHandle_t h;

    conv_start(&h);
    ck_assert_uint_eq(dnn.cudnnGetVersion(), CUDNN_VERSION);
    ck_assert_str_eq(dnn.cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM),
                     "CUDNN_STATUS_BAD_PARAM");
    ck_assert_str_eq(dnn.cudnnGetErrorString((cudnnStatus_t)1000),
                     "CUDNN_UNKNOWN_STATUS");
    DNN(BAD_PARAM, dnn.cudnnCreate(NULL));
    dnn.cudnnGetLastErrorString(words, sizeof(words));
    ck_assert_str_eq(words, "handle is NULL");
    dnn.cudnnGetLastErrorString(words, sizeof(words));
    ck_assert_str_eq(words, "");
    DNN(BAD_PARAM, dnn.cudnnSetStream(NULL, NULL));
    DNN(SUCCESS, dnn.cudnnSetStream(h, NULL));
    DNN(SUCCESS, dnn.cudnnDestroy(h));
    DNN(SUCCESS, dnn.cudnnDestroy(NULL));
}
END_TEST

START_TEST(a_destroyed_descriptor_ends_the_process)
{
    cudnnTensorDescriptor_t t;

    dnn_open();
    DNN(SUCCESS, dnn.cudnnCreateTensorDescriptor(&t));
    DNN(SUCCESS, dnn.cudnnDestroyTensorDescriptor(t));
    dnn.cudnnSetTensor4dDescriptor(t, NHWC, FLOAT, 1, 1, 1, 1);
}
END_TEST

START_TEST(a_descriptor_of_another_kind_ends_the_process)
{
    cudnnFilterDescriptor_t f;

    dnn_open();
    DNN(SUCCESS, dnn.cudnnCreateFilterDescriptor(&f));
    dnn.cudnnSetTensor4dDescriptor((cudnnTensorDescriptor_t)(void *)f, NHWC,
                                   FLOAT, 1, 1, 1, 1);
}
END_TEST

/* ---- convolutions -------------------------------------------------------- */

static const struct conv_case shape = {2, 3,      7,      5,      4, 3,
                                       3, {1, 1}, {1, 1}, {1, 1}, 0};

/* What a pass answers, whether it is asked about workspaces or is to compute. */
static void answers(const struct conv_test *t, cudnnHandle_t h, int pass,
                    cudnnStatus_t status)
{
    cudnnStatus_t st = CUDNN_STATUS_SUCCESS;
    size_t len = 77;

    ck_assert_int_eq(conv_call(t, h, pass, 1), status);
    if (pass == CONV_FORWARD)
        st = dnn.cudnnGetConvolutionForwardWorkspaceSize(
            h, t->x, t->w, t->conv, t->y,
            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, &len);
    else if (pass == CONV_BACK_DATA)
        st = dnn.cudnnGetConvolutionBackwardDataWorkspaceSize(
            h, t->w, t->y, t->conv, t->x, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
            &len);
    else
        st = dnn.cudnnGetConvolutionBackwardFilterWorkspaceSize(
            h, t->x, t->y, t->conv, t->w, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
            &len);
    ck_assert_int_eq(st, status);
    ck_assert_uint_eq(len, 77);
}

enum { MOST = 9 };

/* A list of algorithms, in a form that all three passes have. */
struct listed {
    int n, numbers[MOST], determinism[MOST];
    cudnnStatus_t statuses[MOST];
    size_t memory[MOST];
    float times[MOST];
};

#define LIST(type, function, ...)                                              \
    do {                                                                       \
        type found_[MOST];                                                     \
        st = dnn.function(h, __VA_ARGS__, requested, &l->n, found_);           \
        for (int i_ = 0; !st && i_ < l->n; i_++) {                             \
            l->numbers[i_] = (int)found_[i_].algo;                             \
            l->determinism[i_] = (int)found_[i_].determinism;                  \
            l->statuses[i_] = found_[i_].status;                               \
            l->memory[i_] = found_[i_].memory;                                 \
            l->times[i_] = found_[i_].time;                                    \
            ck_assert_int_eq(found_[i_].mathType, CUDNN_FMA_MATH);             \
        }                                                                      \
    } while (0)

static cudnnStatus_t list(const struct conv_test *t, cudnnHandle_t h, int pass,
                          int requested, struct listed *l)
{
    cudnnStatus_t st;

    l->n = 77;
    if (pass == CONV_FORWARD)
        LIST(cudnnConvolutionFwdAlgoPerf_t,
             cudnnGetConvolutionForwardAlgorithm_v7, t->x, t->w, t->conv, t->y);
    else if (pass == CONV_BACK_DATA)
        LIST(cudnnConvolutionBwdDataAlgoPerf_t,
             cudnnGetConvolutionBackwardDataAlgorithm_v7, t->w, t->y, t->conv,
             t->x);
    else
        LIST(cudnnConvolutionBwdFilterAlgoPerf_t,
             cudnnGetConvolutionBackwardFilterAlgorithm_v7, t->x, t->y, t->conv,
             t->w);
    return st;
}

static const int counts[3] = {
    [CONV_FORWARD] = CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
    [CONV_BACK_DATA] = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
    [CONV_BACK_FILTER] = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT};

static void is_bad_for(const struct conv_test *t, cudnnHandle_t h, int pass)
{
    struct listed l;

    answers(t, h, pass, CUDNN_STATUS_BAD_PARAM);
    DNN(BAD_PARAM, list(t, h, pass, MOST, &l));
    ck_assert_int_eq(l.n, 77);
}

static void is_bad(const struct conv_test *t, cudnnHandle_t h)
{
    for (int pass = 0; pass < 3; pass++)
        is_bad_for(t, h, pass);
}

/* Algorithms are listed all the same. */
static void is_unsupported_by(const struct conv_test *t, cudnnHandle_t h,
                              int pass, cudnnStatus_t status)
{
    struct listed l;

    answers(t, h, pass, status);
    DNN(SUCCESS, list(t, h, pass, MOST, &l));
    ck_assert_int_eq(l.n, counts[pass]);
    for (int i = 0; i < l.n; i++) {
        ck_assert_int_eq(l.statuses[i], status);
        ck_assert_uint_eq(l.memory[i], 0);
    }
}

static void is_unsupported(const struct conv_test *t, cudnnHandle_t h,
                           cudnnStatus_t status)
{
    for (int pass = 0; pass < 3; pass++)
        is_unsupported_by(t, h, pass, status);
}

/* A tensor of the case with other dimensions. */
static void set_x(const struct conv_test *t, int n, int c, int h, int w)
{
    DNN(SUCCESS, dnn.cudnnSetTensor4dDescriptor(t->x, NHWC, FLOAT, n, c, h, w));
}

static void set_y(const struct conv_test *t, int n, int c, int h, int w)
{
    DNN(SUCCESS, dnn.cudnnSetTensor4dDescriptor(t->y, NHWC, FLOAT, n, c, h, w));
}

START_TEST(shapes_that_do_not_fit_are_refused)
{
    struct conv_test t;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&t, &shape, DNN_F32);
    set_x(&t, 2, 4, 7, 5);
    is_bad(&t, h);
    set_x(&t, 3, 3, 7, 5);
    is_bad(&t, h);
    set_x(&t, 2, 3, 7, 6);
    is_unsupported_by(&t, h, CONV_FORWARD, CUDNN_STATUS_NOT_SUPPORTED);
    is_bad_for(&t, h, CONV_BACK_DATA);
    is_bad_for(&t, h, CONV_BACK_FILTER);
    set_x(&t, 2, 3, 7, 5);
    set_y(&t, 2, 3, 7, 5);
    is_bad(&t, h);
    set_y(&t, 2, 4, 6, 5);
    is_unsupported_by(&t, h, CONV_FORWARD, CUDNN_STATUS_NOT_SUPPORTED);
    is_bad_for(&t, h, CONV_BACK_DATA);
    is_bad_for(&t, h, CONV_BACK_FILTER);
    set_y(&t, 2, 4, 7, 5);
    DNN(SUCCESS, conv_call(&t, h, CONV_FORWARD, 1));
    DNN(SUCCESS, dnn.cudnnSetConvolution2dDescriptor(
                     t.conv, 0, 0, 1, 1, 4, 4, CUDNN_CROSS_CORRELATION, FLOAT));
    set_y(&t, 2, 4, 1, 1); /* the filter does not fit in */
    is_bad(&t, h);
}
END_TEST

START_TEST(types_and_layouts_that_are_missing_are_not_supported)
{
    struct conv_test t;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&t, &shape, DNN_F32);
    DNN(SUCCESS, dnn.cudnnSetFilter4dDescriptor(t.w, CUDNN_DATA_BFLOAT16, NHWC,
                                                4, 3, 3, 3));
    is_bad(&t, h);
    DNN(SUCCESS, dnn.cudnnSetFilter4dDescriptor(t.w, FLOAT, CUDNN_TENSOR_NCHW,
                                                4, 3, 3, 3));
    is_unsupported(&t, h, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT);
    DNN(SUCCESS, dnn.cudnnSetFilter4dDescriptor(t.w, FLOAT, NHWC, 4, 3, 3, 3));
    DNN(SUCCESS, dnn.cudnnSetTensor4dDescriptor(t.x, CUDNN_TENSOR_NCHW, FLOAT,
                                                2, 3, 7, 5));
    is_unsupported(&t, h, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT);
    DNN(SUCCESS, dnn.cudnnSetTensor4dDescriptorEx(t.x, FLOAT, 2, 3, 7, 5, 105,
                                                  -1, 15, 3));
    is_unsupported(&t, h, CUDNN_STATUS_NOT_SUPPORTED);
    DNN(SUCCESS, dnn.cudnnSetTensor4dDescriptorEx(t.x, FLOAT, 2, 3, 7, 5, 105,
                                                  1, 15, 3));
    DNN(SUCCESS, conv_call(&t, h, CONV_FORWARD, 1));
    DNN(SUCCESS, dnn.cudnnSetConvolution2dDescriptor(t.conv, 1, 1, 1, 1, 1, 1,
                                                     CUDNN_CROSS_CORRELATION,
                                                     CUDNN_DATA_DOUBLE));
    is_unsupported(&t, h, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
}
END_TEST

START_TEST(descriptors_that_were_not_set_are_refused)
{
    struct conv_test t, other;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&t, &shape, DNN_F32);
    is_bad(&t, NULL);
    other = t;
    DNN(SUCCESS, dnn.cudnnCreateTensorDescriptor(&other.x));
    is_bad(&other, h);
    other.x = NULL;
    is_bad(&other, h);
    other = t;
    DNN(SUCCESS, dnn.cudnnCreateFilterDescriptor(&other.w));
    is_bad(&other, h);
    other = t;
    DNN(SUCCESS, dnn.cudnnCreateConvolutionDescriptor(&other.conv));
    is_bad(&other, h);
}
END_TEST

START_TEST(each_algorithm_has_a_workspace_of_its_own)
{
    struct conv_test t;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&t, &shape, DNN_F32);
    for (int pass = 0; pass < 3; pass++) {
        size_t len = conv_need(&t, h, pass, 1);
        CUdeviceptr workspace = t.workspace;

        ck_assert_uint_eq(conv_need(&t, h, pass, 0), 0);
        ck_assert_uint_gt(len, 0);
        t.workspace_len = len;
        DNN(SUCCESS, conv_call(&t, h, pass, 1));
        t.workspace_len = len - 1;
        DNN(BAD_PARAM_SIZE_INSUFFICIENT, conv_call(&t, h, pass, 1));
        t.workspace_len = len;
        t.workspace = 0;
        DNN(BAD_PARAM, conv_call(&t, h, pass, 1));
        DNN(SUCCESS, conv_call(&t, h, pass, 0));
        t.workspace = workspace + 8;
        DNN(BAD_PARAM_MISALIGNED_POINTER, conv_call(&t, h, pass, 1));
        t.workspace = workspace;
        DNN(NOT_SUPPORTED, conv_call(&t, h, pass, 2));
        DNN(BAD_PARAM, conv_call(&t, h, pass, 77));
        DNN(BAD_PARAM, conv_call(&t, h, pass, -1));
    }
}
END_TEST

START_TEST(memory_is_given_and_aligned)
{
    struct conv_test t;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&t, &shape, DNN_F32);
    for (int i = 0; i < 3; i++) {
        CUdeviceptr at = t.at[i];

        t.at[i] = 0;
        DNN(BAD_PARAM, conv_call(&t, h, CONV_FORWARD, 1));
        t.at[i] = at + 4;
        DNN(BAD_PARAM_MISALIGNED_POINTER, conv_call(&t, h, CONV_FORWARD, 1));
        t.at[i] = at;
    }
    DNN(BAD_PARAM, dnn.cudnnConvolutionForward(
                       h, NULL, t.x, (void *)(uintptr_t)t.at[CONV_X], t.w,
                       (void *)(uintptr_t)t.at[CONV_W], t.conv,
                       CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0,
                       &t.beta, t.y, (void *)(uintptr_t)t.at[CONV_Y]));
}
END_TEST

START_TEST(all_algorithms_are_listed_supported_ones_first)
{
    struct conv_test t;
    struct listed l;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&t, &shape, DNN_F32);
    for (int pass = 0; pass < 3; pass++) {
        unsigned seen = 0;

        DNN(SUCCESS, list(&t, h, pass, MOST, &l));
        ck_assert_int_eq(l.n, counts[pass]);
        for (int i = 0; i < l.n; i++) {
            seen |= 1U << l.numbers[i];
            ck_assert_int_eq(l.statuses[i], i < 2 ? CUDNN_STATUS_SUCCESS
                                                  : CUDNN_STATUS_NOT_SUPPORTED);
            ck_assert_uint_eq(l.memory[i],
                              i < 2 ? conv_need(&t, h, pass, l.numbers[i]) : 0);
            ck_assert_float_eq(l.times[i], -1);
        }
        ck_assert_uint_eq(seen, (1U << counts[pass]) - 1);
        DNN(SUCCESS, list(&t, h, pass, 1, &l));
        ck_assert_int_eq(l.n, 1);
        DNN(BAD_PARAM, list(&t, h, pass, 0, &l));
    }
}
END_TEST

START_TEST(fast_algorithms_of_backward_passes_are_not_deterministic)
{
    static const unsigned expected[3] = {
        [CONV_BACK_DATA] = 1U << CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
        [CONV_BACK_FILTER] = 1U << CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 |
                             1U << CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3};
    struct conv_test t;
    struct listed l;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&t, &shape, DNN_F32);
    for (int pass = 0; pass < 3; pass++) {
        unsigned unordered = 0;

        DNN(SUCCESS, list(&t, h, pass, MOST, &l));
        for (int i = 0; i < l.n; i++)
            if (l.determinism[i] == CUDNN_NON_DETERMINISTIC)
                unordered |= 1U << l.numbers[i];
        ck_assert_uint_eq(unordered, expected[pass]);
        ck_assert(pass == CONV_FORWARD || unordered & 1U << l.numbers[0]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_cudnn_rules");
    TCase *tc = suite_case(suite, "descriptors", 20);

    tcase_add_test(tc, tensors_answer_as_cudnn_does);
    tcase_add_test(tc, filters_answer_as_cudnn_does);
    tcase_add_test(tc, convolution_descriptors_answer_as_cudnn_does);
    tcase_add_test(tc, handles_and_words_are_as_of_cudnn);
    tcase_add_test_raise_signal(tc, a_destroyed_descriptor_ends_the_process,
                                SIGABRT);
    tcase_add_test_raise_signal(
        tc, a_descriptor_of_another_kind_ends_the_process, SIGABRT);
    tc = suite_case(suite, "convolutions", 20);
    tcase_add_test(tc, shapes_that_do_not_fit_are_refused);
    tcase_add_test(tc, types_and_layouts_that_are_missing_are_not_supported);
    tcase_add_test(tc, descriptors_that_were_not_set_are_refused);
    tcase_add_test(tc, each_algorithm_has_a_workspace_of_its_own);
    tcase_add_test(tc, memory_is_given_and_aligned);
    tcase_add_test(tc, all_algorithms_are_listed_supported_ones_first);
    tcase_add_test(tc,
                   fast_algorithms_of_backward_passes_are_not_deterministic);
    return suite_run(suite);
}
