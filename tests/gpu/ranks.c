/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.c - libcoll's collectives on device buffers: ranks are processes, or threads of
 * one, that share a GPU, or take turns on several.
 *
 * random   operations at random, by blocking calls, requests and groups, on two
 *          streams, every byte of the results and around them compared
 * replay   a captured allreduce, launched 1,000 times
 * register operations on registered buffers, each of other numbers
 * abort    a rank aborts while the streams of the others wait for it
 * death    a rank is killed instead
 */
#include "tests/gpu/ranks.h"
#include "tests/support/patience.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_REPLAYS 1000
#define SLOW 1.0 /* s, until streams must have been let go */

static const char usage[] =
    "Usage: ranks [OPTION]... [random|replay|register|abort|death]...\n"
    "Tries libcoll on device buffers, by ranks that are processes.\n"
    "  -l, --list         the parts\n"
    "      --threads      ranks are threads of one, which none is killed of\n"
    "      --ranks LIST   how many ranks (1,2,4,8)\n"
    "      --rounds N     operations at random, for each of these (200)\n"
    "      --seed N       which (1)\n"
    "      --hosts N      ranks are on so many hosts, neighbours on one, or "
    "with\n"
    "                     -N in turns; of one machine, for which be root (1)\n"
    "  -t, --time S       what each part may take for each number of ranks "
    "(60)\n"
    "      --within S     begin nothing after so many seconds (540)\n"
    "      --json FILE    where the report goes\n"
    "  -h, --help         this text\n"
    "Exits with 0, with 1 when a result is wrong, 2 for wrong arguments, 77 "
    "without a\n"
    "driver or a device.\n";

struct options {
    const char *ranks, *rounds, *seed, *hosts;
    int are_threads;
};
static struct options asked = {"1,2,4,8", "200", "1", "1", 0};

/* ---- a rank ----------------------------------------------------------------- */

/* Ranks of which there are more than hosts. */
static int go_to_host(const struct world_rank *me)
{
    int n = atoi(asked.hosts);

    return n == 1
               ? 0
               : world_on_host(n > 1 ? me->rank * n / me->size : me->rank % -n);
}

int gpu_rank_begin(struct gpu_rank *g, struct world_rank *me)
{
    const char *why = asked.are_threads ? NULL : gpu_open();
    CUdevice device;
    int n = 0;

    *g = (struct gpu_rank){.me = me, .run = me->arg};
    WORLD_CHECK(me, !why);
    WORLD_CHECK(me, !go_to_host(me));
    if (!asked.are_threads)
        MUST(Init(0));
    MUST(DeviceGetCount(&n));
    MUST(DeviceGet(&device, me->rank % n));
    MUST(DevicePrimaryCtxRetain(&g->context, device));
    MUST(CtxSetCurrent(g->context));
    for (int i = 0; i < 2; i++)
        MUST(StreamCreate(&g->streams[i], CU_STREAM_NON_BLOCKING));
    WORLD_CHECK(me, !oracle_handles_init(&g->handles, me->rank));
    g->comm = world_join(me);
    WORLD_CHECK(me, g->comm != NULL);
    return 0;
}

int gpu_rank_end(struct gpu_rank *g)
{
    WORLD_CHECK(g->me, !coll_comm_destroy(g->comm));
    WORLD_CHECK(g->me, !oracle_handles_fini(&g->handles));
    world_meet(g->me);
    for (int i = 0; i < 2; i++)
        MUST(StreamDestroy(g->streams[i]));
    for (int i = 0; i < 2 * MOST_JOBS; i++)
        if (g->rooms[i].at) {
            MUST(MemFree(g->rooms[i].at));
            MUST(MemFree(g->rooms[i].found));
        }
    return 0;
}

/* ---- replay ----------------------------------------------------------------- */

static int launch_all(struct gpu_rank *g, CUgraphExec graph, CUdeviceptr in,
                      CUdeviceptr out, size_t n)
{
    struct world_rank *me = g->me;
    size_t len = n * sizeof(uint32_t);
    uint32_t *host;

    MUST(MemHostAlloc((void **)&host, len, 0));
    for (uint32_t k = 0; k < N_REPLAYS; k++) {
        for (size_t i = 0; i < n; i++)
            host[i] = (uint32_t)me->rank + k + (uint32_t)i;
        MUST(MemcpyHtoDAsync(in, host, len, g->streams[0]));
        MUST(GraphLaunch(graph, g->streams[0]));
        MUST(MemcpyDtoHAsync(host, out, len, g->streams[0]));
        MUST(StreamSynchronize(g->streams[0]));
        for (size_t i = 0; i < n; i++) {
            uint32_t sum = (uint32_t)(me->size * (me->size - 1) / 2) +
                           (uint32_t)me->size * (k + (uint32_t)i);

            WORLD_CHECK(me, host[i] == sum);
        }
    }
    MUST(MemFreeHost(host));
    return 0;
}

