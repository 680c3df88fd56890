/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_ipc_more.c - events of another process; users, pid namespaces. */
#include "tests/gpu/driver_rules.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static CUevent event_with(unsigned flags)
{
    CUevent e = NULL;

    must("cuEventCreate", cu.EventCreate(&e, flags));
    return e;
}

static void own_events(void)
{
    CUevent plain, shared, again;
    CUipcEventHandle handle;

    start();
    plain = event_with(CU_EVENT_DISABLE_TIMING);
    shared = event_with(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    WANT(INVALID_HANDLE, cu.IpcGetEventHandle(&handle, plain));
    GOOD(cu.IpcGetEventHandle(&handle, shared));
    WANT(INVALID_CONTEXT, cu.IpcOpenEventHandle(&again, handle));
}

/* Records an event behind a wait; opens it, destroys it, as it is told. */
static void part_events(int talk)
{
    CUipcEventHandle handle;
    struct gate gate;
    CUstream s;
    CUevent e;

    start();
    s = new_stream();
    e = event_with(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    MUST(cu.IpcGetEventHandle(&handle, e));
    tell(talk, &handle, sizeof(handle));
    hear_word(talk);
    gate = gate_shut(s);
    MUST(cu.EventRecord(e, s));
    tell_word(talk, 1);
    hear_word(talk);
    gate_open(&gate);
    MUST(cu.StreamSynchronize(s));
    tell_word(talk, 1);
    hear_word(talk);
    tell_word(talk, (int)cu.EventQuery(e));
    MUST(cu.EventDestroy(e));
    tell_word(talk, 1);
    hear_word(talk);
}

static void events(void)
{
    struct part_run run = part_start("events", NULL);
    CUipcEventHandle handle;
    struct words w;
    struct gate gate;
    CUstream s;
    CUevent e;
    float ms;

    start();
    s = new_stream();
    w = new_words(1);
    hear(run.talk, &handle, sizeof(handle));
    MUST(cu.IpcOpenEventHandle(&e, handle));
    GOOD(cu.EventQuery(e));
    tell_word(run.talk, 1);
    hear_word(run.talk);
    WANT(NOT_READY, cu.EventQuery(e));
    GOOD(cu.StreamWaitEvent(s, e, 0));
    GOOD(cu.StreamWriteValue32(s, w.dev, 1, 0));
    want_true("a stream waits for another process' event",
              !becomes(w.host, 1, 100));
    tell_word(run.talk, 1);
    hear_word(run.talk);
    want_true("then goes on", becomes(w.host, 1, 2000));
    GOOD(cu.EventSynchronize(e));
    WANT(INVALID_HANDLE, cu.EventElapsedTime(&ms, e, e));
    gate = gate_shut(s);
    GOOD(cu.EventRecord(e, s));
    tell_word(run.talk, 1);
    want_number("recorded here, the owner sees it (600 NOT_READY)", 600,
                hear_word(run.talk));
    hear_word(run.talk);
    gate_open(&gate);
    seen("query after the owner destroyed it", "%s",
         gpu_code(cu.EventQuery(e)));
    GOOD(cu.EventDestroy(e));
    tell_word(run.talk, 1);
}

/* Opens the handle it is given and says what came of it. */
static void part_opens(int talk)
{
    CUipcMemHandle handle;
    CUdeviceptr at;
    CUcontext ctx;
    uint32_t value = 0;
    CUresult rc;

    hear(talk, &handle, sizeof(handle));
    rc = gpu_start(&ctx);
    tell_word(talk, (int)rc);
    if (rc != CUDA_SUCCESS)
        return;
    rc = cu.IpcOpenMemHandle(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    tell_word(talk, (int)rc);
    if (rc == CUDA_SUCCESS)
        cu.MemcpyDtoH(&value, at, 4);
    tell_word(talk, (int)value);
}

/* What another process of that kind gets from a handle of ours. */
static void opened_by(const struct part_how *how, CUresult want)
{
    CUipcMemHandle handle;
    struct part_run run;
    CUdeviceptr at;
    int word;

    run = part_start("opens", how);
    start();
    at = new_memory(4 << 20);
    MUST(cu.MemsetD32Async(at, 7, 16, NULL));
    MUST(cu.CtxSynchronize());
    MUST(cu.IpcGetMemHandle(&handle, at));
    if (gpu_tell(run.talk, &handle, sizeof(handle)) ||
        gpu_hear(run.talk, &word, sizeof(word)))
        cannot("such a process cannot be made here");
    if (word)
        cannot("the driver does not start there: %s", gpu_code(word));
    word = hear_word(run.talk);
    want_code("cuIpcOpenMemHandle there", want, (CUresult)word);
    if (!word)
        want_number("it reads", 7, hear_word(run.talk));
}

static void same_user(void) { opened_by(NULL, CUDA_SUCCESS); }

static void pid_namespace(void)
{
    struct part_how how = {.is_new_pid_namespace = 1};

    opened_by(&how, CUDA_ERROR_INVALID_VALUE);
}

static void other_user(void)
{
    struct part_how how = {.is_nobody = 1};

    if (geteuid())
        cannot("only root can become another user");
    opened_by(&how, CUDA_SUCCESS);
}

#define AREA "ipc"
static const struct rule rules[] = {
    {AREA, "own_events", "DA cuIpcGetEventHandle, cuIpcOpenEventHandle",
     "only interprocess events have a handle; not for their own process",
     own_events},
    {AREA, "events", "DA cuIpcOpenEventHandle",
     "an event of another process is waited for and recorded like one's own",
     events},
    {AREA, "same_user", "DA cuIpcOpenMemHandle", "a process of the same user",
     same_user},
    {AREA, "pid_namespace", "UCX PR 11513; NCCL 360",
     "a handle does not open in another pid namespace", pid_namespace},
    {AREA, "other_user", "no documentation", "a handle opens for another user",
     other_user},
};
static const struct part parts[] = {{"events", part_events},
                                    {"opens", part_opens}};
const struct rule_file rules_ipc_more = {rules, ARRAY_LEN(rules), parts,
                                         ARRAY_LEN(parts)};
