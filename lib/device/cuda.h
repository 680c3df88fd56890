/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda.h - device memory of CUDA, beyond what device.h asks of every device.
 *
 * A queue is a CUstream; NULL is the current context's legacy stream.  Work goes
 * to the context that the stream belongs to, whatever is current.
 */
#ifndef COLL_LIB_DEVICE_CUDA_H
#define COLL_LIB_DEVICE_CUDA_H

#include "lib/device/device.h"

#include <stdint.h>

extern const struct coll__device coll__device_cuda;
extern const struct coll__stream_ops coll__cuda_streams;
extern const struct coll__buffers coll__cuda_buffers;

/* Load the kernels into the stream's context, before a stream waits for a peer:
 * the driver does not load while it does.
 *
 * Errors:    COLL_ERR_UNSUPPORTED (no machine code for this GPU),
 *            COLL_ERR_SYSTEM, COLL_ERR_NOMEM; logged.
 * Threads:   any.
 */
int coll__cuda_prepare(void *stream);

/* Put a step into its stream, and not ask when it has ended: for plans that are
 * ordered by the stream alone, and for captures.
 *
 * Errors:    those of coll__cuda_prepare(), which is called where that was
 *            forgotten, and COLL_ERR_INVALID (memory the device does not know);
 *            logged; nothing was enqueued.
 * Threads:   any.
 * Cost:      a call of the driver.
 */
int coll__cuda_enqueue(const struct coll__work *work);

/* Let the devices use memory of the host, such as a segment that ranks share.
 *
 * Shapes:    len bytes of whole pages of one's own; every process registers its
 *            own mapping, once.
 * Result:    *at: where the devices see it.
 * Ownership: the caller's, to end by coll__cuda_unregister() before it unmaps.
 * Errors:    COLL_ERR_INVALID, COLL_ERR_UNSUPPORTED, COLL_ERR_SYSTEM; logged.
 * Threads:   any, with a current context.
 * Cost:      pins the pages.  Unregistering waits for the context's streams.
 */
int coll__cuda_register(void *ptr, size_t len, void **at);
int coll__cuda_unregister(void *ptr);

/* In the order of the stream: write a word, behind all that was before it; or
 * wait until the word has come to value (by difference, so counters may wrap), or
 * until it has the bit.  Or the same with two words, by one call.
 *
 * Shapes:    *flag: 32 bits, aligned, of memory that the device knows.
 * Errors:    COLL_ERR_INVALID (memory it does not know), COLL_ERR_UNSUPPORTED;
 *            logged; nothing was enqueued.
 * Threads:   any.
 * Cost:      a call of the driver; nothing spins on the device.
 */
int coll__cuda_write_flag(void *stream, void *flag, uint32_t value);
int coll__cuda_wait_flag(void *stream, void *flag, uint32_t value);
int coll__cuda_wait_bit(void *stream, void *flag, uint32_t bit);
int coll__cuda_write_flags(void *stream, void *const flags[2],
                           const uint32_t values[2]);
int coll__cuda_wait_bits(void *stream, void *const flags[2],
                         const uint32_t bits[2]);

/* Try all of these with two words that nobody else uses, and wait for that. */
int coll__cuda_try_flags(void *stream, void *const flags[2]);

/* What another process of the host needs to reach memory of ours. */
struct coll__cuda_memory {
    unsigned char handle[64];
    uint64_t offset; /* of the pointer, in the allocation */
    uint64_t len;    /* of the allocation, from its first byte */
    uint64_t id;     /* of the allocation; never used again */
};

/* Name the allocation that ptr lies in.
 *
 * Errors:    COLL_ERR_INVALID (no memory of cuMemAlloc), COLL_ERR_UNSUPPORTED
 *            (no IPC here); logged.
 * Threads:   any.
 */
int coll__cuda_export(const void *ptr, struct coll__cuda_memory *out);

/* The same, but nothing is logged: the sentence goes to why[why_len]. */
int coll__cuda_try_export(const void *ptr, struct coll__cuda_memory *out,
                          char *why, size_t why_len);

