/* SPDX-License-Identifier: BSD-3-Clause */
/* side_by_side.h - for a program by Check whose tests mostly wait: they run side by side.
 *
 * A program that includes this file, and links $(check_lib), divides its tests among some
 * processes.  It prints what each of them says, and at the end how many tests there were.
 * With arguments or CK_FORK=no, or where Check is told which tests to run or writes a log
 * of its own, the tests run one after another.
 */
#ifndef COLL_TESTS_SIDE_BY_SIDE_H
#define COLL_TESTS_SIDE_BY_SIDE_H

#include <check.h>

/* Add the tests from index first to end - 1 that are this process's. */
void side_by_side_add(TCase *tcase, const TTest *test, int signal, int status,
                      int first, int end);

/* the function behind each of Check's tcase_add_...() */
#define _tcase_add_test side_by_side_add

#endif
