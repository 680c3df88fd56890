/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_stream.c - the order of streams, events, functions of the host. */
#include "tests/gpu/driver_rules.h"

#include <stdlib.h>

static void null_handles(void)
{
    struct words w;

    start();
    w = new_words(3);
    GOOD(cu.StreamWriteValue32(NULL, w.dev, 1, 0));
    GOOD(cu.StreamWriteValue32(CU_STREAM_LEGACY, w.dev + 4, 1, 0));
    GOOD(cu.StreamWriteValue32(CU_STREAM_PER_THREAD, w.dev + 8, 1, 0));
    GOOD(cu.StreamSynchronize(NULL));
    GOOD(cu.StreamSynchronize(CU_STREAM_LEGACY));
    GOOD(cu.StreamSynchronize(CU_STREAM_PER_THREAD));
    want_true("all three wrote", w.host[0] && w.host[1] && w.host[2]);
}

static CUstream blocking_stream(void)
{
    CUstream s = NULL;

    MUST(cu.StreamCreate(&s, CU_STREAM_DEFAULT));
    return s;
}

static void legacy_waits(void)
{
    struct held h;

    start();
    h = hold(blocking_stream(), NULL, new_stream());
    goes_on("a non-blocking stream goes on", h.words.host + 1);
    stands("the legacy stream stands", h.words.host);
    WANT(NOT_READY, cu.StreamQuery(NULL));
    gate_open(&h.gate);
    goes_on("until the blocking one has gone on", h.words.host);
}

static void legacy_holds(void)
{
    struct held h;

    start();
    h = hold(NULL, blocking_stream(), new_stream());
    goes_on("a non-blocking stream goes on", h.words.host + 1);
    stands("a blocking stream stands", h.words.host);
    gate_open(&h.gate);
    goes_on("until the legacy one has gone on", h.words.host);
}

static void wait_event(void)
{
    CUstream a, b, c;
    struct words w;
    struct gate first, second;
    CUevent e, never;

    start();
    a = new_stream();
    b = new_stream();
    c = new_stream();
    w = new_words(2);
    e = new_event();
    never = new_event();
    first = gate_shut(a);
    GOOD(cu.EventRecord(e, a));
    GOOD(cu.StreamWaitEvent(b, e, 0));
    GOOD(cu.StreamWriteValue32(b, w.dev, 1, 0));
    second = gate_shut(a);
    GOOD(cu.EventRecord(e, a));
    stands("b stands", w.host);
    gate_open(&first);
    goes_on("b waits for the first record alone", w.host);
    WANT(NOT_READY, cu.EventQuery(e));
    gate_open(&second);
    GOOD(cu.EventSynchronize(e));
    GOOD(cu.EventQuery(never));
    GOOD(cu.EventSynchronize(never));
    GOOD(cu.StreamWaitEvent(c, never, 0));
    GOOD(cu.StreamWriteValue32(c, w.dev + 4, 1, 0));
    goes_on("one never recorded holds nobody", w.host + 1);
    WANT(INVALID_VALUE, cu.StreamWaitEvent(c, e, 8));
    REFUSED(cu.StreamWaitEvent(c, e, CU_EVENT_WAIT_EXTERNAL));
}

static void elapsed(void)
{
    CUevent plain[2], timed[3];
    struct gate gate;
    CUstream s;
    float ms;

    start();
    s = new_stream();
    for (int i = 0; i < 2; i++) {
        plain[i] = new_event();
        MUST(cu.EventRecord(plain[i], s));
    }
    for (int i = 0; i < 3; i++)
        MUST(cu.EventCreate(&timed[i], CU_EVENT_DEFAULT));
    MUST(cu.EventRecord(timed[0], s));
    gate = gate_shut(s);
    MUST(cu.EventRecord(timed[1], s));
    WANT(NOT_READY, cu.EventElapsedTime(&ms, timed[0], timed[1]));
    WANT(INVALID_HANDLE, cu.EventElapsedTime(&ms, plain[0], plain[1]));
    WANT(INVALID_HANDLE, cu.EventElapsedTime(&ms, timed[0], timed[2]));
    gate_open(&gate);
    GOOD(cu.StreamSynchronize(s));
    GOOD(cu.EventElapsedTime(&ms, timed[0], timed[1]));
}

