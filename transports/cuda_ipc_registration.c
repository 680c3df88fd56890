/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc_registration.c - device memory that all ranks register, and read in place.
 *
 * Each rank publishes where its part is and maps the others' allocations
 * (cuda_ipc_map.c).  A rank's error travels with its part, so that all ranks fail
 * alike.  No rank uses a registration before all have mapped it, or frees its memory
 * before all have unmapped it.
 */
#include "lib/device/cuda_stream.h"
#include "lib/trace/log.h"
#include "lib/util/limit.h"
#include "transports/cuda_ipc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reg {
    struct coll__registration base;
    int is_held;     /* the library's buffer, not freed meanwhile */
    uint64_t *ids;   /* [size]: ids of the allocations that hold the parts */
};

#define MOST_IDLE 1024

static struct reg *first(const struct cuda_ipc *tp)
{
    return (struct reg *)tp->base.regs;
}

/* ---- what this rank has ---------------------------------------------------- */

static int judge(const struct cuda_ipc *tp, const unsigned char *ptr,
                 size_t len, struct cuda_ipc_part *mine)
{
    struct coll__cuda_owner owner;

    if (!len || coll__cuda_whose(ptr, &owner) != WHOSE_DEVICES ||
        owner.device != tp->home.device) {
        snprintf(mine->why, CUDA_IPC_WHY,
                 "it is no memory of GPU %d, of which the communicator is",
                 tp->home.device);
        return COLL_ERR_INVALID;
    }
    for (const struct coll__registration *a = tp->base.regs; a; a = a->next)
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
    size_t n_idle = coll__limit(LIMIT_CUDA_MAPS);

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

static void give_all(struct cuda_ipc *tp, struct reg *reg)
{
    for (int r = 0; r < tp->base.size; r++)
        if (reg->base.at[r])
            cuda_ipc__map_give(tp, r, reg->ids[r]);
}

static int take_all(struct cuda_ipc *tp, struct reg *reg,
                    const struct cuda_ipc_part *all, char *why)
{
    int status = COLL_OK;

    for (int r = 0; r < tp->base.size && status == COLL_OK; r++) {
        reg->ids[r] = all[r].memory.id;
        status = cuda_ipc__map_take(tp, r, &all[r], &reg->base.at[r], why);
    }
    return status;
}

static void note_all(struct cuda_ipc *tp, const struct reg *reg)
{
    tp->n_changes++;
    for (int r = 0; r < tp->base.size; r++)
        cuda_ipc__map_note(tp, r, reg->ids[r]);
}

/* ---- registering ------------------------------------------------------------ */

static void area_free(struct reg *reg)
{
    if (reg->is_held)
        coll__cuda_buffer_release(reg->base.base);
    free(reg->base.at);
    free(reg->ids);
    free(reg);
}

static struct reg *area_new(const struct cuda_ipc *tp)
{
    struct reg *reg = calloc(1, sizeof(*reg));
    size_t n = (size_t)tp->base.size;

    if (!reg)
        return NULL;
    reg->base.at = calloc(n, sizeof(*reg->base.at));
    reg->ids = calloc(n, sizeof(*reg->ids));
    if (reg->base.at && reg->ids)
        return reg;
    area_free(reg);
    return NULL;
}

static int no_memory(const struct cuda_ipc *tp)
{
    log_error("cuda", "no memory for %d ranks", tp->base.size);
    return COLL_ERR_NOMEM;
}

/* All ranks give up a registration that some could not map. */
static int undo(struct cuda_ipc *tp, const struct coll__tp_env *env,
                struct reg *reg, const struct cuda_ipc_part *mine,
                struct cuda_ipc_part *all)
{
    if (!mine->status)
        give_all(tp, reg);
    trim(tp, all, 0);
    return hear(env, mine, all);
}

/* Map the others' parts, and exchange whether all ranks could.  If an exchange fails, the
 * communicator has failed, and nothing follows. */
static int map_all(struct cuda_ipc *tp, const struct coll__tp_env *env,
                   struct reg *reg, struct cuda_ipc_part *mine,
                   struct cuda_ipc_part *all)
{
    int rc, judged;

    if (!mine->status) {
        mine->status = take_all(tp, reg, all, mine->why);
        if (mine->status)
            give_all(tp, reg);
    }
    trim(tp, all, 0);
    rc = hear(env, mine, all);
    if (rc)
        return rc;
    judged = judge_all(tp, all);
    if (judged)
        rc = undo(tp, env, reg, mine, all);
    else
        note_all(tp, reg);
    if (rc == COLL_OK)
        trim(tp, all, 1);
    return rc ? rc : judged;
}

/* In the place, where no stream is. */
static int join(struct cuda_ipc *tp, const struct coll__tp_env *env,
                struct reg *reg, struct cuda_ipc_part *mine,
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
    rc = map_all(tp, env, reg, mine, all);
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
    struct reg *reg = area_new(tp);
    int rc;

    mine.status = reg ? describe(tp, ptr, len, &mine) : COLL_ERR_NOMEM;
    if (!reg)
        snprintf(mine.why, CUDA_IPC_WHY, "no memory for %d ranks", base->size);
    rc = all ? join(tp, env, reg, &mine, all) : no_memory(tp);
    free(all);
    if (reg) {
        reg->base.base = ptr;
        reg->is_held = mine.may_stay;
    }
    if (rc == COLL_OK) {
        reg->base.len = len;
        reg->base.id = mine.memory.id;
        reg->base.number = mine.number;
        reg->base.next = base->regs;
        base->regs = &reg->base;
    } else if (reg) {
        area_free(reg);
    }
    return rc;
}

/* ---- ending registrations --------------------------------------------------- */

static struct coll__registration **find(struct cuda_ipc *tp, const void *ptr)
{
    struct coll__registration **at = &tp->base.regs;

    while (*at && (*at)->base != ptr)
        at = &(*at)->next;
    return at;
}

/* In the place, as above. */
static int part_with(struct cuda_ipc *tp, const struct coll__tp_env *env,
                     struct reg *reg, const struct cuda_ipc_part *mine,
                     struct cuda_ipc_part *all)
{
    int rc;

    give_all(tp, reg);
    note_all(tp, reg);
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
    struct coll__registration **at = find(tp, ptr);
    struct reg *reg = (struct reg *)*at;
    int rc, was, is_out;

    if (reg) {
        mine.number = reg->base.number;
        mine.len = reg->base.len;
    } else {
        mine.status = COLL_ERR_INVALID;
        snprintf(mine.why, CUDA_IPC_WHY,
                 "nothing that begins there is registered");
    }
    rc = all ? hear(env, &mine, all) : no_memory(tp);
    if (rc == COLL_OK)
        rc = judge_all(tp, all);
    if (rc == COLL_OK) {
        *at = reg->base.next;
        is_out = coll__cuda_go_in(&tp->home, &was); /* but all go on alike */
        rc = part_with(tp, env, reg, &mine, all);
        if (!is_out)
            coll__cuda_go_out(was);
        area_free(reg);
    }
    free(all);
    return rc;
}

void cuda_ipc__forget_registrations(struct cuda_ipc *tp)
{
    while (tp->base.regs) {
        struct reg *reg = first(tp);

        tp->base.regs = reg->base.next;
        area_free(reg);
    }
}
