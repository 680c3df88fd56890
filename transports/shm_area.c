/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_area.c - which areas this rank reads (lib/device/area.h).
 *
 * A communicator keeps each area from which it has read a message, by name, so that the
 * next message from there needs a look-up and no lock.  When a new area comes, it drops
 * those that were freed, except those that a receive is reading: after a failure a sender
 * may free memory that is still being read.
 */
#include "transports/shm.h"
#include "lib/trace/log.h"

#include <stdlib.h>
#include <string.h>

struct shm_area {
    struct coll__area_map *map;
    struct shm_area *next;
};

/* Names are random. */
static struct shm_area **bucket_of(struct shm *shm, const unsigned char *name)
{
    return &shm->areas[name[0] % SHM_AREA_BUCKETS];
}

static int is_being_read(const struct shm *shm,
                         const struct coll__area_map *map)
{
    for (int i = 0; i < shm->n_lanes; i++)
        if (shm->in[i].area == map)
            return 1;
    return 0;
}

static void drop(struct shm_area **at)
{
    struct shm_area *area = *at;

    *at = area->next;
    coll__area_unmap(area->map);
    free(area);
}

static void drop_freed(struct shm *shm)
{
    for (int b = 0; b < SHM_AREA_BUCKETS; b++)
        for (struct shm_area **at = &shm->areas[b]; *at;)
            if (coll__area_is_gone((*at)->map) &&
                !is_being_read(shm, (*at)->map))
                drop(at);
            else
                at = &(*at)->next;
}

static int add(struct shm *shm, int pid, const struct coll__area_place *place,
               struct coll__area_map **map)
{
    struct shm_area **bucket = bucket_of(shm, place->name);
    struct shm_area *area;
    int rc;

    drop_freed(shm);
    area = malloc(sizeof(*area));
    if (!area) {
        log_error("shm", "no memory to note what process %d shares; free some",
                  pid);
        return COLL_ERR_NOMEM;
    }
    rc = coll__area_map(pid, place, map);
    if (rc) {
        free(area);
        return rc;
    }
    *area = (struct shm_area){.map = *map, .next = *bucket};
    *bucket = area;
    return COLL_OK;
}

int shm__find_area(struct shm *shm, struct shm_in *in,
                   const struct coll__area_place *place, size_t len)
{
    struct shm_area *area = *bucket_of(shm, place->name);
    struct coll__area_map *map;
    int rc = COLL_OK;

    while (area && !coll__area_is(area->map, place->name))
        area = area->next;
    if (area)
        map = area->map;
    else
        rc = add(shm, in->pid, place, &map);
    if (rc)
        return rc;
    in->from = coll__area_at(map, place->off, len);
    if (!in->from)
        return COLL_ERR_INTERNAL;
    in->area = map;
    return COLL_OK;
}

void shm__drop_areas(struct shm *shm)
{
    for (int b = 0; b < SHM_AREA_BUCKETS; b++)
        while (shm->areas[b])
            drop(&shm->areas[b]);
}
