/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.c - what this machine can do, whichever library is used: a flag
 * between two cores, a switch between two processes of one core, bytes copied
 * and added.
 *
 * Helper processes are forked and each bound to a core; their results are in
 * shared memory.  Bandwidth is that of all cores at once, each with private
 * buffers, from the first one's beginning to the last one's end.
 */
#include "benchmarks/rivals/compare.h"
#include "tools/common/cores.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 10000, YIELDS = 2000, PARTS = 11, REPEATS = 3, N_WAYS = 4 };

#define WHOLE 0.03 /* s a cell; who measures shorter has a part of the turns */

static const size_t area_bytes[N_AREAS] = {32 << 10, 256 << 10, 1 << 20,
                                           4 << 20,  16 << 20,  64 << 20};

struct line {
    _Alignas(64) uint32_t value;
};

/* Shared by the helpers of one measurement. */
struct board {
    struct line flags[MAX_CORES]; /* flag r: rank r writes */
    struct peer_shared barrier;
    double begin[MAX_CORES], end[MAX_CORES], times[PARTS];
    double streams[N_AREAS][N_WAYS]; /* s, the best */
};

struct helper {
    struct board *board;
    int rank, n, n_areas;
    double part; /* of the turns, above 0 to 1 */
};

typedef void helper_fn(const struct helper *helper);

/* ---- helpers ------------------------------------------------------------ */

int cores_list(int *list)
{
    struct cores cores;
    int n = 0, cpu = -1;

    if (cores_read(&cores))
        return 0;
    while (n < MAX_CORES && (cpu = cores_from(&cores, cpu + 1)) >= 0) {
        if (list)
            list[n] = cpu;
        n++;
    }
    CPU_FREE(cores.set);
    return n;
}

/* Run fn in n processes, rank r on cores[r].  Returns 0 if all ended well. */
static int run(helper_fn *fn, struct helper helper, const int *cores)
{
    pid_t pids[MAX_CORES];
    int failed = 0, status;

    memset(helper.board, 0, sizeof(*helper.board));
    for (int r = 0; r < helper.n; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            signal(SIGINT, SIG_DFL);
            signal(SIGTERM, SIG_DFL);
            cores_bind(cores[r]);
            helper.rank = r;
            fn(&helper);
            _exit(0);
        }
        failed |= pids[r] < 0;
    }
    for (int r = 0; r < helper.n; r++) {
        if (pids[r] < 0)
            continue;
        if (failed) /* the others wait for the one that is missing */
            kill(pids[r], SIGKILL);
        while (waitpid(pids[r], &status, 0) < 0 && errno == EINTR)
            ;
        failed |= status != 0;
    }
    return failed ? -1 : 0;
}

static uint32_t look(const struct line *line)
{
    return __atomic_load_n(&line->value, __ATOMIC_ACQUIRE);
}

static void write_line(struct line *line, uint32_t value)
{
    __atomic_store_n(&line->value, value, __ATOMIC_RELEASE);
}

static int turns(const struct helper *h, int all)
{
    return 1 + (int)(h->part * (all - 1));
}

/* Both write, and both wait for the other's flag. */
static void exchange(const struct helper *h)
{
    struct line *mine = &h->board->flags[h->rank];
    struct line *other = &h->board->flags[!h->rank];
    uint32_t turn = 0;
    int n = turns(h, TURNS);

    for (int part = 0; part < PARTS; part++) {
        double start = now_seconds();

        for (int i = 0; i < n; i++) {
            write_line(mine, ++turn);
            while ((int32_t)(look(other) - turn) < 0)
                ;
        }
        if (!h->rank)
            h->board->times[part] = (now_seconds() - start) / n;
    }
}

/* Exchange a flag n times.  One side waits before it writes, so each exchange is there
 * and back. */
static inline void there_and_back(const struct helper *h, int n, int yields)
{
    struct line *mine = &h->board->flags[h->rank];
    struct line *other = &h->board->flags[!h->rank];
    uint32_t turn = 0;

    for (int part = 0; part < PARTS; part++) {
        double start = now_seconds();

        for (int i = 0; i < n; i++) {
            turn++;
            if (!h->rank)
                write_line(mine, turn);
            while (look(other) != turn)
                if (yields)
                    sched_yield();
            if (h->rank)
                write_line(mine, turn);
        }
        if (!h->rank)
            h->board->times[part] = (now_seconds() - start) / n;
    }
}

static void ping_pong(const struct helper *h)
{
    there_and_back(h, turns(h, TURNS), 0);
}

/* The same on one core. */
static void yield_back(const struct helper *h)
{
    there_and_back(h, turns(h, YIELDS), 1);
}

/* Run one kernel on one size, long enough to be measured.  The best of a few
 * times counts, since a limit is what the machine does when nothing disturbs
 * it. */
