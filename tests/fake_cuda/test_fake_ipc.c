/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fake_ipc.c - the fake CUDA driver between processes: DA, cuIpcGetMemHandle and
 * following; each child is an owner that obeys. */
#include "tests/fake_cuda/fake_fixture.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LAZY CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

struct owned {
    CUipcMemHandle handle;
    CUdeviceptr at;
    int pid;
};

static uint32_t word_at(CUdeviceptr at)
{
    uint32_t word = 0;

    OK(cu.MemcpyDtoH(&word, at, sizeof(word)));
    return word;
}

static void fill(CUdeviceptr at, uint32_t value)
{
    OK(cu.MemsetD32Async(at, value, 16, NULL));
    OK(cu.StreamSynchronize(NULL));
}

static void send_owned(int talk, CUdeviceptr at)
{
    struct owned o = {.at = at, .pid = (int)getpid()};

    OK(cu.IpcGetMemHandle(&o.handle, at));
    ck_assert_int_eq(gpu_tell(talk, &o, sizeof(o)), 0);
}

/* Two small allocations, filled; then: 0 to end, 1 to say the first word of the first
 * one, 2 to free that. */
static void owner(int talk)
{
    CUdeviceptr a, b;
    int order;

    fake_start();
    a = fake_memory(1000);
    b = fake_memory(1000);
    fill(a, 0xa);
    fill(a + 512, 0xaa);
    fill(b, 0xb);
    send_owned(talk, a);
    send_owned(talk, b);
    while ((order = fake_hear(talk)))
        if (order == 1)
            fake_tell(talk, (int)word_at(a));
        else
            fake_tell(talk, (int)cu.MemFree(a));
}

static int meet(struct owned o[2])
{
    int talk = fake_talk(owner);

    ck_assert_int_eq(gpu_hear(talk, o, 2 * sizeof(*o)), 0);
    fake_start();
    return talk;
}

START_TEST(an_import_is_the_allocation_from_its_base)
{
    CUdeviceptr a, b, base;
    struct owned o[2];
    size_t len;
    int talk = meet(o);

    OK(cu.IpcOpenMemHandle(&a, o[0].handle, LAZY));
    OK(cu.IpcOpenMemHandle(&b, o[1].handle, LAZY));
    ck_assert_uint_eq(word_at(a), 0xa);
    ck_assert_uint_eq(word_at(a + 512), 0xaa);
    ck_assert_uint_eq(word_at(b), 0xb);
    OK(cu.MemGetAddressRange(&base, &len, a + 512));
    ck_assert_uint_eq(base, a);
    ck_assert_uint_eq(len, 1000);
    fill(a, 5);
    fake_tell(talk, 1);
    ck_assert_int_eq(fake_hear(talk), 5);
    OK(cu.IpcCloseMemHandle(a));
    ck_assert_uint_eq(word_at(b), 0xb);
    IS(INVALID_VALUE, cu.MemcpyDtoH(&len, a, 4));
}
END_TEST

