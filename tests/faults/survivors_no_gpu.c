/* SPDX-License-Identifier: BSD-3-Clause */
/* survivors_no_gpu.c - a build without CUDA has no cases on GPUs. */
#include "tests/faults/survivors.h"

#include <stddef.h>

int survivors_have_gpus(void) { return 0; }

struct survivors_gpu *survivors_gpu_open(int number)
{
    (void)number;
    return NULL;
}

int survivors_gpu_call(struct survivors_gpu *gpu, const struct coll_args *args,
                       size_t in_len, size_t out_len, struct coll_comm *comm)
{
    (void)gpu, (void)args, (void)in_len, (void)out_len, (void)comm;
    return COLL_ERR_UNSUPPORTED;
}
