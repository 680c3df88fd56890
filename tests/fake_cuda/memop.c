/* SPDX-License-Identifier: BSD-3-Clause */
/* memop.c - values written and waited for by a stream: DA, "Stream Memory
 * Operations".  The names without _v2 are the first version, which is refused
 * (H100, init/old_memops). */
#include "tests/fake_cuda/fake.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef CUstreamBatchMemOpParams params;

/* ---- done ---------------------------------------------------------------- */

static int is_wide(unsigned operation)
{
    return operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
           operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static int is_wait(unsigned operation)
{
    return operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
           operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

/* DA CUstreamWaitValue_flags; GEQ is cyclic. */
static int passes(uint64_t is, uint64_t value, unsigned how, int wide)
{
    switch (how) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return wide ? (int64_t)(is - value) >= 0
                    : (int32_t)((uint32_t)is - (uint32_t)value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return wide ? is == value : (uint32_t)is == (uint32_t)value;
    case CU_STREAM_WAIT_VALUE_AND:
        return wide ? (is & value) != 0 : (uint32_t)(is & value) != 0;
    default: /* NOR */
        return wide ? ~(is | value) != 0 : (uint32_t) ~(is | value) != 0;
    }
}

/* libcoll releases a wait for a bit by another one in the high half of the word, after a
 * failure: what the stream does then may be anything. */
static int is_release(uint64_t is, uint64_t value, unsigned how, int wide)
{
    return wide && how == CU_STREAM_WAIT_VALUE_AND &&
           !(is & value & UINT32_MAX);
}

static int do_wait(const params *op, void *at, struct stream *s)
{
    int wide = is_wide(op->operation);
    unsigned how = op->waitValue.flags & 3;
    uint64_t value = op->waitValue.value64;
    uint64_t is = wide ? atomic_load((_Atomic uint64_t *)at)
                       : (uint64_t)atomic_load((_Atomic uint32_t *)at);

    if (!passes(is, value, how, wide))
        return 0;
    s->is_released |= is_release(is, value, how, wide);
    return 1;
}

/* DA CU_STREAM_WRITE_VALUE_DEFAULT: what the stream did before is seen before it. */
static int do_one(const params *op, void *at, struct stream *s)
{
    int wide = is_wide(op->operation);

    if (is_wait(op->operation))
        return do_wait(op, at, s);
    if (wide)
        atomic_store((_Atomic uint64_t *)at, op->writeValue.value64);
    else
        atomic_store((_Atomic uint32_t *)at, op->writeValue.value);
    return 1;
}

int memops_step(struct work *w, unsigned *next, struct stream *s, CUresult *rc)
{
    for (; *next < w->memops.n; (*next)++) {
        const params *op = &w->memops.ops[*next];
        void *at;

        if (op->operation == CU_STREAM_MEM_OP_BARRIER ||
            op->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
            continue;
        at = memory_view(op->waitValue.address, is_wide(op->operation) ? 8 : 4,
                         s->ctx);
        if (!at) {
            *rc = CUDA_ERROR_ILLEGAL_ADDRESS;
            return 1;
        }
        if (!do_one(op, at, s))
            return 0;
    }
    return 1;
}

/* Longer naps the longer one has waited: others need the processor. */
void memops_nap(unsigned *n_naps)
{
    if (*n_naps < 20)
        sched_yield();
    else
        usleep(*n_naps < 200 ? 20 : 200);
    (*n_naps)++;
}

/* ---- refused ------------------------------------------------------------- */

/* Aligned, known to the device, not of a pool (H100, memop/addresses and
 * memory_kinds; DA: managed memory is not supported). */
static CUresult check_address(CUdeviceptr at, unsigned len, struct context *ctx)
{
    struct region *r;
    CUresult rc;

    if (!at || at % len)
        return CUDA_ERROR_INVALID_VALUE;
    rc = region_check(at, len, ctx, &r);
    if (!rc && (r->kind == R_POOL || r->kind == R_POOL_IMPORT))
        rc = CUDA_ERROR_INVALID_VALUE;
    return rc;
}

static CUresult check_wait(unsigned flags)
{
    if (flags & ~(3u | (unsigned)CU_STREAM_WAIT_VALUE_FLUSH))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_STREAM_WAIT_VALUE_FLUSH &&
        !device_attribute(CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES))
        return CUDA_ERROR_NOT_SUPPORTED;
    if ((flags & 3) == CU_STREAM_WAIT_VALUE_NOR &&
        !device_attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR))
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

static CUresult check_op(const params *op, struct context *ctx)
{
    int wide = is_wide(op->operation);
    CUresult rc = CUDA_SUCCESS;

    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        rc = check_wait(op->waitValue.flags);
        break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        if (op->writeValue.flags) /* H100: NO_MEMORY_BARRIER too */
            rc = CUDA_ERROR_INVALID_VALUE;
        break;
    case CU_STREAM_MEM_OP_BARRIER:
        return op->memoryBarrier.flags > 1 ? CUDA_ERROR_INVALID_VALUE
                                           : CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return device_attribute(CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES)
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!rc && wide &&
        !device_attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS))
        rc = CUDA_ERROR_NOT_SUPPORTED;
    return rc ? rc : check_address(op->waitValue.address, wide ? 8 : 4, ctx);
}

