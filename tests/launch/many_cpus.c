/* SPDX-License-Identifier: BSD-3-Clause */
/* many_cpus.c - a library to preload: a machine that may have 4,096 processors, of
 * which those of this machine are numbers FIRST, FIRST + 1 and so on.  As the kernel
 * does it, sched_getaffinity() refuses a set that is too small for all.  With NO_BINDING
 * set, sched_setaffinity() is forbidden, as in some containers.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALL 4096
#define FIRST 1100

int sched_getaffinity(pid_t pid, size_t len, cpu_set_t *set)
{
    cpu_set_t real[ALL / CPU_SETSIZE];

    if (len < ALL / 8) {
        errno = EINVAL;
        return -1;
    }
    memset(real, 0, sizeof(real));
    if (syscall(SYS_sched_getaffinity, pid, sizeof(real), real) < 0)
        return -1;
    memset(set, 0, len);
    for (size_t cpu = 0; cpu + FIRST < ALL; cpu++)
        if (CPU_ISSET_S(cpu, sizeof(real), real))
            CPU_SET_S(cpu + FIRST, len, set);
    return 0;
}

int sched_setaffinity(pid_t pid, size_t len, const cpu_set_t *set)
{
    cpu_set_t real[ALL / CPU_SETSIZE];

    if (getenv("NO_BINDING")) {
        errno = EPERM;
        return -1;
    }
    memset(real, 0, sizeof(real));
    for (size_t cpu = FIRST; cpu < len * 8; cpu++)
        if (CPU_ISSET_S(cpu, len, set))
            CPU_SET_S(cpu - FIRST, sizeof(real), real);
    return (int)syscall(SYS_sched_setaffinity, pid, sizeof(real), real);
}
