/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.c - libcoll's collectives on device buffers: ranks are processes that share a
 * GPU, or take turns on several.
 *
 * random   operations at random, by blocking calls, requests and groups, on two
 *          streams, every byte of the results and around them compared
 * replay   a captured allreduce, launched 1,000 times
 * abort    a rank aborts while the streams of the others wait for it
 * death    a rank is killed instead
 */
#include "tests/gpu/gpu.h"
#include "tests/patience.h"
#include "tests/work.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_REPLAYS 1000
#define SLOW 1.0 /* s, until streams must have been let go */

static const char usage[] =
    "Usage: ranks [OPTION]... [random|replay|abort|death]...\n"
    "Tries libcoll on device buffers, by ranks that are processes.\n"
    "  -l, --list         the parts\n"
    "      --ranks LIST   how many ranks (1,2,4,8)\n"
    "      --rounds N     operations at random, for each of these (200)\n"
    "      --seed N       which (1)\n"
    "  -t, --time S       what each part may take for each number of ranks "
    "(60)\n"
    "      --within S     begin nothing after so many seconds (540)\n"
    "      --json FILE    where the report goes\n"
    "  -h, --help         this text\n"
    "Exits with 0, with 1 when a result is wrong, 2 for wrong arguments, 77 "
    "without a\n"
    "driver or a device.\n";

/* What all ranks of a run are told, and tell. */
struct run {
    int rounds;
    uint64_t seed;
    struct shared {
        atomic_int n_done; /* operations, of rank 0 */
        atomic_int n_left; /* microseconds, the most it took to be let go */
    } * shared;
};

struct gpu_rank {
    struct world_rank *me;
    struct run *run;
    struct coll_comm *comm;
    CUcontext context;
    CUstream streams[2];
    struct oracle_handles handles;
};

#define MUST(call) gpu_must(cu.call, #call)

/* ---- a rank ----------------------------------------------------------------- */

