/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda.h - functions of the CUDA device, beyond those of every device (device.h).
 *
 * A stream is a CUstream; NULL is the current context's legacy stream.  Work goes to
 * the stream's context, whichever context is current.
 */
#ifndef COLL_LIB_DEVICE_CUDA_H
#define COLL_LIB_DEVICE_CUDA_H

#include "lib/device/device.h"

#include <stdint.h>

extern const struct coll__device coll__device_cuda;
extern const struct coll__stream_ops coll__cuda_streams;
extern const struct coll__buffers coll__cuda_buffers;

/* Load the kernels into the stream's context.  Do so before a stream waits for a peer:
 * the driver cannot load kernels during such a wait.
 *
 * Result:    *kernels, unless it is NULL, for struct coll__work: valid until the device is
 *            reset.
 * Errors:    COLL_ERR_UNSUPPORTED (no machine code for this GPU),
 *            COLL_ERR_SYSTEM, COLL_ERR_NOMEM; logged.
 * Threads:   any.
 */
int coll__cuda_prepare(void *stream, const void **kernels);

/* Put a step into its stream, also while that is captured.
 *
 * Errors:    those of coll__cuda_prepare(), which this calls if it was not called;
 *            COLL_ERR_INVALID (memory the device does not know); logged; nothing
 *            was enqueued.
 * Threads:   any.
 * Cost:      a call of the driver.
 */
int coll__cuda_enqueue(const struct coll__work *work);

/* Let the devices use memory of the host, such as a segment that ranks share.
 *
 * Shapes:    len bytes of whole pages that hold nothing else; every process
 *            registers its own mapping, once.
 * Result:    *at: its address for the devices.
 * Ownership: the caller's, to end by coll__cuda_unregister() before it unmaps.
 * Errors:    COLL_ERR_INVALID, COLL_ERR_UNSUPPORTED, COLL_ERR_SYSTEM; logged.
 * Threads:   any, with a current context.
 * Cost:      pins the pages.  Unregistering waits for the context's streams.
 */
int coll__cuda_register(void *ptr, size_t len, void **at);
int coll__cuda_unregister(void *ptr);

/* Enqueue an operation on a flag, a 32-bit word.  write_flag: store a value after all
 * earlier work of the stream.  wait_flag: wait until the word has reached a value (by
 * difference, so counters may wrap).  wait_bits: wait until one of the bits is set in two
 * words, of which *flag is the lower half.  write_two and wait_two do the same at two
 * places, by one call; wait_write waits for bits and then stores the value.
 *
 * Shapes:    *flag: 32 bits, for wait_bits and wait_two 64 bits; aligned, in memory that
 *            the device knows.
 * Errors:    COLL_ERR_INVALID (memory it does not know), COLL_ERR_UNSUPPORTED;
 *            logged; nothing was enqueued.
 * Threads:   any.
 * Cost:      a call of the driver; nothing spins on the device.
 */
int coll__cuda_write_flag(void *stream, void *flag, uint32_t value);
int coll__cuda_wait_flag(void *stream, void *flag, uint32_t value);
int coll__cuda_wait_bits(void *stream, void *flag, uint64_t bits);
int coll__cuda_write_two(void *stream, void *const flags[2],
                         const uint32_t values[2]);
int coll__cuda_wait_two(void *stream, void *const flags[2],
                        const uint64_t bits[2]);
int coll__cuda_wait_write(void *stream, void *flag, uint64_t bits,
                          uint32_t value);

/* Test all of these with two flags of 64 bits that nothing else uses and that are 0, and
 * wait for the result. */
int coll__cuda_try_flags(void *stream, void *const flags[2]);

/* What another process of the host needs to map memory of this process. */
struct coll__cuda_memory {
    unsigned char handle[64];
    uint64_t offset; /* of the pointer, in the allocation */
    uint64_t len;    /* of the allocation, from its first byte */
    uint64_t id;     /* of the allocation; never used again */
};

/* Export the allocation that ptr points into.
 *
 * Errors:    COLL_ERR_INVALID (no memory of cuMemAlloc), COLL_ERR_UNSUPPORTED
 *            (no IPC here); logged.
 * Threads:   any.
 */
int coll__cuda_export(const void *ptr, struct coll__cuda_memory *out);

/* As coll__cuda_export(), but write the error to why[why_len] instead of logging it. */
int coll__cuda_try_export(const void *ptr, struct coll__cuda_memory *out,
                          char *why, size_t why_len);

