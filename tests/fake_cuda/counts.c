/* SPDX-License-Identifier: BSD-3-Clause */
/* counts.c - how much is put into streams: so that a test finds a hidden copy. */
#include "tests/fake_cuda/counts.h"
#include "tests/fake_cuda/fake.h"
#include "lib/device/cuda_plan.h"

#include <string.h>

static struct fake_counts counts; /* under the lock */
static _Thread_local struct fake_calls calls;

void counts_add_call(const char *entry)
{
    calls.all++;
    calls.pointers += !strncmp(entry, "cuPointerGet", 12);
}

void fake_cuda_calls(struct fake_calls *out) { *out = calls; }

static void count_kernel(const struct work *w)
{
    const char *params = w->kernel.kernel->params, *l = strchr(params, 'l'),
               *n = strchr(params, 'n');
    uint64_t len = l ? w->kernel.values[l - params] : 0;

    counts.kernels++;
    counts.kernel_len += len;
    counts.next_len += n && w->kernel.values[n - params] ? len : 0;
}

static void count_memops(const struct work *w)
{
    for (unsigned i = 0; i < w->memops.n; i++)
        switch (w->memops.ops[i].operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            counts.waits++;
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            counts.writes++;
            break;
        default:
            break;
        }
}

static int is_devices(CUdeviceptr at)
{
    const struct region *r = region_at(at);

    return r && r->device >= 0;
}

static void count_copy(const struct work *w)
{
    counts.copies++;
    counts.copied += w->copy.len;
    if (!is_devices(w->copy.dst) || !is_devices(w->copy.src))
        counts.crossed += w->copy.len;
}

void counts_add(const struct work *w)
{
    switch (w->kind) {
    case W_COPY:
        count_copy(w);
        break;
    case W_FILL:
        counts.fills++;
        break;
    case W_KERNEL:
        count_kernel(w);
        break;
    case W_FOREIGN:
        counts.kernels++;
        break;
    case W_MEMOPS:
        count_memops(w);
        break;
    case W_HOST:
    case W_CALLBACK:
        counts.functions++;
        break;
    case W_RECORD:
        counts.records++;
        break;
    case W_WAIT:
        counts.event_waits++;
        break;
    case W_LAUNCH:
        counts.launches++;
        for (int i = 0; i < w->run->graph->n; i++)
            counts_add(&w->run->graph->nodes[i]->work);
        break;
    case W_ALLOC:
    case W_FREE:
        break;
    }
}

/* What its steps leave, once they run. */
int counts_add_plan(const uint64_t *params, struct context *ctx)
{
    uint32_t n = (uint32_t)params[1];
    const struct coll__cuda_step *steps =
        memory_view(params[0], n * sizeof(*steps), ctx);

    if (!steps && n)
        return -1;
    pthread_mutex_lock(fake_lock());
    for (uint32_t i = 0; i < n; i++) {
        counts.plan_len += steps[i].len;
        counts.plan_next +=
            steps[i].next_in == COLL__CUDA_NONE ? 0 : steps[i].len;
    }
    pthread_mutex_unlock(fake_lock());
    return 0;
}

void fake_cuda_counts(struct fake_counts *out)
{
    pthread_mutex_lock(fake_lock());
    *out = counts;
    pthread_mutex_unlock(fake_lock());
}
