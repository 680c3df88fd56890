/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fake_cudnn.c - the stand-in of cuDNN: what its convolutions compute, when, and in
 * which memory. */
#include "tests/fake_cudnn/dnn_fixture.h"
#include "tests/fake_cudnn/conv_fixture.h"
#include "tests/support/suite.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* n, c, h, w, k, r, s, padding, stride, dilation, flipped */
static const struct conv_case cases[] = {
    {1, 1, 1, 1, 1, 1, 1, {0, 0}, {1, 1}, {1, 1}, 0},
    {2, 3, 7, 5, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 0},
    {3, 8, 9, 9, 16, 5, 5, {2, 2}, {2, 2}, {1, 1}, 0},
    {2, 4, 8, 6, 6, 3, 2, {0, 1}, {2, 1}, {1, 1}, 0},
    {2, 4, 9, 8, 3, 3, 3, {2, 1}, {1, 2}, {2, 2}, 0},
    {2, 3, 6, 6, 5, 3, 2, {1, 0}, {1, 1}, {1, 1}, 1},
    {2, 5, 4, 4, 33, 1, 1, {0, 0}, {1, 1}, {1, 1}, 0},
    {1, 40, 12, 12, 20, 3, 3, {1, 1}, {1, 1}, {1, 1}, 0},
    {2, 3, 4, 4, 2, 1, 1, {0, 0}, {3, 3}, {1, 1}, 0},
};
enum { N_CASES = (int)(sizeof(cases) / sizeof(*cases)) };

/* ---- results ------------------------------------------------------------- */

static const enum dnn_number types[] = {DNN_F32, DNN_BF16};

/* _i: the case.  Of both types, by each algorithm of each pass. */
START_TEST(convolutions_are_those_of_plain_loops)
{
    cudnnHandle_t h;

    conv_start(&h);
    for (int t = 0; t < 2; t++) {
        struct conv_test test;

        conv_make(&test, &cases[_i], types[t]);
        for (int pass = 0; pass < 3; pass++)
            for (int algo = 0; algo < 2; algo++) {
                conv_reset(&test, 7);
                DNN(SUCCESS, conv_call(&test, h, pass, algo));
                ck_assert_msg(conv_is_right(&test, pass, 1, 0),
                              "pass %d, algorithm %d, type %d", pass, algo, t);
            }
        conv_free(&test);
    }
    DNN(SUCCESS, dnn.cudnnDestroy(h));
}
END_TEST

START_TEST(results_are_scaled_and_added_to_what_was_there)
{
    struct conv_test test;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&test, &cases[1], DNN_F32);
    test.alpha = 0.5f;
    test.beta = -2;
    for (int pass = 0; pass < 3; pass++) {
        conv_reset(&test, 3);
        DNN(SUCCESS, conv_call(&test, h, pass, 1));
        ck_assert(conv_is_right(&test, pass, 0.5, -2));
    }
}
END_TEST

START_TEST(a_result_that_is_not_added_to_may_have_held_anything)
{
    struct conv_test test;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&test, &cases[1], DNN_F32);
    for (int pass = 0; pass < 3; pass++) {
        conv_reset(&test, 3);
        OK(cu.MemsetD8(test.at[conv_output(pass)], 0xff,
                       4 * test.n[conv_output(pass)]));
        DNN(SUCCESS, conv_call(&test, h, pass, 1));
        ck_assert(conv_is_right(&test, pass, 1, 0));
    }
}
END_TEST

/* 1 + 2^-12 has no room in TF32. */
START_TEST(all_math_but_fma_uses_tf32)
{
    static const struct {
        cudnnMathType_t math;
        float sum;
    } maths[] = {{CUDNN_FMA_MATH, 1 + 0x1p-12f},
                 {CUDNN_DEFAULT_MATH, 1},
                 {CUDNN_TENSOR_OP_MATH, 1},
                 {CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, 1}};
    const float one = 1, x = 1 + 0x1p-12f;
    struct conv_test test;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&test, &cases[0], DNN_F32);
    for (int i = 0; i < 4; i++) {
        float *y;

        dnn_write(test.at[CONV_X], &x, 1, DNN_F32);
        dnn_write(test.at[CONV_W], &one, 1, DNN_F32);
        DNN(SUCCESS, dnn.cudnnSetConvolutionMathType(test.conv, maths[i].math));
        DNN(SUCCESS, conv_call(&test, h, CONV_FORWARD, 0));
        y = dnn_get(test.at[CONV_Y], 1, DNN_F32);
        ck_assert_float_eq(y[0], maths[i].sum);
    }
}
END_TEST

