/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_capture.c - capturing a stream: who may begin, end, join, look. */
#include "tests/gpu/driver_rules.h"

#include <stdlib.h>
#include <sys/wait.h>

#define GLOBAL CU_STREAM_CAPTURE_MODE_GLOBAL
#define LOCAL CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
#define RELAXED CU_STREAM_CAPTURE_MODE_RELAXED

static CUstream capturing(CUstreamCaptureMode mode)
{
    CUstream s = new_stream();

    must("cuStreamBeginCapture", cu.StreamBeginCapture(s, mode));
    return s;
}

/* Take another stream along into the capture of s. */
static void fork_to(CUstream side, CUstream s)
{
    CUevent out = new_event();

    GOOD(cu.EventRecord(out, s));
    GOOD(cu.StreamWaitEvent(side, out, 0));
}

static void begin(void)
{
    CUstream s;
    CUgraph graph = (CUgraph)1;
    size_t n = 99;

    start();
    s = new_stream();
    WANT(STREAM_CAPTURE_UNSUPPORTED, cu.StreamBeginCapture(NULL, GLOBAL));
    WANT(STREAM_CAPTURE_UNSUPPORTED,
         cu.StreamBeginCapture(CU_STREAM_LEGACY, GLOBAL));
    WANT(INVALID_VALUE, cu.StreamBeginCapture(s, 7));
    GOOD(cu.StreamBeginCapture(s, GLOBAL));
    WANT(ILLEGAL_STATE, cu.StreamBeginCapture(s, GLOBAL));
    GOOD(cu.StreamEndCapture(s, &graph));
    GOOD(cu.GraphGetNodes(graph, NULL, &n));
    want_number("nodes of an empty capture", 0, (long long)n);
    WANT(ILLEGAL_STATE, cu.StreamEndCapture(s, &graph));
    GOOD(cu.StreamBeginCapture(CU_STREAM_PER_THREAD, GLOBAL));
    GOOD(cu.StreamEndCapture(CU_STREAM_PER_THREAD, &graph));
}

static CUresult end_it(void *arg)
{
    CUgraph graph;

    return cu.StreamEndCapture(arg, &graph);
}

static CUresult end_elsewhere(CUstream s)
{
    struct later l;

    later_start(&l, end_it, s);
    return later_join(&l);
}

static void end_thread(void)
{
    CUgraph graph;
    CUstream s;

    start();
    s = capturing(GLOBAL);
    want_code("another thread ends a GLOBAL capture",
              CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, end_elsewhere(s));
    /* Documented: SUCCESS; an H100 (driver 580.159) has let the other thread end it. */
    WANT(ILLEGAL_STATE, cu.StreamEndCapture(s, &graph));
    s = capturing(LOCAL);
    want_code("a THREAD_LOCAL one", CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
              end_elsewhere(s));
    WANT(ILLEGAL_STATE, cu.StreamEndCapture(s, &graph));
    s = capturing(RELAXED);
    want_code("a RELAXED one", CUDA_SUCCESS, end_elsewhere(s));
}

