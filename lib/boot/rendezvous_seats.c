/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_seats.c - how many ranks may wait at rank 0 at a time, by the limit on
 * descriptors. */
#include "lib/net/fd_limit.h"
#include "lib/boot/rendezvous_msg.h"
#include "lib/boot/rendezvous_table.h"
#include "lib/util/files.h"
#include "lib/util/util.h"

#include <sys/resource.h>

#define MIN_SEATS 4

/* Return how many descriptors rank 0 needs besides those of the seats. */
static int n_files(const struct coll__rendezvous_spec *spec)
{
    return coll__fds_in_tree(0, spec->size) + (spec->listen_fd < 0);
}

/* Waiting ranks leave most descriptors for other uses. */
int coll__rendezvous_n_seats(const struct coll__rendezvous_spec *spec)
{
    int n = min_int(COLL__TCP_SEATS, spec->size - 1), n_left;
    struct rlimit limit;

    if (spec->n_seats)
        return spec->n_seats;
    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / 4 < (rlim_t)n)
        n = (int)(limit.rlim_cur / 4);
    n_left = coll__files_left(n_files(spec) + n) - n_files(spec);
    return max_int(min_int(n, n_left), MIN_SEATS);
}

int coll__rendezvous_lacks_seats(const struct coll__rendezvous_spec *spec)
{
    int n = spec->n_seats ? spec->n_seats : MIN_SEATS;

    return coll__fds_lack(0, n_files(spec) + min_int(n, spec->size - 1));
}
