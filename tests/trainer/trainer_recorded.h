/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_recorded.h - what PyTorch computed, from a file beside this one. */
#ifndef COLL_TESTS_TRAINER_RECORDED_H
#define COLL_TESTS_TRAINER_RECORDED_H

#include "tests/support/files.h"

#include <check.h>
#include <jansson.h>

/* Read it; the caller frees it by json_decref(). */
static inline json_t *recorded_load(const char *name)
{
    json_error_t error;
    json_t *recorded = json_load_file(fixture_file("trainer", name), 0, &error);

    ck_assert_msg(recorded != NULL, "%s: %s", name, error.text);
    return recorded;
}

#endif