/* Find the allocation that ptr points into: fill in *out without the handle.  Errors go
 * to why[why_len]. */
int coll__cuda_find(const void *ptr, struct coll__cuda_memory *out, char *why,
                    size_t why_len);

/* Map memory of another process into the current context.
 *
 * Result:    *ptr: the address of the exported byte.
 * Ownership: the caller ends each import by coll__cuda_unimport(), before the owner
 *            frees the memory.
 * Errors:    COLL_ERR_INVALID (it is this process's own, or the owner has freed it),
 *            COLL_ERR_UNSUPPORTED; logged.
 * Threads:   any.
 * Cost:      hundreds of microseconds: keep the mapping for the allocation's life.
 */
int coll__cuda_import(const struct coll__cuda_memory *memory, void **ptr);
int coll__cuda_try_import(const struct coll__cuda_memory *memory, void **ptr,
                          char *why, size_t why_len);
int coll__cuda_unimport(const struct coll__cuda_memory *memory, void *ptr);

/* Hold the buffer of coll__cuda_buffers that ptr points into: the caller cannot free it
 * until each hold is released with the same pointer.  Returns 0 if ptr is in no buffer,
 * else 1. */
int coll__cuda_buffer_hold(const void *ptr);
void coll__cuda_buffer_release(const void *ptr);

/* Lend a buffer that is held.  The caller may free a lent buffer, but its memory goes
 * back to the driver only when each loan was taken back; the last take_back() may wait
 * for streams.  is_missed(): has the caller freed a lent buffer? */
void coll__cuda_buffer_lend(const void *ptr);
void coll__cuda_buffer_take_back(const void *ptr);
int coll__cuda_buffer_is_missed(const void *ptr);

/* The context and the GPU of a rank's device memory. */
struct coll__cuda_home {
    void *ctx;
    unsigned char uuid[16]; /* of the GPU; GPU numbers differ between processes */
    int device;
};

/* Find the GPU of a context; NULL: of the current one.
 *
 * Errors:    COLL_ERR_INVALID (there is no current context), COLL_ERR_SYSTEM;
 *            logged.
 * Threads:   any.
 */
int coll__cuda_home_of(void *ctx, struct coll__cuda_home *out);

/* Get the driver's description of a GPU, by this process's number.  Returns a status,
 * logged. */
struct coll__cuda_gpu {
    unsigned char uuid[16];
    char bus[16], name[64]; /* "0000:41:00.0", "NVIDIA H100 80GB HBM3" */
    int major;              /* of its compute capability */
};
int coll__cuda_describe(int device, struct coll__cuda_gpu *out);

/* Does NVLink join two GPUs?  0 also if that is unknown. */
int coll__cuda_has_nvlink(int from, int to);

/* count: return how many GPUs this process sees.  number_of: return this process's
 * number for a GPU, or -1. */
int coll__cuda_count(void);
int coll__cuda_number_of(const unsigned char uuid[16]);

/* Make a context current, and keep the calls that follow out of captures that this
 * process may have under way, until the same thread calls coll__cuda_go_out(was). */
int coll__cuda_go_in(const struct coll__cuda_home *home, int *was);
void coll__cuda_go_out(int was);

/* Return this thread's current context, or NULL. */
void *coll__cuda_context(void);

/* Do kernels of several processes run on that GPU at once (MPS)?  0 if unknown. */
int coll__cuda_has_mps(int device);

/* Enqueue zeroing len bytes of device memory, a multiple of 4.  Returns a status,
 * logged. */
int coll__cuda_clear(void *stream, void *at, size_t len);

/* Wait until all streams of the current context have finished.  Returns a status,
 * logged. */
int coll__cuda_drain(void);

/* Can a context of this process use memory of that GPU?  Returns COLL_OK, or a status
 * and why (len bytes at most). */
int coll__cuda_can_reach(const struct coll__cuda_home *from,
                         const unsigned char uuid[16], char *why, size_t len);

/* Let the current context use the memory of ctx, a context of this process on another
 * GPU.  Returns a status and why, as above. */
int coll__cuda_reach(void *ctx, char *why, size_t len);

/* create: make a stream of the library in the current context; it does not synchronise
 * with the legacy stream.  wait: wait until the stream has finished.  Each returns a
 * status, logged. */
int coll__cuda_stream_create(void **stream);
int coll__cuda_stream_wait(void *stream);
void coll__cuda_stream_destroy(void *stream);

#endif
