/* SPDX-License-Identifier: BSD-3-Clause */
/* mechanisms_flags.c - flags that streams write and wait for: how long a message of
 * eight bytes takes, and what each call costs the host.
 */
#include "tests/gpu/mechanisms.h"

#include <stdio.h>
#include <string.h>

enum { TIMES = 200, ROUNDS = 50, BATCHES = 20 };
enum where { HOST, DEVICE };
enum what { FLAG, BATCH, COPY, KERNEL };

static const char *const where_names[] = {"host", "device"};
static const char *const what_names[] = {"flag", "flag in one batch",
                                         "copy of 8 bytes and flag",
                                         "kernel for 8 bytes and flag"};

static CUdeviceptr flag_of(const struct rank *r, enum where where, int to,
                           int from, int round)
{
    return where == HOST ? host_flag(r, to, from, round)
                         : device_flag(r, to, from, round);
}

static void put(struct rank *r, enum where where, enum what what, int to,
                int round)
{
    CUdeviceptr flag = flag_of(r, where, to, r->rank, round);
    CUdeviceptr slot = slot_of(r, to, r->rank);
    CUdeviceptr mine = slot_of(r, r->rank, r->rank);

    if (what == KERNEL) {
        TRY(gpu_launch(r->pass8, 1, 1, r->s,
                       (void *[]){&slot, &mine, &flag, &r->k}));
        return;
    }
    if (what == COPY)
        TRY(cu.MemcpyDtoDAsync(slot, mine, 8, r->s));
    TRY(cu.StreamWriteValue32(r->s, flag, r->k, 0));
}

static void take(struct rank *r, enum where where, enum what what, int from,
                 int round)
{
    TRY(cu.StreamWaitValue32(r->s, flag_of(r, where, r->rank, from, round),
                             r->k, CU_STREAM_WAIT_VALUE_GEQ));
    if (what == COPY || what == KERNEL)
        TRY(cu.MemcpyDtoDAsync(slot_of(r, r->rank, r->rank) + 8,
                               slot_of(r, r->rank, from), 8, r->s));
}

static void put_and_take(struct rank *r, enum where where, int peer)
{
    CUstreamBatchMemOpParams ops[2];

    memset(ops, 0, sizeof(ops));
    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = flag_of(r, where, peer, r->rank, 0);
    ops[0].writeValue.value = r->k;
    ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[1].waitValue.address = flag_of(r, where, r->rank, peer, 0);
    ops[1].waitValue.value = r->k;
    ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    TRY(cu.StreamBatchMemOp(r->s, 2, ops, 0));
}

/* Both tell each other and wait for their stream: a call that is waited for. */
static void exchange(struct rank *r, enum where where, enum what what)
{
    double times[TIMES];

    rank_barrier(r);
    for (int i = -10; i < TIMES; i++) {
        double began = gpu_now();

        r->k++;
        if (what == BATCH) {
            put_and_take(r, where, !r->rank);
        } else {
            put(r, where, what, !r->rank, 0);
            take(r, where, what, !r->rank, 0);
        }
        TRY(cu.StreamSynchronize(r->s));
        if (i >= 0)
            times[i] = gpu_now() - began;
    }
    if (r->rank)
        return;
    figure_add(r, "us", 1e6 * median_of(times, TIMES),
               "exchange and synchronize, %s in %s memory, p50",
               what_names[what], where_names[where]);
    figure_add(r, "us", 1e6 * part_of(times, TIMES, 0.99),
               "exchange and synchronize, %s in %s memory, p99",
               what_names[what], where_names[where]);
}

/* There and back, enqueued ahead, so that the host is in nobody's way. */
static void round_trips(struct rank *r, enum where where, enum what what)
{
    double times[BATCHES];

    for (int b = 0; b < BATCHES; b++) {
        double began;

        rank_barrier(r);
        began = gpu_now();
        for (int i = 0; i < ROUNDS; i++) {
            r->k++;
            if (r->rank == 0)
                put(r, where, what, 1, 1);
            take(r, where, what, !r->rank, 1);
            if (r->rank == 1)
                put(r, where, what, 0, 1);
        }
        TRY(cu.StreamSynchronize(r->s));
        times[b] = (gpu_now() - began) / ROUNDS;
    }
    if (r->rank == 0)
        figure_add(r, "us", 1e6 * median_of(times, BATCHES),
                   "round trip within streams, %s in %s memory",
                   what_names[what], where_names[where]);
}

static void ping_pong(struct rank *r)
{
    rank_start(r);
    for (int where = HOST; where <= DEVICE; where++)
        for (int what = FLAG; what <= KERNEL; what++) {
            exchange(r, (enum where)where, (enum what)what);
            if (what != BATCH)
                round_trips(r, (enum where)where, (enum what)what);
        }
}

