/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_plan.c - write a plan into device memory for the kernel of plans, and launch it.
 *
 * Freeing device memory waits for all streams of the context, also for streams that wait
 * for other ranks (H100, queue/behind_memop).  So the memory of plans is kept for later
 * plans.
 */
#include "lib/device/cuda.h"
#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_kernels.h"
#include "lib/device/cuda_plan.h"
#include "lib/device/cuda_plan_host.h"
#include "lib/trace/log.h"
#include "lib/type/op.h"
#include "lib/util/lock.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_ROOM ((size_t)4096)
#define MOST_BLOCKS 16              /* unless a parameter says otherwise */
#define BLOCK_BYTES ((size_t)16384) /* that make one more worth while */

/* Device memory for a plan. */
struct block {
    struct block *next;
    CUcontext ctx;
    CUdeviceptr at;
    size_t len;
};

struct plan {
    struct block *block;
    CUfunction kernel;
    uint32_t n_steps;
    unsigned blocks;
};

static struct block *spare; /* under the lock */
static struct coll__lock lock = COLL__LOCK(NULL);

_Static_assert(sizeof(struct coll__cuda_step) == 88, "as the kernel reads it");

/* ---- memory of plans --------------------------------------------------------- */

static struct block *take_spare(CUcontext ctx, size_t len)
{
    struct block **at = &spare, *block;

    coll__lock(&lock);
    while (*at && ((*at)->ctx != ctx || (*at)->len < len))
        at = &(*at)->next;
    block = *at;
    if (block)
        *at = block->next;
    coll__unlock(&lock);
    return block;
}

static void keep(struct block *block)
{
    coll__lock(&lock);
    block->next = spare;
    spare = block;
    coll__unlock(&lock);
}

void coll__cuda_forget_rooms(CUcontext ctx)
{
    struct block *block;

    while ((block = take_spare(ctx, 0)))
        free(block);
}

/* With the context current. */
static int new_block(const struct coll__cuda *cuda, CUcontext ctx, size_t least,
                     struct block **out)
{
    struct block *block = calloc(1, sizeof(*block));
    size_t len = LEAST_ROOM;
    int status;

    if (!block) {
        log_error("cuda", "no memory for a plan");
        return COLL_ERR_NOMEM;
    }
    while (len < least)
        len *= 2;
    block->ctx = ctx;
    block->len = len;
    status = coll__cuda_status(cuda->cuMemAlloc(&block->at, len), "cuMemAlloc");
    if (status)
        free(block);
    else
        *out = block;
    return status;
}

/* ---- steps ------------------------------------------------------------------- */

static uint8_t base_of(const struct coll__operand *operand)
{
    static const uint8_t bases[] = {[PLACE_IN] = COLL__CUDA_IN,
                                    [PLACE_OUT] = COLL__CUDA_OUT,
                                    [PLACE_TMP] = COLL__CUDA_TMP,
                                    [PLACE_HERE] = COLL__CUDA_HERE};

    return bases[operand->in];
}

/* Return the entry of cuda_kernels.h that does the same as a step; NULL: none. */
static const char *entry_of(const struct coll__kernel_step *step)
{
    switch (step->kind) {
    case WORK_REDUCE:
        return coll__cuda_reduce(step->type, step->op);
    case WORK_SCALE:
        return coll__cuda_scale(step->type);
    case WORK_MULTIPLY:
        return coll__cuda_multiply(step->type);
    default:
        return "coll_copy";
    }
}

static uint8_t flags_of(const struct coll__kernel_step *step)
{
    return (uint8_t)((step->is_behind ? COLL__CUDA_BEHIND : 0) |
                     (step->is_send ? COLL__CUDA_SENDS : 0) |
                     (step->is_recv ? COLL__CUDA_RECEIVES : 0) |
                     (step->settles ? COLL__CUDA_SETTLES : 0));
}

static int write_step(const struct coll__kernel_step *from,
                      struct coll__cuda_step *to)
{
    const char *entry = entry_of(from);

    if (!entry) {
        log_error("cuda", "no kernel for type %d and operation %d",
                  (int)from->type, (int)from->op);
        return COLL_ERR_UNSUPPORTED;
    }
    *to = (struct coll__cuda_step){
        .what = (uint8_t)coll__cuda_doing(entry),
        .flags = flags_of(from),
        .dst_in = base_of(&from->dst),
        .dst = from->dst.at,
        .src_in = base_of(&from->src),
        .src = from->src.at,
        .with_in = COLL__CUDA_NONE,
        .next_in = from->has_next ? base_of(&from->next) : COLL__CUDA_NONE,
        .next = from->has_next ? from->next.at : 0,
        .len = from->len,
        .recv = {(uint64_t)from->recv.own, (uint64_t)from->recv.theirs},
        .send = {(uint64_t)from->send.own, (uint64_t)from->send.theirs}};
    if (from->kind == WORK_REDUCE) {
        to->with_in = base_of(&from->with);
        to->with = from->with.at;
    } else if (from->kind == WORK_SCALE) {
        to->number = (uint64_t)from->nranks;
        to->with = coll__cuda_magic(from->nranks);
    } else if (from->kind == WORK_MULTIPLY) {
        memcpy(&to->number, from->scalar,
               coll_type_size(coll__factor_type(from->type)));
    }
    return COLL_OK;
}

