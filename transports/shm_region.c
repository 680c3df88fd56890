/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_region.c - which regions this rank reads (lib/device/region.h).
 *
 * A communicator keeps each region from which it has read a message, by name, so that the
 * next message from there needs a look-up and no lock.  When a new region comes, it drops
 * those that were freed, except those that a receive is reading: after a failure a sender
 * may free memory that is still being read.
 */
#include "transports/shm.h"
#include "lib/trace/log.h"

#include <stdlib.h>
#include <string.h>

struct shm_region {
    struct coll__region_map *map;
    struct shm_region *next;
};

/* Names are random. */
static struct shm_region **bucket_of(struct shm *shm, const unsigned char *name)
{
    return &shm->regions[name[0] % SHM_REGION_BUCKETS];
}

static int is_being_read(const struct shm *shm,
                         const struct coll__region_map *map)
{
    for (int i = 0; i < shm->n_lanes; i++)
        if (shm->in[i].region == map)
            return 1;
    return 0;
}

static void drop(struct shm_region **at)
{
    struct shm_region *region = *at;

    *at = region->next;
    coll__region_unmap(region->map);
    free(region);
}

static void drop_freed(struct shm *shm)
{
    for (int b = 0; b < SHM_REGION_BUCKETS; b++)
        for (struct shm_region **at = &shm->regions[b]; *at;)
            if (coll__region_is_gone((*at)->map) &&
                !is_being_read(shm, (*at)->map))
                drop(at);
            else
                at = &(*at)->next;
}

static int add(struct shm *shm, int pid, const struct coll__region_place *place,
               struct coll__region_map **map)
{
    struct shm_region **bucket = bucket_of(shm, place->name);
    struct shm_region *region;
    int rc;

    drop_freed(shm);
    region = malloc(sizeof(*region));
    if (!region) {
        log_error("shm", "no memory to note what process %d shares; free some",
                  pid);
        return COLL_ERR_NOMEM;
    }
    rc = coll__region_map(pid, place, map);
    if (rc) {
        free(region);
        return rc;
    }
    *region = (struct shm_region){.map = *map, .next = *bucket};
    *bucket = region;
    return COLL_OK;
}

int shm__find_region(struct shm *shm, struct shm_in *in,
                     const struct coll__region_place *place, size_t len)
{
    struct shm_region *region = *bucket_of(shm, place->name);
    struct coll__region_map *map;
    int rc = COLL_OK;

    while (region && !coll__region_is(region->map, place->name))
        region = region->next;
    if (region)
        map = region->map;
    else
        rc = add(shm, in->pid, place, &map);
    if (rc)
        return rc;
    in->from = coll__region_at(map, place->off, len);
    if (!in->from)
        return COLL_ERR_INTERNAL;
    in->region = map;
    return COLL_OK;
}

void shm__drop_regions(struct shm *shm)
{
    for (int b = 0; b < SHM_REGION_BUCKETS; b++)
        while (shm->regions[b])
            drop(&shm->regions[b]);
}
