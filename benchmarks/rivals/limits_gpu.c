/* SPDX-License-Identifier: BSD-3-Clause */
/* limits_gpu.c - what a GPU can do, whichever library is used: cuMemcpyAsync
 * between buffers inside it, by the clock of its stream.  A child process
 * measures, so that this one never starts the driver and may fork. */
#include "benchmarks/rivals/compare.h"
#include "benchmarks/bench.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPEATS = 5, SMALL = 8, SMALL_TIMES = 100 };

static const size_t area_bytes[N_AREAS] = {64 << 10, 512 << 10, 4 << 20,
                                           32 << 20, 128 << 20, 512 << 20};

/* What the child leaves. */
struct board {
    char name[128], why[200];
    int n;
    struct limits limits;
};

typedef int child_fn(const struct bench_device *device, struct board *board);

/* Two buffers of the GPU. */
struct buffers {
    void *to, *from;
};

/* Find the best of a few times of one copy. */
static int time_copies(const struct bench_device *device,
                       const struct buffers *b, size_t len, int times,
                       double *best)
{
    int rc = 0;

    for (int i = 0; i < REPEATS && !rc; i++) {
        rc = device->mark(0);
        for (int k = 0; k < times && !rc; k++)
            rc = device->copy(b->to, b->from, len);
        if (!rc)
            rc = device->mark(1);
        if (!rc)
            rc = device->wait();
        if (!rc && (!i || device->between(0) / times < *best))
            *best = device->between(0) / times;
    }
    return rc;
}

static int measure_area(const struct bench_device *device,
                        const struct buffers *b, struct area *area)
{
    double seconds = 0, rate;
    int times = (int)((64u << 20) / area->bytes) + 1;
    int rc = time_copies(device, b, area->bytes, times, &seconds);

    rate = seconds > 0 ? 2 * (double)area->bytes / seconds : 0;
    for (int i = 0; i < 4; i++)
        area->copy[i & 1][i >> 1] = area->sum[i & 1][i >> 1] = rate;
    return rc;
}

static int measure(const struct bench_device *device, struct board *board)
{
    struct limits *limits = &board->limits;
    size_t most = area_bytes[limits->n_areas - 1];
    struct buffers b = {NULL, NULL};
    int rc = device->alloc(&b.to, most) || device->alloc(&b.from, most);

    if (rc)
        snprintf(board->why, sizeof(board->why),
                 "the GPU has no memory for copies of %zu bytes; choose "
                 "smaller --sizes",
                 most);
    if (!rc)
        rc = time_copies(device, &b, SMALL, SMALL_TIMES, &limits->gpu_small);
    for (int a = 0; a < limits->n_areas && !rc; a++)
        rc = measure_area(device, &b, &limits->areas[a]);
    device->free(b.to);
    device->free(b.from);
    return rc;
}

static int nothing(const struct bench_device *device, struct board *board)
{
    (void)device;
    (void)board;
    return 0;
}

static void be_child(child_fn *fn, struct board *board)
{
    const struct bench_device *device = bench_device_find("cuda");
    const char *name = device->open(0, board->why, sizeof(board->why));
    int rc;

    if (!name)
        _exit(1);
    snprintf(board->name, sizeof(board->name), "%s", name);
    board->n = board->limits.n_gpus = device->count();
    rc = fn(device, board);
    device->close();
    _exit(rc != 0);
}

/* Return 0 if the child has measured; else 1 after a sentence. */
static int in_child(child_fn *fn, struct board *board)
{
    int status = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (!pid)
        be_child(fn, board);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status))
        return 0;
    return say("cannot measure the GPU: %s",
               pid < 0         ? strerror(errno)
               : board->why[0] ? board->why
                               : "the driver failed; its words are above");
}

static struct board *make_board(void)
{
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (board != MAP_FAILED)
        return board;
    say("cannot measure the GPU: %s", strerror(errno));
    return NULL;
}

int limits_find_gpu(int *n, char name[128])
{
    struct board *board = make_board();
    int rc = board ? in_child(nothing, board) : 1;

    if (!rc) {
        *n = board->n;
        memcpy(name, board->name, 128);
    }
    if (board)
        munmap(board, sizeof(*board));
    return rc;
}

int limits_measure_gpu(double most, struct limits *limits)
{
    struct board *board = make_board();
    int rc;

    if (!board)
        return 1;
    for (int a = 0; a < N_AREAS; a++) {
        board->limits.areas[a].bytes = area_bytes[a];
        if (a < 2 || most > (double)area_bytes[a - 1])
            board->limits.n_areas = a + 1;
    }
    rc = in_child(measure, board);
    if (!rc)
        *limits = board->limits;
    munmap(board, sizeof(*board));
    return rc;
}
