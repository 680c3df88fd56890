/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc_area.c - device memory that all ranks register, and read in place.
 *
 * Each rank says where its part is, and maps the others': by CUDA IPC, or in the same
 * process by its address.  What is wrong on one rank travels with what it says, so that
 * all refuse alike; and nobody uses an area before all have mapped it, nor gives its
 * memory back before all have let go.
 */
#include "lib/device/cuda_stream.h"
#include "lib/trace/log.h"
#include "transports/cuda_ipc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct area {
    struct coll__stream_area base;
    int is_held; /* the memory is the library's, and not freed meanwhile */
    uint64_t number;                  /* among those of the communicator */
    struct coll__cuda_memory *memory; /* [size]; len 0: not mapped by IPC */
};

/* What a rank says of its part. */
struct part {
    int32_t status, can_export;
    uint64_t number, at, len;
    struct coll__cuda_memory memory;
    char why[CUDA_IPC_WHY];
};

static struct area *first(const struct cuda_ipc *tp)
{
    return (struct area *)tp->base.areas;
}

/* ---- what this rank has ---------------------------------------------------- */

static int judge(const struct cuda_ipc *tp, const unsigned char *ptr,
                 size_t len, struct part *mine)
{
    int device = -1;

    if (!len || coll__cuda_whose(ptr, &device) != WHOSE_DEVICES ||
        device != tp->home.device) {
        snprintf(mine->why, CUDA_IPC_WHY,
                 "it is no memory of GPU %d, of which the communicator is",
                 tp->home.device);
        return COLL_ERR_INVALID;
    }
    for (const struct coll__stream_area *a = tp->base.areas; a; a = a->next)
        if (ptr < a->base + a->len && a->base < ptr + len) {
            snprintf(mine->why, CUDA_IPC_WHY,
                     "a part of it is registered already");
            return COLL_ERR_INVALID;
        }
    return COLL_OK;
}

/* Whether it can be exported is of interest where it has to be. */
static int describe(const struct cuda_ipc *tp, unsigned char *ptr, size_t len,
                    struct part *mine)
{
    int status = judge(tp, ptr, len, mine);

    if (status)
        return status;
    mine->at = (uint64_t)ptr;
    mine->len = len;
    mine->number = tp->base.areas ? first(tp)->number + 1 : 1;
    mine->can_export =
        !coll__cuda_try_export(ptr, &mine->memory, mine->why, CUDA_IPC_WHY);
    if (!mine->can_export)
        status = coll__cuda_find(ptr, &mine->memory, mine->why, CUDA_IPC_WHY);
    if (status || len <= mine->memory.len - mine->memory.offset)
        return status;
    snprintf(mine->why, CUDA_IPC_WHY, "its allocation ends before it does");
    return COLL_ERR_INVALID;
}

/* ---- all of them ------------------------------------------------------------- */

/* Exchange what ranks say; the first one's failure is everybody's. */
static int hear(const struct cuda_ipc *tp, const struct coll__tp_env *env,
                const struct part *mine, struct part *all)
{
    int rc = env->allgather(env->arg, mine, sizeof(*mine), all);

    for (int r = 0; r < tp->base.size && rc == COLL_OK; r++) {
        if (all[r].status) {
            log_error("cuda", "rank %d's registered memory: %s", r, all[r].why);
            rc = all[r].status;
        } else if (all[r].len != all[0].len || all[r].number != all[0].number) {
            log_error("cuda",
                      "the ranks disagree: rank %d registers %llu bytes (its "
                      "registration %llu) and rank 0 %llu (%llu); all must "
                      "have the same, in the same order",
                      r, (unsigned long long)all[r].len,
                      (unsigned long long)all[r].number,
                      (unsigned long long)all[0].len,
                      (unsigned long long)all[0].number);
            rc = COLL_ERR_MISMATCH;
        }
    }
    return rc;
}

static int map_part(const struct cuda_ipc *tp, struct area *area, int r,
                    const struct part *theirs, struct part *mine)
{
    void *at = (void *)theirs->at;
    int status = COLL_OK;

    if (r != tp->base.rank && tp->peers[tp->local_of[r]].is_mapped) {
        if (!theirs->can_export) {
            snprintf(mine->why, CUDA_IPC_WHY, "%s", theirs->why);
            return COLL_ERR_UNSUPPORTED;
        }
        status = coll__cuda_try_import(&theirs->memory, &at, mine->why,
                                       CUDA_IPC_WHY);
        if (status == COLL_OK)
            area->memory[r] = theirs->memory;
    }
    if (status == COLL_OK)
        area->base.at[r] = at;
    return status;
}

static void unmap(const struct cuda_ipc *tp, struct area *area)
{
    for (int r = 0; r < tp->base.size; r++)
        if (area->memory[r].len && area->base.at[r]) {
            coll__cuda_unimport(&area->memory[r], area->base.at[r]);
            area->memory[r].len = 0;
        }
}

