/* SPDX-License-Identifier: BSD-3-Clause */
/* fd_limit.c - see fd_limit.h. */
#include "lib/net/fd_limit.h"
#include "lib/net/tree.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"

#include <sys/resource.h>

#define SPARE 2 /* one for a shared-memory segment, one for a file that is read */

int coll__fds_in_tree(int rank, int size)
{
    return coll__tree_n_children(rank, size) + (rank > 0) + SPARE;
}

int coll__fds_lack(int rank, int n_needed)
{
    int n_left = coll__files_left(n_needed);
    struct rlimit limit = {0, 0};

    if (n_left >= n_needed)
        return 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    log_error("boot",
              "rank %d needs %d file descriptors to join, and %d of `ulimit "
              "-n` %llu are left there; raise it by %d at least",
              rank, n_needed, n_left, (unsigned long long)limit.rlim_cur,
              n_needed - n_left);
    return n_needed - n_left;
}
