/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_limits.c - does the process have the file descriptors and file sizes that UCX
 * needs?
 *
 * UCX 1.13 aborts if it cannot get a file descriptor, and so may the peers that are
 * connecting to it.  A file beyond the size limit kills the process by SIGXFSZ.  So both
 * limits are checked before UCX starts.  The numbers are those that UCX 1.13 was seen to
 * open, and some more.
 */
#include "transports/ucx.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/util/util.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define FDS_WORKER 10  /* the event thread's, and for files read on the way */
#define FDS_NETWORK 2  /* for each network device: a listener and an epoll */
#define FDS_DEVICE 6   /* of each RDMA device */
#define FDS_LINK 2     /* when both sides connect at the same time */
#define LINKS_AT_USE 8 /* links of a rank in a large communicator, at least */
#define FILE_BYTES ((size_t)64 << 20) /* that UCX's segments may need */

static int n_networks(void)
{
    struct ifaddrs *all, *one;
    int n = 0;

    if (getifaddrs(&all))
        return 0;
    for (one = all; one; one = one->ifa_next)
        n += one->ifa_addr && one->ifa_flags & IFF_UP &&
             one->ifa_addr->sa_family == AF_PACKET; /* one a device */
    freeifaddrs(all);
    return n;
}

/* Count the entries of a folder; 0 if there is no folder. */
static int n_entries(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int n = 0;

    if (!dir)
        return 0;
    while ((entry = readdir(dir)))
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

void coll__ucx_limits_get(int n_links, int is_meshed, int has_worker,
                          struct ucx_limits *limits)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    int n_devices = n_entries("/sys/class/infiniband");

    if (!is_meshed)
        n_links = n_links < LINKS_AT_USE ? n_links : LINKS_AT_USE;
    getrlimit(RLIMIT_NOFILE, &limit);
    limits->limit = limit.rlim_cur;
    limits->n_needed = FDS_LINK * n_links;
    if (!has_worker)
        limits->n_needed +=
            FDS_WORKER + FDS_NETWORK * n_networks() + FDS_DEVICE * n_devices;
    limits->n_free = coll__files_left(limits->n_needed);
}

int coll__ucx_limits_judge(const struct ucx_limits *limits, int rank)
{
    if (limits->n_free >= limits->n_needed)
        return COLL_OK;
    log_error("ucx",
              "UCX needs %d file descriptors on rank %d, and %d of "
              "`ulimit -n` %llu are left there; raise it by %d at least",
              limits->n_needed, rank, limits->n_free,
              (unsigned long long)limits->limit,
              limits->n_needed - limits->n_free);
    return COLL_ERR_SYSTEM;
}

/* Does a list of UCX's transports contain one that makes files? */
static int makes_files(const char *tls)
{
    static const char *const names[] = {"all", "mm", "sm", "shm", "posix"};
    int is_named = 0, is_negated = *tls == '^';

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        is_named |= coll__word_in(names[i], tls + is_negated, ',');
    return is_named != is_negated;
}

int coll__ucx_limits_for_files(void)
{
    const char *tls = getenv("UCX_TLS");
    struct rlimit limit;

    if (!tls || !makes_files(tls) || getrlimit(RLIMIT_FSIZE, &limit) ||
        limit.rlim_cur >= FILE_BYTES)
        return COLL_OK;
    log_error("ucx",
              "UCX_TLS=%s lets UCX make files of up to %zu bytes, and "
              "`ulimit -f` allows %llu; raise it, or unset UCX_TLS",
              tls, FILE_BYTES, (unsigned long long)limit.rlim_cur);
    return COLL_ERR_SYSTEM;
}
