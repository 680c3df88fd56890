/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h - the words of a plan file for buffers and orders. */
#ifndef COLL_LIB_PLAN_WORDS_H
#define COLL_LIB_PLAN_WORDS_H

#include "lib/plan/plan.h"

static const char *const coll__buf_names[N_BUFS] = {"in", "out", "tmp"};
static const char *const coll__order_names[] = {"free", "canonical", "ranks"};

#endif
