/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - a memory kind: where buffers live and what works on them there.
 *
 * A device is one file and one line in list.c.  The host device executes at
 * once; a device with streams puts its work into them.  A device never sees a rank
 * or a transport.
 */
#ifndef COLL_LIB_DEVICE_DEVICE_H
#define COLL_LIB_DEVICE_DEVICE_H

#include "include/coll/coll.h"
#include "lib/device/kernel.h"

#include <stdatomic.h>
#include <stdint.h>

/* What a local step of a plan does, for a device with streams. */
struct coll__work {
    enum { WORK_COPY, WORK_REDUCE, WORK_SCALE, WORK_PREMUL } kind;
    void *dst;
    const void *src; /* reduce: dst = op(dst, src); premul: dst = src * *scalar */
    const void
        *with; /* reduce by a device's streams: dst = op(with, src); or NULL */
    void *next; /* copy or reduce by these: gets the result, too; or NULL */
    size_t len;      /* bytes, of whole elements */
    enum coll_type type;
    enum coll_op op;
    int nranks; /* scale: dst = dst / nranks */
    const void *scalar;
    void *stream;
};

/* A step of a plan that a kernel goes through by itself.  Operands count from the
 * buffers of a run, or are addresses. */
struct coll__operand {
    enum coll__place { PLACE_IN, PLACE_OUT, PLACE_TMP, PLACE_HERE } in;
    uint64_t at;
};

struct coll__planned {
    int kind; /* WORK_ of struct coll__work, whose names the others are */
    struct coll__operand dst, src, with; /* reduce: dst = op(with, src) */
    struct coll__operand next; /* with has_next: copy and reduce: next = dst */
    int has_next;
    size_t len;
    enum coll_type type;
    enum coll_op op;
    int nranks;
    const void *scalar; /* of load()'s reading */
    int is_behind;      /* all steps listed before have to be done */

    /* The slots of a message that comes, of one that goes, or of both: the step
     * waits for this end's word of each, and writes both ends'. */
    int is_send, is_recv;
    struct {
        void *own, *theirs;
    } recv, send;

    /* A direct read is a send of no bytes, and a receive whose src is with its sender.
     * settles: the step waits until the receiver has read, by the words of the send. */
    int settles;
};

/* Where a run of it works; the word that is not 0 when it has to stop, or NULL. */
struct coll__planned_run {
    void *in, *out, *tmp;
    const void *stop;
    void *stream;
};

/* Steps that nobody asks about: ordered by their stream alone, in captures too.  All
 * return a status, logged; nothing blocks but by a queue that is full. */
struct coll__stream_ops {
    /* Have what steps need there; before a stream waits for another rank. */
    int (*prepare)(void *stream);

    int (*enqueue)(const struct coll__work *work);

    /* Put a mark behind all that was enqueued; *mark is NULL before the first one,
     * and the caller's, to end by unmark().  Has the stream come there?  COLL_OK, or
     * COLL_IN_PROGRESS; what is captured never asks, and counts as reached. */
    int (*mark)(void *stream, void **mark);
    int (*reached)(void *mark);
    void (*unmark)(void *mark);

    /* Is what is put there captured?  1 or 0. */
    int (*is_captured)(void *stream);

    /* Write a plan's steps into memory of the device, for runs in streams of that
     * one's context; of n_sharing ranks whose kernels must run at once there.
     * Nothing is captured, and it waits for no other stream.  *plan is the caller's,
     * to give back when no run of it is in a stream, nor in a graph. */
    int (*load)(const struct coll__planned *steps, int n, int n_sharing,
                void *stream, void **plan);
    int (*launch)(void *plan, const struct coll__planned_run *run);
    void (*unload)(void *plan);

    /* Bytes of the device's memory that it takes; 0 for NULL. */
    size_t (*taken)(const void *plan);
};

/* Buffers that the library allocates for the caller, and knows; statuses, logged.  The
 * number is of the device as this process counts them, -1 the current one.  reclaim()
 * is called where there is no memory left, before another try: it may wait for
 * streams. */
struct coll__buffers {
    int (*alloc)(void **ptr, size_t len, int number, void (*reclaim)(void));
    int (*has)(const void *ptr); /* does one begin there? */
    int (*free)(void *ptr);
};

struct coll__device {
    const char *name; /* "host" */
    const char *what; /* one line */

    /* Say whether this machine has it: COLL_OK, or a status and why. */
    int (*usable)(char *why, size_t len);

    /* Scratch memory, aligned to a page; NULL when there is none left. */
    void *(*alloc)(size_t len);
    void (*free)(void *ptr, size_t len);

    /* Work on memory of this kind, in order on `stream`; copy_past() is for
     * results that exceed the caches.  The last three return the kernel, NULL
     * when the device has none for that type and operation. */
    void (*copy)(void *dst, const void *src, size_t len, void *stream);
    void (*copy_past)(void *dst, const void *src, size_t len, void *stream);
    coll__reduce_fn *(*reduce)(enum coll_type type, enum coll_op op);
    coll__scale_fn *(*scale)(enum coll_type type);
    coll__premul_fn *(*premul)(enum coll_type type);

    /* Of a device that gives the caller memory, else NULL; the host: area.h. */
    const struct coll__buffers *buffers;

    /* Of a device with streams, else NULL: they do the local steps, and the functions
     * above are for the host. */
    const struct coll__stream_ops *streams;
};

/* All devices, the host last; NULL at the end. */
extern const struct coll__device *const coll__devices[];

extern const struct coll__device coll__device_host;

/* May a pointer be another device's?  0 as long as nobody has found a driver. */
extern atomic_int coll__device_is_here __attribute__((visibility("hidden")));

#endif
