/* SPDX-License-Identifier: BSD-3-Clause */
/* attach.h - what lib/stream keeps on a communicator and what the other rooms call of
 * it, for lib/api/attachments.c. */
#ifndef COLL_LIB_STREAM_ATTACH_H
#define COLL_LIB_STREAM_ATTACH_H

#include "lib/comm/attachment.h"
#include "lib/run/stream_calls.h"

extern const struct coll__attachment coll__stream_attachment;
extern const struct coll__stream_calls coll__stream_call_table;

#endif
