/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc_map.c - allocations with registered parts, each mapped once.
 *
 * There is a list for each rank's allocations, the same on all ranks: all ranks register
 * and deregister in the same order, and identify an allocation by a number that the
 * driver never uses again.  So memory that was freed and allocated again at the same
 * address is another entry, and every rank knows what the others still have mapped.
 *
 * An allocation without registrations is idle.  Its owner may free it then, so no other
 * rank may have it mapped at that moment.  Only the library's own allocations
 * (lib/device/cuda_buffer.c) stay mapped: they are lent until all ranks have closed them.
 * The most recently used of each rank stay, for when they are registered again; the limit
 * cuda_maps says how many.
 */
#include "transports/cuda_ipc.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <stdlib.h>

struct cuda_ipc_map {
    struct cuda_ipc_map *next;
    struct coll__cuda_memory memory; /* its offset is 0 */
    unsigned char *base;             /* of the allocation, here */
    int is_mapped;                   /* by IPC; else it belongs to this process */
    int is_lent;  /* this rank's allocation, and others have it mapped */
    int may_stay; /* while it is idle */
    int n_registrations;
    uint64_t used; /* when it was last registered or deregistered; 0: never */
};

/* ---- one allocation --------------------------------------------------------- */

static int is_other_process(const struct cuda_ipc *tp, int r)
{
    return r != tp->base.rank && tp->peers[tp->local_of[r]].is_mapped;
}

static int has_other_processes(const struct cuda_ipc *tp)
{
    for (int r = 0; r < tp->base.size; r++)
        if (is_other_process(tp, r))
            return 1;
    return 0;
}

static struct cuda_ipc_map *find(const struct cuda_ipc *tp, int r, uint64_t id)
{
    struct cuda_ipc_map *map = tp->maps[r];

    while (map && map->memory.id != id)
        map = map->next;
    return map;
}

static int import(struct cuda_ipc_map *map, const struct cuda_ipc_part *part,
                  char *why)
{
    void *base;
    int status;

    if (!part->can_export) {
        snprintf(why, CUDA_IPC_WHY, "%s", part->why);
        return COLL_ERR_UNSUPPORTED;
    }
    status = coll__cuda_try_import(&map->memory, &base, why, CUDA_IPC_WHY);
    if (status)
        return status;
    map->base = base;
    map->is_mapped = 1;
    return COLL_OK;
}

static int no_reach(const struct cuda_ipc *tp, int r, char *why)
{
    snprintf(why, CUDA_IPC_WHY, "rank %d's GPU cannot read there: %.150s",
             tp->base.rank, tp->peers[tp->local_of[r]].why);
    return COLL_ERR_UNSUPPORTED;
}

static int add(struct cuda_ipc *tp, int r, const struct cuda_ipc_part *part,
               struct cuda_ipc_map **out, char *why)
{
    struct cuda_ipc_map *map = calloc(1, sizeof(*map));
    int status = COLL_OK;

    if (tp->base.by_host[r]) {
        free(map);
        return no_reach(tp, r, why);
    }
    if (!map) {
        snprintf(why, CUDA_IPC_WHY, "no memory for what ranks register");
        return COLL_ERR_NOMEM;
    }
    map->memory = part->memory;
    map->memory.offset = 0;
    map->may_stay = part->may_stay;
    map->base = (unsigned char *)part->at - part->memory.offset;
    if (is_other_process(tp, r))
        status = import(map, part, why);
    if (status) {
        free(map);
        return status;
    }
    if (r == tp->base.rank && map->may_stay && has_other_processes(tp)) {
        coll__cuda_buffer_lend(map->base);
        map->is_lent = 1;
    }
    map->next = tp->maps[r];
    tp->maps[r] = map;
    *out = map;
    return COLL_OK;
}

static void drop(struct cuda_ipc_map **at)
{
    struct cuda_ipc_map *map = *at;

    *at = map->next;
    if (map->is_mapped)
        coll__cuda_unimport(&map->memory, map->base);
    if (map->is_lent)
        coll__cuda_buffer_take_back(map->base);
    free(map);
}

/* ---- registering -------------------------------------------------------------- */

int cuda_ipc__map_take(struct cuda_ipc *tp, int r,
                       const struct cuda_ipc_part *part, unsigned char **at,
                       char *why)
{
    struct cuda_ipc_map *map = find(tp, r, part->memory.id);
    int status = map ? COLL_OK : add(tp, r, part, &map, why);

    if (status)
        return status;
    map->n_registrations++;
    *at = map->base + part->memory.offset;
    return COLL_OK;
}

void cuda_ipc__map_give(struct cuda_ipc *tp, int r, uint64_t id)
{
    find(tp, r, id)->n_registrations--;
}

void cuda_ipc__map_note(struct cuda_ipc *tp, int r, uint64_t id)
{
    find(tp, r, id)->used = tp->n_changes;
}

/* ---- idle ones ------------------------------------------------------------------ */

static int may_stay(const struct cuda_ipc_map *map)
{
    return map->n_registrations || (map->may_stay && map->used);
}

/* Return the least recently used of more than n idle ones, or NULL. */
static struct cuda_ipc_map **oldest(struct cuda_ipc *tp, int r, int n)
{
    struct cuda_ipc_map **oldest = NULL;
    int n_idle = 0;

    for (struct cuda_ipc_map **at = &tp->maps[r]; *at; at = &(*at)->next) {
        if ((*at)->n_registrations)
            continue;
        n_idle++;
        if (!oldest || (*at)->used < (*oldest)->used)
            oldest = at;
    }
    return n_idle > n ? oldest : NULL;
}

void cuda_ipc__trim_maps(struct cuda_ipc *tp, int r, int n_idle)
{
    struct cuda_ipc_map **at = &tp->maps[r];

    while (*at)
        if (may_stay(*at))
            at = &(*at)->next;
        else
            drop(at);
    while ((at = oldest(tp, r, n_idle)))
        drop(at);
}

int cuda_ipc__misses_maps(const struct cuda_ipc *tp)
{
    for (const struct cuda_ipc_map *map = tp->maps[tp->base.rank]; map;
         map = map->next)
        if (map->is_lent && coll__cuda_buffer_is_missed(map->base))
            return 1;
    return 0;
}

size_t cuda_ipc__mapped_len(const struct cuda_ipc *tp)
{
    size_t len = 0;

    for (int r = 0; r < tp->base.size; r++)
        for (const struct cuda_ipc_map *m = tp->maps[r]; m; m = m->next)
            len += m->is_mapped ? m->memory.len : 0;
    return len;
}

/* ---- the end --------------------------------------------------------------------- */

void cuda_ipc__leave_maps(struct cuda_ipc *tp)
{
    for (int r = 0; r < tp->base.size; r++)
        while (r != tp->base.rank && tp->maps[r])
            drop(&tp->maps[r]);
}

void cuda_ipc__take_back_maps(struct cuda_ipc *tp)
{
    while (tp->maps[tp->base.rank])
        drop(&tp->maps[tp->base.rank]);
}

void cuda_ipc__forget_maps(struct cuda_ipc *tp)
{
    for (int r = 0; r < tp->base.size && tp->maps; r++)
        while (tp->maps[r]) {
            struct cuda_ipc_map *map = tp->maps[r];

            tp->maps[r] = map->next;
            free(map);
        }
    free(tp->maps);
}
