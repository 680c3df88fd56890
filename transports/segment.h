/* SPDX-License-Identifier: BSD-3-Clause */
/* segment.h - memory that ranks of a host share.
 *
 * One makes a memfd and offers it; the others open it by its path below /proc,
 * which is also the test that they can reach it, and its maker closes it again
 * when all have: there is no name that could be left behind, and the size of
 * /dev/shm does not matter.  Pages exist once they are touched.
 *
 * A process maps a segment once, also when several of its threads are ranks:
 * they then see each other at the same addresses, as tools that watch the order
 * of memory accesses need, and devices that know memory by its address.
 */
#ifndef COLL_TRANSPORTS_SEGMENT_H
#define COLL_TRANSPORTS_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

/* What another process needs to open it; goes to the others as it is. */
struct coll__segment_offer {
    int32_t fd; /* -1: there is none */
    unsigned char token[32];
};

/* Make a file that holds its token; whoever makes the segment gives it its length
 * (coll__set_file_len()) before others map it.
 *
 * Ownership: offer->fd is the caller's, to close when all others have mapped it.
 * Errors:    errno, not logged; 0 is success, and offer->fd is -1 else.
 */
int coll__segment_offer(struct coll__segment_offer *offer);

/* Open the file that process pid offers: a descriptor, the caller's, or -1 and
 * errno. */
int coll__segment_open(int pid, const struct coll__segment_offer *offer);

/* A segment that this process has mapped. */
struct coll__segment;

/* Find it among those of this process, or map it: len bytes, the same for all.
 *
 * Ownership: the caller's, to end by coll__segment_unmap(), also in a child.
 * Errors:    NULL and errno, not logged.
 * Threads:   any.
 */
struct coll__segment *
coll__segment_map(int pid, const struct coll__segment_offer *offer, size_t len);
void coll__segment_unmap(struct coll__segment *segment);

/* Its first byte; the file's token may still be there. */
unsigned char *coll__segment_at(const struct coll__segment *segment);

#endif
