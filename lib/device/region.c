/* SPDX-License-Identifier: BSD-3-Clause */
/* region.c - regions: memory of this process that others can read in place.
 *
 * A table of all regions, sorted by address.  Every large send searches it without a
 * lock. `changes` is odd while a thread moves entries; a search repeats if `changes` is
 * odd or has changed meanwhile.  Entries are stored with release after `changes` became
 * odd, and loaded with acquire before `changes` is compared; so a search that has read
 * a new entry also sees the change.  A table that became too small is kept, since
 * threads may still search it.
 *
 * A forked child shares its parent's regions, as all memory that is mapped shared: each
 * process sees the other's writes.  The child may free its mapping; the contents end
 * when the process that allocated the region frees it.
 */
#include "lib/device/region.h"
#include "include/coll/coll.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"
#include "lib/util/yield.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

struct region {
    struct coll__region_head *head;
    size_t len; /* of the file */
    int fd;
    unsigned generation; /* of the process that allocated it */
    unsigned char name[REGION_NAME_BYTES];
};

struct entry {
    _Atomic uintptr_t start, end; /* of the user's bytes */
    _Atomic(struct region *) region;
};

struct table {
    struct table *older;
    size_t cap;
    atomic_size_t n;
    struct entry at[];
};

static struct coll__lock lock = COLL__LOCK(NULL); /* of who changes it */
static _Atomic(struct table *) table;
static _Atomic uint64_t changes;

/* ---- the table ------------------------------------------------------------- */

static void copy_entry(struct entry *to, struct entry *from)
{
    atomic_store_explicit(&to->start, atomic_load(&from->start),
                          memory_order_release);
    atomic_store_explicit(&to->end, atomic_load(&from->end),
                          memory_order_release);
    atomic_store_explicit(&to->region, atomic_load(&from->region),
                          memory_order_release);
}

/* Return a table with space for one more entry, or NULL; under the lock. */
static struct table *table_with_room(void)
{
    struct table *old = atomic_load(&table), *t;
    size_t n = old ? atomic_load(&old->n) : 0, cap = old ? 2 * old->cap : 16;

    if (old && n < old->cap)
        return old;
    t = calloc(1, sizeof(*t) + cap * sizeof(t->at[0]));
    if (!t)
        return NULL;
    t->older = old;
    t->cap = cap;
    for (size_t i = 0; i < n; i++)
        copy_entry(&t->at[i], &old->at[i]);
    atomic_init(&t->n, n);
    atomic_store_explicit(&table, t, memory_order_release);
    return t;
}