/* Find the allocation that ptr lies in: all of *out but its handle; likewise. */
int coll__cuda_find(const void *ptr, struct coll__cuda_memory *out, char *why,
                    size_t why_len);

/* Map memory of another process into the current context.
 *
 * Result:    the address of what was exported.
 * Ownership: the caller's, to end by coll__cuda_unimport() as often, before the
 *            owner frees it.
 * Errors:    COLL_ERR_INVALID (it is one's own, or the owner has freed it),
 *            COLL_ERR_UNSUPPORTED; logged.
 * Threads:   any.
 * Cost:      hundreds of microseconds: keep it for the allocation's life.
 */
int coll__cuda_import(const struct coll__cuda_memory *memory, void **ptr);
int coll__cuda_try_import(const struct coll__cuda_memory *memory, void **ptr,
                          char *why, size_t why_len);
int coll__cuda_unimport(const struct coll__cuda_memory *memory, void *ptr);

/* Of coll__cuda_buffers: ptr lies in one, which is not to be freed until as many
 * releases with the same pointer.  1, or 0: it lies in none. */
int coll__cuda_buffer_hold(const void *ptr);
void coll__cuda_buffer_release(const void *ptr);

/* Lend one that is held: its memory does not go back to the driver, though the caller
 * may free it, until it was taken back as often; that one may wait for streams.  Has
 * the caller freed it? */
void coll__cuda_buffer_lend(const void *ptr);
void coll__cuda_buffer_take_back(const void *ptr);
int coll__cuda_buffer_is_missed(const void *ptr);

/* Where a rank's device memory is: a context, and its GPU. */
struct coll__cuda_home {
    void *ctx;
    unsigned char uuid[16]; /* of the GPU; its number is each process's own */
    int device;
};

/* Find out where a context is; the current one for NULL.
 *
 * Errors:    COLL_ERR_INVALID (there is no current context), COLL_ERR_SYSTEM;
 *            logged.
 * Threads:   any.
 */
int coll__cuda_home_of(void *ctx, struct coll__cuda_home *out);

/* Say what the driver knows of a GPU by this process's number; a status, logged. */
struct coll__cuda_gpu {
    unsigned char uuid[16];
    char bus[16], name[64]; /* "0000:41:00.0", "NVIDIA H100 80GB HBM3" */
    int major;              /* of its compute capability */
};
int coll__cuda_describe(int device, struct coll__cuda_gpu *out);

/* Does NVLink join two GPUs?  0 also when nothing can be said. */
int coll__cuda_has_nvlink(int from, int to);

/* How many GPUs this process sees; its number of one, or -1. */
int coll__cuda_count(void);
int coll__cuda_number_of(const unsigned char uuid[16]);

/* Make it the current context, for calls that are no part of a capture that this
 * process may have under way, until the same thread goes out; *was is for that. */
int coll__cuda_go_in(const struct coll__cuda_home *home, int *was);
void coll__cuda_go_out(int was);

/* Do kernels of several processes run on that GPU at once?  0 where nobody knows. */
int coll__cuda_has_mps(int device);

/* Make len bytes of device memory 0, a multiple of 4, in the order of the stream; a
 * status, logged. */
int coll__cuda_clear(void *stream, void *at, size_t len);

/* Wait until all streams of the current context have done what they were given; a
 * status, logged. */
int coll__cuda_drain(void);

/* Can a context of this process use memory of that GPU?  COLL_OK, or a status and
 * why (len bytes at most). */
int coll__cuda_can_reach(const struct coll__cuda_home *from,
                         const unsigned char uuid[16], char *why, size_t len);

/* Let the current context use the memory of another of this process, of another
 * GPU.  A status and why, as above. */
int coll__cuda_reach(void *ctx, char *why, size_t len);

/* A stream of the library's own, in the current context, that waits for no other;
 * wait until it has done all.  A status, logged. */
int coll__cuda_stream_create(void **stream);
int coll__cuda_stream_wait(void *stream);
void coll__cuda_stream_destroy(void *stream);

#endif
