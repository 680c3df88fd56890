/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/late_device.h"
#include "lib/trace/log.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096

extern const struct coll__device coll__device_host;

static struct {
    struct coll__work *works[MOST];
    int first, n, most, n_done, fails_at;
    unsigned seed;
} queue;

void late_begin(unsigned seed, int fails_at)
{
    queue.first = queue.n = queue.most = queue.n_done = 0;
    queue.seed = seed;
    queue.fails_at = fails_at;
}

int late_n_waiting(void) { return queue.n; }

int late_most(void) { return queue.most; }

static int usable(char *why, size_t len)
{
    return coll__device_host.usable(why, len);
}

static int owns(const void *ptr) { return coll__device_host.owns(ptr); }

static void *alloc(size_t len) { return coll__device_host.alloc(len); }

static void free_late(void *ptr, size_t len)
{
    coll__device_host.free(ptr, len);
}

/* A device with queues is given its local steps by start() alone. */
static void copy_now(void *dst, const void *src, size_t len, void *stream)
{
    (void)dst, (void)src, (void)len, (void)stream;
    ck_abort_msg("a step was copied at once");
}

static coll__reduce_fn *reduce(enum coll_type type, enum coll_op op)
{
    return coll__device_host.reduce(type, op); /* of what a transport brings */
}

static coll__scale_fn *scale(enum coll_type type)
{
    return coll__device_host.scale(type);
}

static coll__premul_fn *premul(enum coll_type type)
{
    return coll__device_host.premul(type);
}

static void start(struct coll__work *work)
{
    ck_assert_int_lt(queue.n, MOST);
    ck_assert_int_eq(work->status, COLL_IN_PROGRESS);
    queue.works[(queue.first + queue.n++) % MOST] = work;
    if (queue.n > queue.most)
        queue.most = queue.n;
}

static void carry_out(struct coll__work *work)
{
    const struct coll__device *host = &coll__device_host;

    switch (work->kind) {
    case WORK_COPY:
        memcpy(work->dst, work->src, work->len);
        break;
    case WORK_REDUCE:
        host->reduce(work->type, work->op)(work->dst, work->dst, work->src,
                                           work->len);
        break;
    case WORK_SCALE:
        host->scale(work->type)(work->dst, work->len, work->nranks);
        break;
    case WORK_PREMUL:
        host->premul(work->type)(work->dst, work->src, work->len, work->scalar);
        break;
    }
    work->status = COLL_OK;
}

static int poll_late(void *stream)
{
    int n = rand_r(&queue.seed) % 4 - 1; /* half of the time: nothing */

    (void)stream;
    while (queue.n && n-- > 0) {
        if (queue.n_done++ == queue.fails_at) {
            log_error("cuda", "the late device has failed, as it was told");
            return COLL_ERR_SYSTEM;
        }
        carry_out(queue.works[queue.first]);
        queue.first = (queue.first + 1) % MOST;
        queue.n--;
    }
    return COLL_OK;
}

const struct coll__device late_device = {
    .name = "late",
    .what = "ordinary memory, worked on by a queue that is late",
    .usable = usable,
    .owns = owns,
    .alloc = alloc,
    .free = free_late,
    .copy = copy_now,
    .copy_past = copy_now,
    .reduce = reduce,
    .scale = scale,
    .premul = premul,
    .start = start,
    .poll = poll_late,
};
