/* SPDX-License-Identifier: BSD-3-Clause */
/* test_copy.c - host memory, and the copies that stream. */
#include "tests/support/suite.h"
#include "lib/device/copy.h"
#include "lib/device/reduce.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

typedef void copy_fn(void *, const void *, size_t);

/* Copy len bytes from one offset to another; nothing round them may change. */
static void check_copy(copy_fn *copy, size_t to, size_t from, size_t len)
{
    size_t room = (to > from ? to : from) + len + 128;
    unsigned char *src = aligned_alloc(64, round_up(room, 64));
    unsigned char *dst = aligned_alloc(64, round_up(room, 64));
    size_t n_wrong = 0;

    ck_assert(src && dst);
    for (size_t i = 0; i < room; i++) {
        src[i] = (unsigned char)(i * 251 + i / 256);
        dst[i] = 0x5a;
    }
    copy(dst + to, src + from, len);
    for (size_t i = 0; i < room; i++)
        n_wrong +=
            dst[i] != (i < to || i >= to + len ? 0x5a : src[i - to + from]);
    ck_assert_msg(!n_wrong, "%zu bytes from %zu to %zu: %zu are wrong", len,
                  from, to, n_wrong);
    free(src);
    free(dst);
}

static void check_copies(copy_fn *copy)
{
    static const size_t lens[] = {0,   1,   63,  64,  65,   127,
                                  128, 129, 191, 200, 4096, 100003};

    for (size_t l = 0; l < ARRAY_LEN(lens); l++)
        for (size_t to = 0; to <= 64; to++)
            for (size_t from = 0; from <= 64; from += from < 4 ? 1 : 15)
                check_copy(copy, to, from, lens[l]);
}

/* _i: the set. */
START_TEST(streaming_copies_any_length_between_any_alignments)
{
    const struct coll__kernels *kernels = coll__kernels_at(_i);

    if (kernels)
        check_copies(kernels->copy_stream);
}
END_TEST

START_TEST(the_copy_in_force_is_one_of_them)
{
    check_copies(coll__copy_stream);
}
END_TEST

START_TEST(host_memory_comes_in_zeroed_pages)
{
    static const size_t lens[] = {0, 1, 4097, (size_t)5 << 20};

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        const struct coll__device *host = &coll__device_host;
        char *p = host->alloc(lens[i]);

        ck_assert_str_eq(host->name, "host");
        ck_assert(p && (uintptr_t)p % 4096 == 0);
        for (size_t at = 0; at < lens[i]; at += 1024)
            ck_assert_int_eq(p[at], 0);
        host->copy(p, "copied", min_size(lens[i], 7), NULL);
        ck_assert(lens[i] < 7 || !strcmp(p, "copied"));
        host->free(p, lens[i]);
    }
    ck_assert(!coll__device_host.alloc(SIZE_MAX));
    ck_assert(!coll__device_host.alloc(SIZE_MAX / 2));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("copy");
    TCase *all = suite_case(suite, "all", 120);

    tcase_add_loop_test(all, streaming_copies_any_length_between_any_alignments,
                        0, 3);
    tcase_add_test(all, the_copy_in_force_is_one_of_them);
    tcase_add_test(all, host_memory_comes_in_zeroed_pages);
    return suite_run(suite);
}
