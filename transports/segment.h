/* SPDX-License-Identifier: BSD-3-Clause */
/* segment.h - memory that ranks of a host share.
 *
 * One rank makes a memfd and offers it.  The others open it by its path below /proc,
 * which also tests that they can reach it.  The maker closes it when all have opened it.
 * So no name can be left behind, and the size of /dev/shm does not matter.  Pages exist
 * once they are touched.
 *
 * A process maps a segment once, even if several of its threads are ranks.  They then see
 * each other at the same addresses.  Tools that check the order of memory accesses need
 * that, and so do devices that register memory by address.
 */
#ifndef COLL_TRANSPORTS_SEGMENT_H
#define COLL_TRANSPORTS_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

/* What another process needs to open the segment; plain bytes for an exchange. */
struct coll__segment_offer {
    int32_t fd; /* -1: there is none */
    unsigned char token[32];
};

/* Make a file that holds its token.  The segment's maker sets its length
 * (coll__set_file_len()) before others map it.
 *
 * Ownership: offer->fd is the caller's, to close when all others have mapped it.
 * Errors:    errno, not logged; 0 is success, and offer->fd is -1 else.
 */
int coll__segment_offer(struct coll__segment_offer *offer);

/* Open the file that process pid offers.  Returns a descriptor that the caller closes, or
 * -1 and errno. */
int coll__segment_open(int pid, const struct coll__segment_offer *offer);

/* A segment that this process has mapped. */
struct coll__segment;

/* Find the segment among this process's, or map it: len bytes, equal for all ranks.
 *
 * Ownership: the caller ends it by coll__segment_unmap(), also in a child.
 * Errors:    NULL and errno, not logged.
 * Threads:   any.
 */
struct coll__segment *
coll__segment_map(int pid, const struct coll__segment_offer *offer, size_t len);
void coll__segment_unmap(struct coll__segment *segment);

/* Return the segment's first byte; the file's token may still be there. */
unsigned char *coll__segment_at(const struct coll__segment *segment);

#endif
