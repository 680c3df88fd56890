/* SPDX-License-Identifier: BSD-3-Clause */
/* every_algorithm.h - every algorithm of every collective in the streams of ranks. */
#ifndef COLL_TESTS_EVERY_ALGORITHM_H
#define COLL_TESTS_EVERY_ALGORITHM_H

#include "tests/exec/stream_fixture.h"

/* A body of struct stream_scene: draw problems by its seed, run each twice, and compare
 * results and the driver's counts. */
int every_algorithm(struct world_rank *me);

#endif