/* DA cuStreamBatchMemOp: fewer than 256; all or nothing. */
static CUresult put(struct stream *s, const params *ops, unsigned n)
{
    struct work w = {.kind = W_MEMOPS, .memops = {.n = n}};

    for (unsigned i = 0; i < n; i++) {
        CUresult rc = check_op(&ops[i], s->ctx);

        if (rc)
            return rc;
    }
    w.memops.ops = malloc(n * sizeof(*ops));
    memcpy(w.memops.ops, ops, n * sizeof(*ops));
    return stream_put(s, &w);
}

static CUresult one(const char *entry, CUstream stream, unsigned operation,
                    CUdeviceptr at, uint64_t value, unsigned flags)
{
    struct stream *s;
    params op;
    CUresult rc = fake_enter_stream(entry, 0, stream, &s);

    if (rc)
        return rc;
    memset(&op, 0, sizeof(op));
    op.waitValue.operation = (CUstreamBatchMemOpType)operation;
    op.waitValue.address = at;
    op.waitValue.value64 = value;
    op.waitValue.flags = flags;
    return fake_leave(put(s, &op, 1));
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr at, cuuint32_t value,
                             unsigned flags)
{
    return one("cuStreamWaitValue32", stream, CU_STREAM_MEM_OP_WAIT_VALUE_32,
               at, value, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr at, cuuint64_t value,
                             unsigned flags)
{
    return one("cuStreamWaitValue64", stream, CU_STREAM_MEM_OP_WAIT_VALUE_64,
               at, value, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr at, cuuint32_t value,
                              unsigned flags)
{
    return one("cuStreamWriteValue32", stream, CU_STREAM_MEM_OP_WRITE_VALUE_32,
               at, value, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr at, cuuint64_t value,
                              unsigned flags)
{
    return one("cuStreamWriteValue64", stream, CU_STREAM_MEM_OP_WRITE_VALUE_64,
               at, value, flags);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned n,
                            CUstreamBatchMemOpParams *ops, unsigned flags)
{
    struct stream *s;
    CUresult rc = fake_enter_stream("cuStreamBatchMemOp", 0, stream, &s);

    if (rc)
        return rc;
    if (n >= 256 || flags || (n && !ops))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    return fake_leave(n ? put(s, ops, n) : CUDA_SUCCESS);
}

/* ---- the first version --------------------------------------------------- */

#define V1(name, type)                                                         \
    CUresult v1_##name(CUstream, CUdeviceptr, type, unsigned) __asm__(#name);  \
    CUresult v1_##name(CUstream stream, CUdeviceptr at, type value,            \
                       unsigned flags)                                         \
    {                                                                          \
        (void)stream, (void)at, (void)value, (void)flags;                      \
        return CUDA_ERROR_NOT_SUPPORTED;                                       \
    }

V1(cuStreamWaitValue32, cuuint32_t)
V1(cuStreamWaitValue64, cuuint64_t)
V1(cuStreamWriteValue32, cuuint32_t)
V1(cuStreamWriteValue64, cuuint64_t)

CUresult v1_cuStreamBatchMemOp(CUstream, unsigned, params *,
                               unsigned) __asm__("cuStreamBatchMemOp");
CUresult v1_cuStreamBatchMemOp(CUstream stream, unsigned n, params *ops,
                               unsigned flags)
{
    (void)stream, (void)n, (void)ops, (void)flags;
    return CUDA_ERROR_NOT_SUPPORTED;
}
