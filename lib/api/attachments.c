/* SPDX-License-Identifier: BSD-3-Clause */
/* attachments.c - which rooms keep something on a communicator. */
#include "lib/comm/attachment.h"
#include "lib/run/stream_calls.h"

extern const struct coll__attachment coll__run_attachment;
#if COLL_HAVE_CUDA
extern const struct coll__attachment coll__stream_attachment;
extern const struct coll__stream_calls coll__stream_call_table;
#endif

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
