/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_fixture.c - the fake CUDA driver in a test. */
#include "tests/fake_cuda/fake_fixture.h"
#include "tests/support/patience.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A library that is loaded is found by its name, wherever it lies. */
void fake_open(void)
{
    const char *why;

    ck_assert_msg(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL) != NULL, "%s",
                  dlerror());
    why = gpu_open();
    ck_assert_msg(!why, "%s", why);
}

CUcontext fake_device(CUdevice device)
{
    CUcontext ctx = NULL;

    OK(cu.DevicePrimaryCtxRetain(&ctx, device));
    OK(cu.CtxSetCurrent(ctx));
    return ctx;
}

CUcontext fake_start(void)
{
    fake_open();
    OK(cu.Init(0));
    return fake_device(0);
}

CUstream fake_stream(void)
{
    CUstream s = NULL;

    OK(cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

CUevent fake_event(void)
{
    CUevent e = NULL;

    OK(cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    return e;
}

CUdeviceptr fake_memory(size_t len)
{
    CUdeviceptr at = 0;

    OK(cu.MemAlloc(&at, len));
    return at;
}

/* The copy returns before the bytes are there. */
void fake_put(CUdeviceptr to, const void *from, size_t len)
{
    OK(cu.MemcpyHtoD(to, from, len));
    OK(cu.StreamSynchronize(NULL));
}

_Atomic uint32_t *fake_words(size_t n)
{
    void *at = NULL;

    OK(cu.MemHostAlloc(&at, n * sizeof(uint32_t), 0));
    return at;
}

void fake_hold(CUstream s, _Atomic uint32_t *gate)
{
    OK(cu.StreamWaitValue32(s, AT(gate), 1, CU_STREAM_WAIT_VALUE_EQ));
}

int fake_becomes(_Atomic uint32_t *word, uint32_t value)
{
    double until = gpu_now() + patient(10);

    while (atomic_load(word) != value && gpu_now() < until)
        usleep(100);
    return atomic_load(word) == value;
}

int fake_stays(_Atomic uint32_t *word, uint32_t value)
{
    for (int i = 0; i < 50; i++) {
        if (atomic_load(word) != value)
            return 0;
        usleep(1000);
    }
    return 1;
}

int fake_child(void (*run)(void))
{
    int status = -1, pid = fork();

    if (!pid) {
        run();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

int fake_talk(void (*run)(int talk))
{
    int ends[2], pid;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        run(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

/* A child whose assertion fails ends, which its parent notices here. */
void fake_tell(int talk, int word)
{
    ck_assert_int_eq(gpu_tell(talk, &word, sizeof(word)), 0);
}

int fake_hear(int talk)
{
    int word = 0;

    ck_assert_int_eq(gpu_hear(talk, &word, sizeof(word)), 0);
    return word;
}
