/* SPDX-License-Identifier: BSD-3-Clause */
/* threads.h - how many threads a rank has when nobody says. */
#ifndef COLL_TRAINER_THREADS_H
#define COLL_TRAINER_THREADS_H

#include <stdint.h>

/* Return what OMP_NUM_THREADS says, else SLURM_CPUS_PER_TASK, else 1; no more
 * than the processors that this process may use. */
uint64_t threads_by_environment(void);

/* Return the processors that this process, and a thread that it starts, may use. */
uint64_t threads_allowed(void);

#endif
