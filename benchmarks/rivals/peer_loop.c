/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_loop.c - what every rank of every library does: the same object code,
 * linked with one backend.
 *
 * A sample is a batch of operations back to back, each with its own pair (in,
 * out), between two harness barriers.  Before each batch, while the clock does
 * not run, every rank writes content that no earlier batch had, so that no
 * cache holds a result and no old result passes.  The pairs are fresh anonymous
 * pages of this process, mapped and touched anew for each command, so that a
 * lucky mapping does not last.  On request they are pages of the library's own
 * allocator, touched as well; or they are on a GPU: then content comes from the
 * host, and a sample ends when the stream has finished.  The root of a
 * broadcast changes from operation to operation, since a fixed root could run
 * ahead of the others.
 */
#include "benchmarks/rivals/peer.h"
#include "benchmarks/bench.h"
#include "tools/common/cores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LINE 64
#define PAGE 4096

struct peer {
    int rank, ranks, socket;
    struct peer_shared *shared;
    struct peer_command command;
    struct peer_case base; /* rank, ranks, op, count */
    char *memory;          /* of all pairs */
    size_t in_stride, out_stride;
    struct peer_sample samples[PEER_MAX_SAMPLES];
    struct peer_reply reply;
    int is_settled;    /* on its core */
    int is_own_memory; /* the library's allocator gives it */
    const struct bench_device *device; /* NULL: the host */
    char *image; /* the content of one pair of a device, on the host */
};

void *peer_stream;

static int64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void barrier(struct peer *p)
{
    peer_barrier(p->shared, p->rank, p->ranks, p->command.is_crowded);
}

/* ---- memory ------------------------------------------------------------- */

/* Small buffers begin on a cache line, large ones on a page. */
static size_t stride(size_t len)
{
    size_t unit = len < PAGE ? LINE : PAGE;

    return (len + unit - 1) / unit * unit;
}

static size_t in_len(const struct peer *p)
{
    return peer_in_len(&p->base) * sizeof(float);
}

static size_t out_len(const struct peer *p)
{
    return peer_out_len(&p->base) * sizeof(float);
}

static size_t memory_len(const struct peer *p)
{
    return (p->in_stride + p->out_stride) * (size_t)p->command.batch + PAGE;
}

