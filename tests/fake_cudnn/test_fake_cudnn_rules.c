/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fake_cudnn_rules.c - what the stand-in of cuDNN answers to wrong arguments.
 * For descriptors it is what cuDNN 9.19 has answered. */
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

/* All passes refuse it so, whether they are asked about it or are to do it. */
static void refused(const struct conv_test *t, cudnnHandle_t h,
                    cudnnStatus_t status)
{
    cudnnConvolutionBwdFilterAlgoPerf_t filter[4];
    cudnnConvolutionBwdDataAlgoPerf_t data[4];
    cudnnConvolutionFwdAlgoPerf_t forward[4];
    size_t len = 77;
    int n = 77;

    for (int pass = 0; pass < 3; pass++)
        ck_assert_int_eq(conv_call(t, h, pass, 1), status);
    ck_assert_int_eq(dnn.cudnnGetConvolutionForwardAlgorithm_v7(
                         h, t->x, t->w, t->conv, t->y, 4, &n, forward),
                     status);
    ck_assert_int_eq(dnn.cudnnGetConvolutionBackwardDataAlgorithm_v7(
                         h, t->w, t->y, t->conv, t->x, 4, &n, data),
                     status);
    ck_assert_int_eq(dnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                         h, t->x, t->y, t->conv, t->w, 4, &n, filter),
                     status);
    ck_assert_int_eq(dnn.cudnnGetConvolutionForwardWorkspaceSize(
                         h, t->x, t->w, t->conv, t->y,
                         CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &len),
                     status);
    ck_assert_int_eq(n, 77);
    ck_assert_uint_eq(len, 77);
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
    refused(&t, h, CUDNN_STATUS_BAD_PARAM);
    set_x(&t, 3, 3, 7, 5);
    refused(&t, h, CUDNN_STATUS_BAD_PARAM);
    set_x(&t, 2, 3, 7, 6);
    refused(&t, h, CUDNN_STATUS_BAD_PARAM);
    set_x(&t, 2, 3, 7, 5);
    set_y(&t, 2, 3, 7, 5);
    refused(&t, h, CUDNN_STATUS_BAD_PARAM);
    set_y(&t, 2, 4, 6, 5);
    refused(&t, h, CUDNN_STATUS_BAD_PARAM);
    set_y(&t, 2, 4, 7, 5);
    DNN(SUCCESS, conv_call(&t, h, CONV_FORWARD, 1));
    DNN(SUCCESS, dnn.cudnnSetConvolution2dDescriptor(
                     t.conv, 0, 0, 1, 1, 4, 4, CUDNN_CROSS_CORRELATION, FLOAT));
    set_y(&t, 2, 4, 1, 1); /* the filter does not fit in */
    refused(&t, h, CUDNN_STATUS_BAD_PARAM);
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
    refused(&t, h, CUDNN_STATUS_BAD_PARAM);
    DNN(SUCCESS, dnn.cudnnSetFilter4dDescriptor(t.w, FLOAT, CUDNN_TENSOR_NCHW,
                                                4, 3, 3, 3));
    refused(&t, h, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT);
    DNN(SUCCESS, dnn.cudnnSetFilter4dDescriptor(t.w, FLOAT, NHWC, 4, 3, 3, 3));
    DNN(SUCCESS, dnn.cudnnSetTensor4dDescriptor(t.x, CUDNN_TENSOR_NCHW, FLOAT,
                                                2, 3, 7, 5));
    refused(&t, h, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT);
    DNN(SUCCESS, dnn.cudnnSetTensor4dDescriptorEx(t.x, FLOAT, 2, 3, 7, 5, 105,
                                                  -1, 15, 3));
    refused(&t, h, CUDNN_STATUS_NOT_SUPPORTED);
    DNN(SUCCESS, dnn.cudnnSetTensor4dDescriptorEx(t.x, FLOAT, 2, 3, 7, 5, 105,
                                                  1, 15, 3));
    DNN(SUCCESS, conv_call(&t, h, CONV_FORWARD, 1));
    DNN(SUCCESS, dnn.cudnnSetConvolution2dDescriptor(t.conv, 1, 1, 1, 1, 1, 1,
                                                     CUDNN_CROSS_CORRELATION,
                                                     CUDNN_DATA_DOUBLE));
    refused(&t, h, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
}
END_TEST

START_TEST(descriptors_that_were_not_set_are_refused)
{
    struct conv_test t, other;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&t, &shape, DNN_F32);
    refused(&t, NULL, CUDNN_STATUS_BAD_PARAM);
    other = t;
    DNN(SUCCESS, dnn.cudnnCreateTensorDescriptor(&other.x));
    refused(&other, h, CUDNN_STATUS_BAD_PARAM);
    other.x = NULL;
    refused(&other, h, CUDNN_STATUS_BAD_PARAM);
    other = t;
    DNN(SUCCESS, dnn.cudnnCreateFilterDescriptor(&other.w));
    refused(&other, h, CUDNN_STATUS_BAD_PARAM);
    other = t;
    DNN(SUCCESS, dnn.cudnnCreateConvolutionDescriptor(&other.conv));
    refused(&other, h, CUDNN_STATUS_BAD_PARAM);
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

START_TEST(algorithms_are_listed_by_time_and_say_what_they_are)
{
    cudnnConvolutionBwdFilterAlgoPerf_t found[8];
    struct conv_test t;
    cudnnHandle_t h;
    int n = 0;

    conv_start(&h);
    conv_make(&t, &shape, DNN_F32);
    DNN(SUCCESS, dnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                     h, t.x, t.y, t.conv, t.w, 8, &n, found));
    ck_assert_int_eq(n, 3);
    ck_assert_int_eq(found[0].algo, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0);
    ck_assert_int_eq(found[0].determinism, CUDNN_NON_DETERMINISTIC);
    ck_assert_int_eq(found[1].determinism, CUDNN_DETERMINISTIC);
    ck_assert_uint_eq(found[1].memory, conv_need(&t, h, CONV_BACK_FILTER, 1));
    ck_assert_int_eq(found[1].mathType, CUDNN_FMA_MATH);
    ck_assert(found[0].time <= found[1].time);
    DNN(NOT_SUPPORTED, found[2].status);
    DNN(SUCCESS, dnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                     h, t.x, t.y, t.conv, t.w, 1, &n, found));
    ck_assert_int_eq(n, 1);
    DNN(BAD_PARAM, dnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                       h, t.x, t.y, t.conv, t.w, 0, &n, found));
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
    tcase_add_test(tc, algorithms_are_listed_by_time_and_say_what_they_are);
    return suite_run(suite);
}
