/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_flag.c - words that streams write and wait for, in memory that several
 * processes see.
 *
 * A waiting stream blocks the streams that share its connection to the device
 * (CUDA_DEVICE_MAX_CONNECTIONS).  The wait has no time limit: a rank that gives up writes
 * the awaited value.  Source: CUDA Driver API, "Stream Memory Operations".
 */
#include "lib/device/cuda.h"
#include "lib/device/cuda_driver.h"
#include "lib/trace/log.h"

#include <stddef.h>
#include <string.h>

/* A container or ulimit may allow less pinned memory than the machine has. */
static int not_pinned(CUresult rc, size_t len)
{
    char why[256];
    int status = coll__cuda_verdict(rc, "cuMemHostRegister", why, sizeof(why));

    log_error("cuda", "%s, of %zu bytes; see ulimit -l", why, len);
    return status;
}

int coll__cuda_register(void *ptr, size_t len, void **at)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    CUdeviceptr device = 0;
    CUresult rc;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    rc = cuda->cuMemHostRegister(
        ptr, len, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (rc)
        return not_pinned(rc, len);
    rc = cuda->cuMemHostGetDevicePointer(&device, ptr, 0);
    if (rc) {
        cuda->cuMemHostUnregister(ptr);
        return coll__cuda_status(rc, "cuMemHostGetDevicePointer");
    }
    *at = (void *)device;
    return COLL_OK;
}

int coll__cuda_unregister(void *ptr)
{
    const struct coll__cuda *cuda = coll__cuda_needed();

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    return coll__cuda_status(cuda->cuMemHostUnregister(ptr),
                             "cuMemHostUnregister");
}

/* Without these calls a stream cannot wait for another rank: say so. */
static int flag_status(CUresult rc, const char *call)
{
    if (rc != CUDA_ERROR_NOT_SUPPORTED)
        return coll__cuda_status(rc, call);
    log_error("cuda",
              "%s: this driver does not support it; update the driver, or pass "
              "host memory",
              call);
    return COLL_ERR_UNSUPPORTED;
}

int coll__cuda_write_flag(void *stream, void *flag, uint32_t value)
{
    const struct coll__cuda *cuda = coll__cuda_needed();

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    return flag_status(
        cuda->cuStreamWriteValue32(stream, (CUdeviceptr)flag, value,
                                   CU_STREAM_WRITE_VALUE_DEFAULT),
        "cuStreamWriteValue32");
}

int coll__cuda_wait_flag(void *stream, void *flag, uint32_t value)
{
    const struct coll__cuda *cuda = coll__cuda_needed();

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    return flag_status(cuda->cuStreamWaitValue32(stream, (CUdeviceptr)flag,
                                                 value,
                                                 CU_STREAM_WAIT_VALUE_GEQ),
                       "cuStreamWaitValue32");
}

int coll__cuda_wait_bits(void *stream, void *flag, uint64_t bits)
{
    const struct coll__cuda *cuda = coll__cuda_needed();

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    return flag_status(cuda->cuStreamWaitValue64(stream, (CUdeviceptr)flag,
                                                 bits,
                                                 CU_STREAM_WAIT_VALUE_AND),
                       "cuStreamWaitValue64");
}

/* Is a field at the same place in both kinds of batch entries, write and wait? */
#define IS_ALIKE(field)                                                        \
    (offsetof(CUstreamBatchMemOpParams, writeValue.field) ==                   \
     offsetof(CUstreamBatchMemOpParams, waitValue.field))

_Static_assert(IS_ALIKE(operation) && IS_ALIKE(address) && IS_ALIKE(value64) &&
                   IS_ALIKE(flags),
               "one of them is filled in for both");

/* Fill in an entry, whose unused fields must be 0.  A value of 32 bits is the lower half
 * of value64. */
static void set(CUstreamBatchMemOpParams *op, CUstreamBatchMemOpType what,
                void *flag, uint64_t value)
{
    memset(op, 0, sizeof(*op));
    op->writeValue.operation = what;
    op->writeValue.address = (CUdeviceptr)flag;
    op->writeValue.value64 = value;
    op->writeValue.flags = what == CU_STREAM_MEM_OP_WRITE_VALUE_32
                               ? (unsigned)CU_STREAM_WRITE_VALUE_DEFAULT
                               : (unsigned)CU_STREAM_WAIT_VALUE_AND;
}

static int enqueue_two(void *stream, CUstreamBatchMemOpParams ops[2])
{
    const struct coll__cuda *cuda = coll__cuda_needed();

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    return flag_status(cuda->cuStreamBatchMemOp(stream, 2, ops, 0),
                       "cuStreamBatchMemOp");
}

int coll__cuda_write_two(void *stream, void *const flags[2],
                         const uint32_t values[2])
{
    CUstreamBatchMemOpParams ops[2];

    for (int i = 0; i < 2; i++)
        set(&ops[i], CU_STREAM_MEM_OP_WRITE_VALUE_32, flags[i], values[i]);
    return enqueue_two(stream, ops);
}

int coll__cuda_wait_two(void *stream, void *const flags[2],
                        const uint64_t bits[2])
{
    CUstreamBatchMemOpParams ops[2];

    for (int i = 0; i < 2; i++)
        set(&ops[i], CU_STREAM_MEM_OP_WAIT_VALUE_64, flags[i], bits[i]);
    return enqueue_two(stream, ops);
}

int coll__cuda_wait_write(void *stream, void *flag, uint64_t bits,
                          uint32_t value)
{
    CUstreamBatchMemOpParams ops[2];

    set(&ops[0], CU_STREAM_MEM_OP_WAIT_VALUE_64, flag, bits);
    set(&ops[1], CU_STREAM_MEM_OP_WRITE_VALUE_32, flag, value);
    return enqueue_two(stream, ops);
}

int coll__cuda_try_flags(void *stream, void *const flags[2])
{
    static const uint32_t ones[2] = {1, 1}, twos[2] = {2, 2};
    static const uint64_t bits[2] = {2, 2 | UINT64_C(1) << 32};
    int status = coll__cuda_write_flag(stream, flags[0], 1);

    if (status == COLL_OK)
        status = coll__cuda_wait_bits(stream, flags[0], 1 | UINT64_C(1) << 32);
    if (status == COLL_OK)
        status = coll__cuda_wait_flag(stream, flags[0], 1);
    if (status == COLL_OK)
        status = coll__cuda_write_two(stream, flags, twos);
    if (status == COLL_OK)
        status = coll__cuda_wait_two(stream, flags, bits);
    if (status == COLL_OK)
        status = coll__cuda_write_two(stream, flags, ones);
    return status ? status : coll__cuda_stream_wait(stream);
}