static void *get_pages(size_t len)
{
    void *pages = mmap(NULL, len, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return pages == MAP_FAILED ? NULL : pages;
}

static int map_device(struct peer *p, size_t len)
{
    void *memory = NULL;

    p->image = malloc(p->in_stride + p->out_stride + 1);
    if (!p->image || p->device->alloc(&memory, len)) {
        free(p->image);
        return -1;
    }
    p->memory = memory;
    return 0;
}

static int map(struct peer *p)
{
    size_t len;

    p->in_stride = stride(in_len(p));
    p->out_stride = stride(out_len(p));
    len = memory_len(p);
    if (p->device)
        return map_device(p, len);
    p->memory = p->is_own_memory ? peer_lib.alloc(len) : get_pages(len);
    if (!p->memory)
        return -1;
    memset(p->memory, 0x55, len); /* every page exists and is this rank's own */
    return 0;
}

static void unmap(struct peer *p)
{
    if (p->device) {
        p->device->free(p->memory);
        free(p->image);
    } else if (p->is_own_memory)
        peer_lib.free(p->memory);
    else
        munmap(p->memory, memory_len(p));
}

static float *in_of(const struct peer *p, int k)
{
    return (float *)(void *)(p->memory + p->in_stride * (size_t)k);
}

/* After all of in, on the next page. */
static float *out_of(const struct peer *p, int k)
{
    size_t ins = p->in_stride * (size_t)p->command.batch;

    return (float *)(void *)(p->memory + (ins + PAGE - 1) / PAGE * PAGE +
                             p->out_stride * (size_t)k);
}

/* ---- cores -------------------------------------------------------------- */

/* If ranks share cores, or are on hosts whose launchers do not know of each
 * other, rank r stays on core r modulo their number: so a figure depends on the
 * library and not on where the kernel wakes the ranks.  The rank is bound after the
 * library has started, so that the library's threads stay unbound. */
static void settle(struct peer *p)
{
    struct cores all;
    int left, cpu = -1;

    if (p->is_settled || !p->command.is_bound)
        return;
    p->is_settled = 1;
    if (cores_read(&all))
        return;
    left = p->rank % CPU_COUNT_S(all.len, all.set);
    do
        cpu = cores_from(&all, cpu + 1);
    while (left--);
    cores_bind(cpu);
    CPU_FREE(all.set);
}

/* ---- a sample ----------------------------------------------------------- */

static struct peer_case case_of(const struct peer *p, int sample, int k)
{
    struct peer_case c = p->base;

    c.root = (sample + k) % p->ranks;
    c.salt = p->command.salt + (uint32_t)(sample * p->command.batch + k);
    return c;
}

/* Return where the host writes and reads pair k. */
static float *host_in(const struct peer *p, int k)
{
    return p->device ? (float *)(void *)p->image : in_of(p, k);
}

static float *host_out(const struct peer *p, int k)
{
    return p->device ? (float *)(void *)(p->image + p->in_stride)
                     : out_of(p, k);
}

static int fill_batch(struct peer *p, int sample)
{
    int rc = 0;

    for (int k = 0; k < p->command.batch && !rc; k++) {
        struct peer_case c = case_of(p, sample, k);

        peer_fill(&c, host_in(p, k), host_out(p, k));
        if (p->device)
            rc = p->device->put(in_of(p, k), host_in(p, k), in_len(p));
        if (p->device && !rc)
            rc = p->device->put(out_of(p, k), host_out(p, k), out_len(p));
    }
    return rc;
}

static uint64_t verify_batch(struct peer *p, int sample)
{
    uint64_t wrong = 0;

    for (int k = 0; k < p->command.batch; k++) {
        struct peer_case c = case_of(p, sample, k);

        if (p->device &&
            p->device->get(host_out(p, k), out_of(p, k), out_len(p)))
            wrong++;
        wrong += peer_verify(&c, host_out(p, k));
    }
    return wrong;
}

static int run_batch(struct peer *p, int sample, struct peer_sample *times)
{
    peer_run *run = peer_lib.run[p->command.op];
    int rc = fill_batch(p, sample), root = sample % p->ranks;

    barrier(p);
    times->begin = now();
    for (int k = 0; k < p->command.batch && !rc; k++) {
        rc = run(in_of(p, k), out_of(p, k), p->base.count, root);
        root = root + 1 < p->ranks ? root + 1 : 0;
    }
    if (p->device && !rc)
        rc = p->device->wait();
    times->end = now();
    return rc;
}

/* Rank 0's clock counts; rank 0 tells before the barrier, so that all make the
 * same number of samples. */
static int is_over(struct peer *p, int n, int64_t start)
{
    const struct peer_command *c = &p->command;

    if (!p->rank) {
        int is_late = (double)(now() - start) * 1e-9 >= c->seconds;

        __atomic_store_n(&p->shared->is_over.value,
                         (is_late && n >= c->min_samples) ||
                             n >= c->max_samples,
                         __ATOMIC_RELAXED); /* the barrier releases it */
    }
    barrier(p);
    return (int)__atomic_load_n(&p->shared->is_over.value, __ATOMIC_RELAXED);
}

static int run_samples(struct peer *p)
{
    const struct peer_command *c = &p->command;
    struct peer_sample dropped;
    int n = -c->warm_up, rc;
    int64_t start = now();

    do {
        rc = run_batch(p, n + c->warm_up, n < 0 ? &dropped : &p->samples[n]);
        if (rc)
            return rc; /* the others are stuck; the driver ends the job */
        n++;
    } while (!is_over(p, n, start));
    p->reply.n_samples = n;
    p->reply.wrong = verify_batch(p, n - 1 + c->warm_up);
    return 0;
}

/* ---- commands ----------------------------------------------------------- */

static void fail(struct peer *p, const char *what)
{
    p->reply.status = PEER_FAILED;
    p->reply.n_samples = 0;
    snprintf(p->reply.error, sizeof(p->reply.error), "%s", what);
}

static void measure(struct peer *p)
{
    enum peer_op op = (enum peer_op)p->command.op;

    memset(&p->reply, 0, sizeof(p->reply));
    if (!peer_lib.run[op]) {
        p->reply.status = PEER_UNSUPPORTED;
        return;
    }
    p->base =
        (struct peer_case){.op = op,
                           .rank = p->rank,
                           .ranks = p->ranks,
                           .count = peer_count(op, p->command.bytes, p->ranks)};
    settle(p);
    if (map(p)) {
        fail(p, p->is_own_memory ? peer_lib.error()
                                 : "not enough memory; choose smaller --sizes");
        return;
    }
    if (run_samples(p))
        fail(p, peer_lib.error());
    unmap(p);
}

static int transfer(int fd, void *at, size_t len, int is_write)
{
    char *next = at;

    while (len) {
        ssize_t n =
            is_write ? send(fd, next, len, MSG_NOSIGNAL) : read(fd, next, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        next += n;
        len -= (size_t)n;
    }
    return 0;
}

static int serve(struct peer *p)
{
    while (!transfer(p->socket, &p->command, sizeof(p->command), 0)) {
        if (p->command.verb == PEER_QUIT)
            return 0;
        measure(p);
        if (transfer(p->socket, &p->reply, sizeof(p->reply), 1) ||
            transfer(p->socket, p->samples,
                     (size_t)p->reply.n_samples * sizeof(*p->samples), 1))
            break;
    }
    _exit(1); /* the driver is gone: no other rank would take part in a
               * regular end */
}

/* ---- the beginning ------------------------------------------------------ */

static int meet_driver(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv(PEER_SOCKET);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (!path || strlen(path) >= sizeof(address.sun_path)) {
        fprintf(stderr, "this program is started by compare; run that\n");
        exit(2);
    }
    memcpy(address.sun_path, path, strlen(path));
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address))) {
        fprintf(stderr, "cannot connect to %s: %s; compare has ended\n", path,
                strerror(errno));
        exit(1);
    }
    return fd;
}

