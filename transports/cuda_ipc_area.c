/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc_area.c - device memory that all ranks register, and read in place.
 *
 * Each rank publishes where its part is and maps the others' allocations
 * (cuda_ipc_map.c).  A rank's error travels with its part, so that all ranks fail alike.
 * No rank uses an area before all have mapped it, or frees its memory before all have
 * unmapped it.
 */
#include "lib/device/cuda_stream.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "transports/cuda_ipc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct area {
    struct coll__stream_area base;
    int is_held;     /* the library's buffer, not freed meanwhile */
    uint64_t *ids;   /* [size]: ids of the allocations that hold the parts */
};

#define MOST_IDLE 1024

static struct area *first(const struct cuda_ipc *tp)
{
    return (struct area *)tp->base.areas;
}

/* ---- what this rank has ---------------------------------------------------- */

static int judge(const struct cuda_ipc *tp, const unsigned char *ptr,
                 size_t len, struct cuda_ipc_part *mine)
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

/* Describe this rank's part.  Whether it can be exported matters only if another process
 * has to map it. */
static int describe(const struct cuda_ipc *tp, unsigned char *ptr, size_t len,
                    struct cuda_ipc_part *mine)
{
    int status = judge(tp, ptr, len, mine);

    if (status)
        return status;
    mine->at = (uint64_t)ptr;
    mine->len = len;
    mine->number = tp->n_changes;
    mine->may_stay = coll__cuda_buffer_hold(ptr);
    mine->can_export =
        !coll__cuda_try_export(ptr, &mine->memory, mine->why, CUDA_IPC_WHY);
    if (!mine->can_export)
        status = coll__cuda_find(ptr, &mine->memory, mine->why, CUDA_IPC_WHY);
    if (status || len <= mine->memory.len - mine->memory.offset)
        return status;
    snprintf(mine->why, CUDA_IPC_WHY, "its allocation ends before it does");
    return COLL_ERR_INVALID;
}

/* Fill in the members that every exchange carries. */
static struct cuda_ipc_part say(const struct cuda_ipc *tp)
{
    long n_idle = coll__param_int(PARAM_CUDA_MAPS);

    return (struct cuda_ipc_part){
        .n_idle = n_idle > MOST_IDLE ? MOST_IDLE : (int32_t)n_idle,
        .misses = cuda_ipc__misses_maps(tp)};
}

/* ---- what all ranks have ----------------------------------------------------- */

/* All ranks fail with the first failed rank's status. */
static int judge_all(const struct cuda_ipc *tp, const struct cuda_ipc_part *all)
{
    for (int r = 0; r < tp->base.size; r++) {
        if (all[r].status) {
            log_error("cuda", "rank %d's registered memory: %s", r, all[r].why);
            return all[r].status;
        }
        if (all[r].len != all[0].len || all[r].number != all[0].number) {
            log_error("cuda",
                      "the ranks disagree: rank %d registers %llu bytes (its "
                      "registration %llu) and rank 0 %llu (%llu); all must "
                      "have the same, in the same order",
                      r, (unsigned long long)all[r].len,
                      (unsigned long long)all[r].number,
                      (unsigned long long)all[0].len,
                      (unsigned long long)all[0].number);
            return COLL_ERR_MISMATCH;
        }
    }
    return COLL_OK;
}

/* Exchange what ranks say. */
static int hear(const struct coll__tp_env *env,
                const struct cuda_ipc_part *mine, struct cuda_ipc_part *all)
{
    return env->allgather(env->arg, mine, sizeof(*mine), all);
}

/* Close idle allocations beyond the limit: the others', or this rank's own after the
 * others have closed them.  If a rank's caller has freed a lent buffer, close all idle
 * allocations of that rank. */
static void trim(struct cuda_ipc *tp, const struct cuda_ipc_part *all,
                 int is_own)
{
    int n_idle = all[0].n_idle;

    for (int r = 1; r < tp->base.size; r++)
        n_idle = all[r].n_idle < n_idle ? all[r].n_idle : n_idle;
    for (int r = 0; r < tp->base.size; r++)
        if ((r == tp->base.rank) == is_own)
            cuda_ipc__trim_maps(tp, r, all[r].misses ? 0 : n_idle);
}

/* ---- their allocations --------------------------------------------------------- */

static void give_all(struct cuda_ipc *tp, struct area *area)
{
    for (int r = 0; r < tp->base.size; r++)
        if (area->base.at[r])
            cuda_ipc__map_give(tp, r, area->ids[r]);
}

static int take_all(struct cuda_ipc *tp, struct area *area,
                    const struct cuda_ipc_part *all, char *why)
{
    int status = COLL_OK;

    for (int r = 0; r < tp->base.size && status == COLL_OK; r++) {
        area->ids[r] = all[r].memory.id;
        status = cuda_ipc__map_take(tp, r, &all[r], &area->base.at[r], why);
    }
    return status;
}

static void note_all(struct cuda_ipc *tp, const struct area *area)
{
    tp->n_changes++;
    for (int r = 0; r < tp->base.size; r++)
        cuda_ipc__map_note(tp, r, area->ids[r]);
}

/* ---- registering ------------------------------------------------------------ */

static void area_free(struct area *area)
{
    if (area->is_held)
        coll__cuda_buffer_release(area->base.base);
    free(area->base.at);
    free(area->ids);
    free(area);
}

static struct area *area_new(const struct cuda_ipc *tp)
{
    struct area *area = calloc(1, sizeof(*area));
    size_t n = (size_t)tp->base.size;

