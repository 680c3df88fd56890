/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_graph.c - launching a captured graph again and again. */
#include "tests/gpu/driver_rules.h"

#include <stdlib.h>
#include <string.h>

static CUstream capturing(void)
{
    CUstream s = new_stream();

    must("cuStreamBeginCapture",
         cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    return s;
}

static CUgraphExec finish(CUstream s, CUgraph *graph)
{
    CUgraphExec exec = NULL;

    must("cuStreamEndCapture", cu.StreamEndCapture(s, graph));
    must("cuGraphInstantiate", cu.GraphInstantiateWithFlags(&exec, *graph, 0));
    return exec;
}

/* What a collective's plan comes to: wait for a flag, take it down, work, answer. */
static void replay_1000(void)
{
    CUfunction add_one;
    CUdeviceptr count;
    struct words w;
    CUgraphExec exec;
    CUgraph graph;
    CUstream s;
    uint32_t n = 0;
    int late = 0;

    start();
    add_one = gpu_kernel("add_one");
    w = new_words(2);
    count = new_memory(64);
    MUST(cu.MemsetD8Async(count, 0, 64, NULL));
    MUST(cu.CtxSynchronize());
    s = capturing();
    MUST(cu.StreamWaitValue32(s, w.dev, 1, CU_STREAM_WAIT_VALUE_EQ));
    MUST(cu.StreamWriteValue32(s, w.dev, 0, 0));
    MUST(gpu_launch(add_one, 1, 1, s, (void *[]){&count}));
    MUST(cu.StreamWriteValue32(s, w.dev + 4, 1, 0));
    exec = finish(s, &graph);
    for (int i = 0; i < 1000; i++) {
        MUST(cu.GraphLaunch(exec, s));
        w.host[0] = 1;
        late += !becomes(w.host + 1, 1, 2000);
        w.host[1] = 0;
    }
    GOOD(cu.StreamSynchronize(s));
    MUST(cu.MemcpyDtoH(&n, count, 4));
    want_number("the kernel ran", 1000, n);
    want_number("answers that did not come", 0, late);
}

static void ordered(void)
{
    struct words w;
    CUgraphExec exec;
    CUstream a, b;
    CUgraph graph;

    start();
    w = new_words(2);
    a = capturing();
    MUST(cu.StreamWaitValue32(a, w.dev, 1, CU_STREAM_WAIT_VALUE_EQ));
    MUST(cu.StreamWriteValue32(a, w.dev, 0, 0));
    MUST(cu.StreamWriteValue32(a, w.dev + 4, 1, 0));
    exec = finish(a, &graph);
    b = new_stream();
    GOOD(cu.GraphLaunch(exec, a));
    GOOD(cu.GraphLaunch(exec, b));
    w.host[0] = 1;
    want_true("the first launch is done", becomes(w.host + 1, 1, 2000));
    GOOD(cu.StreamSynchronize(a));
    w.host[1] = 0;
    WANT(NOT_READY, cu.StreamQuery(b));
    w.host[0] = 1;
    want_true("the second, in another stream, after it",
              becomes(w.host + 1, 1, 2000));
    GOOD(cu.StreamSynchronize(b));
}

static void baked(void)
{
    CUfunction store;
    CUdeviceptr at;
    uint32_t value = 5, got = 0;
    CUgraphExec exec;
    CUgraph graph;
    CUstream s;

    start();
    store = gpu_kernel("store");
    at = new_memory(64);
    s = capturing();
    MUST(gpu_launch(store, 1, 1, s, (void *[]){&at, &value}));
    value = 6;
    exec = finish(s, &graph);
    value = 7;
    GOOD(cu.GraphLaunch(exec, s));
    GOOD(cu.StreamSynchronize(s));
    MUST(cu.MemcpyDtoH(&got, at, 4));
    want_number("the value at the time of the capture", 5, got);
}

static void memop_nodes(void)
{
    CUDA_BATCH_MEM_OP_NODE_PARAMS params;
    CUstreamBatchMemOpParams ops[2] = {0}, batch[2];
    CUgraphNode nodes[4];
    CUgraphNodeType type = 0;
    CUgraphExec exec;
    CUgraph graph;
    CUstream s;
    struct words w;
    size_t n = 4;

    start();
    w = new_words(4);
    s = capturing();
    memset(batch, 0, sizeof(batch));
    for (unsigned i = 0; i < 2; i++) {
        batch[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        batch[i].writeValue.address = w.dev + 4 * i;
        batch[i].writeValue.value = 3;
    }
    GOOD(cu.StreamBatchMemOp(s, 2, batch, 0));
    GOOD(cu.StreamWriteValue32(s, w.dev + 8, 1, 0));
    exec = finish(s, &graph);
    MUST(cu.GraphGetNodes(graph, nodes, &n));
    want_number("a node a call, not an operation", 2, (long long)n);
    GOOD(cu.GraphNodeGetType(nodes[0], &type));
    want_number("their type", CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, type);
    MUST(cu.GraphBatchMemOpNodeGetParams(nodes[0], &params));
    want_number("operations of the first node", 2, params.count);
    memcpy(ops, params.paramArray, sizeof(ops));
    ops[0].writeValue.value = 9;
    params.paramArray = ops;
    GOOD(cu.GraphExecBatchMemOpNodeSetParams(exec, nodes[0], &params));
    GOOD(cu.GraphLaunch(exec, s));
    GOOD(cu.StreamSynchronize(s));
    want_number("the value set afterwards is written", 9, w.host[0]);
    ops[0].writeValue.address = w.dev + 12;
    GOOD(cu.GraphExecBatchMemOpNodeSetParams(exec, nodes[0], &params));
    params.count = 1;
    WANT(INVALID_VALUE,
         cu.GraphExecBatchMemOpNodeSetParams(exec, nodes[0], &params));
    params.count = 2;
    ops[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[0].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    WANT(INVALID_VALUE,
         cu.GraphExecBatchMemOpNodeSetParams(exec, nodes[0], &params));
    GOOD(cu.GraphLaunch(exec, s));
    GOOD(cu.StreamSynchronize(s));
    want_number("the address set afterwards is written", 9, w.host[3]);
}

static CUgraph of_sets(CUdeviceptr at, int n)
{
    CUstream s = capturing();
    CUgraph graph = NULL;

    for (int i = 0; i < n; i++)
        must("cuMemsetD8Async", cu.MemsetD8Async(at, 1, 8, s));
    must("cuStreamEndCapture", cu.StreamEndCapture(s, &graph));
    return graph;
}

static void update(void)
{
    CUgraphExecUpdateResultInfo why;
    CUgraphExec exec;
    CUdeviceptr at;
    CUgraph one;

    start();
    at = new_memory(64);
    one = of_sets(at, 1);
    MUST(cu.GraphInstantiateWithFlags(&exec, one, 0));
    GOOD(cu.GraphExecUpdate(exec, of_sets(at + 8, 1), &why));
    WANT(GRAPH_EXEC_UPDATE_FAILURE,
         cu.GraphExecUpdate(exec, of_sets(at, 2), &why));
    want_number("why (2 = topology changed)", 2, why.result);
    GOOD(cu.GraphLaunch(exec, NULL));
    GOOD(cu.CtxSynchronize());
}

static atomic_int gone;
static CUresult in_destructor;
static pthread_t destructor_thread;

static void destructor(void *arg)
{
    (void)arg;
    destructor_thread = pthread_self();
    in_destructor = cu.StreamQuery(NULL);
    atomic_fetch_add(&gone, 1);
}

static int gone_within(int ms)
{
    for (int i = 0; i < ms && !atomic_load(&gone); i++)
        rest(1);
    return atomic_load(&gone);
}

static void user_object(void)
{
    CUuserObject object;
    CUgraphExec exec;
    struct gate gate;
    CUgraph graph;
    CUstream s;

    start();
    s = new_stream();
    graph = of_sets(new_memory(64), 1);
    WANT(INVALID_VALUE, cu.UserObjectCreate(&object, NULL, destructor, 1, 0));
    GOOD(cu.UserObjectCreate(&object, &gone, destructor, 1,
                             CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    GOOD(cu.GraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    MUST(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    GOOD(cu.GraphDestroy(graph));
    want_number("kept by the executable", 0, gone_within(100));
    gate = gate_shut(s);
    GOOD(cu.GraphLaunch(exec, s));
    GOOD(cu.GraphExecDestroy(exec));
    want_number("kept by its last launch", 0, gone_within(100));
    gate_open(&gate);
    GOOD(cu.StreamSynchronize(s));
    want_number("then destroyed", 1, gone_within(2000));
    seen("its destructor ran in the destroying thread", "%d",
         pthread_equal(destructor_thread, pthread_self()) != 0);
    seen("cuStreamQuery in the destructor", "%s", gpu_code(in_destructor));
}

static void destroy_running(void)
{
    struct words w;
    CUgraphExec exec;
    CUgraph graph;
    CUstream s;
    double began;

    start();
    w = new_words(2);
    s = capturing();
    MUST(cu.StreamWaitValue32(s, w.dev, 1, CU_STREAM_WAIT_VALUE_EQ));
    MUST(cu.StreamWriteValue32(s, w.dev + 4, 1, 0));
    exec = finish(s, &graph);
    GOOD(cu.GraphLaunch(exec, s));
    began = gpu_now();
    GOOD(cu.GraphExecDestroy(exec));
    GOOD(cu.GraphDestroy(graph));
    want_true("both return at once", gpu_now() - began < 0.2);
    w.host[0] = 1;
    want_true("the launch is finished all the same",
              becomes(w.host + 1, 1, 2000));
}

static void in_capture(void)
{
    struct words w;
    CUgraphExec inner;
    CUgraph graph;
    CUstream s;

    start();
    w = new_words(2);
    s = capturing();
    MUST(cu.StreamWriteValue32(s, w.dev, 1, 0));
    inner = finish(s, &graph);
    s = capturing();
    /* Documented: SUCCESS, and a child graph; an H100 (driver 580.159) refuses it. */
    WANT(STREAM_CAPTURE_UNSUPPORTED, cu.GraphLaunch(inner, s));
    want_code("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
              cu.StreamEndCapture(s, &graph));
}

/* What a program does to know when the parts of a graph begin and end. */
static void timed_records(void)
{
    CUgraphExec exec;
    CUevent e[2];
    struct words w;
    CUgraph graph;
    CUstream s;
    float ms = -1;

    start();
    w = new_words(1);
    for (int i = 0; i < 2; i++)
        MUST(cu.EventCreate(&e[i], CU_EVENT_DEFAULT));
    s = new_stream();
    REFUSED(cu.EventRecordWithFlags(e[0], s, CU_EVENT_RECORD_EXTERNAL));
    s = capturing();
    GOOD(cu.EventRecordWithFlags(e[0], s, CU_EVENT_RECORD_EXTERNAL));
    MUST(cu.StreamWaitValue32(s, w.dev, 1, CU_STREAM_WAIT_VALUE_EQ));
    GOOD(cu.EventRecordWithFlags(e[1], s, CU_EVENT_RECORD_EXTERNAL));
    exec = finish(s, &graph);
    for (int i = 0; i < 2; i++) {
        w.host[0] = 0;
        GOOD(cu.GraphLaunch(exec, s));
        GOOD(cu.EventSynchronize(e[0]));
        WANT(NOT_READY, cu.EventElapsedTime(&ms, e[0], e[1]));
        w.host[0] = 1;
        GOOD(cu.StreamSynchronize(s));
        GOOD(cu.EventElapsedTime(&ms, e[0], e[1]));
        want_number("times below 0", 0, ms < 0);
    }
}

#define AREA "graph"
static const struct rule rules[] = {
    {AREA, "replay_1000", "PG 'CUDA Graphs'; DA cuGraphAddBatchMemOpNode",
     "waits, writes and kernels are replayed 1,000 times", replay_1000},
    {AREA, "ordered", "DA cuGraphLaunch",
     "launches of one executable follow each other, whatever the stream",
     ordered},
    {AREA, "baked", "PG 'Stream Capture'",
     "kernel arguments are those of the capture", baked},
    {AREA, "memop_nodes", "DA cuGraphExecBatchMemOpNodeSetParams",
     "values and addresses can be set afterwards, nothing else", memop_nodes},
    {AREA, "update", "DA cuGraphExecUpdate",
     "an executable takes a graph of its own shape", update},
    {AREA, "user_object", "DA cuUserObjectCreate",
     "what a graph holds lives as long as its executable runs", user_object},
    {AREA, "destroy_running", "DA cuGraphExecDestroy",
     "a running executable can be destroyed", destroy_running},
    {AREA, "in_capture", "DA cuGraphLaunch", "a launch cannot be captured",
     in_capture},
    {AREA, "timed_records", "DA cuEventRecordWithFlags",
     "a graph records external events anew at each launch, with their times",
     timed_records},
};
const struct rule_file rules_graph = {rules, ARRAY_LEN(rules), NULL, 0};
