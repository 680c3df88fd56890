/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_kernels.c - the kernels for device memory, compiled for the host,
 * against the host's own.  tests/gpu/kernels.c runs the same cases on a GPU. */
#include "tests/support/kernel_cases.h"
#include "tests/support/element.h"
#include "tests/fake_cuda/kernels.h"
#include "tests/support/suite.h"
#include "lib/device/cuda_kernels.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Exactly len bytes, so that the address sanitizer sees their end. */
static char *heap_alloc(size_t len) { return malloc(len); }

static void heap_release(char *ptr) { free(ptr); }

static void heap_put(char *device, const void *host, size_t len)
{
    memcpy(device, host, len);
}

static void heap_get(void *host, const char *device, size_t len)
{
    memcpy(host, device, len);
}

/* No thread needs what another one does, so their order is all one. */
static void forwards(const char *entry, unsigned blocks, unsigned threads,
                     void **params)
{
    ck_assert_msg(!fake_kernel_run(entry, blocks, threads, params, 0), "%s",
                  entry);
}

static void backwards(const char *entry, unsigned blocks, unsigned threads,
                      void **params)
{
    ck_assert_msg(!fake_kernel_run(entry, blocks, threads, params, 1), "%s",
                  entry);
}

static struct machine heap = {.alloc = heap_alloc,
                              .release = heap_release,
                              .put = heap_put,
                              .get = heap_get,
                              .launch = forwards,
                              .large = 20011};

/* _i: the type. */
START_TEST(every_reduction_gives_what_the_host_gives)
{
    char why[512] = "";

    ck_assert_msg(
        !kernel_check_reductions(&heap, (enum coll_type)_i, why, sizeof(why)),
        "%s", why);
}
END_TEST

START_TEST(copy_scale_and_multiply_give_what_the_host_gives)
{
    char why[512] = "";

    ck_assert_msg(
        !kernel_check_others(&heap, (enum coll_type)_i, why, sizeof(why)), "%s",
        why);
}
END_TEST

START_TEST(divisions_round_as_the_host_does)
{
    char why[512] = "";

    ck_assert_msg(
        !kernel_check_divisions(&heap, (enum coll_type)_i, why, sizeof(why)),
        "%s", why);
}
END_TEST

START_TEST(threads_may_come_in_any_order)
{
    char why[512] = "";

    heap.launch = backwards;
    ck_assert_msg(
        !kernel_check_reductions(&heap, (enum coll_type)_i, why, sizeof(why)) &&
            !kernel_check_others(&heap, (enum coll_type)_i, why, sizeof(why)),
        "%s", why);
}
END_TEST

/* ---- the table -------------------------------------------------------------- */

START_TEST(what_the_host_does_not_do_itself_has_an_entry)
{
    enum coll_type type = (enum coll_type)_i;
    struct coll__op of = {.is_premul = 1};

    ck_assert_int_eq(!coll__cuda_scale(type), !is_number(type));
    ck_assert_int_eq(!coll__cuda_multiply(type),
                     !is_number(type) || coll__op_is_hosts(&of, type));
    of.is_premul = 0;
    for (int op = 0; op < COLL_N_OPS; op++) {
        of.base = (enum coll_op)op;
        ck_assert_int_eq(!coll__cuda_reduce(type, of.base),
                         has_no_kernel(type, of.base) ||
                             coll__op_is_hosts(&of, type));
    }
}
END_TEST

START_TEST(unknown_types_and_operations_have_none)
{
    ck_assert(!coll__cuda_reduce(COLL_N_TYPES, COLL_SUM));
    ck_assert(!coll__cuda_reduce(COLL_F32, COLL_N_OPS));
    ck_assert(!coll__cuda_scale(COLL_N_TYPES));
    ck_assert(!coll__cuda_multiply(COLL_N_TYPES));
}
END_TEST

START_TEST(blocks_are_one_at_least_and_never_more_than_asked)
{
    ck_assert_int_eq(coll__cuda_blocks(0, 16), 1);
    ck_assert_int_eq(coll__cuda_blocks(8, 16), 1);
    ck_assert_int_eq(coll__cuda_blocks(SIZE_MAX, 16), 16);
    ck_assert_int_ge(coll__cuda_blocks(1 << 20, 264), 64);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda kernels");
    TCase *kernels = suite_case(suite, "kernels", 120);

    tcase_add_loop_test(kernels, every_reduction_gives_what_the_host_gives, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(kernels,
                        copy_scale_and_multiply_give_what_the_host_gives, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(kernels, divisions_round_as_the_host_does, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(kernels, threads_may_come_in_any_order, 0,
                        COLL_N_TYPES);
    tcase_add_loop_test(kernels, what_the_host_does_not_do_itself_has_an_entry,
                        0, COLL_N_TYPES);
    tcase_add_test(kernels, unknown_types_and_operations_have_none);
    tcase_add_test(kernels, blocks_are_one_at_least_and_never_more_than_asked);
    return suite_run(suite);
}
