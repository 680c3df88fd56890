/* SPDX-License-Identifier: BSD-3-Clause */
/* attachments.c - the modules that attach state to a communicator. */
#include "lib/run/run.h"
#include "lib/stream/attach.h"

const struct coll__attachment *const coll__attachments[] = {
    &coll__run_attachment,
#if COLL_HAVE_CUDA
    &coll__stream_attachment,
#endif
    NULL,
};

#if COLL_HAVE_CUDA
const struct coll__stream_calls *const coll__stream_calls =
    &coll__stream_call_table;
#else
const struct coll__stream_calls *const coll__stream_calls = NULL;
#endif
