/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.h - notice that the launcher, which would end this host's ranks, has gone.
 *
 * A rank that continued without a launcher would compute a result that no user waits
 * for, and no process would end it.  A bootstrap with a connection to the launcher
 * reports when it breaks; otherwise the launcher's process is watched.  All waits for
 * other ranks are told.
 */
#ifndef COLL_LIB_BOOT_LAUNCHER_H
#define COLL_LIB_BOOT_LAUNCHER_H

/* One watch; embedded in its owner's struct.  gone() is called once, on any thread, with
 * the reactor's lock held; it must not end a watch. */
struct coll__launcher_watch {
    void (*gone)(struct coll__launcher_watch *watch, const char *why);
    struct coll__launcher_watch *next, **at;
};

/* Begin and end a watch, the reactor's lock held.  If the launcher has gone already, the
 * first calls gone() at once.  The second may be called for a watch that never began. */
void coll__launcher_watch(struct coll__launcher_watch *watch);
void coll__launcher_unwatch(struct coll__launcher_watch *watch);

/* Find the launcher, the nearest ancestor that began without the variable, and watch for
 * its end; it may not be visible.  The lock is not held. */
void coll__launcher_find(const char *variable);

/* Watch fd, which becomes readable when the launcher has ended.  This module owns fd
 * from now on, and closes the one watched before. */
void coll__launcher_is(int fd, const char *why);

/* Report that the launcher has gone.  why: a sentence that stays valid.  Any thread, the
 * lock not held. */
void coll__launcher_gone(const char *why);

#endif
