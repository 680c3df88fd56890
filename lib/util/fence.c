/* SPDX-License-Identifier: BSD-3-Clause */
/* fence.c - the fence for all threads, by membarrier(2): its global expedited kind
 * reaches all processes that have registered. */
#include "lib/util/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

int coll__fence_join(void)
{
    return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

int coll__fence_all(void)
{
    return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}