static void flags(void)
{
    CUstream s;
    CUevent e;

    start();
    WANT(INVALID_VALUE, cu.StreamCreate(&s, 64));
    WANT(INVALID_VALUE, cu.EventCreate(&e, 64));
    WANT(INVALID_VALUE, cu.EventCreate(&e, CU_EVENT_INTERPROCESS));
    GOOD(cu.EventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
}

static void destroy_busy(void)
{
    struct words w;
    struct gate gate;
    CUstream s;
    CUevent e;
    double began;

    start();
    w = new_words(1);
    s = new_stream();
    e = new_event();
    gate = gate_shut(s);
    MUST(cu.StreamWriteValue32(s, w.dev, 1, 0));
    MUST(cu.EventRecord(e, s));
    began = gpu_now();
    GOOD(cu.EventDestroy(e));
    GOOD(cu.StreamDestroy(s));
    want_true("both return at once", gpu_now() - began < 0.2);
    want_true("the stream's work still waits", !becomes(w.host, 1, 100));
    gate_open(&gate);
    goes_on("and is done after all", w.host);
}

struct fn {
    atomic_int calls;
    CUresult rc;
    volatile int *hold;
    double at;
};

static void host_fn(void *arg)
{
    struct fn *fn = arg;

    fn->at = gpu_now();
    if (fn->hold)
        while (!*fn->hold)
            rest(1);
    fn->rc = cu.StreamQuery(NULL);
    atomic_fetch_add(&fn->calls, 1);
}

static int called(struct fn *fn, int ms)
{
    for (int i = 0; i < ms && !atomic_load(&fn->calls); i++)
        rest(1);
    return atomic_load(&fn->calls);
}

static void host_function(void)
{
    struct fn fn = {0};
    struct words w;
    CUstream s;

    start();
    s = new_stream();
    w = new_words(1);
    GOOD(cu.LaunchHostFunc(s, host_fn, &fn));
    GOOD(cu.StreamWriteValue32(s, w.dev, 1, 0));
    want_true("it is called", called(&fn, 2000));
    seen("cuStreamQuery inside it", "%s", gpu_code(fn.rc));
    goes_on("the stream goes on after it", w.host);
}

static void host_functions_queue(void)
{
    volatile int go = 0;
    struct fn first = {.hold = &go}, second = {0};
    struct words w;
    CUstream a, b, c;
    int beside;

    start();
    a = new_stream();
    b = new_stream();
    c = new_stream();
    w = new_words(1);
    GOOD(cu.LaunchHostFunc(a, host_fn, &first));
    rest(50);
    GOOD(cu.LaunchHostFunc(b, host_fn, &second));
    GOOD(cu.StreamWriteValue32(c, w.dev, 1, 0));
    goes_on("a third stream goes on", w.host);
    beside = called(&second, 300);
    want_text("a second stream's function while the first one's runs", "waits",
              beside ? "is called" : "waits");
    go = 1;
    want_true("both are called", called(&first, 2000) && called(&second, 2000));
}

static void streams_are_apart(void)
{
    CUstream a, b;
    struct held h;

    start();
    a = new_stream();
    b = new_stream();
    h = hold(a, a, b);
    goes_on("b goes on while a waits", h.words.host + 1);
    WANT(NOT_READY, cu.StreamQuery(a));
    GOOD(cu.StreamQuery(b));
    stands("a stands", h.words.host);
    gate_open(&h.gate);
    goes_on("then goes on", h.words.host);
}

#define AREA "stream"
static const struct rule rules[] = {
    {AREA, "null_handles", "DA 'Stream synchronization behavior'",
     "NULL, 1 and 2 name the legacy and the thread's stream", null_handles},
    {AREA, "legacy_waits", "DA 'Stream synchronization behavior'",
     "the legacy stream waits for blocking streams", legacy_waits},
    {AREA, "legacy_holds", "DA 'Stream synchronization behavior'",
     "blocking streams wait for the legacy stream, others do not",
     legacy_holds},
    {AREA, "wait_event", "DA cuStreamWaitEvent",
     "waiting is for the last record at the time of the call", wait_event},
    {AREA, "elapsed", "DA cuEventElapsedTime",
     "time is known of timed events that have passed", elapsed},
    {AREA, "flags", "DA cuStreamCreate, cuEventCreate",
     "unknown flags, and an interprocess event with timing, are refused",
     flags},
    {AREA, "destroy_busy", "DA cuStreamDestroy, cuEventDestroy",
     "destroying what is busy returns at once, and the work is done",
     destroy_busy},
    {AREA, "host_function", "DA cuLaunchHostFunc",
     "a function of the host is called in its turn", host_function},
    {AREA, "host_functions_queue", "DA cuLaunchHostFunc",
     "functions of different streams are called one after the other",
     host_functions_queue},
    {AREA, "streams_are_apart", "PG 'Streams'",
     "a stream that waits holds no other one of few", streams_are_apart},
};
const struct rule_file rules_stream = {rules, ARRAY_LEN(rules), NULL, 0};
