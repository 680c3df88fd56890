/* SPDX-License-Identifier: BSD-3-Clause */
/* speaks.h - who of a job says that its command line is wrong. */
#ifndef COLL_TOOLS_COMMON_SPEAKS_H
#define COLL_TOOLS_COMMON_SPEAKS_H

#include <stdlib.h>
#include <string.h>

/* Is this process the one of its job to speak before the ranks know each
 * other?  By the launcher's variables; without any it is alone. */
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
