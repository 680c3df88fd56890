/* SPDX-License-Identifier: BSD-3-Clause */
/* notice.c - the descriptor that tells a caller's event loop of operations that ended: an
 * eventfd, one for the process, made when it is first needed and never closed. */
#include "lib/run/notice.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void forget_parent(void);

static struct coll__lock lock = COLL__LOCK(forget_parent);

/* -1: there is none.  The lock's holder stores it; its readers have asked for it before,
 * or follow somebody who has. */
static atomic_int notice_fd = -1;

/* A child's operations are none of its parent's, who reads the same counter. */
static void forget_parent(void)
{
    int fd = atomic_exchange_explicit(&notice_fd, -1, memory_order_relaxed);

    if (fd >= 0)
        close(fd);
}

int coll__notice_fd(int *fd)
{
    int err = 0;

    coll__lock(&lock);
    *fd = atomic_load_explicit(&notice_fd, memory_order_relaxed);
    if (*fd < 0) {
        *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        err = errno;
        atomic_store_explicit(&notice_fd, *fd, memory_order_relaxed);
    }
    coll__unlock(&lock);
    if (*fd >= 0)
        return COLL_OK;
    log_error("api", "no descriptor for operations that end: %s; see ulimit -n",
              strerror(err));
    return COLL_ERR_SYSTEM;
}

/* A counter that is full stays readable, so a write that fails then loses nothing. */
void coll__notice(void)
{
    const uint64_t one = 1;
    ssize_t n = write(atomic_load_explicit(&notice_fd, memory_order_relaxed),
                      &one, sizeof(one));

    (void)n;
}
