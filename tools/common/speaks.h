/* SPDX-License-Identifier: BSD-3-Clause */
/* speaks.h - which process of a job says that its command line is wrong. */
#ifndef COLL_TOOLS_COMMON_SPEAKS_H
#define COLL_TOOLS_COMMON_SPEAKS_H

#include <stdlib.h>
#include <string.h>

/* Return 1 if this process speaks for its job before the ranks know each other:
 * rank 0 by the launcher's variables, or a process without a launcher. */
static inline int speaks_for_job(void)
{
    static const char *const names[] = {
        "COLL_RANK", "PMIX_RANK",    "PMI_RANK",     "OMPI_COMM_WORLD_RANK",
        "RANK",      "HOROVOD_RANK", "SLURM_PROCID", NULL};

    for (int i = 0; names[i]; i++)
        if (getenv(names[i]))
            return !strcmp(getenv(names[i]), "0");
    return 1;
}

#endif
