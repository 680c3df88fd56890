/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_queue.c - what stands still when a stream stands still.
 *
 * A plan on a stream waits for other ranks.  Which calls of the host then do not come
 * back, how much can be enqueued behind a wait, how many streams may wait, and
 * whether a process can end meanwhile, decides what the engine may do.
 */
#include "tests/gpu/driver_rules_calls.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static void part_exporter(int talk)
{
    CUipcMemHandle handle;

    start();
    MUST(cu.IpcGetMemHandle(&handle, new_memory(1 << 20)));
    tell(talk, &handle, sizeof(handle));
    hear_word(talk);
}

static void prepare(void)
{
    struct part_run run = part_start("exporter", NULL);

    hear(run.talk, &on.handle, sizeof(on.handle));
    calls_prepare();
    if (!gpu_kernel("await"))
        cannot("the driver does not compile the kernels");
}

/* The call while on.work stands at the gate. */
static void try(const struct rule_call *call, struct gate *gate)
{
    want_text(call->name, call->behind == BLOCKS ? "blocks" : "returns",
              returns_or_blocks(call->call, NULL, gate));
    gate_open(gate);
    cu.StreamSynchronize(on.work);
}

static void behind_memop(void)
{
    prepare();
    for (size_t i = 0; i < n_rule_calls; i++) {
        struct gate gate;

        if (rule_calls[i].behind == NOT_BEHIND)
            continue;
        gate = gate_shut(on.work);
        try(&rule_calls[i], &gate);
    }
}

/* The same behind a kernel that polls a flag, for 2 seconds at most. */
static void behind_kernel(void)
{
    unsigned long long limit = 2000000000;
    unsigned value = 1;
    CUfunction f;

    prepare();
    f = gpu_kernel("await");
    for (size_t i = 0; i < n_rule_calls; i++) {
        struct gate gate = {new_words(2)};
        CUdeviceptr met = gate.word.dev + 4;
        void *args[] = {&gate.word.dev, &value, &limit, &met};

        if (rule_calls[i].behind == NOT_BEHIND)
            continue;
        MUST(gpu_launch(f, 1, 1, on.work, args));
        try(&rule_calls[i], &gate);
    }
}

static CUresult copy_out(void *stream)
{
    static int pageable;

    return cu.MemcpyDtoHAsync(&pageable, on.mem[3], sizeof(pageable), stream);
}

/* The same in other streams, while a thread is in a copy to pageable memory that waits. */
static void beside_copy(void)
{
    CUstream s;

    prepare();
    s = new_stream();
    for (size_t i = 0; i < n_rule_calls; i++) {
        struct gate gate = gate_shut(s);
        struct later copy;

        later_start(&copy, copy_out, s);
        want_true("the copy waits", !later_done(&copy, 30));
        want_text(rule_calls[i].name,
                  rule_calls[i].beside == BLOCKS ? "blocks" : "returns",
                  returns_or_blocks(rule_calls[i].call, NULL, &gate));
        gate_open(&gate);
        want_code("the copy", CUDA_SUCCESS, later_join(&copy));
        cu.StreamSynchronize(on.work);
    }
}

/* How many calls fit behind a wait until one does not come back? */
struct fill {
    int kind;
    atomic_int n;
    int max;
    struct words w;
    void *args[1];
    CUfunction add_one;
};