static int begin(struct gpu_rank *g, struct world_rank *me)
{
    const char *why = gpu_open();
    CUdevice device;
    int n = 0;

    *g = (struct gpu_rank){.me = me, .run = me->arg};
    WORLD_CHECK(me, !why);
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

static int end(struct gpu_rank *g)
{
    WORLD_CHECK(g->me, !coll_comm_destroy(g->comm));
    WORLD_CHECK(g->me, !oracle_handles_fini(&g->handles));
    for (int i = 0; i < 2; i++)
        MUST(StreamDestroy(g->streams[i]));
    return 0;
}

/* ---- random ----------------------------------------------------------------- */

/* What the device has of a buffer of the host. */
struct image {
    unsigned char *host;
    CUdeviceptr at;
    size_t len;
};

/* An operation under way on a stream. */
struct job {
    struct work work;
    struct image images[2];
    int n_images;
    CUstream stream;
    struct coll_args args;
};

static struct image image_of(unsigned char *host, size_t len)
{
    struct image image = {.host = host, .len = len + WORK_GUARD};

    MUST(MemAlloc(&image.at, image.len));
    return image;
}

static void *on_device(const struct job *job, const unsigned char *host)
{
    for (int i = 0; i < job->n_images; i++) {
        const struct image *image = &job->images[i];

        if (host >= image->host && host < image->host + image->len)
            return (void *)(uintptr_t)(image->at +
                                       (size_t)(host - image->host));
    }
    return NULL;
}

/* Buffers, and their content on its way to the device. */
static void prepare(struct job *job, const struct gpu_rank *g,
                    const struct oracle_op *op, int is_in_place, int s)
{
    size_t size = coll_type_size(op->type), in, out;
    struct work *w = &job->work;

    work_init(w, op, g->me->rank, &g->handles, is_in_place);
    in = w->in_at.len * size;
    out = w->out_at.len * size;
    job->stream = g->streams[s];
    job->n_images = w->is_in_place ? 1 : 2;
    if (w->is_in_place) {
        job->images[0] = image_of(w->room, in > out ? in : out);
    } else {
        job->images[0] = image_of(w->in, in);
        job->images[1] = image_of(w->out, out);
    }
    for (int i = 0; i < job->n_images; i++)
        MUST(MemcpyHtoDAsync(job->images[i].at, job->images[i].host,
                             job->images[i].len, job->stream));
    job->args = work_args(w);
    job->args.in = on_device(job, w->in);
    job->args.out = on_device(job, w->out);
    job->args.stream = job->stream;
}

/* The content on its way back, behind the operation. */
static void fetch(const struct job *job)
{
    for (int i = 0; i < job->n_images; i++)
        MUST(MemcpyDtoHAsync(job->images[i].host, job->images[i].at,
                             job->images[i].len, job->stream));
}

static int judge(struct job *job, const struct gpu_rank *g)
{
    int is_wrong;

    MUST(StreamSynchronize(job->stream));
    is_wrong = work_check(&job->work, g->me);
    for (int i = 0; i < job->n_images; i++)
        MUST(MemFree(job->images[i].at));
    work_fini(&job->work);
    return is_wrong;
}

static int by_request(const struct coll_args *args, struct coll_comm *comm)
{
    struct coll_request *request;
    int rc = coll_request_create(args, comm, &request), end;

    if (rc)
        return rc;
    rc = coll_start(request);
    if (!rc)
        rc = coll_wait(request, 0);
    end = coll_request_destroy(request);
    return rc ? rc : end;
}

static int by_group(struct job *jobs, int n, struct coll_comm *comm)
{
    int rc = coll_group_start(), end;

    for (int i = 0; i < n && !rc; i++)
        rc = work_call_with(&jobs[i].args, comm);
    end = coll_group_end();
    return rc ? rc : end;
}

/* A function of the caller's runs on the host alone. */
static struct oracle_op draw(uint64_t *state, int size)
{
    struct oracle_op op = oracle_draw(state, size);

    while (op.own == OWN_COMMUTES || op.own == OWN_ORDERED)
        op = oracle_draw(state, size);
    return op;
}

/* One to three operations, of one way to call them, which all ranks choose alike as
 * they must for groups; in place and the stream are each rank's own choice. */
static int do_round(struct gpu_rank *g, uint64_t *alike, uint64_t *own)
{
    int way = (int)oracle_random(alike, 4), n = way == 3 ? 3 : 1, rc = 0;
    int s = (int)oracle_random(own, 2), n_wrong = 0;
    struct job jobs[3];

    for (int i = 0; i < n; i++) {
        struct oracle_op op = draw(alike, g->me->size);

        prepare(&jobs[i], g, &op, (int)oracle_random(own, 3) == 0, s);
    }
    if (way == 3)
        rc = by_group(jobs, n, g->comm);
    else if (way == 2)
        rc = by_request(&jobs[0].args, g->comm);
    else
        rc = work_call_with(&jobs[0].args, g->comm);
    if (rc)
        fprintf(stderr, "rank %d of %d: %s: %s\n", g->me->rank, g->me->size,
                coll_collective_name(jobs[0].args.collective),
                coll_last_error());
    for (int i = 0; i < n && !rc; i++)
        fetch(&jobs[i]);
    for (int i = 0; i < n && !rc; i++)
        n_wrong += judge(&jobs[i], g);
    if (g->me->rank == 0 && !rc)
        atomic_fetch_add(&g->run->shared->n_done, n);
    return rc ? 1 : n_wrong;
}

static int rank_random(struct world_rank *me)
{
    struct gpu_rank g;
    uint64_t alike, own;
    int n_wrong = begin(&g, me);

    alike = g.run->seed * 1000003u + (unsigned)me->size;
    own = alike + 1 + (unsigned)me->rank;
    for (int i = 0; i < g.run->rounds && !n_wrong; i++)
        n_wrong = do_round(&g, &alike, &own);
    return n_wrong || end(&g);
}

/* ---- replay ----------------------------------------------------------------- */

static int launch_all(struct gpu_rank *g, CUgraphExec graph, CUdeviceptr in,
                      CUdeviceptr out, size_t n)
{
    struct world_rank *me = g->me;
    size_t len = n * sizeof(uint32_t);
    uint32_t *host = malloc(len);

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
    free(host);
    return 0;
}

static int rank_replay(struct world_rank *me)
{
    const size_t n = 5000;
    struct gpu_rank g;
    CUdeviceptr in, out;
    CUgraph graph;
    CUgraphExec exec;

    if (begin(&g, me))
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
    return end(&g);
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

    if (begin(&g, me))
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
    {"random", rank_random, 1, 0},
    {"replay", rank_replay, 1, 0},
    {"abort", rank_aborts, 2, 0},
    {"death", rank_dies, 2, 1},
};
#define N_PARTS (int)(sizeof(parts) / sizeof(parts[0]))

struct options {
    const char *ranks, *rounds, *seed;
};
static struct options own = {"1,2,4,8", "200", "1"};

static void take(struct gpu_options *o, int c, const char *value)
{
    (void)o;
    *(c == 'R' ? &own.ranks : c == 'n' ? &own.rounds : &own.seed) = value;
}

/* How one part went with so many ranks. */
static void note(FILE *json, const struct part *part, int size, int is_right,
                 double seconds, const struct shared *seen)
{
    printf("%-7s %d rank%s: %s, %.1f s", part->name, size, size > 1 ? "s" : "",
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

static int try_part(const struct gpu_options *o, const struct part *part,
                    int size, struct run *run, FILE *json)
{
    double began = gpu_now();
    int n_bad;

    atomic_store(&run->shared->n_done, 0);
    atomic_store(&run->shared->n_left, 0);
    n_bad = world_fork(size, part->run, run, patient(o->seconds));
    note(json, part, size, n_bad == part->n_killed, gpu_now() - began,
         run->shared);
    return n_bad != part->n_killed;
}

/* All parts that are wanted, each for all numbers of ranks. */
static int try_all(const struct gpu_options *o, struct run *run, FILE *json)
{
    int n_wrong = 0;

    for (int i = 0; i < N_PARTS; i++) {
        const char *at = own.ranks;

        while (*at && gpu_is_chosen(o, parts[i].name, NULL)) {
            int size = (int)strtol(at, (char **)&at, 10);

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
    if (!is_list(own.ranks))
        return gpu_wrong(o, "no list of 1 to 16 ranks: ", own.ranks);
    if (atoi(own.rounds) < 1)
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
        fprintf(json, "  \"seed\": %s, \"runs\": [\n", own.seed);
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
    static const struct option longs[] = {{"ranks", 1, 0, 'R'},
                                          {"rounds", 1, 0, 'n'},
                                          {"seed", 1, 0, 's'},
                                          {NULL, 0, 0, 0}};
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
    run.rounds = atoi(own.rounds);
    run.seed = strtoull(own.seed, NULL, 10);
    run.shared = mmap(NULL, sizeof(*run.shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run.shared == MAP_FAILED)
        return 2;
    o.until = gpu_now() + o.within;
    return report(&o, &run, &found);
}
