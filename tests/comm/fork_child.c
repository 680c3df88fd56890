/* SPDX-License-Identifier: BSD-3-Clause */
/* fork_child.c - children made by fork(). */
#include "tests/comm/fork_child.h"
#include "tests/support/patience.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int in[COUNT], out[COUNT];

void fill(int value)
{
    for (int i = 0; i < COUNT; i++)
        in[i] = value;
}

int is_filled(int value)
{
    for (int i = 0; i < COUNT; i++)
        if (out[i] != value)
            return 0;
    return 1;
}

int sums_well(struct world_rank *me, struct coll_comm *comm)
{
    int one = 1, all = 0;

    WORLD_CHECK(me,
                !coll_allreduce(&one, &all, 1, COLL_I32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, all == me->size);
    fill(me->rank + 1);
    WORLD_CHECK(
        me, !coll_allreduce(in, out, COUNT, COLL_I32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, is_filled(me->size * (me->size + 1) / 2));
    return 0;
}

pid_t fork_child(void)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (!pid)
        alarm((unsigned)patient(DEADLINE));
    return pid;
}

int child_ends_well(pid_t pid)
{
    int status = 1;

    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           !WEXITSTATUS(status);
}
