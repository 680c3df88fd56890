/* SPDX-License-Identifier: BSD-3-Clause */
/* suite.h - the cases of a suite, and a program of one suite. */
#ifndef COLL_TESTS_SUITE_H
#define COLL_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Add a case to a suite, whose tests may take `seconds` each on a quiet machine; Check
 * multiplies them by CK_TIMEOUT_MULTIPLIER. */
static inline TCase *suite_case(Suite *suite, const char *name, double seconds)
{
    TCase *tc = tcase_create(name);

    tcase_set_timeout(tc, seconds);
    suite_add_tcase(suite, tc);
    return tc;
}

/* Run the suite, free it, and return the program's exit status. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int n_failed;

    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