static int rank_replay(struct world_rank *me)
{
    const size_t n = 5000;
    struct gpu_rank g;
    CUdeviceptr in, out;
    CUgraph graph;
    CUgraphExec exec;

    if (gpu_rank_begin(&g, me))
        return 1;
    MUST(MemAlloc(&in, n * sizeof(uint32_t)));
    MUST(MemAlloc(&out, n * sizeof(uint32_t)));
    MUST(StreamBeginCapture(g.streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    WORLD_CHECK(me,
                !coll_allreduce((void *)(uintptr_t)in, (void *)(uintptr_t)out,
                                n, COLL_U32, COLL_SUM, g.comm, g.streams[0]));
    MUST(StreamEndCapture(g.streams[0], &graph));
    MUST(GraphInstantiateWithFlags(&exec, graph, 0));
    if (launch_all(&g, exec, in, out, n))
        return 1;
    MUST(GraphExecDestroy(exec));
    MUST(GraphDestroy(graph));
    MUST(MemFree(in));
    MUST(MemFree(out));
    return gpu_rank_end(&g);
}

/* ---- abort, death ------------------------------------------------------------ */

/* All but the last rank call, and that one ends the job in its way: the streams go
 * on soon after. */
static int rank_is_left(struct world_rank *me, void (*leave)(struct gpu_rank *),
                        int code)
{
    struct gpu_rank g;
    CUdeviceptr buf;
    double began;
    int left;

    if (gpu_rank_begin(&g, me))
        return 1;
    MUST(MemAlloc(&buf, 4096));
    WORLD_CHECK(me, !world_barrier(me, g.comm));
    if (me->rank == me->size - 1) {
        world_await_through(me, me->size - 1, patient(20));
        leave(&g);
        return 0;
    }
    WORLD_CHECK(me, !coll_allreduce((void *)(uintptr_t)buf,
                                    (void *)(uintptr_t)buf, 1024, COLL_U32,
                                    COLL_SUM, g.comm, g.streams[0]));
    world_through(me);
    WORLD_CHECK(me, world_await_failure(g.comm, patient(20)) == code);
    began = gpu_now();
    MUST(StreamSynchronize(g.streams[0]));
    left = (int)((gpu_now() - began) * 1e6);
    if (left > atomic_load(&g.run->shared->n_left))
        atomic_store(&g.run->shared->n_left, left);
    WORLD_CHECK(me, left < patient(SLOW) * 1e6);
    WORLD_CHECK(me, coll_barrier(g.comm, NULL) == code);
    MUST(MemFree(buf));
    coll_comm_destroy(g.comm);
    return 0;
}

static void abort_it(struct gpu_rank *g)
{
    coll_comm_abort(g->comm, "tests/gpu/ranks has seen enough");
    coll_comm_destroy(g->comm);
}

static void die(struct gpu_rank *g)
{
    (void)g;
    raise(SIGKILL);
}

static int rank_aborts(struct world_rank *me)
{
    return rank_is_left(me, abort_it, COLL_ERR_ABORTED);
}

static int rank_dies(struct world_rank *me)
{
    return rank_is_left(me, die, COLL_ERR_PEER);
}

/* ---- all of it ---------------------------------------------------------------- */

static const struct part {
    const char *name;
    world_fn *run;
    int least;    /* ranks */
    int n_killed; /* which world_fork() counts */
} parts[] = {
    {"random", gpu_rank_random, 1, 0},
    {"replay", rank_replay, 1, 0},
    {"register", gpu_rank_register, 1, 0},
    {"abort", rank_aborts, 2, 0},
    {"death", rank_dies, 2, 1},
};
#define N_PARTS (int)(sizeof(parts) / sizeof(parts[0]))

static void take(struct gpu_options *o, int c, const char *value)
{
    (void)o;
    if (c == 'T')
        asked.are_threads = 1;
    else
        *(c == 'R'   ? &asked.ranks
          : c == 'n' ? &asked.rounds
          : c == 'H' ? &asked.hosts
                     : &asked.seed) = value;
}

/* How one part went with so many ranks. */
static void note(FILE *json, const struct part *part, int size, int is_right,
                 double seconds, const struct shared *seen)
{
    printf("%-8s %d rank%s: %s, %.1f s", part->name, size, size > 1 ? "s" : "",
           is_right ? "right" : "wrong", seconds);
    if (seen->n_done)
        printf(", %d operations", seen->n_done);
    if (seen->n_left)
        printf(", streams let go after %d us", seen->n_left);
    printf("\n");
    fflush(stdout);
    if (json)
        fprintf(json,
                "    {\"part\": \"%s\", \"ranks\": %d, \"is_right\": %s, "
                "\"seconds\": %.2f, \"operations\": %d, \"let_go_us\": %d},\n",
                part->name, size, is_right ? "true" : "false", seconds,
                seen->n_done, seen->n_left);
}

/* Ranks as threads, in a process of their own: whoever forks calls no driver. */
struct threads {
    const struct part *part;
    struct run *run;
    int size;
    double seconds;
};

static int run_threads(struct world_rank *me)
{
    struct threads *t = me->arg;

    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); /* two streams each */
    if (gpu_open())
        return 1;
    MUST(Init(0));
    return world_threads(t->size, t->part->run, t->run, t->seconds);
}

static int run_part(const struct part *part, int size, struct run *run,
                    double seconds)
{
    struct threads t = {part, run, size, seconds};

    return asked.are_threads ? world_fork(1, run_threads, &t, seconds + 5)
                             : world_fork(size, part->run, run, seconds);
}

static int try_part(const struct gpu_options *o, const struct part *part,
                    int size, struct run *run, FILE *json)
{
    double began = gpu_now();
    int n_bad;

    atomic_store(&run->shared->n_done, 0);
    atomic_store(&run->shared->n_left, 0);
    n_bad = run_part(part, size, run, patient(o->seconds));
    note(json, part, size, n_bad == part->n_killed, gpu_now() - began,
         run->shared);
    return n_bad != part->n_killed;
}

/* All parts that are wanted, each for all numbers of ranks. */
static int try_all(const struct gpu_options *o, struct run *run, FILE *json)
{
    int n_wrong = 0;

    for (int i = 0; i < N_PARTS; i++) {
        const char *at = asked.ranks;

        while (*at && gpu_is_chosen(o, parts[i].name, NULL)) {
            int size = (int)strtol(at, (char **)&at, 10);

            if (asked.are_threads && parts[i].n_killed)
                break;
            if (size >= parts[i].least && gpu_now() < o->until)
                n_wrong += try_part(o, &parts[i], size, run, json);
            at += *at == ',';
        }
    }
    return n_wrong;
}

/* "1,2,8", each 1 to ORACLE_RANKS. */
static int is_list(const char *at)
{
    char *end;

    for (;; at = end + 1) {
        long n = strtol(at, &end, 10);

        if (end == at || n < 1 || n > ORACLE_RANKS)
            return 0;
        if (!*end)
            return 1;
        if (*end != ',')
            return 0;
    }
}

static int check(const struct gpu_options *o)
{
    for (int i = 0; i < o->n_names; i++) {
        int k = 0;

        while (k < N_PARTS && strcmp(o->names[i], parts[k].name))
            k++;
        if (k == N_PARTS)
            return gpu_wrong(o, "no part ", o->names[i]);
    }
    if (!is_list(asked.ranks))
        return gpu_wrong(o, "no list of 1 to 16 ranks: ", asked.ranks);
    if (!atoi(asked.hosts) || (asked.are_threads && atoi(asked.hosts) != 1))
        return gpu_wrong(
            o, "--hosts is a number, 1 with --threads: ", asked.hosts);
    if (atoi(asked.rounds) < 1)
        return gpu_wrong(o, "--rounds is at least 1", "");
    return 0;
}

static int list_parts(void)
{
    for (int i = 0; i < N_PARTS; i++)
        printf("%s\n", parts[i].name);
    return 0;
}

static int report(const struct gpu_options *o, struct run *run,
                  const struct gpu_found *found)
{
    FILE *json = o->json ? fopen(o->json, "w") : NULL;
    int n_wrong;

    if (o->json && !json) {
        fprintf(stderr, "ranks: cannot write %s: %m\n", o->json);
        return 2;
    }
    printf("%s, driver of CUDA %d.%d\n", found->name, found->cuda / 1000,
           found->cuda % 1000 / 10);
    if (json)
        gpu_put_head(json, "ranks", found);
    if (json)
        fprintf(json, "  \"seed\": %s, \"runs\": [\n", asked.seed);
    n_wrong = try_all(o, run, json);
    if (json) {
        fprintf(json, "    null], \"wrong\": %d\n}\n", n_wrong);
        if (fclose(json)) {
            fprintf(stderr, "ranks: cannot write %s: %m\n", o->json);
            return 2;
        }
    }
    return n_wrong != 0;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"ranks", 1, 0, 'R'}, {"rounds", 1, 0, 'n'},  {"seed", 1, 0, 's'},
        {"hosts", 1, 0, 'H'}, {"threads", 0, 0, 'T'}, {NULL, 0, 0, 0}};
    struct gpu_options o = {.program = "ranks",
                            .usage = usage,
                            .seconds = 60,
                            .within = 540,
                            .own_letters = "",
                            .own = longs,
                            .take = take};
    struct gpu_found found;
    struct run run = {0};
    int status;

    if (argc == 2 && !strcmp(argv[1], "--probe"))
        return gpu_probe_main();
    status = gpu_parse(argc, argv, &o);
    if (status >= 0)
        return status;
    status = check(&o);
    if (status || o.is_list)
        return status ? status : list_parts();
    gpu_probe(&found);
    if (*found.why) {
        printf("ranks: skipped: %s\n", found.why);
        return 77;
    }
    run.rounds = atoi(asked.rounds);
    run.seed = strtoull(asked.seed, NULL, 10);
    run.shared = mmap(NULL, sizeof(*run.shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run.shared == MAP_FAILED)
        return 2;
    o.until = gpu_now() + o.within;
    return report(&o, &run, &found);
}
