/* SPDX-License-Identifier: BSD-3-Clause */
/* prices_probe.c - for prices.sh: make a communicator from the environment, a
 * copy of it and one of every other rank, and use them; COLL_LOG=info tells the
 * prices of each. */
#include "include/coll/coll.h"

#include <stdio.h>

static int use(struct coll_comm *comm)
{
    float in = 1, out = 0;
    int rc = coll_allreduce(&in, &out, 1, COLL_F32, COLL_SUM, comm, NULL);

    return rc || out < (float)coll_comm_size(comm);
}

int main(void)
{
    struct coll_comm *all, *copy, *half;
    int bad;

    if (coll_comm_create_env(&all, NULL) || coll_comm_dup(all, &copy) ||
        coll_comm_split(all, coll_comm_rank(all) % 2, 0, &half)) {
        fprintf(stderr, "%s\n", coll_last_error());
        return 1;
    }
    bad = use(all) || use(copy) || use(half);
    bad |= coll_comm_destroy(half) != COLL_OK;
    bad |= coll_comm_destroy(copy) != COLL_OK;
    bad |= coll_comm_destroy(all) != COLL_OK;
    return bad;
}
