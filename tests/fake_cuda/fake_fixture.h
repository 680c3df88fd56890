/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_fixture.h - the fake CUDA driver (tests/fake_cuda) in a test of Check: each
 * test is a process of its own, so each starts the driver anew. */
#ifndef COLL_TESTS_FAKE_FIXTURE_H
#define COLL_TESTS_FAKE_FIXTURE_H

#include "tests/gpu/gpu.h"

#include <check.h>

#define IS(code, call) ck_assert_int_eq((int)(call), (int)CUDA_ERROR_##code)
#define OK(call) ck_assert_int_eq((int)(call), (int)CUDA_SUCCESS)

/* Open it; no call yet, so that the environment can be set. */
void fake_open(void);

/* Open it, cuInit, device 0's primary context current. */
CUcontext fake_start(void);

/* The primary context of a device, current. */
CUcontext fake_device(CUdevice device);

CUstream fake_stream(void); /* non-blocking */
CUevent fake_event(void);
CUdeviceptr fake_memory(size_t len);

/* Write device memory; all streams see it. */
void fake_put(CUdeviceptr to, const void *from, size_t len);

/* 32-bit words of pinned memory, zero; the device's address is the host's. */
_Atomic uint32_t *fake_words(size_t n);
#define AT(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

/* Hold a stream until *gate is 1. */
void fake_hold(CUstream s, _Atomic uint32_t *gate);

/* Has the word become that, soon; or is it not, after a while? */
int fake_becomes(_Atomic uint32_t *word, uint32_t value);
int fake_stays(_Atomic uint32_t *word, uint32_t value);

/* How a child that calls it ends: as waitpid() says.  The parent has not opened the
 * driver. */
int fake_child(void (*run)(void));

/* A child at the other end of a socket, which ends with it. */
int fake_talk(void (*run)(int talk));

/* Exchange a word with it. */
void fake_tell(int talk, int word);
int fake_hear(int talk);

#endif