/* Make the image for the device: the steps, and words of state, all 0. */
static int write_all(const struct coll__kernel_step *steps, int n, void **image,
                     size_t *len)
{
    size_t of_steps = (size_t)n * sizeof(struct coll__cuda_step);
    struct coll__cuda_step *to;
    int status = COLL_OK;

    *len = of_steps + COLL__CUDA_STATE_WORDS(n) * sizeof(uint32_t);
    to = calloc(1, *len);
    if (!to) {
        log_error("cuda", "no memory for a plan of %d steps", n);
        return COLL_ERR_NOMEM;
    }
    for (int i = 0; i < n && status == COLL_OK; i++)
        status = write_step(&steps[i], &to[i]);
    if (status)
        free(to);
    else
        *image = to;
    return status;
}

/* ---- plans ------------------------------------------------------------------- */

/* Choose the number of blocks: at most half of the GPU's share, but at least one. */
static unsigned blocks_for(const struct coll__kernel_step *steps, int n,
                           unsigned most)
{
    size_t asked = coll__limit(LIMIT_CUDA_KERNEL_BLOCKS), len = 0;

    for (int i = 0; i < n; i++)
        len = max_size(len, steps[i].len);
    if (!asked)
        asked = min_size((len + BLOCK_BYTES - 1) / BLOCK_BYTES, MOST_BLOCKS);
    return (unsigned)max_size(1, min_size(asked, most / 2));
}

/* Copy the image by the upload stream, which does not wait for other streams. */
static int upload(const struct coll__cuda *cuda, CUstream uploads,
                  CUdeviceptr at, const void *image, size_t len)
{
    int status = coll__cuda_status(
        cuda->cuMemcpyAsync(at, (CUdeviceptr)image, len, uploads),
        "cuMemcpyAsync");

    return status ? status : coll__cuda_stream_wait(uploads);
}

static int place_plan(const struct coll__cuda *cuda,
                      const struct coll__cuda_plan_entry *entry,
                      const void *image, size_t len, struct plan *plan)
{
    struct coll__cuda_home home = {.ctx = entry->ctx};
    int was, status = coll__cuda_go_in(&home, &was);

    if (status)
        return status;
    plan->kernel = entry->kernel;
    plan->block = take_spare(entry->ctx, len);
    if (!plan->block)
        status = new_block(cuda, entry->ctx, len, &plan->block);
    if (status == COLL_OK)
        status = upload(cuda, entry->uploads, plan->block->at, image, len);
    coll__cuda_go_out(was);
    return status;
}

void coll__cuda_unload(void *ptr)
{
    struct plan *plan = ptr;

    if (plan && plan->block)
        keep(plan->block);
    free(plan);
}

size_t coll__cuda_taken(const void *ptr)
{
    const struct plan *plan = ptr;

    return plan ? plan->block->len : 0;
}

int coll__cuda_load_plan(const struct coll__kernel_step *steps, int n,
                         int n_sharing, void *stream, void **out)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    struct coll__cuda_plan_entry entry;
    struct plan *plan;
    void *image;
    size_t len;
    int status;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    status = coll__cuda_plan_entry_of(stream, &entry);
    if (status == COLL_OK && (unsigned)n_sharing > entry.most_blocks) {
        log_error("cuda",
                  "kernels of %d ranks do not fit on one GPU at once, %u do; "
                  "set COLL_CUDA_ENGINE=stream",
                  n_sharing, entry.most_blocks);
        status = COLL_ERR_UNSUPPORTED;
    }
    if (status == COLL_OK)
        status = write_all(steps, n, &image, &len);
    if (status)
        return status;
    plan = calloc(1, sizeof(*plan));
    if (!plan)
        log_error("cuda", "no memory for a plan of %d steps", n);
    status = plan ? place_plan(cuda, &entry, image, len, plan) : COLL_ERR_NOMEM;
    free(image);
    if (status) {
        coll__cuda_unload(plan);
        return status;
    }
    plan->n_steps = (uint32_t)n;
    plan->blocks =
        blocks_for(steps, n, entry.most_blocks / (unsigned)n_sharing);
    *out = plan;
    return COLL_OK;
}

int coll__cuda_launch_plan(void *ptr, const struct coll__kernel_run *run)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    struct plan *plan = ptr;
    struct coll__kernel_run r = *run;
    CUdeviceptr steps = plan->block->at,
                state = steps + plan->n_steps * sizeof(struct coll__cuda_step);
    void *params[] = {&steps, &plan->n_steps, &state, &r.stop,
                      &r.in,  &r.out,         &r.tmp};

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    return coll__cuda_status(cuda->cuLaunchKernel(plan->kernel, plan->blocks, 1,
                                                  1, COLL__CUDA_THREADS, 1, 1,
                                                  0, r.stream, params, NULL),
                             "cuLaunchKernel");
}
