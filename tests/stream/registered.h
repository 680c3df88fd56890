/* SPDX-License-Identifier: BSD-3-Clause */
/* registered.h - ranks over the fake CUDA driver, each with buffers that all have
 * registered, and others. */
#ifndef COLL_TESTS_REGISTERED_H
#define COLL_TESTS_REGISTERED_H

#include "tests/support/device_world.h"

/* Elements, I32, of the calls to come, or of each rank's part of them; bytes of each
 * buffer, with some more behind them. */
extern int registered_count;
#define REGISTERED_MOST (8 * registered_count * (int)sizeof(int32_t))

struct registered {
    struct device_rank r;
    char *in, *out;     /* registered: REGISTERED_MOST bytes from there */
    char *in_2, *out_2; /* not */
    int32_t host[];     /* as many */
};

/* Memory for a rank, to free(); join the others, with buffers; register and deregister
 * them; leave.  0, or what failed. */
struct registered *registered_new(void);
int registered_join(struct registered *k, struct world_rank *me);
int registered_enroll(const struct registered *k);
int registered_dismiss(const struct registered *k);
int registered_leave(struct registered *k);

/* What a rank has at element i in a round; put that, of this rank, into a buffer. */
int32_t registered_value(int rank, int round, int i);
void registered_fill(struct registered *k, char *at, int round);

/* A call, and whether it left what it should, when its stream has passed it. */
enum { REGISTERED_KINDS = 5 };
extern const enum coll_collective registered_kinds[REGISTERED_KINDS];
struct coll_args registered_args(const struct registered *k,
                                 enum coll_collective collective, size_t count,
                                 char *in, char *out);
int registered_is_right(struct registered *k, enum coll_collective c,
                        const char *out, int round);

/* Capture an alltoall from `in` to `out` and then an allreduce in place in `in`; launch
 * them `n` times, each time with other numbers.  0, or what failed. */
int registered_replay(struct registered *k, int n);

/* Bytes that copies and kernels of this process have moved; those that a call moved on
 * this rank, whose result is right: 0, or not. */
uint64_t registered_copied(void);
int registered_call(struct registered *k, enum coll_collective c, char *in,
                    char *out, int round, uint64_t *moved);

/* A rank's body: the last rank has called once less, and is killed (where there is an
 * argument), or aborts; the others' streams or kernels, which wait for what it has, or
 * for it to take what they have, go on. */
int registered_fall_out(struct world_rank *me);

#endif
