/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_memory.c - memory of the GPU, copies, and the order of the two streams. */
#include "trainer/cuda/gpu.h"

#include <stdint.h>
#include <stdlib.h>

static void *pointer(CUdeviceptr at) { return (void *)(uintptr_t)at; }

void *gpu_alloc(size_t len)
{
    CUdeviceptr at = 0;

    if (gpu.has_failed || gpu.cu.cuMemAlloc(&at, len ? len : 1))
        return NULL;
    gpu_zero(pointer(at), len);
    return pointer(at);
}

/* The driver waits until no stream uses the memory. */
void gpu_release(void *at)
{
    if (at)
        gpu_note(gpu.cu.cuMemFree(cuda_address(at)), "cuMemFree");
}

/* The driver has read pageable memory when it returns (CUDA Driver API, "API
 * synchronization behavior"). */
void gpu_write(void *to, const void *from, size_t len)
{
    if (len)
        gpu_note(
            gpu.cu.cuMemcpyHtoDAsync(cuda_address(to), from, len, gpu.compute),
            "cuMemcpyHtoDAsync");
}

int gpu_read(void *to, const void *from, size_t len)
{
    if (len)
        gpu_note(
            gpu.cu.cuMemcpyDtoHAsync(to, cuda_address(from), len, gpu.compute),
            "cuMemcpyDtoHAsync");
    return gpu_wait();
}

void gpu_copy(void *to, const void *from, size_t len)
{
    if (len)
        gpu_note(gpu.cu.cuMemcpyDtoDAsync(cuda_address(to), cuda_address(from),
                                          len, gpu.compute),
                 "cuMemcpyDtoDAsync");
}

void gpu_zero(void *at, size_t len)
{
    if (len)
        gpu_note(gpu.cu.cuMemsetD8Async(cuda_address(at), 0, len, gpu.compute),
                 "cuMemsetD8Async");
}

int gpu_wait(void)
{
    gpu_note(gpu.cu.cuStreamSynchronize(gpu.compute), "cuStreamSynchronize");
    return gpu_well();
}

static int record(CUstream stream, CUevent event)
{
    return gpu_note(gpu.cu.cuEventRecord(event, stream), "cuEventRecord");
}

static void await(CUstream stream, CUevent event)
{
    gpu_note(gpu.cu.cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
}

/* Let what comes in `later` begin when `earlier` has passed what is in it now. */
static void order(CUstream earlier, CUstream later, CUevent event)
{
    if (earlier != later && !record(earlier, event))
        await(later, event);
}

void *gpu_exchange(void)
{
    order(gpu.compute, gpu.exchange, gpu.computed);
    return gpu.exchange;
}

void gpu_exchanged(void) { order(gpu.exchange, gpu.compute, gpu.exchanged); }

void gpu_mark(int number)
{
    CUevent *mark = &gpu.marks[number];

    if (gpu.exchange == gpu.compute ||
        (!*mark && gpu_note(gpu.cu.cuEventCreate(mark, CU_EVENT_DISABLE_TIMING),
                            "cuEventCreate")))
        return;
    record(gpu.exchange, *mark);
}

void gpu_see(int number)
{
    if (gpu.marks[number])
        await(gpu.compute, gpu.marks[number]);
}

/* Keep memory that graphs may use until gpu_close(). */
static int keep(void *at)
{
    void **more =
        realloc(gpu.recorded.kept, (gpu.recorded.n_kept + 1) * sizeof(*more));

    if (!more)
        return gpu_note(CUDA_ERROR_OUT_OF_MEMORY, "memory of the host");
    gpu.recorded.kept = more;
    gpu.recorded.kept[gpu.recorded.n_kept++] = at;
    return 0;
}

void gpu_release_kept(void)
{
    for (size_t i = 0; i < gpu.recorded.n_kept; i++)
        gpu_release(gpu.recorded.kept[i]);
    free(gpu.recorded.kept);
    gpu.recorded.kept = NULL;
    gpu.recorded.n_kept = 0;
}

/* Work that uses the old memory is waited for by the driver. */
int gpu_room(struct gpu_room *room, size_t len)
{
    if (room->len >= len)
        return gpu_well();
    if (!gpu.recorded.has_graphs)
        gpu_release(room->at);
    else if (room->at && keep(room->at))
        return -1;
    *room = (struct gpu_room){.at = gpu_alloc(len), .len = len};
    if (room->at)
        return 0;
    room->len = 0;
    return gpu_no_memory(len);
}