static CUresult fill_one(struct fill *f)
{
    CUstreamBatchMemOpParams ops[2] = {0};

    switch (f->kind) {
    case 0:
        return cu.StreamWriteValue32(on.work, f->w.dev, 1, 0);
    case 1:
        return cu.MemcpyDtoDAsync(on.mem[1], on.mem[2], 8, on.work);
    case 2:
        return gpu_launch(f->add_one, 1, 1, on.work, f->args);
    case 3:
        return cu.GraphLaunch(on.exec, on.work);
    case 4:
        return cu.EventRecord(on.event, on.work);
    }
    for (int i = 0; i < 2; i++) {
        ops[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        ops[i].writeValue.address = f->w.dev;
        ops[i].writeValue.value = 1;
    }
    return cu.StreamBatchMemOp(on.work, 2, ops, 0);
}

static CUresult fill_all(void *arg)
{
    struct fill *f = arg;
    CUresult rc = CUDA_SUCCESS;

    while (rc == CUDA_SUCCESS && atomic_load(&f->n) < f->max) {
        rc = fill_one(f);
        atomic_fetch_add(&f->n, 1);
    }
    return rc;
}

static void depth(void)
{
    static const char *const names[] = {
        "cuStreamWriteValue32", "cuMemcpyDtoDAsync",
        "cuLaunchKernel",       "cuGraphLaunch of one node",
        "cuEventRecord",        "cuStreamBatchMemOp of 2"};

    prepare();
    for (int kind = 0; kind < (int)ARRAY_LEN(names); kind++) {
        struct fill f = {.kind = kind, .max = 20000};
        struct gate gate = gate_shut(on.work);
        struct later l;
        int last = -1, n;

        f.w = new_words(1);
        f.add_one = gpu_kernel("add_one");
        f.args[0] = &on.mem[3];
        later_start(&l, fill_all, &f);
        while (!later_done(&l, 300) && (n = atomic_load(&f.n)) != last)
            last = n;
        n = atomic_load(&f.n);
        seen(names[kind], n == f.max ? "%d and more fit" : "%d fit", n);
        want_true("at least 500 calls fit", n >= 500);
        gate_open(&gate);
        want_code("the last call", CUDA_SUCCESS, later_join(&l));
        GOOD(cu.StreamSynchronize(on.work));
    }
}

/* Streams that wait, one more each time, until a fresh one does not go on. */
static void part_many(int talk)
{
    enum { MOST = 200 };
    struct gate gates[MOST];
    CUstream streams[MOST];
    struct words w;
    int n, left = 0;

    start();
    w = new_words(MOST);
    for (n = 0; n < MOST; n++)
        streams[n] = new_stream();
    for (n = 0; n < MOST; n++) {
        MUST(cu.StreamWriteValue32(streams[n], w.dev + 4 * (unsigned)n, 1, 0));
        if (!becomes(w.host + n, 1, 300))
            break;
        gates[n] = gate_shut(streams[n]);
    }
    tell_word(talk, n);
    for (int i = 0; i < n; i++)
        gate_open(&gates[i]);
    GOOD(cu.CtxSynchronize());
    for (int i = 0; i <= n && i < MOST; i++)
        left += !w.host[i];
    want_number("streams that never went on", 0, left);
}

static void many_wait(void)
{
    static const char *const connections[] = {"", "1", "2", "8", "32"};

    for (size_t i = 0; i < ARRAY_LEN(connections); i++) {
        struct part_how how = {.setenv = "CUDA_DEVICE_MAX_CONNECTIONS",
                               .value = connections[i]};
        struct part_run run = part_start("many", i ? &how : NULL);
        char text[100];
        int n = hear_word(run.talk);

        snprintf(text, sizeof(text),
                 "waiting streams beside which another one goes on, %s%s",
                 i ? "CUDA_DEVICE_MAX_CONNECTIONS=" : "nothing set",
                 connections[i]);
        seen(text, n == 200 ? "%d and more" : "%d", n);
        part_end(&run);
    }
}

static void part_exits(int talk)
{
    CUstream s;

    start();
    s = new_stream();
    gate_shut(s);
    MUST(cu.StreamWriteValue32(s, new_words(1).dev, 1, 0));
    tell_word(talk, 1);
    hear_word(talk);
    exit(0);
}

/* Milliseconds until the part has ended, 5000 when it had to be killed. */
static int time_to_end(struct part_run *run)
{
    double began = gpu_now();

    while (gpu_now() - began < 5) {
        if (waitpid(run->pid, NULL, WNOHANG) == run->pid)
            return (int)(1000 * (gpu_now() - began));
        rest(2);
    }
    kill(run->pid, SIGKILL);
    return 5000;
}

static void end_while_waiting(void)
{
    struct part_run run = part_start("exits", NULL);
    int ms;

    hear_word(run.talk);
    tell_word(run.talk, 0);
    ms = time_to_end(&run);
    seen("exit() took ms", "%d", ms);
    want_true("exit() ends the process", ms < 5000);
    run = part_start("exits", NULL);
    hear_word(run.talk);
    kill(run.pid, SIGKILL);
    ms = time_to_end(&run);
    seen("SIGKILL took ms", "%d", ms);
    want_true("SIGKILL ends the process", ms < 5000);
}

static CUresult reset_device(void *arg)
{
    (void)arg;
    return cu.DevicePrimaryCtxReset(0);
}

static void reset_while_waiting(void)
{
    struct gate gate;
    CUstream s;

    start();
    s = new_stream();
    gate = gate_shut(s);
    want_text("cuDevicePrimaryCtxReset while a stream waits", "blocks",
              returns_or_blocks(reset_device, NULL, &gate));
}

#define AREA "queue"
static const struct rule rules[] = {
    {AREA, "behind_memop", "DA 'API synchronization behavior', cuMemFree",
     "which calls come back while a stream waits for a value", behind_memop},
    {AREA, "behind_kernel", "DA 'API synchronization behavior', cuMemFree",
     "which calls come back while a kernel waits for a value", behind_kernel},
    {AREA, "beside_copy", "no documentation",
     "which calls come back while a copy to pageable memory waits in a thread",
     beside_copy},
    {AREA, "depth", "no documentation: the channel's ring",
     "500 calls and more can be enqueued behind a wait", depth},
    {AREA, "many_wait", "PG 'CUDA Environment Variables'",
     "how many streams may wait beside one that goes on", many_wait},
    {AREA, "end_while_waiting", "no documentation",
     "a process can end while its stream waits", end_while_waiting},
    {AREA, "reset_while_waiting", "DA cuDevicePrimaryCtxReset",
     "a context is not destroyed before its streams have gone on",
     reset_while_waiting},
};
static const struct part parts[] = {
    {"exporter", part_exporter}, {"many", part_many}, {"exits", part_exits}};
const struct rule_file rules_queue = {rules, ARRAY_LEN(rules), parts,
                                      ARRAY_LEN(parts)};
