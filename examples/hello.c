/* SPDX-License-Identifier: BSD-3-Clause */
/* hello.c - does the launcher work?  Each rank says which one it is and where. */
#include "coll/coll.h"

#include <stdio.h>

static int say(const char *what, int status)
{
    const char *why = coll_last_error();

    fprintf(stderr, "hello: %s: %s\n", what,
            *why ? why : coll_strerror(status));
    return 1;
}

int main(void)
{
    struct coll_comm *comm;
    int rc = coll_comm_create_env(&comm, NULL);

    if (rc)
        return say("cannot join", rc);
    printf("Hello from: %d of %d, rank %d of %d on host %d of %d\n",
           coll_comm_rank(comm), coll_comm_size(comm),
           coll_comm_local_rank(comm), coll_comm_local_size(comm),
           coll_comm_host(comm), coll_comm_n_hosts(comm));
    rc = coll_comm_destroy(comm);
    return rc ? say("cannot leave", rc) : 0;
}
