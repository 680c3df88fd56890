/* SPDX-License-Identifier: BSD-3-Clause */
/* scratch.c - a pool of scratch.
 *
 * The pool has as many pieces as operations needed scratch at the same time.  If all
 * calls are blocking that is one piece, as long as the longest need.  Lengths are
 * powers of two, so that one of the right length is found at once; pages that nobody
 * writes cost nothing.
 *
 * The bytes that are kept besides the longest piece are bounded.  A long piece is freed
 * when the last thousand operations needed at most half of it.
 *
 * A child may be forked while another thread changes the pool.  It frees the pieces by
 * the list `all`, which changes only when a piece is allocated or freed.
 */
#include "lib/run/scratch.h"
#include "lib/device/device.h"
#include "lib/trace/log.h"

#include <stdlib.h>

#define LEAST ((size_t)4 << 10)
#define MANY ((size_t)64 << 20) /* bytes */
#define PATIENCE 1000           /* takes */

/* Return i with 2^i the least power of two that is at least len; COLL__SCRATCH_SIZES if
 * a size_t cannot hold that. */
static int size_of(size_t len)
{
    if (len <= LEAST)
        return __builtin_ctzl(LEAST);
    return COLL__SCRATCH_SIZES - __builtin_clzl(len - 1);
}

static struct coll__scratch *
create(struct coll__pool *pool, const struct coll__device *device, size_t len)
{
    struct coll__scratch *new = malloc(sizeof(*new));

    if (!new)
        return NULL;
    new->len = len;
    new->device = device;
    new->base = device->alloc(len);
    if (!new->base) {
        free(new);
        return NULL;
    }
    new->all_next = pool->all;
    new->all_at = &pool->all;
    if (pool->all)
        pool->all->all_at = &new->all_next;
    pool->all = new;
    pool->n_of[size_of(len)]++;
    pool->bytes += len;
    return new;
}

static void destroy(struct coll__pool *pool, struct coll__scratch *scratch)
{
    *scratch->all_at = scratch->all_next;
    if (scratch->all_next)
        scratch->all_next->all_at = scratch->all_at;
    pool->n_of[size_of(scratch->len)]--;
    pool->bytes -= scratch->len;
    scratch->device->free(scratch->base, scratch->len);
    free(scratch);
}

/* Take an idle piece of 2^size bytes out of its list.  NULL: there is none. */
static struct coll__scratch *find(struct coll__pool *pool, int size,
                                  const struct coll__device *device)
{
    struct coll__scratch **at = &pool->idle[size], *found;

    while (*at && (*at)->device != device)
        at = &(*at)->next;
    found = *at;
    if (found)
        *at = found->next;
    return found;
}

/* Free the longest idle piece that is shorter than 2^size, since a longer one will
 * replace it. */
static void drop_shorter(struct coll__pool *pool, int size,
                         const struct coll__device *device)
{
    struct coll__scratch *shorter = NULL;

    while (!shorter && --size >= 0)
        shorter = find(pool, size, device);
    if (shorter)
        destroy(pool, shorter);
}

/* Free long pieces that no operation has needed for a while. */
static void drop_idle(struct coll__pool *pool)
{
    for (int size = size_of(MANY) + 1; size < COLL__SCRATCH_SIZES; size++) {
        struct coll__scratch *old = pool->idle[size];

        if (old && pool->n_takes - old->needed > PATIENCE) {
            pool->idle[size] = old->next;
            destroy(pool, old);
        }
    }
}

int coll__scratch_take(struct coll__pool *pool,
                       const struct coll__device *device, size_t len,
                       struct coll__scratch **scratch)
{
    int size = size_of(len), at = size;
    struct coll__scratch *found = NULL;

    pool->n_takes++;
    if (pool->bytes > MANY)
        drop_idle(pool);
    for (; at < COLL__SCRATCH_SIZES && !found; at++)
        found = find(pool, at, device);
    if (!found && size < COLL__SCRATCH_SIZES) {
        drop_shorter(pool, size, device);
        found = create(pool, device, (size_t)1 << size);
    }
    if (!found) {
        log_error("exec",
                  "no memory for an operation with %zu bytes of scratch", len);
        return COLL_ERR_NOMEM;
    }
    if (found->len == (size_t)1 << size)
        found->needed = pool->n_takes;
    *scratch = found;
    return COLL_OK;
}

/* Return bytes of all pieces but the longest one. */
static size_t beside_longest(const struct coll__pool *pool)
{
    int size = COLL__SCRATCH_SIZES - 1;

    while (!pool->n_of[size])
        size--;
    return pool->bytes - ((size_t)1 << size);
}

void coll__scratch_put(struct coll__pool *pool, struct coll__scratch *scratch)
{
    int size = size_of(scratch->len);

    if (pool->bytes > MANY && beside_longest(pool) > MANY) {
        destroy(pool, scratch);
        return;
    }
    scratch->next = pool->idle[size];
    pool->idle[size] = scratch;
}

void coll__pool_fini(struct coll__pool *pool)
{
    struct coll__scratch *next;

    for (struct coll__scratch *at = pool->all; at; at = next) {
        next = at->all_next;
        at->device->free(at->base, at->len);
        free(at);
    }
    *pool = (struct coll__pool){0};
}