static void stream_one(const struct helper *h, float *buffers, int area,
                       int way)
{
    size_t n = area_bytes[area] / sizeof(float);
    int times = (int)((8u << 20) / area_bytes[area]) + 1;
    struct board *board = h->board;
    kernel_fn *run_kernel = kernel(way & 1, way >> 1);

    for (int part = 0; part < REPEATS; part++) {
        peer_barrier(&board->barrier, h->rank, h->n, 0);
        board->begin[h->rank] = now_seconds();
        for (int i = 0; i < times; i++)
            run_kernel(buffers, buffers + n, buffers + 2 * n, n);
        board->end[h->rank] = now_seconds();
        peer_barrier(&board->barrier, h->rank, h->n, 0);
        if (!h->rank) {
            double begin = board->begin[0], end = board->end[0];
            double *best = &board->streams[area][way];

            for (int r = 1; r < h->n; r++) {
                begin = board->begin[r] < begin ? board->begin[r] : begin;
                end = board->end[r] > end ? board->end[r] : end;
            }
            if (!part || (end - begin) / times < *best)
                *best = (end - begin) / times;
        }
    }
}

/* Measure all sizes and kernels.  The lowest bit of `way` selects the sum, the next one
 * stores that bypass the caches. */
static void stream(const struct helper *h)
{
    size_t most = area_bytes[h->n_areas - 1];
    float *buffers = mmap(NULL, 3 * most, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (buffers == MAP_FAILED)
        _exit(1);
    for (size_t i = 0; i < 3 * most / sizeof(float); i++)
        buffers[i] = 1;
    for (int area = 0; area < h->n_areas; area++)
        for (int way = 0; way < N_WAYS; way++)
            stream_one(h, buffers, area, way);
}

/* ---- all ---------------------------------------------------------------- */

static double latency(helper_fn *fn, struct board *board, const int *cores,
                      double part)
{
    struct helper helper = {.board = board, .n = 2, .part = part};
    double best;

    if (run(fn, helper, cores))
        return 0;
    best = board->times[0];
    for (int i = 1; i < PARTS; i++)
        if (board->times[i] < best)
            best = board->times[i];
    return best;
}

/* Return the bytes a second, read and written, of n cores. */
static void bandwidth(struct limits *limits, struct board *board,
                      const int *cores, int n, int is_all)
{
    struct helper helper = {.board = board, .n = n, .n_areas = limits->n_areas};

    if (run(stream, helper, cores))
        return;
    for (int a = 0; a < limits->n_areas; a++)
        for (int way = 0; way < N_WAYS; way++) {
            struct area *area = &limits->areas[a];
            int is_sum = way & 1, is_past = way >> 1;
            double moved = (is_sum ? 3 : 2) * (double)area_bytes[a] * n;

            (is_sum ? area->sum : area->copy)[is_all][is_past] =
                moved / board->streams[a][way];
        }
}

int limits_measure(double most, double seconds, struct limits *limits)
{
    double part = seconds < WHOLE ? seconds / WHOLE : 1;
    int cores[MAX_CORES], n = cores_list(cores), same[2];
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    memset(limits, 0, sizeof(*limits));
    if (board == MAP_FAILED || !n)
        return say("cannot measure the machine: %s", strerror(errno));
    limits->n_cores = n;
    for (int a = 0; a < N_AREAS; a++) {
        limits->areas[a].bytes = area_bytes[a];
        if (a < 2 || most > (double)area_bytes[a - 1])
            limits->n_areas = a + 1;
    }
    same[0] = same[1] = cores[0];
    if (n > 1) {
        limits->exchange = latency(exchange, board, cores, part);
        limits->round_trip = latency(ping_pong, board, cores, part);
    }
    limits->yield = latency(yield_back, board, same, part);
    bandwidth(limits, board, cores, 1, 0);
    bandwidth(limits, board, cores, n, 1);
    munmap(board, sizeof(*board));
    return 0;
}

/* Return the median of one number over all runs, which are structs of one type.
 */
static double middle(const struct limits *runs, int n, size_t offset)
{
    double values[MAX_LIST + 1];

    for (int i = 0; i < n; i++)
        memcpy(&values[i], (const char *)&runs[i] + offset, sizeof(double));
    return median(values, n);
}

void limits_median(const struct limits *runs, int n, struct limits *limits)
{
    const char *base = (const char *)runs;

    *limits = runs[0];
#define MIDDLE(field)                                                          \
    limits->field = middle(runs, n, (size_t)((const char *)&runs->field - base))
    MIDDLE(exchange);
    MIDDLE(round_trip);
    MIDDLE(yield);
    MIDDLE(gpu_small);
    for (int a = 0; a < runs->n_areas; a++)
        for (int i = 0; i < 4; i++) {
            MIDDLE(areas[a].copy[i & 1][i >> 1]);
            MIDDLE(areas[a].sum[i & 1][i >> 1]);
        }
#undef MIDDLE
}
