/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.c - tell the watches that the launcher has gone. */
#include "lib/boot/launcher.h"
#include "lib/net/reactor.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct coll__launcher_watch *watches; /* under the reactor's lock */
static const char *reason; /* why the launcher has gone; NULL: it has not */

/* The launcher's pidfd.  This process keeps it; the reactor watches a copy. */
static int process = -1;
static const char *process_why;
static void ended(struct coll__source *source, uint32_t events);
static void dropped(struct coll__source *source);
static struct coll__source source = {
    .fd = -1, .events = EPOLLIN, .ready = ended, .dropped = dropped};

static void say(const char *why)
{
    if (reason)
        return;
    reason = why;
    for (struct coll__launcher_watch *w = watches; w; w = w->next)
        w->gone(w, why);
}

static void ended(struct coll__source *at, uint32_t events)
{
    (void)events;
    coll__reactor_remove(at);
    say(process_why);
}

static void dropped(struct coll__source *at) { at->fd = -1; }

/* Have the reactor watch the pidfd.  The launcher may have ended since the last
 * watch. */
static void look_at_process(void)
{
    if (process < 0 || source.fd >= 0)
        return;
    source.fd = fcntl(process, F_DUPFD_CLOEXEC, 0);
    if (source.fd >= 0 && coll__reactor_add(&source)) {
        close(source.fd);
        source.fd = -1;
    }
}

void coll__launcher_is(int fd, const char *why)
{
    coll__reactor_lock();
    coll__reactor_remove(&source);
    if (process >= 0)
        close(process);
    process = fd;
    process_why = why;
    coll__reactor_unlock();
}

void coll__launcher_watch(struct coll__launcher_watch *watch)
{
    look_at_process();
    watch->next = watches;
    watch->at = &watches;
    if (watches)
        watches->at = &watch->next;
    watches = watch;
    if (reason)
        watch->gone(watch, reason);
}

void coll__launcher_unwatch(struct coll__launcher_watch *watch)
{
    if (!watch->at)
        return;
    *watch->at = watch->next;
    if (watch->next)
        watch->next->at = watch->at;
    watch->at = NULL;
}

void coll__launcher_gone(const char *why)
{
    coll__reactor_lock();
    say(why);
    coll__reactor_unlock();
}
