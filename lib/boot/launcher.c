/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.c - tell those who watch that the launcher has gone. */
#include "lib/boot/launcher.h"
#include "lib/net/reactor.h"

#include <stddef.h>

static struct coll__launcher_watch *watches; /* under the reactor's lock */
static const char *reason;                   /* NULL: it is there */

void coll__launcher_watch(struct coll__launcher_watch *watch)
{
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
    if (!reason) {
        reason = why;
        for (struct coll__launcher_watch *w = watches; w; w = w->next)
            w->gone(w, why);
    }
    coll__reactor_unlock();
}
