/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_unsafe.c - which calls a capture forbids, to whom.
 *
 * Each call is made in a capture of its own, by the capturing thread or by another
 * one whose mode is the default.  Two things are expected of each: what it answers,
 * and what the capture is afterwards.
 */
#include "tests/gpu/driver_rules_calls.h"

#include <stdio.h>

/* One call in a capture of its own. */
static void try(const char *name, CUresult (*call)(void *),
                CUstreamCaptureMode mode, int is_elsewhere, CUresult want)
{
    CUstreamCaptureStatus status = 99;
    CUstream s = new_stream();
    CUgraph graph = NULL;
    struct later l;
    char text[120];
    CUresult rc;

    must("cuStreamBeginCapture", cu.StreamBeginCapture(s, mode));
    if (is_elsewhere) {
        later_start(&l, call, NULL);
        rc = later_join(&l);
    } else {
        rc = call(NULL);
    }
    want_code(name, want, rc);
    cu.StreamIsCapturing(s, &status);
    snprintf(text, sizeof(text), "the capture after %s", name);
    want_text(text, want ? "invalidated" : "active",
              status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? "active"
                                                        : "invalidated");
    snprintf(text, sizeof(text), "its end after %s", name);
    want_code(text, want ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS,
              cu.StreamEndCapture(s, &graph));
}

static void try_all(CUstreamCaptureMode mode, int is_elsewhere)
{
    int is_strict =
        mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
        (mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && !is_elsewhere);

    calls_prepare();
    for (size_t i = 0; i < n_rule_calls; i++) {
        const struct rule_call *call = &rule_calls[i];
        int is_refused = call->captured == FORBIDDEN ||
                         (is_strict && call->captured == UNSAFE);

        if (call->captured != NOT_CAPTURED)
            try(call->name, call->call, mode, is_elsewhere,
                is_refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                           : CUDA_SUCCESS);
    }
}

static void global_self(void) { try_all(CU_STREAM_CAPTURE_MODE_GLOBAL, 0); }

static void global_other(void) { try_all(CU_STREAM_CAPTURE_MODE_GLOBAL, 1); }

static void local_self(void)
{
    try_all(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 0);
}

static void local_other(void)
{
    try_all(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1);
}

static void relaxed_self(void) { try_all(CU_STREAM_CAPTURE_MODE_RELAXED, 0); }

#define AREA "unsafe"
#define CITE "DA cuStreamBeginCapture, cuThreadExchangeStreamCaptureMode"
static const struct rule rules[] = {
    {AREA, "global_self", CITE,
     "GLOBAL: unsafe calls of the capturing thread end the capture",
     global_self},
    {AREA, "global_other", CITE,
     "GLOBAL: unsafe calls of any other thread do so too", global_other},
    {AREA, "local_self", CITE,
     "THREAD_LOCAL: unsafe calls of the capturing thread do so", local_self},
    {AREA, "local_other", CITE, "THREAD_LOCAL: another thread is free",
     local_other},
    {AREA, "relaxed_self", CITE, "RELAXED: the capturing thread is free",
     relaxed_self},
};
const struct rule_file rules_unsafe = {rules, ARRAY_LEN(rules), NULL, 0};