    if (!area)
        return NULL;
    area->base.at = calloc(n, sizeof(*area->base.at));
    area->ids = calloc(n, sizeof(*area->ids));
    if (area->base.at && area->ids)
        return area;
    area_free(area);
    return NULL;
}

static int no_memory(const struct cuda_ipc *tp)
{
    log_error("cuda", "no memory for %d ranks", tp->base.size);
    return COLL_ERR_NOMEM;
}

/* All ranks give up an area that some could not map. */
static int undo(struct cuda_ipc *tp, const struct coll__tp_env *env,
                struct area *area, const struct cuda_ipc_part *mine,
                struct cuda_ipc_part *all)
{
    if (!mine->status)
        give_all(tp, area);
    trim(tp, all, 0);
    return hear(env, mine, all);
}

/* Map the others' parts, and exchange whether all ranks could.  If an exchange fails, the
 * communicator has failed, and nothing follows. */
static int map_all(struct cuda_ipc *tp, const struct coll__tp_env *env,
                   struct area *area, struct cuda_ipc_part *mine,
                   struct cuda_ipc_part *all)
{
    int rc, judged;

    if (!mine->status) {
        mine->status = take_all(tp, area, all, mine->why);
        if (mine->status)
            give_all(tp, area);
    }
    trim(tp, all, 0);
    rc = hear(env, mine, all);
    if (rc)
        return rc;
    judged = judge_all(tp, all);
    if (judged)
        rc = undo(tp, env, area, mine, all);
    else
        note_all(tp, area);
    if (rc == COLL_OK)
        trim(tp, all, 1);
    return rc ? rc : judged;
}

/* In the place, where no stream is. */
static int join(struct cuda_ipc *tp, const struct coll__tp_env *env,
                struct area *area, struct cuda_ipc_part *mine,
                struct cuda_ipc_part *all)
{
    int was, is_out, rc = hear(env, mine, all);

    if (rc == COLL_OK)
        rc = judge_all(tp, all);
    if (rc)
        return rc;
    mine->status = is_out = coll__cuda_go_in(&tp->home, &was);
    if (is_out)
        snprintf(mine->why, CUDA_IPC_WHY, "%s", coll_last_error());
    rc = map_all(tp, env, area, mine, all);
    if (!is_out)
        coll__cuda_go_out(was);
    return rc;
}

int cuda_ipc__enroll(struct coll__stream_tp *base,
                     const struct coll__tp_env *env, void *ptr, size_t len)
{
    struct cuda_ipc *tp = (struct cuda_ipc *)base;
    struct cuda_ipc_part mine = say(tp),
                         *all = calloc((size_t)base->size, sizeof(*all));
    struct area *area = area_new(tp);
    int rc;

    mine.status = area ? describe(tp, ptr, len, &mine) : COLL_ERR_NOMEM;
    if (!area)
        snprintf(mine.why, CUDA_IPC_WHY, "no memory for %d ranks", base->size);
    rc = all ? join(tp, env, area, &mine, all) : no_memory(tp);
    free(all);
    if (area) {
        area->base.base = ptr;
        area->is_held = mine.may_stay;
    }
    if (rc == COLL_OK) {
        area->base.len = len;
        area->base.id = mine.memory.id;
        area->base.number = mine.number;
        area->base.next = base->areas;
        base->areas = &area->base;
    } else if (area) {
        area_free(area);
    }
    return rc;
}

/* ---- ending registrations --------------------------------------------------- */

static struct coll__stream_area **find(struct cuda_ipc *tp, const void *ptr)
{
    struct coll__stream_area **at = &tp->base.areas;

    while (*at && (*at)->base != ptr)
        at = &(*at)->next;
    return at;
}

/* In the place, as above. */
static int part_with(struct cuda_ipc *tp, const struct coll__tp_env *env,
                     struct area *area, const struct cuda_ipc_part *mine,
                     struct cuda_ipc_part *all)
{
    int rc;

    give_all(tp, area);
    note_all(tp, area);
    trim(tp, all, 0);
    rc = hear(env, mine, all);
    if (rc == COLL_OK)
        trim(tp, all, 1);
    return rc;
}

int cuda_ipc__dismiss(struct coll__stream_tp *base,
                      const struct coll__tp_env *env, void *ptr)
{
    struct cuda_ipc *tp = (struct cuda_ipc *)base;
    struct cuda_ipc_part mine = say(tp),
                         *all = calloc((size_t)base->size, sizeof(*all));
    struct coll__stream_area **at = find(tp, ptr);
    struct area *area = (struct area *)*at;
    int rc, was, is_out;

    if (area) {
        mine.number = area->base.number;
        mine.len = area->base.len;
    } else {
        mine.status = COLL_ERR_INVALID;
        snprintf(mine.why, CUDA_IPC_WHY,
                 "nothing that begins there is registered");
    }
    rc = all ? hear(env, &mine, all) : no_memory(tp);
    if (rc == COLL_OK)
        rc = judge_all(tp, all);
    if (rc == COLL_OK) {
        *at = area->base.next;
        is_out = coll__cuda_go_in(&tp->home, &was); /* but all go on alike */
        rc = part_with(tp, env, area, &mine, all);
        if (!is_out)
            coll__cuda_go_out(was);
        area_free(area);
    }
    free(all);
    return rc;
}

void cuda_ipc__forget_areas(struct cuda_ipc *tp)
{
    while (tp->base.areas) {
        struct area *area = first(tp);

        tp->base.areas = area->base.next;
        area_free(area);
    }
}
