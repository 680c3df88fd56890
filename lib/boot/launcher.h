/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.h - whoever started the ranks of this host, and would end them, has
 * gone.
 *
 * A rank that goes on without it would compute for nobody.  A bootstrap that has
 * a connection to the launcher says when it breaks; of others the launcher's process
 * is watched.  What waits for ranks hears.
 */
#ifndef COLL_LIB_BOOT_LAUNCHER_H
#define COLL_LIB_BOOT_LAUNCHER_H

/* Who wants to know; embedded in its owner's struct.  gone() is called once, on
 * any thread, with the reactor's lock held, and may end no watch. */
struct coll__launcher_watch {
    void (*gone)(struct coll__launcher_watch *watch, const char *why);
    struct coll__launcher_watch *next, **at;
};

/* Begin and end, the reactor's lock held: where it has gone before, the first
 * calls gone() at once; the second also does for what never began. */
void coll__launcher_watch(struct coll__launcher_watch *watch);
void coll__launcher_unwatch(struct coll__launcher_watch *watch);

/* Watch for the end of the process that gave this one the variable, if it is seen;
 * the lock not held. */
void coll__launcher_find(const char *variable);

/* The launcher is gone once fd can be read; taken over, in place of one before. */
void coll__launcher_is(int fd, const char *why);

/* Say so; why is a sentence that stays.  Any thread, the lock not held. */
void coll__launcher_gone(const char *why);

#endif
