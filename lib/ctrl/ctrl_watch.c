/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_watch.c - pidfds: notice that a process of this host ends, even if a child that it
 * forked holds its sockets open.  A process is watched once, however many trees it is in.
 *
 * A pidfd says that a process has ended, but not why.  The process's last words may still
 * be on their way, so the watch waits a moment before it reports the death.  (So it does
 * for a process that had ended before it could be watched.)  A neighbour in the tree gets
 * those words over a socket, which the reactor reads meanwhile.  The other ranks get them
 * through ranks that may be slow.  So they leave the report to the neighbours, and report
 * the death themselves only if no notice has come by then, because a rank in between is
 * stopped.
 */
#include "lib/ctrl/ctrl_card.h"
#include "lib/ctrl/ctrl_int.h"
#include "lib/net/fd_limit.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/util/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GRACE 0.1     /* s, of a neighbour */
#define FAR_GRACE 0.6 /* s, of other ranks: all know within a second */

/* A process of this host that some trees of this process watch. */
struct ctrl_process {
    struct coll__source
        source; /* first; fd -1: it has ended, or is not watched */
    uint64_t pid;
    int is_told;              /* trees with it as neighbour were told */
    struct ctrl_watch *first; /* the watches of it */
    struct ctrl_process *next;
};

static struct ctrl_process *processes; /* under the reactor's lock */

static void forget(struct ctrl_process *process)
{
    struct ctrl_process **at = &processes;

    while (*at != process)
        at = &(*at)->next;
    *at = process->next;
    free(process);
}

static void process_ready(struct coll__source *source, uint32_t events)
{
    (void)events; /* EPOLLONESHOT: no further event before the deadline */
    coll__reactor_deadline(source, coll__now() + GRACE);
}

static int is_neighbour(const struct ctrl_watch *watch)
{
    const struct coll__ctrl *ctrl = watch->ctrl;

    if (ctrl->rank && ctrl->tree.up.peer == watch->rank)
        return 1;
    for (int j = 0; j < ctrl->tree.n_children; j++)
        if (ctrl->tree.down[j].peer == watch->rank)
            return 1;
    return 0;
}

/* Report the death: first to trees in which the process is a neighbour, later to the
 * others.  The watches stay until their trees end; the descriptor is closed, so a new
 * process with the same pid is not taken for this one. */
static void process_expired(struct coll__source *source)
{
    struct ctrl_process *process = (struct ctrl_process *)source;
    int is_late = process->is_told;

    process->is_told = 1;
    for (struct ctrl_watch *w = process->first; w; w = w->next)
        if (!w->ctrl->is_leaving && (is_late || is_neighbour(w)))
            coll__ctrl_died(w->ctrl, w->rank, NULL);
    if (is_late)
        coll__reactor_remove(source);
    else
        coll__reactor_deadline(source, coll__now() + FAR_GRACE - GRACE);
}

/* In a forked child: the watches belong to the parent's trees, so detach them. */
static void process_dropped(struct coll__source *source)
{
    struct ctrl_process *process = (struct ctrl_process *)source;

    for (struct ctrl_watch *w = process->first; w; w = w->next)
        w->process = NULL;
    forget(process);
}

static int is_watchable(const struct coll__ctrl *ctrl, int rank)
{
    const struct ctrl_peer *me = &ctrl->peers[ctrl->rank];
    const struct ctrl_peer *peer = &ctrl->peers[rank];

    return !memcmp(me->host, peer->host, sizeof(me->host)) && me->pid_ns &&
           me->pid_ns == peer->pid_ns && me->pid != peer->pid;
}

/* Is the process watched already, for another of its ranks (threads)? */
static int is_watched(const struct coll__ctrl *ctrl, int rank)
{
    for (int i = 0; i < ctrl->watching.n_watches; i++) {
        const struct ctrl_peer *peer =
            &ctrl->peers[ctrl->watching.watches[i].rank];

        if (peer->pid == ctrl->peers[rank].pid)
            return 1;
    }
    return 0;
}

/* Open a pidfd.  A process that has ended has none: an eventfd takes its place, whose
 * deadline reports the death. */
static struct coll__source open_source(uint64_t pid)
{
    struct coll__source source = {
        .fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0),
        .events = EPOLLIN | EPOLLONESHOT,
        .ready = process_ready,
        .expired = process_expired,
        .dropped = process_dropped,
    };

    if (source.fd < 0 && errno == ESRCH) {
        source.fd = eventfd(0, EFD_CLOEXEC);
        source.deadline = coll__now() + GRACE;
    }
    return source;
}

/* Find the process among the watched ones, or watch it with one of *n_left descriptors;
 * NULL and errno if that fails. */
static struct ctrl_process *find_process(uint64_t pid, int *n_left)
{
    struct ctrl_process *process = processes;
    struct coll__source source;

    while (process && (process->pid != pid || process->source.fd < 0))
        process = process->next;
    if (process)
        return process;
    if ((*n_left)-- <= 0) {
        errno = EMFILE;
        return NULL;
    }
    source = open_source(pid);
    if (source.fd < 0)
        return NULL;
    process = calloc(1, sizeof(*process));
    if (process) {
        process->source = source;
        process->pid = pid;
    }
    if (!process || coll__reactor_add(&process->source)) {
        free(process);
        close(source.fd);
        errno = ENOMEM;
        return NULL;
    }
    process->next = processes;
    processes = process;
    return process;
}

static void watch_rank(struct coll__ctrl *ctrl, int rank, int *n_left)
{
    struct ctrl_watch *watch =
        &ctrl->watching.watches[ctrl->watching.n_watches];
    struct ctrl_process *process = find_process(ctrl->peers[rank].pid, n_left);

    if (!process) {
        log_debug("boot", "cannot watch the process of rank %d: %s", rank,
                  strerror(errno));
        return;
    }
    *watch = (struct ctrl_watch){.ctrl = ctrl,
                                 .rank = rank,
                                 .process = process,
                                 .next = process->first,
                                 .at = &process->first};
    if (watch->next)
        watch->next->at = &watch->next;
    process->first = watch;
    ctrl->watching.n_watches++;
}

/* Connections need descriptors first: they show an end, too. */
void coll__ctrl_watch(struct coll__ctrl *ctrl)
{
    int n_needed = coll__fds_in_tree(ctrl->rank, ctrl->size);
    int n_left = coll__files_left(n_needed + ctrl->size) - n_needed;

    for (int r = 0; r < ctrl->size; r++)
        if (is_watchable(ctrl, r) && !is_watched(ctrl, r))
            watch_rank(ctrl, r, &n_left);
}

void coll__ctrl_unwatch(struct coll__ctrl *ctrl)
{
    for (int i = 0; i < ctrl->watching.n_watches; i++) {
        struct ctrl_watch *watch = &ctrl->watching.watches[i];

        if (!watch->process)
            continue;
        *watch->at = watch->next;
        if (watch->next)
            watch->next->at = watch->at;
        if (watch->process->first)
            continue;
        coll__reactor_remove(&watch->process->source);
        forget(watch->process);
    }
    ctrl->watching.n_watches = 0;
}
