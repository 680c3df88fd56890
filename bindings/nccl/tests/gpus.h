/* SPDX-License-Identifier: BSD-3-Clause */
/* gpus.h - ranks that use libnccl.so.2 on the GPUs of the fake CUDA driver. */
#ifndef COLL_NCCL_TESTS_GPUS_H
#define COLL_NCCL_TESTS_GPUS_H

#include "tests/fake_cuda/fake_fixture.h"

#include "bindings/nccl/nccl.h"

enum { MAX_GPUS = 8 };

/* A call of the interface that must succeed. */
#define NC(call) nc_check(call, #call, __FILE__, __LINE__)
void nc_check(ncclResult_t result, const char *call, const char *file,
              int line);

/* A call that must fail so, with these words in its sentence. */
#define FAILS(call, result, words)                                             \
    nc_fails(call, ncclGetLastError(NULL), result, words, __FILE__, __LINE__)
#define nc_fails(call, why, result, words, file, line)                         \
    do {                                                                       \
        ncclResult_t nc_got = (call);                                          \
        ck_assert_msg(nc_got == (result), "%s:%d: %d, not %d (%s)", file,      \
                      line, (int)nc_got, (int)(result), why);                  \
        ck_assert_msg(strstr(why, words) != NULL, "%s:%d: \"%s\"", file, line, \
                      why);                                                    \
    } while (0)

/* One rank: its GPU, stream and buffers. */
struct rank {
    int device;
    CUcontext context;
    CUstream stream;
    ncclComm_t comm;
    char *in, *out;
};

/* Start the driver with so many GPUs; the caller's deadlines become 60 s. */
void nc_start(int n_gpus);

/* Give the rank a GPU, which becomes current, a stream, and buffers of `len` bytes. */
void nc_take(struct rank *r, int device, size_t len);
void nc_leave(struct rank *r);

/* Write to device memory, read it, and wait for the rank's stream. */
void nc_put(const struct rank *r, void *to, const void *from, size_t len);
void nc_get(const struct rank *r, void *to, const void *from, size_t len);
void nc_sync(const struct rank *r);

/* An element of a type: the bytes of a small number, and how many they are. */
size_t nc_size(ncclDataType_t type);
void nc_encode(ncclDataType_t type, double value, void *out);

/* Fill `count` elements of device memory with one number; do they all have it? */
void nc_fill(const struct rank *r, void *to, ncclDataType_t type, size_t count,
             double value);
int nc_has(const struct rank *r, const void *at, ncclDataType_t type,
           size_t count, double value);

/* Run fn(rank) in n processes or threads; how many did not return 0. */
typedef int nc_fn(int rank, int n, const ncclUniqueId *id);
int nc_processes(int n, nc_fn *fn);
int nc_threads(int n, nc_fn *fn);

#endif