static void map_all(const struct cuda_ipc *tp, struct area *area,
                    const struct part *all, struct part *mine)
{
    int was;

    mine->status = coll__cuda_go_in(&tp->home, &was);
    if (mine->status) {
        snprintf(mine->why, CUDA_IPC_WHY, "%s", coll_last_error());
        return;
    }
    for (int r = 0; r < tp->base.size && mine->status == COLL_OK; r++)
        mine->status = map_part(tp, area, r, &all[r], mine);
    coll__cuda_go_out(was);
}

static void unmap_in_place(const struct cuda_ipc *tp, struct area *area)
{
    int was;

    if (coll__cuda_go_in(&tp->home, &was))
        return;
    unmap(tp, area);
    coll__cuda_go_out(was);
}

/* ---- registering ------------------------------------------------------------ */

static void area_free(struct area *area)
{
    if (area->is_held)
        coll__cuda_buffer_release(area->base.base);
    free(area->base.at);
    free(area->memory);
    free(area);
}

static struct area *area_new(const struct cuda_ipc *tp)
{
    struct area *area = calloc(1, sizeof(*area));
    size_t n = (size_t)tp->base.size;

    if (!area)
        return NULL;
    area->base.at = calloc(n, sizeof(*area->base.at));
    area->memory = calloc(n, sizeof(*area->memory));
    if (area->base.at && area->memory)
        return area;
    area_free(area);
    return NULL;
}

static int no_memory(const struct cuda_ipc *tp)
{
    log_error("cuda", "no memory for %d ranks", tp->base.size);
    return COLL_ERR_NOMEM;
}

/* Say it, map what the others say, and hear that all have. */
static int join(struct cuda_ipc *tp, const struct coll__tp_env *env,
                struct area *area, struct part *mine, struct part *all)
{
    int rc = hear(tp, env, mine, all);

    if (rc)
        return rc;
    map_all(tp, area, all, mine);
    rc = hear(tp, env, mine, all);
    if (rc)
        unmap_in_place(tp, area);
    return rc;
}

int cuda_ipc__enroll(struct coll__stream_tp *base,
                     const struct coll__tp_env *env, void *ptr, size_t len)
{
    struct cuda_ipc *tp = (struct cuda_ipc *)base;
    struct part mine = {0}, *all = calloc((size_t)base->size, sizeof(*all));
    struct area *area = area_new(tp);
    int rc;

    mine.status = area ? describe(tp, ptr, len, &mine) : COLL_ERR_NOMEM;
    if (!area)
        snprintf(mine.why, CUDA_IPC_WHY, "no memory for %d ranks", base->size);
    rc = all ? join(tp, env, area, &mine, all) : no_memory(tp);
    free(all);
    if (rc == COLL_OK) {
        area->base.base = ptr;
        area->base.len = len;
        area->base.id = mine.memory.id;
        area->number = mine.number;
        area->is_held = coll__cuda_buffer_hold(ptr);
        area->base.next = base->areas;
        base->areas = &area->base;
    } else if (area) {
        area_free(area);
    }
    return rc;
}

/* ---- and forgetting --------------------------------------------------------- */

static struct coll__stream_area **find(struct cuda_ipc *tp, const void *ptr)
{
    struct coll__stream_area **at = &tp->base.areas;

    while (*at && (*at)->base != ptr)
        at = &(*at)->next;
    return at;
}

int cuda_ipc__dismiss(struct coll__stream_tp *base,
                      const struct coll__tp_env *env, void *ptr)
{
    struct cuda_ipc *tp = (struct cuda_ipc *)base;
    struct part mine = {0}, *all = calloc((size_t)base->size, sizeof(*all));
    struct coll__stream_area **at = find(tp, ptr);
    struct area *area = (struct area *)*at;
    int rc;

    if (area) {
        mine.number = area->number;
        mine.len = area->base.len;
    } else {
        mine.status = COLL_ERR_INVALID;
        snprintf(mine.why, CUDA_IPC_WHY,
                 "nothing that begins there is registered");
    }
    rc = all ? hear(tp, env, &mine, all) : no_memory(tp);
    if (rc == COLL_OK) {
        *at = area->base.next;
        unmap_in_place(tp, area);
        rc = hear(tp, env, &mine, all);
        area_free(area);
    }
    free(all);
    return rc;
}

void cuda_ipc__leave_areas(struct cuda_ipc *tp)
{
    for (struct area *a = first(tp); a; a = (struct area *)a->base.next)
        unmap(tp, a);
}

void cuda_ipc__forget_areas(struct cuda_ipc *tp)
{
    while (tp->base.areas) {
        struct area *area = first(tp);

        tp->base.areas = area->base.next;
        area_free(area);
    }
}

size_t cuda_ipc__mapped_areas(const struct cuda_ipc *tp)
{
    size_t len = 0;

    for (const struct area *a = first(tp); a; a = (struct area *)a->base.next)
        for (int r = 0; r < tp->base.size; r++)
            len += a->memory[r].len;
    return len;
}
