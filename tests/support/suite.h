/* SPDX-License-Identifier: BSD-3-Clause */
/* suite.h - the cases of a suite. */
#ifndef COLL_TESTS_SUITE_H
#define COLL_TESTS_SUITE_H

#include <check.h>

/* Add a case to a suite, whose tests may take `seconds` each on a quiet machine; Check
 * multiplies them by CK_TIMEOUT_MULTIPLIER. */
static inline TCase *suite_case(Suite *suite, const char *name, double seconds)
{
    TCase *tc = tcase_create(name);

    tcase_set_timeout(tc, seconds);
    suite_add_tcase(suite, tc);
    return tc;
}

#endif