/* Count the entries that start at or before p; only the last of them may hold p. */
static size_t n_before(struct table *t, uintptr_t p)
{
    size_t low = 0;
    size_t high = atomic_load_explicit(&t->n, memory_order_acquire);

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (atomic_load_explicit(&t->at[mid].start, memory_order_acquire) <= p)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int insert(struct region *region, uintptr_t start, uintptr_t end)
{
    struct table *t = table_with_room();
    size_t n, at;

    if (!t)
        return -1;
    n = atomic_load(&t->n);
    at = n_before(t, start);
    atomic_fetch_add(&changes, 1);
    for (size_t i = n; i > at; i--)
        copy_entry(&t->at[i], &t->at[i - 1]);
    atomic_store_explicit(&t->at[at].start, start, memory_order_release);
    atomic_store_explicit(&t->at[at].end, end, memory_order_release);
    atomic_store_explicit(&t->at[at].region, region, memory_order_release);
    atomic_store_explicit(&t->n, n + 1, memory_order_release);
    atomic_fetch_add(&changes, 1);
    return 0;
}

/* Remove the region that starts at p; NULL: there is none. */
static struct region *take_out(uintptr_t p)
{
    struct table *t = atomic_load(&table);
    size_t at = t ? n_before(t, p) : 0, n;
    struct region *region;

    if (!at || atomic_load(&t->at[at - 1].start) != p)
        return NULL;
    n = atomic_load(&t->n);
    region = atomic_load(&t->at[at - 1].region);
    atomic_fetch_add(&changes, 1);
    for (size_t i = at; i < n; i++)
        copy_entry(&t->at[i - 1], &t->at[i]);
    atomic_store_explicit(&t->n, n - 1, memory_order_release);
    atomic_fetch_add(&changes, 1);
    return region;
}

/* Find the region that holds len bytes at p.  The result is valid only if `changes` is
 * the same afterwards. */
static struct region *look(struct table *t, uintptr_t p, size_t len)
{
    size_t at = n_before(t, p);
    uintptr_t end;

    if (!at)
        return NULL;
    end = atomic_load_explicit(&t->at[at - 1].end, memory_order_acquire);
    if (p >= end || len > end - p)
        return NULL;
    return atomic_load_explicit(&t->at[at - 1].region, memory_order_acquire);
}

int coll__region_find(const void *ptr, size_t len,
                      struct coll__region_place *place)
{
    for (;;) {
        uint64_t before = atomic_load_explicit(&changes, memory_order_acquire);
        struct table *t = atomic_load_explicit(&table, memory_order_acquire);
        struct region *region = t ? look(t, (uintptr_t)ptr, len) : NULL;

        if (before % 2 ||
            atomic_load_explicit(&changes, memory_order_relaxed) != before) {
            coll__yield(); /* to the thread that changes it, if it shares this core */
            continue;
        }
        if (!region)
            return 0;
        /* the caller uses it now, so no thread frees it */
        memcpy(place->name, region->name, sizeof(place->name));
        place->off = (uintptr_t)ptr - (uintptr_t)region->head;
        place->fd = region->fd;
        place->zero = 0;
        return 1;
    }
}

/* ---- regions ----------------------------------------------------------------- */

static int cannot(size_t len, int err)
{
    const char *remedy = "allocate it by malloc()";

    if (err == EMFILE || err == ENFILE)
        remedy = "raise ulimit -n, since each allocation holds a file open, or "
                 "make fewer and larger ones";
    else if (err == EFBIG)
        remedy = "see ulimit -f";
    else if (err == ENOMEM)
        remedy = "free some memory, or raise ulimit -v";
    log_error("mem", "cannot allocate %zu bytes of shared memory: %s; %s", len,
              strerror(err), remedy);
    return err == ENOMEM ? COLL_ERR_NOMEM : COLL_ERR_SYSTEM;
}

/* Make the file and map it.  Returns 0, or errno. */
static int make_file(struct region *region)
{
    int err;
    void *map;

    coll__files_fill_standard();
    region->fd = memfd_create("coll-mem", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (region->fd < 0)
        return errno;
    /* sealed, so that it cannot shrink under other processes' mappings */
    if (coll__set_file_len(region->fd, region->len) ||
        fcntl(region->fd, F_ADD_SEALS,
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        goto fail;
    map = mmap(NULL, region->len, PROT_READ | PROT_WRITE, MAP_SHARED,
               region->fd, 0);
    if (map == MAP_FAILED)
        goto fail;
    if (region->len >= HUGE_PAGE)
        madvise(map, region->len, MADV_HUGEPAGE); /* advice: failing is fine */
    region->head = map;
    return 0;

fail:
    err = errno;
    close(region->fd);
    return err;
}

static void drop_file(struct region *region)
{
    munmap(region->head, region->len);
    close(region->fd);
}

/* Make a region of that many bytes.  Returns 0, or errno. */
static int make_region(size_t bytes, struct region **out)
{
    struct region *region = calloc(1, sizeof(*region));
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int err;

    if (!region)
        return ENOMEM;
    region->len = round_up(REGION_HEAD + max_size(bytes, 1), page);
    region->generation = coll__generation_now();
    err = getrandom(region->name, sizeof(region->name), 0) ==
                  (ssize_t)sizeof(region->name)
              ? make_file(region)
              : errno;
    if (err) {
        free(region);
        return err;
    }
    memcpy(region->head->name, region->name, sizeof(region->name));
    *out = region;
    return 0;
}

int coll__region_alloc(void **ptr, size_t len)
{
    struct region *region;
    uintptr_t start;
    int err =
        len > PTRDIFF_MAX - 2 * HUGE_PAGE ? ENOMEM : make_region(len, &region);

    if (err)
        return cannot(len, err);
    start = (uintptr_t)region->head + REGION_HEAD;
    coll__lock(&lock);
    err = insert(region, start, (uintptr_t)region->head + region->len);
    coll__unlock(&lock);
    if (err) {
        drop_file(region);
        free(region);
        return cannot(len, ENOMEM);
    }
    *ptr = (void *)start;
    return COLL_OK;
}

int coll__region_free(void *ptr)
{
    struct region *region;

    coll__lock(&lock);
    region = take_out((uintptr_t)ptr);
    coll__unlock(&lock);
    if (!region) {
        log_error("mem",
                  "coll_mem_free: %p is not the start of an allocation; "
                  "pass what coll_mem_alloc() gave, once",
                  ptr);
        return COLL_ERR_INVALID;
    }
    if (!coll__is_inherited(region->generation)) {
        atomic_store_explicit(&region->head->is_gone, 1, memory_order_release);
        /* free the pages at once, even if other processes still map them */
        fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  REGION_HEAD, (off_t)(region->len - REGION_HEAD));
    }
    drop_file(region);
    free(region);
    return COLL_OK;
}
