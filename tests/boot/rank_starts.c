/* SPDX-License-Identifier: BSD-3-Clause */
/* rank_starts.c - a rank that joins by the environment and runs a command, by a shell,
 * while the others do the same; then all meet, and leave.  Its own status does not
 * depend on the command's. */
#include "coll/coll.h"

#include <stdio.h>
#include <stdlib.h>

static int say(int rc)
{
    if (rc)
        fprintf(stderr, "rank_starts: %s\n", coll_last_error());
    return rc;
}

int main(int argc, char **argv)
{
    struct coll_comm *comm;

    if (argc != 2 || say(coll_comm_create_env(&comm, NULL)))
        return 2;
    if (system(argv[1]))
        printf("rank %d: the command has failed\n", coll_comm_rank(comm));
    fflush(stdout);
    return say(coll_barrier(comm, NULL)) || say(coll_comm_destroy(comm));
}