/* Every rank learns of every other one in log2(n) rounds. */
static void dissemination(struct rank *r)
{
    double times[TIMES];

    rank_start(r);
    for (int where = HOST; where <= DEVICE; where++) {
        rank_barrier(r);
        for (int i = -10; i < TIMES; i++) {
            double began = gpu_now();

            r->k++;
            for (int round = 0, d = 1; d < r->n; d *= 2, round++) {
                int to = (r->rank + d) % r->n, from = (r->rank - d + r->n);

                put(r, (enum where)where, COPY, to, round);
                take(r, (enum where)where, COPY, from % r->n, round);
            }
            TRY(cu.StreamSynchronize(r->s));
            if (i >= 0)
                times[i] = gpu_now() - began;
        }
        if (r->rank == 0) {
            figure_add(r, "us", 1e6 * median_of(times, TIMES),
                       "8 bytes by dissemination, flags in %s memory, p50",
                       where_names[where]);
            figure_add(r, "us", 1e6 * part_of(times, TIMES, 0.99),
                       "8 bytes by dissemination, flags in %s memory, p99",
                       where_names[where]);
        }
    }
}

/* The host raises a word, the stream waits for it and raises another one. */
static void host_trips(struct rank *r, const char *beside)
{
    struct line *words = r->share->words[r->rank];
    double times[TIMES];

    for (int i = 0; i < TIMES; i++) {
        double began;

        if (i % ROUNDS == 0) {
            TRY(cu.StreamSynchronize(r->s));
            for (int j = 1; j <= ROUNDS; j++) {
                TRY(cu.StreamWaitValue32(r->s, word_dev(r, 0),
                                         r->k + (uint32_t)j,
                                         CU_STREAM_WAIT_VALUE_GEQ));
                TRY(cu.StreamWriteValue32(r->s, word_dev(r, 1),
                                          r->k + (uint32_t)j, 0));
            }
        }
        began = gpu_now();
        words[0].word = ++r->k;
        while (words[1].word != r->k)
            if (gpu_now() - began > 5)
                rank_fail(r, "a stream did not answer the host");
        times[i] = gpu_now() - began;
    }
    figure_add(r, "us", 1e6 * median_of(times, TIMES),
               "host to stream to host%s, rank %d, p50", beside, r->rank);
    figure_add(r, "us", 1e6 * part_of(times, TIMES, 0.99),
               "host to stream to host%s, rank %d, p99", beside, r->rank);
}

/* How soon the host knows that a stream has come to a point. */
static void completion(struct rank *r)
{
    struct line *words = r->share->words[r->rank];
    double seen[TIMES], synced[TIMES], queried[TIMES], began;
    CUevent e;

    TRY(cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < TIMES; i++) {
        began = gpu_now();
        TRY(cu.StreamWriteValue32(r->s, word_dev(r, 1), ++r->k, 0));
        while (words[1].word != r->k)
            if (gpu_now() - began > 5)
                rank_fail(r, "a stream did not write its word");
        seen[i] = gpu_now() - began;
        TRY(cu.StreamSynchronize(r->s));
        began = gpu_now();
        TRY(cu.StreamWriteValue32(r->s, word_dev(r, 1), ++r->k, 0));
        TRY(cu.StreamSynchronize(r->s));
        synced[i] = gpu_now() - began;
        began = gpu_now();
        TRY(cu.EventRecord(e, r->s));
        while (cu.EventQuery(e) == CUDA_ERROR_NOT_READY)
            ;
        queried[i] = gpu_now() - began;
    }
    words[0].word = r->k; /* host_trips goes on from here */
    figure_add(r, "us", 1e6 * median_of(seen, TIMES),
               "write enqueued to seen by the host");
    figure_add(r, "us", 1e6 * median_of(synced, TIMES),
               "write enqueued to cuStreamSynchronize done");
    figure_add(r, "us", 1e6 * median_of(queried, TIMES),
               "cuEventRecord to cuEventQuery done");
}

static void host_alone(struct rank *r)
{
    rank_start(r);
    host_trips(r, "");
    completion(r);
}

static void host_both(struct rank *r)
{
    rank_start(r);
    host_trips(r, ", both at once");
}

/* Rank 1 computes, in kernels of 1 ms of one block or of as many as fit. */
static void host_beside(struct rank *r, unsigned blocks, const char *beside)
{
    unsigned long long ns = 1000000;
    struct line *stop = &r->share->words[0][3];

    rank_barrier(r);
    if (r->rank == 0) {
        host_trips(r, beside);
        stop->word = 1;
    } else {
        double until = gpu_now() + 20;

        while (!stop->word && gpu_now() < until) {
            for (int i = 0; i < 8; i++)
                TRY(gpu_launch(r->hold, blocks, 128, r->s, (void *[]){&ns}));
            TRY(cu.StreamSynchronize(r->s));
        }
    }
    rank_barrier(r);
    if (r->rank == 0)
        stop->word = 0;
    rank_barrier(r);
}