/* The driver answers hello with the memory that the ranks share. */
static struct peer_shared *get_shared(int socket)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec io = {&byte, 1};
    struct msghdr message = {.msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *head;
    void *shared;
    int fd;

    if (recvmsg(socket, &message, 0) <= 0 || !CMSG_FIRSTHDR(&message))
        return NULL;
    head = CMSG_FIRSTHDR(&message);
    memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    shared = mmap(NULL, sizeof(struct peer_shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED, fd, 0);
    close(fd);
    return shared == MAP_FAILED ? NULL : shared;
}

static int greet(struct peer *p)
{
    struct peer_hello hello = {
        .magic = PEER_MAGIC, .rank = p->rank, .ranks = p->ranks};

    snprintf(hello.version, sizeof(hello.version), "%s", peer_lib.version());
    if (transfer(p->socket, &hello, sizeof(hello), 1))
        return -1;
    p->shared = get_shared(p->socket);
    return p->shared ? 0 : -1;
}

/* Let the library find this rank's GPU. */
static int use_gpu(struct peer *p)
{
    const char *rank = getenv("COLL_RANK");
    char why[200] = "this program was built without CUDA";

    if (!peer_lib.takes_gpus) {
        fprintf(stderr, "this library takes no buffers on GPUs; leave out %s\n",
                PEER_ON_GPU);
        return -1;
    }
    p->device = bench_device_find("cuda");
    if (!p->device ||
        !p->device->open(rank ? atoi(rank) : 0, why, sizeof(why))) {
        fprintf(stderr, "%s\n", why);
        return -1;
    }
    peer_stream = p->device->stream();
    return 0;
}

int main(int argc, char **argv)
{
    static struct peer p;

    p.socket = meet_driver();
    if (argc > 1 && !strcmp(argv[1], PEER_ON_GPU) && use_gpu(&p))
        return 2;
    if (peer_lib.init(&argc, &argv, &p.rank, &p.ranks)) {
        fprintf(stderr, "cannot join the job: %s\n", peer_lib.error());
        return 1;
    }
    p.is_own_memory = argc > 1 && !strcmp(argv[1], PEER_OWN_MEMORY);
    if (p.is_own_memory && !peer_lib.alloc) {
        fprintf(stderr, "this library has no allocator; leave out %s\n",
                PEER_OWN_MEMORY);
        return 2;
    }
    if (p.ranks > PEER_MAX_RANKS || greet(&p)) {
        fprintf(stderr, "compare does not answer\n");
        return 1;
    }
    serve(&p);
    peer_lib.fini();
    return 0;
}
