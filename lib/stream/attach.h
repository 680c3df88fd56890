/* SPDX-License-Identifier: BSD-3-Clause */
/* attach.h - attaches the stream state to a communicator, for lib/api/attachments.c. */
#ifndef COLL_LIB_STREAM_ATTACH_H
#define COLL_LIB_STREAM_ATTACH_H

#include "lib/comm/attachment.h"
#include "lib/run/stream_calls.h"

extern const struct coll__attachment coll__stream_attachment;
extern const struct coll__stream_calls coll__stream_call_table;

#endif
