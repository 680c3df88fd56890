/* SPDX-License-Identifier: BSD-3-Clause */
/* ended.h - which ranks have ended, as collrun tells.
 *
 * If a rank ends before it connects to rank 0, the others would notice it only at the
 * deadline.  But collrun sees it end.  So each rank inherits a memory file, to which
 * collrun appends the ranks that have ended (tools/collrun_ended.c); COLLRUN_ENDED names
 * it.  Nothing is removed from it, so each rendezvous reads it from its beginning.
 */
#ifndef COLL_LIB_BOOT_ENDED_H
#define COLL_LIB_BOOT_ENDED_H

#include <sys/types.h>

#define COLL__ENDED_TEXT 64

/* A place in the file. */
struct coll__ended {
    int fd; /* collrun's and inherited; -1: there is none */
    off_t at;
};

/* Begin at the beginning, if the ranks are collrun's.  Without a file, no rank has
 * ended. */
void coll__ended_begin(struct coll__ended *ended, int is_collruns);

/* Go on to the next rank that has ended.
 *
 * Result:    1, with *rank and the beginning of a sentence, such as "rank 1 ended (exit
 *            status 0)"; 0: no other rank has ended so far.
 * Cost:      one system call.
 */
int coll__ended_next(struct coll__ended *ended, int *rank,
                     char text[COLL__ENDED_TEXT]);

#endif