/* In how many of 20 runs has the output other bits than in the first? */
static int n_others(struct conv_test *test, cudnnHandle_t h, int pass, int algo)
{
    size_t n = test->n[conv_output(pass)];
    const float *first = NULL, *now;
    int others = 0;

    conv_reset(test, 5);
    for (int i = 0; i < 20; i++) {
        DNN(SUCCESS, conv_call(test, h, pass, algo));
        now = dnn_get(test->at[conv_output(pass)], n, DNN_F32);
        first = first ? first : now;
        others += memcmp(first, now, 4 * n) != 0;
    }
    return others;
}

START_TEST(only_deterministic_algorithms_give_the_same_bits)
{
    struct conv_test test;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&test, &cases[2], DNN_F32);
    for (int algo = 0; algo < 2; algo++)
        ck_assert_int_eq(n_others(&test, h, CONV_FORWARD, algo), 0);
    for (int pass = CONV_BACK_DATA; pass <= CONV_BACK_FILTER; pass++) {
        ck_assert_int_gt(n_others(&test, h, pass, 0), 0);
        ck_assert_int_eq(n_others(&test, h, pass, 1), 0);
    }
}
END_TEST

/* ---- streams ------------------------------------------------------------- */

START_TEST(a_convolution_runs_in_the_turn_of_its_stream)
{
    struct conv_test test;
    _Atomic uint32_t *gate;
    cudnnHandle_t h;
    CUstream s;

    conv_start(&h);
    conv_make(&test, &cases[1], DNN_F32);
    conv_reset(&test, 1);
    s = fake_stream();
    gate = fake_words(1);
    DNN(SUCCESS, dnn.cudnnSetStream(h, (cudaStream_t)s));
    fake_hold(s, gate);
    DNN(SUCCESS, conv_call(&test, h, CONV_FORWARD, 1));
    OK(cu.CtxSetCurrent(test.ctx));
    IS(NOT_READY, cu.StreamQuery(s));
    /* what it reads is read when its turn comes */
    conv_reset(&test, 2);
    atomic_store(gate, 1);
    OK(cu.StreamSynchronize(s));
    ck_assert(conv_is_right(&test, CONV_FORWARD, 1, 0));
}
END_TEST

/* A non-blocking stream does not wait for the legacy stream, a blocking one does. */
START_TEST(a_new_handle_works_in_the_legacy_stream)
{
    struct conv_test test;
    _Atomic uint32_t *words;
    cudnnHandle_t h;
    CUstream s;

    conv_start(&h);
    conv_make(&test, &cases[1], DNN_F32);
    conv_reset(&test, 1);
    words = fake_words(2);
    OK(cu.StreamCreate(&s, 0));
    fake_hold(NULL, words);
    DNN(SUCCESS, conv_call(&test, h, CONV_FORWARD, 1));
    OK(cu.StreamWriteValue32(s, AT(words + 1), 1, 0));
    ck_assert(fake_stays(words + 1, 0));
    atomic_store(words, 1);
    OK(cu.StreamSynchronize(s));
    ck_assert(conv_is_right(&test, CONV_FORWARD, 1, 0));
}
END_TEST

