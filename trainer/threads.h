/* SPDX-License-Identifier: BSD-3-Clause */
/* threads.h - how many threads a rank has without --threads. */
#ifndef COLL_TRAINER_THREADS_H
#define COLL_TRAINER_THREADS_H

#include <stdint.h>

/* Return OMP_NUM_THREADS, else SLURM_CPUS_PER_TASK, else 1; but no more than
 * the processors that this process may use. */
uint64_t threads_by_environment(void);

/* Return the number of processors that this process and its threads may use. */
uint64_t threads_allowed(void);

#endif
