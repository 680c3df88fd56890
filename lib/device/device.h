/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - a device: a kind of memory, and the functions that work on it.
 *
 * A device is one file and one line in list.c.  The host device executes at once; a
 * device with streams puts its work into them.  A device does not know of ranks or
 * transports.
 */
#ifndef COLL_LIB_DEVICE_DEVICE_H
#define COLL_LIB_DEVICE_DEVICE_H

#include "include/coll/coll.h"
#include "lib/device/kernel.h"

#include <stdatomic.h>
#include <stdint.h>

/* A local step of a plan, for a device with streams. */
struct coll__work {
    enum { WORK_COPY, WORK_REDUCE, WORK_SCALE, WORK_MULTIPLY } kind;
    void *dst;
    const void
        *src; /* reduce: dst = op(dst, src); multiply: dst = src * *scalar */
    const void
        *with; /* if not NULL, reduce in a stream: dst = op(with, src) */
    void *next; /* if not NULL, copy or reduce in a stream: next = dst */
    size_t len;      /* bytes, of whole elements */
    enum coll_type type;
    enum coll_op op;
    int nranks; /* scale: dst = dst / nranks, as coll__scale_fn */
    const void *scalar;
    /* reduce: the caller's function, which no device has, and its argument; with
     * is_src_left it gets (src, dst) */
    coll_user_fn *fn;
    void *arg;
    unsigned is_src_left : 1;
    unsigned is_hosts : 1; /* no device has a kernel for it */
    void *stream;
    /* of the stream's context, from coll__cuda_prepare(); NULL: they are looked for */
    const void *kernels;
    /* In pinned memory of the host, for a copy: the driver would make the caller wait for
     * a copy between two such places. */
    unsigned is_dst_host : 1, is_src_host : 1, is_with_host : 1;
};

/* An operand of a step of a kernel program: an offset in a buffer of the run, or, with
 * PLACE_HERE, an address. */
struct coll__operand {
    enum coll__place { PLACE_IN, PLACE_OUT, PLACE_TMP, PLACE_HERE } in;
    uint64_t at;
};

struct coll__kernel_step {
    int kind; /* WORK_; the fields are named as in struct coll__work */
    struct coll__operand dst, src, with; /* reduce: dst = op(with, src) */
    struct coll__operand next; /* copy and reduce, if has_next: next = dst */
    int has_next;
    size_t len;
    enum coll_type type;
    enum coll_op op;
    int nranks;
    const void *scalar; /* read by load() */
    int is_behind;      /* wait for all earlier steps */

    /* The words of the slots of a received message, a sent one, or both.  The step
     * waits for this rank's word of each slot, and writes both ranks' words. */
    int is_send, is_recv;
    struct {
        void *own, *theirs;
    } recv, send;

    /* A direct read is a send of no bytes, and a receive whose src is on the sender.
     * settles: the step waits, by the words of the send, until the receiver has read. */
    int settles;
};

/* A run of a kernel program: its buffers, and a word that becomes nonzero when the run
 * has to stop; stop may be NULL. */
struct coll__kernel_run {
    void *in, *out, *tmp;
    const void *stop;
    void *stream;
};

/* Work in streams, in captures too.  Only the stream orders the steps, and none reports
 * its end.  The functions return a status, logged; they block only if the stream's queue
 * is full. */
struct coll__stream_ops {
    int (*enqueue)(const struct coll__work *work);

    /* Flags: words that streams write and wait for (lib/device/cuda.h). */
    int (*write_flag)(void *stream, void *flag, uint32_t value);
    int (*wait_bits)(void *stream, void *flag, uint64_t bits);
    int (*write_two)(void *stream, void *const flags[2],
                     const uint32_t values[2]);
    int (*wait_two)(void *stream, void *const flags[2], const uint64_t bits[2]);

    /* Is the stream being captured?  1 or 0. */
    int (*is_captured)(void *stream);

    /* Write a plan's steps into memory of the device, for runs in streams of the
     * context of `stream`.  The kernels of n_sharing ranks must run on the device at
     * once.  load() becomes no part of a capture, and waits for no other stream.  The
     * caller unloads *plan when no stream and no graph holds a run of it. */
    int (*load)(const struct coll__kernel_step *steps, int n, int n_sharing,
                void *stream, void **plan);
    int (*launch)(void *plan, const struct coll__kernel_run *run);
    void (*unload)(void *plan);

    /* Return the plan's bytes on the device; 0 for NULL. */
    size_t (*taken)(const void *plan);
};

/* Buffers that the library allocates for the caller.  Functions return a status, logged.
 * number: this process's number of the device, -1 for the current one.  If memory runs
 * out, alloc() calls reclaim(), which may wait for streams, and tries again. */
struct coll__buffers {
    int (*alloc)(void **ptr, size_t len, int number, void (*reclaim)(void));
    int (*has)(const void *ptr); /* does a buffer begin at ptr? */
    int (*free)(void *ptr);
};

struct coll__device {
    const char *name; /* "host" */
    const char *what; /* one line */

    /* Say whether this machine has the device: COLL_OK, or a status and why. */
    int (*usable)(char *why, size_t len);

    /* Allocate scratch, aligned to a page; NULL if there is no memory. */
    void *(*alloc)(size_t len);
    void (*free)(void *ptr, size_t len);

    /* Copy on `stream`; copy_past() is for results that exceed the caches.  The last
     * three return a function for this memory; NULL if there is none for that type
     * and operation. */
    void (*copy)(void *dst, const void *src, size_t len, void *stream);
    void (*copy_past)(void *dst, const void *src, size_t len, void *stream);
    coll__reduce_fn *(*reduce)(enum coll_type type, enum coll_op op);
    coll__scale_fn *(*scale)(enum coll_type type);
    coll__multiply_fn *(*multiply)(enum coll_type type);

    /* NULL if the device allocates no buffers for the caller; the host's: region.h. */
    const struct coll__buffers *buffers;

    /* NULL for a device without streams.  Else these do a plan's local steps. */
    const struct coll__stream_ops *streams;
};

/* All devices, the host last, then NULL. */
extern const struct coll__device *const coll__devices[];

extern const struct coll__device coll__device_host;

/* May a pointer be of another device than the host?  0 until a driver is found. */
extern atomic_int coll__device_is_here __attribute__((visibility("hidden")));

#endif