START_TEST(an_import_is_mapped_once_and_counted)
{
    CUdeviceptr a, again, other;
    struct owned o[2];
    unsigned type;
    CUcontext ctx;

    meet(o);
    OK(cu.IpcOpenMemHandle(&a, o[0].handle, LAZY));
    OK(cu.IpcOpenMemHandle(&again, o[0].handle, LAZY));
    ck_assert_uint_eq(a, again);
    IS(INVALID_VALUE, cu.MemFree(a));
    IS(INVALID_VALUE, cu.IpcCloseMemHandle(a + 8));
    OK(cu.CtxCreate(&ctx, NULL, 0, 0));
    IS(INVALID_HANDLE, cu.IpcOpenMemHandle(&other, o[0].handle, LAZY));
    OK(cu.CtxSetCurrent(NULL));
    OK(cu.IpcCloseMemHandle(a));
    ck_assert_uint_eq(word_at(a), 0xa);
    OK(cu.IpcCloseMemHandle(a));
    IS(INVALID_VALUE,
       cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
    IS(INVALID_VALUE, cu.IpcCloseMemHandle(a));
}
END_TEST

START_TEST(a_handle_does_not_open_in_its_own_process_nor_by_guessing)
{
    CUipcMemHandle handle;
    struct owned o[2];
    CUdeviceptr at;
    void *pinned;

    meet(o);
    OK(cu.IpcGetMemHandle(&handle, fake_memory(64)));
    IS(INVALID_CONTEXT, cu.IpcOpenMemHandle(&at, handle, LAZY));
    IS(INVALID_VALUE, cu.IpcOpenMemHandle(&at, o[0].handle, 0));
    memset(&handle, 0x5a, sizeof(handle));
    IS(INVALID_VALUE, cu.IpcOpenMemHandle(&at, handle, LAZY));
    OK(cu.MemHostAlloc(&pinned, 64, 0));
    IS(INVALID_VALUE, cu.IpcGetMemHandle(&handle, AT(pinned)));
}
END_TEST

START_TEST(what_was_freed_does_not_open_and_what_was_opened_stays)
{
    CUdeviceptr a, b;
    struct owned o[2];
    int talk = meet(o);

    OK(cu.IpcOpenMemHandle(&b, o[1].handle, LAZY));
    fake_tell(talk, 2);
    ck_assert_int_eq(fake_hear(talk), CUDA_SUCCESS);
    IS(INVALID_VALUE, cu.IpcOpenMemHandle(&a, o[0].handle, LAZY));
    kill(o[0].pid, SIGKILL);
    while (!gpu_hear(talk, &a, 1)) /* until it is gone */
        ;
    IS(INVALID_HANDLE, cu.IpcOpenMemHandle(&a, o[0].handle, LAZY));
    ck_assert_uint_eq(word_at(b), 0xb);
    OK(cu.IpcCloseMemHandle(b));
}
END_TEST

START_TEST(ipc_can_be_forbidden)
{
    CUipcMemHandle handle;

    setenv("FAKE_CUDA_IPC", "0", 1);
    fake_start();
    IS(NOT_SUPPORTED, cu.IpcGetMemHandle(&handle, fake_memory(64)));
}
END_TEST

/* ---- flags and events ---------------------------------------------------- */

/* Both ends of a ping-pong in a memfd that both have registered, by streams alone. */
static _Atomic uint32_t *registered(int fd)
{
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    ck_assert_ptr_ne(at, MAP_FAILED);
    OK(cu.MemHostRegister(at, 4096, CU_MEMHOSTREGISTER_PORTABLE));
    return at;
}

enum { TIMES = 50 };

static void pong(int talk)
{
    _Atomic uint32_t *words;
    int fd = gpu_hear_fd(talk);
    CUstream s;

    fake_start();
    s = fake_stream();
    words = registered(fd);
    for (uint32_t i = 1; i <= TIMES; i++) {
        OK(cu.StreamWaitValue32(s, AT(words), i, CU_STREAM_WAIT_VALUE_GEQ));
        OK(cu.StreamWriteValue32(s, AT(words + 16), i, 0));
    }
    OK(cu.StreamSynchronize(s));
    fake_tell(talk, 1);
}

START_TEST(streams_of_two_processes_play_by_flags_in_a_memfd)
{
    int talk = fake_talk(pong), fd = memfd_create("flags", MFD_CLOEXEC);
    _Atomic uint32_t *words;
    CUstream s;

    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    ck_assert_int_eq(gpu_tell_fd(talk, fd), 0);
    fake_start();
    s = fake_stream();
    words = registered(fd);
    for (uint32_t i = 1; i <= TIMES; i++) {
        OK(cu.StreamWriteValue32(s, AT(words), i, 0));
        OK(cu.StreamWaitValue32(s, AT(words + 16), i,
                                CU_STREAM_WAIT_VALUE_GEQ));
    }
    OK(cu.StreamSynchronize(s));
    ck_assert_int_eq(fake_hear(talk), 1);
    ck_assert_uint_eq(atomic_load(words + 16), TIMES);
}
END_TEST

/* Records an event behind a wait, and lets it pass when it is told to. */
static void recorder(int talk)
{
    CUipcEventHandle handle;
    _Atomic uint32_t *gate;
    CUstream s;
    CUevent e;

    fake_start();
    s = fake_stream();
    gate = fake_words(1);
    OK(cu.EventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    fake_hold(s, gate);
    OK(cu.EventRecord(e, s));
    OK(cu.IpcGetEventHandle(&handle, e));
    ck_assert_int_eq(gpu_tell(talk, &handle, sizeof(handle)), 0);
    fake_hear(talk);
    atomic_store(gate, 1);
    fake_hear(talk);
}

START_TEST(an_event_of_another_process_holds_a_stream)
{
    int talk = fake_talk(recorder);
    CUipcEventHandle handle;
    _Atomic uint32_t *word;
    CUevent e, mine;
    CUstream s;

    ck_assert_int_eq(gpu_hear(talk, &handle, sizeof(handle)), 0);
    fake_start();
    s = fake_stream();
    word = fake_words(1);
    OK(cu.IpcOpenEventHandle(&e, handle));
    IS(NOT_READY, cu.EventQuery(e));
    OK(cu.StreamWaitEvent(s, e, 0));
    OK(cu.StreamWriteValue32(s, AT(word), 1, 0));
    ck_assert(fake_stays(word, 0));
    fake_tell(talk, 1);
    ck_assert(fake_becomes(word, 1));
    OK(cu.EventSynchronize(e));
    OK(cu.EventDestroy(e));
    IS(INVALID_HANDLE, cu.IpcGetEventHandle(&handle, fake_event()));
    OK(cu.EventCreate(&mine, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cu.IpcGetEventHandle(&handle, mine));
    IS(INVALID_CONTEXT, cu.IpcOpenEventHandle(&e, handle));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_ipc");
    TCase *tc = tcase_create("processes");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, an_import_is_the_allocation_from_its_base);
    tcase_add_test(tc, an_import_is_mapped_once_and_counted);
    tcase_add_test(tc,
                   a_handle_does_not_open_in_its_own_process_nor_by_guessing);
    tcase_add_test(tc, what_was_freed_does_not_open_and_what_was_opened_stays);
    tcase_add_test(tc, ipc_can_be_forbidden);
    tcase_add_test(tc, streams_of_two_processes_play_by_flags_in_a_memfd);
    tcase_add_test(tc, an_event_of_another_process_holds_a_stream);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
