/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_watch.c - pidfds: notice that a process of this host ends even when a
 * child that it forked holds its sockets open.
 *
 * A pidfd says that a process ended, not why.  What it said last may still be
 * on its way through the tree, so the pidfd waits a moment before it speaks.
 */
#include "lib/boot/ctrl_int.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GRACE 0.1 /* s */

static void watch_ready(struct coll__source *source, uint32_t events)
{
    (void)events; /* EPOLLONESHOT: not again while it waits */
    coll__reactor_deadline(source, coll__now() + GRACE);
}

static void watch_expired(struct coll__source *source)
{
    struct ctrl_watch *watch = (struct ctrl_watch *)source;
    struct coll__ctrl *ctrl = watch->ctrl;

    coll__reactor_remove(source);
    if (!ctrl->is_leaving)
        coll__ctrl_died(ctrl, watch->rank, NULL);
}

static void watch_dropped(struct coll__source *source) { (void)source; }

static int is_watchable(const struct coll__ctrl *ctrl, int rank)
{
    const struct ctrl_peer *me = &ctrl->peers[ctrl->rank];
    const struct ctrl_peer *peer = &ctrl->peers[rank];

    return !memcmp(me->host, peer->host, sizeof(me->host)) && me->pid_ns &&
           me->pid_ns == peer->pid_ns && me->pid != peer->pid;
}

/* Say whether a rank before this one is of the same process (as a thread). */
static int is_watched(const struct coll__ctrl *ctrl, int rank)
{
    for (int i = 0; i < ctrl->n_watches; i++) {
        const struct ctrl_peer *peer = &ctrl->peers[ctrl->watches[i].rank];

        if (peer->pid == ctrl->peers[rank].pid)
            return 1;
    }
    return 0;
}

static void watch_rank(struct coll__ctrl *ctrl, int rank)
{
    struct ctrl_watch *watch = &ctrl->watches[ctrl->n_watches];
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)ctrl->peers[rank].pid, 0);

    if (fd < 0 && errno == ESRCH) {
        coll__ctrl_died(ctrl, rank, NULL);
        return;
    }
    if (fd < 0) {
        log_debug("boot", "cannot watch the process of rank %d: %s", rank,
                  strerror(errno));
        return;
    }
    *watch = (struct ctrl_watch){
        .source = {.fd = fd,
                   .events = EPOLLIN | EPOLLONESHOT,
                   .ready = watch_ready,
                   .expired = watch_expired,
                   .dropped = watch_dropped},
        .ctrl = ctrl,
        .rank = rank,
    };
    if (coll__reactor_add(&watch->source)) {
        watch->source.fd = -1;
        close(fd);
        return;
    }
    ctrl->n_watches++;
}

void coll__ctrl_watch(struct coll__ctrl *ctrl)
{
    for (int r = 0; r < ctrl->size; r++)
        if (is_watchable(ctrl, r) && !is_watched(ctrl, r))
            watch_rank(ctrl, r);
}

void coll__ctrl_unwatch(struct coll__ctrl *ctrl)
{
    for (int i = 0; i < ctrl->n_watches; i++)
        coll__reactor_remove(&ctrl->watches[i].source);
    ctrl->n_watches = 0;
}
