/* SPDX-License-Identifier: BSD-3-Clause */
/* runtime.h - what CUDA's runtime does beneath both libraries. */
#ifndef COLL_TESTS_FAKE_CUDNN_RUNTIME_H
#define COLL_TESTS_FAKE_CUDNN_RUNTIME_H

#include "tests/fake_cuda/foreign.h"

/* Begin a handle: it is the current context's, or, where there is none, the primary
 * context's of device 0, which becomes current.  Its memory is allocated, which a capture
 * may forbid. */
CUresult runtime_begin(const char *entry, CUcontext *ctx);

/* End a handle: wait for all work of its context. */
CUresult runtime_end(CUcontext ctx);

/* Overwrite what nobody may rely on with NaNs. */
void runtime_soil(void *at, size_t len);

#endif