/* All three passes, each launch with other inputs; alpha is that of the capture. */
START_TEST(convolutions_are_captured_and_replayed)
{
    struct conv_test test;
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;
    cudnnHandle_t h;
    CUstream s;

    conv_start(&h);
    conv_make(&test, &cases[3], DNN_F32);
    for (int pass = 0; pass < 3; pass++) {
        s = fake_stream();
        DNN(SUCCESS, dnn.cudnnSetStream(h, (cudaStream_t)s));
        OK(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
        test.alpha = 2;
        DNN(SUCCESS, conv_call(&test, h, pass, 1));
        test.alpha = 5;
        OK(cu.StreamEndCapture(s, &graph));
        OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
        OK(cu.GraphDestroy(graph));
        for (unsigned seed = 0; seed < 5; seed++) {
            conv_reset(&test, seed);
            OK(cu.GraphLaunch(exec, s));
            OK(cu.StreamSynchronize(s));
            ck_assert(conv_is_right(&test, pass, 2, 0));
        }
        OK(cu.GraphExecDestroy(exec));
    }
}
END_TEST

START_TEST(a_handle_is_not_made_beside_a_capture)
{
    cudnnHandle_t h, other = NULL;
    CUgraph graph = NULL;
    CUstream s;

    conv_start(&h);
    s = fake_stream();
    OK(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    DNN(INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, dnn.cudnnCreate(&other));
    ck_assert_ptr_null(other);
    IS(STREAM_CAPTURE_INVALIDATED, cu.StreamEndCapture(s, &graph));
    OK(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    DNN(SUCCESS, dnn.cudnnCreate(&other));
    OK(cu.StreamEndCapture(s, &graph));
}
END_TEST

START_TEST(the_end_of_a_handle_waits_for_its_work)
{
    struct conv_test test;
    cudnnHandle_t h;
    CUstream s;

    conv_start(&h);
    conv_make(&test, &cases[7], DNN_F32);
    conv_reset(&test, 1);
    s = fake_stream();
    DNN(SUCCESS, dnn.cudnnSetStream(h, (cudaStream_t)s));
    for (int i = 0; i < 5; i++)
        DNN(SUCCESS, conv_call(&test, h, CONV_FORWARD, 1));
    DNN(SUCCESS, dnn.cudnnDestroy(h));
    OK(cu.StreamQuery(s));
    ck_assert(conv_is_right(&test, CONV_FORWARD, 1, 0));
}
END_TEST

/* ---- contexts ------------------------------------------------------------ */

START_TEST(a_handle_is_of_the_context_that_was_current)
{
    struct conv_test test;
    cudnnHandle_t h;
    CUstream other;

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    conv_start(&h);
    conv_make(&test, &cases[1], DNN_F32);
    conv_reset(&test, 1);
    fake_device(1);
    other = fake_stream();
    DNN(BAD_PARAM_STREAM_MISMATCH, dnn.cudnnSetStream(h, (cudaStream_t)other));
    /* the legacy stream is the current context's */
    DNN(EXECUTION_FAILED_CUDART, conv_call(&test, h, CONV_FORWARD, 1));
    OK(cu.CtxSetCurrent(test.ctx));
    DNN(SUCCESS, conv_call(&test, h, CONV_FORWARD, 1));
}
END_TEST

START_TEST(without_a_context_a_handle_takes_that_of_device_0)
{
    CUcontext ctx = NULL, primary = NULL;
    cudnnHandle_t h;

    dnn_open();
    DNN(SUCCESS, dnn.cudnnCreate(&h));
    OK(cu.CtxGetCurrent(&ctx));
    OK(cu.DevicePrimaryCtxRetain(&primary, 0));
    ck_assert_ptr_eq(ctx, primary);
}
END_TEST

START_TEST(without_a_device_there_is_no_handle)
{
    cudnnHandle_t h;

    setenv("FAKE_CUDA_DEVICES", "0", 1);
    dnn_open();
    DNN(NOT_INITIALIZED, dnn.cudnnCreate(&h));
}
END_TEST

/* ---- memory -------------------------------------------------------------- */

/* _i: x, w, y or the workspace is a byte too short. */
START_TEST(memory_that_is_too_short_is_a_fault_that_stays)
{
    struct conv_test test;
    cudnnHandle_t h;
    size_t len;

    conv_start(&h);
    conv_make(&test, &cases[1], DNN_F32);
    conv_reset(&test, 1);
    len = _i == 3 ? test.workspace_len : 4 * test.n[_i];
    *(_i == 3 ? &test.workspace : &test.at[_i]) = conv_tail(len - 16);
    DNN(SUCCESS, conv_call(&test, h, CONV_FORWARD, 1));
    IS(ILLEGAL_ADDRESS, cu.StreamSynchronize(NULL));
    DNN(EXECUTION_FAILED_CUDART, conv_call(&test, h, CONV_FORWARD, 1));
    ck_assert_int_ne((int)dnn.cudnnCreate(&h), 0);
}
END_TEST

START_TEST(memory_of_the_host_is_a_fault)
{
    static _Alignas(16) float plain[4096];
    struct conv_test test;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&test, &cases[1], DNN_F32);
    conv_reset(&test, 1);
    test.at[CONV_X] = AT(plain);
    DNN(SUCCESS, conv_call(&test, h, CONV_FORWARD, 1));
    IS(ILLEGAL_ADDRESS, cu.StreamSynchronize(NULL));
}
END_TEST

/* _i: the pass. */
START_TEST(a_workspace_that_overlaps_with_data_spoils_it)
{
    struct conv_test test;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&test, &cases[7], DNN_F32);
    for (int i = 0; i < 3; i++) {
        CUdeviceptr workspace = test.workspace;

        conv_reset(&test, 1);
        test.workspace = test.at[i];
        if (test.workspace_len > 4 * test.n[i])
            test.workspace_len = 4 * test.n[i];
        if (test.workspace_len >= conv_need(&test, h, _i, 1)) {
            DNN(SUCCESS, conv_call(&test, h, _i, 1));
            ck_assert(!conv_is_right(&test, _i, 1, 0));
        }
        test.workspace = workspace;
    }
}
END_TEST

START_TEST(an_output_that_overlaps_with_an_input_is_spoilt)
{
    struct conv_test test;
    cudnnHandle_t h;

    conv_start(&h);
    conv_make(&test, &cases[0], DNN_F32);
    conv_reset(&test, 1);
    test.at[CONV_Y] = test.at[CONV_X];
    DNN(SUCCESS, conv_call(&test, h, CONV_FORWARD, 0));
    ck_assert(!conv_is_right(&test, CONV_FORWARD, 1, 0));
}
END_TEST

START_TEST(errors_come_on_demand)
{
    struct conv_test test;
    cudnnHandle_t h, other;

    setenv("FAKE_CUDA_FAULT", "cudnnCreate:2:2,cudnnConvolutionForward:2:701",
           1);
    conv_start(&h);
    DNN(INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, dnn.cudnnCreate(&other));
    conv_make(&test, &cases[1], DNN_F32);
    conv_reset(&test, 1);
    DNN(SUCCESS, conv_call(&test, h, CONV_FORWARD, 1));
    DNN(EXECUTION_FAILED_CUDART, conv_call(&test, h, CONV_FORWARD, 1));
    DNN(SUCCESS, conv_call(&test, h, CONV_FORWARD, 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_cudnn");
    TCase *tc = suite_case(suite, "results", 20);

    tcase_add_loop_test(tc, convolutions_are_those_of_plain_loops, 0, N_CASES);
    tcase_add_test(tc, results_are_scaled_and_added_to_what_was_there);
    tcase_add_test(tc, a_result_that_is_not_added_to_may_have_held_anything);
    tcase_add_test(tc, all_math_but_fma_uses_tf32);
    tcase_add_test(tc, only_deterministic_algorithms_give_the_same_bits);
    tc = suite_case(suite, "streams", 20);
    tcase_add_test(tc, a_convolution_runs_in_the_turn_of_its_stream);
    tcase_add_test(tc, a_new_handle_works_in_the_legacy_stream);
    tcase_add_test(tc, convolutions_are_captured_and_replayed);
    tcase_add_test(tc, a_handle_is_not_made_beside_a_capture);
    tcase_add_test(tc, the_end_of_a_handle_waits_for_its_work);
    tc = suite_case(suite, "contexts", 20);
    tcase_add_test(tc, a_handle_is_of_the_context_that_was_current);
    tcase_add_test(tc, without_a_context_a_handle_takes_that_of_device_0);
    tcase_add_test(tc, without_a_device_there_is_no_handle);
    tc = suite_case(suite, "memory", 20);
    tcase_add_loop_test(tc, memory_that_is_too_short_is_a_fault_that_stays, 0,
                        4);
    tcase_add_test(tc, memory_of_the_host_is_a_fault);
    tcase_add_loop_test(tc, a_workspace_that_overlaps_with_data_spoils_it, 0,
                        3);
    tcase_add_test(tc, an_output_that_overlaps_with_an_input_is_spoilt);
    tcase_add_test(tc, errors_come_on_demand);
    return suite_run(suite);
}