static void host_while_busy(struct rank *r)
{
    rank_start(r);
    host_beside(r, 1, " beside small kernels of another rank");
    host_beside(r, 1056, " beside large kernels of another rank");
}

/* What each call costs the host while its stream keeps up. */
static void one_call(struct rank *r, int kind, CUevent e)
{
    CUdeviceptr flag = device_flag(r, 0, 0, 0), slot = slot_of(r, 0, 0);
    CUdeviceptr other = slot + 64;

    switch (kind) {
    case 0:
        TRY(cu.StreamWriteValue32(r->s, flag, 1, 0));
        break;
    case 1:
        TRY(cu.StreamWaitValue32(r->s, flag, 0, CU_STREAM_WAIT_VALUE_GEQ));
        break;
    case 2:
        put_and_take(r, DEVICE, 0);
        break;
    case 3:
        TRY(cu.MemcpyDtoDAsync(slot, other, 8, r->s));
        break;
    case 4:
        TRY(cu.MemcpyDtoDAsync(slot, r->area + (1 << 20), 65536, r->s));
        break;
    case 5:
        TRY(gpu_launch(r->add_one, 1, 1, r->s, (void *[]){&other}));
        break;
    case 6:
        TRY(cu.EventRecord(e, r->s));
        break;
    case 7:
        TRY(cu.StreamWaitEvent(r->s, e, 0));
        break;
    case 8:
        TRY(cu.MemsetD8Async(slot, 0, 8, r->s));
        break;
    case 9:
        cu.StreamQuery(r->s);
        break;
    }
}

static void enqueue_costs(struct rank *r)
{
    static const char *const names[] = {"cuStreamWriteValue32",
                                        "cuStreamWaitValue32",
                                        "cuStreamBatchMemOp of 2",
                                        "cuMemcpyDtoDAsync of 8 bytes",
                                        "cuMemcpyDtoDAsync of 64 KiB",
                                        "cuLaunchKernel",
                                        "cuEventRecord",
                                        "cuStreamWaitEvent",
                                        "cuMemsetD8Async of 8 bytes",
                                        "cuStreamQuery"};
    double times[BATCHES], whole[BATCHES];
    CUevent e;

    rank_start(r);
    TRY(cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    for (int kind = 0; kind < (int)ARRAY_LEN(names); kind++) {
        for (int b = -2; b < BATCHES; b++) {
            double began = gpu_now();

            for (int i = 0; i < 100; i++)
                one_call(r, kind, e);
            if (b >= 0)
                times[b] = (gpu_now() - began) / 100;
            TRY(cu.StreamSynchronize(r->s));
            if (b >= 0)
                whole[b] = (gpu_now() - began) / 100;
        }
        figure_add(r, "us", 1e6 * median_of(times, BATCHES), "%s, the host",
                   names[kind]);
        figure_add(r, "us", 1e6 * median_of(whole, BATCHES),
                   "%s, until done, one of 100", names[kind]);
    }
}

#define PING                                                                   \
    "in one process 3 us a round trip of flags, 8 with a copy each way; "      \
    "an exchange that is waited for 12 us"
#define PING_PROCESSES                                                         \
    "between processes that take turns 2 to 4 times that of threads: a "       \
    "waiting channel gives way at once, so far less than a time slice"

static const struct measurement all[] = {
    {"enqueue_costs", 1, 0,
     "1 us a write or wait, 1.5 a batch or copy, 2 a kernel, 0.5 an event",
     enqueue_costs},
    {"host_and_stream", 1, 0,
     "4 us there and back; a write seen after 3 us, synchronize after 6",
     host_alone},
    {"host_and_stream", 2, 0, "as alone, or one more turn: 10 us", host_both},
    {"host_and_busy_gpu", 2, 0,
     "memory operations wait for the other rank's time slice: about 1 ms "
     "with p99 2 ms; not less beside small kernels",
     host_while_busy},
    {"ping_pong", 2, 1, PING, ping_pong},
    {"ping_pong", 2, 0, PING_PROCESSES, ping_pong},
    {"dissemination", 4, 1, "two rounds: 20 us", dissemination},
    {"dissemination", 4, 0, "two rounds among four that take turns: 60 us",
     dissemination},
};
const struct measurement_list of_flags = {all, ARRAY_LEN(all)};
