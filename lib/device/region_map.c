/* SPDX-License-Identifier: BSD-3-Clause */
/* region_map.c - the regions that this process reads.  Each is mapped once, and found
 * again by its name.
 *
 * A region of this process is mapped a second time too, for its threads that are other
 * ranks.  So a rank that frees its memory too early gets a wrong result, as between
 * processes, and does not crash all ranks.
 */
#include "lib/device/region.h"
#include "include/coll/coll.h"
#include "lib/trace/log.h"
#include "lib/device/process.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct coll__region_map {
    unsigned char name[REGION_NAME_BYTES];
    const struct coll__region_head *head;
    size_t len;
    int n_users; /* n_users and next: under the lock; the rest does not change */
    struct coll__region_map *next;
};

static struct coll__lock lock = COLL__LOCK(NULL);
static struct coll__region_map *maps; /* under the lock */

static int cannot_open(int pid, int fd, int err)
{
    if (coll__is_ending(pid)) {
        log_info("mem", "process %d has ended", pid);
        return COLL_ERR_PEER;
    }
    if (err == ENOENT || err == ESRCH) {
        log_error("mem",
                  "process %d has freed a buffer that this rank was about to "
                  "read; keep a buffer until its operation is done",
                  pid);
        return COLL_ERR_SYSTEM;
    }
    log_error("mem", "cannot open /proc/%d/fd/%d, memory of a rank: %s; %s",
              pid, fd, strerror(err),
              err == EMFILE || err == ENFILE
                  ? "raise ulimit -n"
                  : "change no user or PR_SET_DUMPABLE after the communicator "
                    "is made, or let the limit mem_min be 1G in the tuning "
                    "file");
    return COLL_ERR_SYSTEM;
}

static int cannot_map(int pid, size_t len, int err)
{
    log_error("mem",
              "cannot map %zu bytes of process %d: %s; raise ulimit -v, "
              "or let the limit mem_min be 1G in the tuning file",
              len, pid, strerror(err));
    return err == ENOMEM ? COLL_ERR_NOMEM : COLL_ERR_SYSTEM;
}

static int map_fd(int fd, int pid, struct coll__region_map *map)
{
    struct stat st;
    void *at;

    if (fstat(fd, &st))
        return cannot_open(pid, fd, errno);
    map->len = (size_t)st.st_size;
    at = mmap(NULL, map->len, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return cannot_map(pid, map->len, errno);
    map->head = at;
    return COLL_OK;
}

static int map_first(int pid, const struct coll__region_place *place,
                     struct coll__region_map *map)
{
    int fd = coll__open_file_of(pid, place->fd, O_RDONLY, place->name,
                                REGION_NAME_BYTES);
    int rc;

    if (fd < 0)
        return cannot_open(pid, place->fd, errno);
    memcpy(map->name, place->name, sizeof(map->name));
    rc = map_fd(fd, pid, map);
    close(fd);
    return rc;
}

/* Find the region among the maps of this process, or map it; under the lock. */
static int find_or_map(int pid, const struct coll__region_place *place,
                       struct coll__region_map **out)
{
    struct coll__region_map *map = maps;
    int rc;

    while (map && !coll__region_is(map, place->name))
        map = map->next;
    if (!map) {
        map = calloc(1, sizeof(*map));
        rc = map ? map_first(pid, place, map) : cannot_map(pid, 0, ENOMEM);
        if (rc) {
            free(map);
            return rc;
        }
        map->next = maps;
        maps = map;
    }
    map->n_users++;
    *out = map;
    return COLL_OK;
}

int coll__region_map(int pid, const struct coll__region_place *place,
                     struct coll__region_map **map)
{
    int rc;

    coll__lock(&lock);
    rc = find_or_map(pid, place, map);
    coll__unlock(&lock);
    return rc;
}

void coll__region_unmap(struct coll__region_map *map)
{
    struct coll__region_map **at = &maps;

    coll__lock(&lock);
    if (--map->n_users == 0) {
        while (*at != map)
            at = &(*at)->next;
        *at = map->next;
        munmap((void *)map->head, map->len);
        free(map);
    }
    coll__unlock(&lock);
}

int coll__region_is(const struct coll__region_map *map,
                    const unsigned char *name)
{
    return !memcmp(map->name, name, sizeof(map->name));
}

int coll__region_is_gone(const struct coll__region_map *map)
{
    return atomic_load_explicit(&map->head->is_gone, memory_order_acquire) != 0;
}

const unsigned char *coll__region_at(const struct coll__region_map *map,
                                     uint64_t off, size_t len)
{
    if (off < REGION_HEAD || off > map->len || len > map->len - off) {
        log_error("mem",
                  "%zu bytes at %llu are not within the %zu bytes that "
                  "they were said to be in; this is a bug in libcoll",
                  len, (unsigned long long)off, map->len);
        return NULL;
    }
    return (const unsigned char *)map->head + off;
}