static void nothing_runs(void)
{
    struct words w;
    CUgraph graph;
    CUgraphExec exec;
    CUstream s;

    start();
    w = new_words(1);
    s = capturing(GLOBAL);
    GOOD(cu.StreamWriteValue32(s, w.dev, 1, 0));
    want_true("nothing is written", !becomes(w.host, 1, 60));
    GOOD(cu.StreamEndCapture(s, &graph));
    GOOD(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    want_true("nor by instantiating", !becomes(w.host, 1, 60));
    GOOD(cu.GraphLaunch(exec, s));
    goes_on("but by launching", w.host);
}

static CUdeviceptr scratch;

static void after_error(CUstream s)
{
    CUstreamCaptureStatus status = 99;
    CUgraph graph = (CUgraph)1;

    GOOD(cu.StreamIsCapturing(s, &status));
    want_number("status (2 = invalidated)", 2, status);
    WANT(STREAM_CAPTURE_INVALIDATED, cu.MemsetD8Async(scratch, 0, 8, s));
    WANT(STREAM_CAPTURE_INVALIDATED, cu.StreamEndCapture(s, &graph));
    want_true("the graph is NULL", graph == NULL);
    GOOD(cu.StreamIsCapturing(s, &status));
    want_number("status after the end (0 = none)", 0, status);
    GOOD(cu.StreamSynchronize(s));
}

static void synchronize(void)
{
    CUstream s;

    start();
    scratch = new_memory(8);
    s = capturing(RELAXED);
    WANT(STREAM_CAPTURE_UNSUPPORTED, cu.StreamSynchronize(s));
    after_error(s);
    s = capturing(RELAXED);
    WANT(STREAM_CAPTURE_UNSUPPORTED, cu.StreamQuery(s));
    after_error(s);
}

static void captured_event(void)
{
    CUstream s, other;
    CUevent e;

    start();
    other = new_stream();
    e = new_event();
    s = capturing(RELAXED);
    MUST(cu.EventRecord(e, s));
    WANT(CAPTURED_EVENT, cu.EventQuery(e));
    seen_end("the capture ends with", s);
    s = capturing(RELAXED);
    MUST(cu.EventRecord(e, s));
    WANT(CAPTURED_EVENT, cu.EventSynchronize(e));
    seen_end("the capture ends with", s);
    seen_code("a query after the end", cu.EventQuery(e));
    seen_code("a wait after the end", cu.StreamWaitEvent(other, e, 0));
    GOOD(cu.EventRecord(e, other));
    GOOD(cu.EventSynchronize(e));
}

/* The capturing stream is a blocking one, so the legacy stream depends on it. */
static void legacy(void)
{
    CUstreamCaptureStatus status;
    CUdeviceptr at;
    CUgraph graph;
    CUstream s;
    int x = 1;

    start();
    at = new_memory(64);
    MUST(cu.StreamCreate(&s, CU_STREAM_DEFAULT));
    MUST(cu.StreamBeginCapture(s, RELAXED));
    WANT(STREAM_CAPTURE_IMPLICIT, cu.StreamIsCapturing(NULL, &status));
    GOOD(cu.StreamEndCapture(s, &graph));
    MUST(cu.StreamBeginCapture(s, RELAXED));
    WANT(STREAM_CAPTURE_IMPLICIT, cu.MemcpyHtoD(at, &x, 4));
    WANT(STREAM_CAPTURE_INVALIDATED, cu.StreamEndCapture(s, &graph));
    MUST(cu.StreamBeginCapture(s, RELAXED));
    WANT(STREAM_CAPTURE_IMPLICIT, cu.MemsetD8Async(at, 0, 8, NULL));
    WANT(STREAM_CAPTURE_INVALIDATED, cu.StreamEndCapture(s, &graph));
    s = capturing(RELAXED);
    GOOD(cu.StreamIsCapturing(NULL, &status));
    GOOD(cu.MemsetD8Async(at, 0, 8, NULL));
    GOOD(cu.MemcpyHtoD(at, &x, 4));
    GOOD(cu.StreamEndCapture(s, &graph));
}

static void fork_join(void)
{
    CUstreamCaptureStatus status = 0;
    CUstream s, side;
    CUevent back;
    CUgraph graph = NULL;
    CUdeviceptr at;
    size_t n = 0;

    start();
    at = new_memory(64);
    side = new_stream();
    back = new_event();
    s = capturing(GLOBAL);
    fork_to(side, s);
    GOOD(cu.StreamIsCapturing(side, &status));
    want_number("the side stream captures (1 = active)", 1, status);
    GOOD(cu.MemsetD8Async(at, 0, 8, side));
    WANT(STREAM_CAPTURE_UNMATCHED, cu.StreamEndCapture(side, &graph));
    seen_end("the capture itself then ends with", s);
    side = new_stream();
    s = capturing(GLOBAL);
    fork_to(side, s);
    GOOD(cu.MemsetD8Async(at, 0, 8, side));
    GOOD(cu.EventRecord(back, side));
    GOOD(cu.StreamWaitEvent(s, back, 0));
    GOOD(cu.StreamEndCapture(s, &graph));
    GOOD(cu.GraphGetNodes(graph, NULL, &n));
    want_number("nodes: the memset alone", 1, (long long)n);
    GOOD(cu.StreamIsCapturing(side, &status));
    want_number("the side stream is free again", 0, status);
}

static void unjoined(void)
{
    CUstream s, side;
    CUgraph graph;
    CUdeviceptr at;

    start();
    at = new_memory(64);
    side = new_stream();
    s = capturing(GLOBAL);
    fork_to(side, s);
    GOOD(cu.MemsetD8Async(at, 0, 8, side));
    WANT(STREAM_CAPTURE_UNJOINED, cu.StreamEndCapture(s, &graph));
    GOOD(cu.StreamSynchronize(side));
}

static void merge(void)
{
    CUstream a, b;
    CUevent e;

    start();
    e = new_event();
    a = new_stream();
    b = new_stream();
    MUST(cu.StreamBeginCapture(a, GLOBAL));
    MUST(cu.StreamBeginCapture(b, GLOBAL));
    GOOD(cu.EventRecord(e, a));
    WANT(STREAM_CAPTURE_MERGE, cu.StreamWaitEvent(b, e, 0));
    seen_end("the first capture ends with", a);
    seen_end("the second with", b);
}

static void isolation(void)
{
    CUstream other, s;
    CUevent e;
    CUgraph graph;

    start();
    other = new_stream();
    e = new_event();
    MUST(cu.EventRecord(e, other));
    s = capturing(GLOBAL);
    WANT(STREAM_CAPTURE_ISOLATION, cu.StreamWaitEvent(s, e, 0));
    seen_end("the capture ends with", s);
    s = capturing(GLOBAL);
    GOOD(cu.StreamWaitEvent(s, e, CU_EVENT_WAIT_EXTERNAL));
    GOOD(cu.EventRecord(e, other));
    GOOD(cu.StreamEndCapture(s, &graph));
    e = new_event();
    s = capturing(GLOBAL);
    seen_code("waiting for an event never recorded",
              cu.StreamWaitEvent(s, e, 0));
    seen_end("the capture ends with", s);
}

static CUresult swap_and_alloc(void *arg)
{
    CUstreamCaptureMode mode = RELAXED;
    CUdeviceptr at;
    CUresult rc;

    (void)arg;
    rc = cu.ThreadExchangeStreamCaptureMode(&mode);
    if (rc == CUDA_SUCCESS && mode != GLOBAL)
        return CUDA_ERROR_UNKNOWN;
    return rc == CUDA_SUCCESS ? cu.MemAlloc(&at, 4096) : rc;
}

static void exchange(void)
{
    CUstreamCaptureMode mode = RELAXED;
    CUgraph graph;
    CUdeviceptr at;
    struct later l;
    CUstream s;

    start();
    s = capturing(GLOBAL);
    later_start(&l, swap_and_alloc, NULL);
    want_code("a RELAXED thread allocates beside a GLOBAL capture",
              CUDA_SUCCESS, later_join(&l));
    GOOD(cu.ThreadExchangeStreamCaptureMode(&mode));
    want_number("a thread's mode is GLOBAL at first", GLOBAL, mode);
    GOOD(cu.MemAlloc(&at, 4096));
    GOOD(cu.ThreadExchangeStreamCaptureMode(&mode));
    want_number("what was set comes back", RELAXED, mode);
    GOOD(cu.StreamEndCapture(s, &graph));
    mode = 9;
    /* Documented: INVALID_VALUE; an H100 (driver 580.159) takes it. */
    GOOD(cu.ThreadExchangeStreamCaptureMode(&mode));
}

static void info(void)
{
    CUstreamCaptureStatus status = 9;
    cuuint64_t first = 0, second = 0;
    CUdeviceptr at;
    CUgraph graph;
    CUstream s;
    size_t n = 0;

    start();
    at = new_memory(64);
    s = new_stream();
    GOOD(cu.StreamGetCaptureInfo(s, &status, NULL, NULL, NULL, NULL, NULL));
    want_number("status before (0 = none)", 0, status);
    MUST(cu.StreamBeginCapture(s, GLOBAL));
    GOOD(cu.StreamGetCaptureInfo(s, &status, &first, NULL, NULL, NULL, NULL));
    want_number("status (1 = active)", 1, status);
    MUST(cu.MemsetD8Async(at, 0, 4, s));
    GOOD(cu.StreamGetCaptureInfo(s, &status, NULL, &graph, NULL, NULL, &n));
    want_number("the next call depends on", 1, (long long)n);
    cu.StreamEndCapture(s, &graph);
    MUST(cu.StreamBeginCapture(s, GLOBAL));
    GOOD(cu.StreamGetCaptureInfo(s, &status, &second, NULL, NULL, NULL, NULL));
    want_true("each capture has an id of its own", first != second && first);
}

static void host_fn(void *arg) { (void)arg; }

static void callback(CUstream s, CUresult status, void *arg)
{
    (void)s;
    (void)status;
    (void)arg;
}

static void pieces(void)
{
    CUdeviceptr at, pool = 0;
    CUgraph graph;
    CUstream s;
    size_t n = 0;
    int x = 1;

    start();
    at = new_memory(64);
    s = capturing(GLOBAL);
    GOOD(cu.MemcpyHtoDAsync(at, &x, 4, s));
    GOOD(cu.MemcpyDtoHAsync(&x, at, 4, s));
    GOOD(cu.MemcpyDtoDAsync(at, at + 32, 4, s));
    GOOD(cu.LaunchHostFunc(s, host_fn, NULL));
    GOOD(cu.MemAllocAsync(&pool, 4096, s));
    GOOD(cu.MemFreeAsync(pool, s));
    GOOD(cu.StreamWaitValue32(s, at, 1, CU_STREAM_WAIT_VALUE_GEQ));
    GOOD(cu.StreamWriteValue32(s, at, 1, 0));
    GOOD(cu.StreamEndCapture(s, &graph));
    GOOD(cu.GraphGetNodes(graph, NULL, &n));
    want_number("each is a node", 8, (long long)n);
    s = capturing(GLOBAL);
    WANT(STREAM_CAPTURE_UNSUPPORTED,
         cu.StreamAddCallback(s, callback, NULL, 0));
    WANT(STREAM_CAPTURE_INVALIDATED, cu.StreamEndCapture(s, &graph));
}

static void part_garbage(int talk)
{
    CUstreamCaptureStatus status;
    long words[64] = {0};

    start();
    tell_word(talk, (int)cu.StreamIsCapturing((CUstream)words, &status));
}

static void garbage(void)
{
    struct part_run run = part_start("garbage", NULL);
    int status = part_end(&run);

    seen("cuStreamIsCapturing of what is no stream",
         WIFSIGNALED(status) ? "ended by signal %d" : "returned, %d",
         WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    want_true("the process ends", status != -1);
}

#define AREA "capture"
static const struct rule rules[] = {
    {AREA, "begin", "DA cuStreamBeginCapture, cuStreamEndCapture",
     "which streams can be captured, and when", begin},
    {AREA, "end_thread", "DA cuStreamEndCapture",
     "the thread that began must end it, unless it is RELAXED", end_thread},
    {AREA, "nothing_runs", "PG 'Stream Capture'",
     "what is captured is not done", nothing_runs},
    {AREA, "synchronize", "PG 'Prohibited and Unhandled Operations'",
     "waiting for a capturing stream ends the capture", synchronize},
    {AREA, "captured_event", "PG 'Prohibited and Unhandled Operations'",
     "a captured event cannot be waited for by the host", captured_event},
    {AREA, "legacy", "PG 'Prohibited and Unhandled Operations'",
     "a blocking stream's capture forbids the legacy stream", legacy},
    {AREA, "fork_join", "PG 'Cross-stream Dependencies and Events'",
     "an event takes another stream along, another one back", fork_join},
    {AREA, "unjoined", "DA cuStreamEndCapture",
     "what was forked must be joined", unjoined},
    {AREA, "merge", "PG 'Prohibited and Unhandled Operations'",
     "two captures cannot be merged", merge},
    {AREA, "isolation", "DA cuStreamWaitEvent",
     "an event from outside is waited for as external alone", isolation},
    {AREA, "exchange", "DA cuThreadExchangeStreamCaptureMode",
     "a thread may relax its own mode", exchange},
    {AREA, "info", "DA cuStreamGetCaptureInfo",
     "a capture can be asked about and has an id", info},
    {AREA, "garbage", "no documentation; lupine 441",
     "a wrong handle may crash the process", garbage},
    {AREA, "pieces", "PG 'Stream Capture'",
     "copies, functions, memory and memory operations become nodes", pieces},
};
static const struct part parts[] = {{"garbage", part_garbage}};
const struct rule_file rules_capture = {rules, ARRAY_LEN(rules), parts,
                                        ARRAY_LEN(parts)};
