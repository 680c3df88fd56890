/* SPDX-License-Identifier: BSD-3-Clause */
/* stamps.c - times of the GPU's work, by events that have one.
 *
 * When all stamps have been passed, one more event is recorded and waited for, with the
 * host's time beside it; the driver tells how long before it each stamp was passed.  So the
 * GPU's clock and the host's cannot drift apart, and the times are as exact as that wait.
 *
 * Source:    CUDA Driver API, cuEventRecordWithFlags: an external event that a graph records
 *            has the time of the last launch.
 */
#include "trainer/clock.h"
#include "trainer/cuda/gpu.h"

#include <stdlib.h>

static struct {
    CUevent *events; /* [n_made] */
    int n_made;
    int n;      /* stamps that were put since they were read */
    int n_kept; /* the first of them, which graphs record: they are not used again */
    CUevent last; /* behind all stamps, */
    double time;  /* when the host saw it */
} stamps;

static int make_event(void)
{
    CUevent *more =
        realloc(stamps.events, ((size_t)stamps.n_made + 1) * sizeof(*more));

    if (!more)
        return gpu_note(CUDA_ERROR_OUT_OF_MEMORY, "memory of the host");
    stamps.events = more;
    if (gpu_note(gpu.cu.cuEventCreate(&more[stamps.n_made], CU_EVENT_DEFAULT),
                 "cuEventCreate"))
        return -1;
    stamps.n_made++;
    return 0;
}

static int stamps_put(int in_exchange)
{
    unsigned flags = gpu.recorded.is_recording ? CU_EVENT_RECORD_EXTERNAL
                                               : CU_EVENT_RECORD_DEFAULT;

    if (stamps.n == stamps.n_made && make_event())
        return -1;
    if (gpu_note(gpu.cu.cuEventRecordWithFlags(
                     stamps.events[stamps.n],
                     in_exchange ? gpu.exchange : gpu.compute, flags),
                 "cuEventRecordWithFlags"))
        return -1;
    return stamps.n++;
}

static int stamps_read(void)
{
    if (!stamps.last &&
        gpu_note(gpu.cu.cuEventCreate(&stamps.last, CU_EVENT_DEFAULT),
                 "cuEventCreate"))
        return -1;
    gpu_exchanged();
    if (gpu_note(gpu.cu.cuEventRecord(stamps.last, gpu.compute),
                 "cuEventRecord") ||
        gpu_note(gpu.cu.cuEventSynchronize(stamps.last), "cuEventSynchronize"))
        return -1;
    stamps.time = now();
    stamps.n = stamps.n_kept;
    return gpu_well();
}

static double stamps_time(int stamp)
{
    float ms = 0;

    gpu_note(gpu.cu.cuEventElapsedTime(&ms, stamps.events[stamp], stamps.last),
             "cuEventElapsedTime");
    return stamps.time - (double)ms / 1e3;
}

void gpu_keep_stamps(void) { stamps.n_kept = stamps.n; }

void gpu_destroy_stamps(void)
{
    for (int i = 0; i < stamps.n_made; i++)
        gpu.cu.cuEventDestroy(stamps.events[i]);
    if (stamps.last)
        gpu.cu.cuEventDestroy(stamps.last);
    free(stamps.events);
    stamps.events = NULL;
    stamps.last = NULL;
    stamps.n_made = stamps.n = stamps.n_kept = 0;
}

const struct device_stamps gpu_stamps = {
    .put = stamps_put,
    .read = stamps_read,
    .time = stamps_time,
};
