/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ops.c - the table of what streams do. */
#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_plan_host.h"
#include "lib/device/cuda_stream.h"

/* If it is unknown, the stream counts as captured. */
static int is_captured(void *stream)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    CUstreamCaptureStatus capture;

    return !cuda || cuda->cuStreamIsCapturing(stream, &capture) ||
           capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

const struct coll__stream_ops coll__cuda_streams = {
    .enqueue = coll__cuda_enqueue,
    .write_flag = coll__cuda_write_flag,
    .wait_bits = coll__cuda_wait_bits,
    .write_two = coll__cuda_write_two,
    .wait_two = coll__cuda_wait_two,
    .is_captured = is_captured,
    .load = coll__cuda_load_plan,
    .launch = coll__cuda_launch_plan,
    .unload = coll__cuda_unload,
    .taken = coll__cuda_taken,
};
