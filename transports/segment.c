/* SPDX-License-Identifier: BSD-3-Clause */
/* segment.c - memory that ranks of a host share, mapped once in a process. */
#include "transports/segment.h"
#include "lib/util/lock.h"
#include "lib/device/process.h"
#include "lib/util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

struct coll__segment {
    struct coll__segment_offer offer;
    unsigned char *map;
    size_t len;
    int n_users;
    struct coll__segment *next;
};

static struct coll__lock lock = COLL__LOCK(NULL);
static struct coll__segment *segments; /* under the lock */

int coll__segment_offer(struct coll__segment_offer *offer)
{
    size_t len = sizeof(offer->token);
    int err;

    offer->fd = memfd_create("coll", MFD_CLOEXEC);
    if (offer->fd < 0)
        return errno;
    if (getrandom(offer->token, len, 0) == (ssize_t)len &&
        !coll__set_file_len(offer->fd, len) &&
        pwrite(offer->fd, offer->token, len, 0) == (ssize_t)len)
        return 0;
    err = errno;
    close(offer->fd);
    offer->fd = -1;
    return err ? err : EIO;
}

int coll__segment_open(int pid, const struct coll__segment_offer *offer)
{
    return coll__open_file_of(pid, offer->fd, O_RDWR, offer->token,
                              sizeof(offer->token));
}

static unsigned char *map_file(int pid, const struct coll__segment_offer *offer,
                               size_t len)
{
    int fd = coll__segment_open(pid, offer), err;
    void *map = MAP_FAILED;

    if (fd >= 0) {
        map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        err = errno;
        close(fd); /* the mapping keeps the segment alive */
        errno = err;
    }
    return map == MAP_FAILED ? NULL : map;
}

/* With the lock held. */
static struct coll__segment *
find(int pid, const struct coll__segment_offer *offer, size_t len)
{
    struct coll__segment *s = segments;

    while (s && memcmp(s->offer.token, offer->token, sizeof(offer->token)))
        s = s->next;
    if (s || !(s = calloc(1, sizeof(*s))))
        return s;
    s->map = map_file(pid, offer, len);
    if (!s->map) {
        free(s);
        return NULL;
    }
    s->offer = *offer;
    s->len = len;
    s->next = segments;
    segments = s;
    return s;
}

struct coll__segment *
coll__segment_map(int pid, const struct coll__segment_offer *offer, size_t len)
{
    struct coll__segment *s;
    int err;

    coll__lock(&lock);
    s = find(pid, offer, len);
    err = errno;
    if (s)
        s->n_users++;
    coll__unlock(&lock);
    errno = err;
    return s;
}

void coll__segment_unmap(struct coll__segment *segment)
{
    struct coll__segment **at = &segments;

    coll__lock(&lock);
    if (--segment->n_users == 0) {
        while (*at != segment)
            at = &(*at)->next;
        *at = segment->next;
        munmap(segment->map, segment->len);
        free(segment);
    }
    coll__unlock(&lock);
}

unsigned char *coll__segment_at(const struct coll__segment *segment)
{
    return segment->map;
}
