/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_cases.c - what the kernels for device memory must do.
 *
 * Four buffers (dst, next, a, b) lie one behind the other, with some room
 * between them; a tight case allocates each by itself, to its last byte, so that
 * a checker of accesses sees who reads beyond.  The host has the same bytes and
 * works on them by its own kernels: then everything is compared.
 */
#include "tests/support/kernel_cases.h"
#include "tests/support/element.h"
#include "lib/device/cuda_kernels.h"
#include "lib/device/reduce.h"
#include "lib/type/op.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR 16

enum { DST, NEXT, A, B, N_BUFFERS };

/* A case's memory, here and there.  Buffers that are one have one address. */
struct scene {
    char *host, *device; /* the whole, unless tight */
    char *own[N_BUFFERS];
    char *here[N_BUFFERS], *there[N_BUFFERS]; /* where elements begin */
    size_t size, len, room;
};

static void need(const void *ptr)
{
    if (ptr)
        return;
    fprintf(stderr, "kernel_cases: out of memory\n");
    exit(1);
}

static int buffer_of(const struct kernel_case *c, int i)
{
    if (i == DST && c->target != ELSEWHERE)
        return c->target == LEFT ? A : B;
    return i;
}

static void open_scene(struct machine *m, const struct kernel_case *c,
                       struct scene *s)
{
    memset(s, 0, sizeof(*s));
    s->size = coll_type_size(c->type);
    s->len = c->count * s->size;
    s->room = round_up(s->len + 8 * s->size + VECTOR, 256);
    s->host = malloc(N_BUFFERS * s->room);
    need(s->host);
    if (!c->is_tight)
        need(s->device = m->alloc(N_BUFFERS * s->room));
    for (int i = 0; i < N_BUFFERS; i++) {
        int buffer = buffer_of(c, i);
        size_t at = c->at[buffer] * s->size;

        s->here[i] = s->host + (size_t)buffer * s->room + at;
        if (c->is_tight && buffer == i)
            need(s->own[i] = m->alloc(at + s->len));
        if (!c->is_tight)
            s->there[i] = s->device + (size_t)buffer * s->room + at;
    }
    for (int i = 0; c->is_tight && i < N_BUFFERS; i++) {
        int buffer = buffer_of(c, i);

        s->there[i] = s->own[buffer] + c->at[buffer] * s->size;
    }
}

static void close_scene(struct machine *m, struct scene *s)
{
    if (s->device)
        m->release(s->device);
    for (int i = 0; i < N_BUFFERS; i++)
        if (s->own[i])
            m->release(s->own[i]);
    free(s->host);
}

static void send_over(struct machine *m, const struct scene *s)
{
    if (s->device)
        m->put(s->device, s->host, N_BUFFERS * s->room);
    for (int i = 0; i < N_BUFFERS; i++)
        if (s->own[i])
            m->put(s->there[i], s->here[i], s->len);
}

static void fetch(struct machine *m, const struct scene *s, char *out)
{
    memcpy(out, s->host, N_BUFFERS * s->room);
    if (s->device)
        m->get(out, s->device, N_BUFFERS * s->room);
    for (int i = 0; i < N_BUFFERS; i++)
        if (s->own[i])
            m->get(out + (s->here[i] - s->host), s->there[i], s->len);
}

/* ---- both sides ------------------------------------------------------------ */

/* The factor's bits are those of the operand b, and more where b is too short. */
static uint64_t factor_of(const struct kernel_case *c, const struct scene *s)
{
    size_t len = coll_type_size(coll__factor_type(c->type));
    uint64_t factor = 0x3f333333; /* 0.7f */

    memcpy(&factor, s->here[B], min_size(len, s->len));
    return factor;
}

static void work_there(struct machine *m, const struct kernel_case *c,
                       struct scene *s)
{
    void *next = c->has_next ? s->there[NEXT] : NULL;
    uint64_t factor = 0,
             magic = coll__cuda_magic(max_size((size_t)c->n_ranks, 1));
    int n_ranks = c->n_ranks;
    void *copy[] = {&s->there[DST], &next, &s->there[A], &s->len};
    void *reduce[] = {&s->there[DST], &next, &s->there[A], &s->there[B],
                      &s->len};
    void *scale[] = {&s->there[DST], &s->there[A], &s->len, &n_ranks, &magic};
    void *multiply[] = {&s->there[DST], &s->there[A], &s->len, &factor};
    const char *entry[] = {"coll_copy", coll__cuda_reduce(c->type, c->op),
                           coll__cuda_scale(c->type),
                           coll__cuda_multiply(c->type)};
    void **params[] = {copy, reduce, scale, multiply};

    if (c->count && c->kind == KERNEL_MULTIPLY)
        factor = factor_of(c, s);
    m->launch(entry[c->kind], c->blocks, c->threads, params[c->kind]);
    m->n_checks++;
}

static void work_here(const struct kernel_case *c, struct scene *s)
{
    uint64_t factor;

    switch (c->kind) {
    case KERNEL_COPY:
        memmove(s->here[DST], s->here[A], s->len);
        break;
    case KERNEL_REDUCE:
        coll__host_reduce(c->type, c->op)(s->here[DST], s->here[A], s->here[B],
                                          s->len);
        break;
    case KERNEL_SCALE:
        memmove(s->here[DST], s->here[A], s->len);
        coll__host_scale(c->type)(s->here[DST], s->len, c->n_ranks);
        break;
    case KERNEL_MULTIPLY:
        memmove(s->here[DST], s->here[A], s->len); /* may be in place */
        factor = factor_of(c, s);
        coll__host_multiply(c->type)(s->here[DST], s->here[DST], s->len,
                                     &factor);
        break;
    }
    if (c->has_next)
        memcpy(s->here[NEXT], s->here[DST], s->len);
}

/* ---- as steps of a plan ---------------------------------------------------- */

static uint64_t number(void *param) { return *(uint64_t *)param; }

static struct coll__cuda_step copy_step(uint64_t dst, uint64_t src,
                                        uint64_t len)
{
    return (struct coll__cuda_step){.what = COLL__CUDA_DO_COPY,
                                    .dst_in = COLL__CUDA_HERE,
                                    .dst = dst,
                                    .src_in = COLL__CUDA_HERE,
                                    .src = src,
                                    .with_in = COLL__CUDA_NONE,
                                    .next_in = COLL__CUDA_NONE,
                                    .len = len};
}

static void set_next(struct coll__cuda_step *step, uint64_t next)
{
    step->next = next;
    step->next_in = next ? COLL__CUDA_HERE : COLL__CUDA_NONE;
}

/* Parameters as cuda_kernels.h has them; names that are none become another step. */
struct coll__cuda_step kernel_step(const char *entry, void **params)
{
    int is_scale = !strncmp(entry, "coll_scale", 10);
    struct coll__cuda_step step =
        copy_step(number(params[0]), number(params[1]), number(params[2]));

    step.what = (uint8_t)coll__cuda_doing(entry);
    if (is_scale || !strncmp(entry, "coll_multiply", 13)) {
        step.number =
            is_scale ? (uint64_t) * (int *)params[3] : number(params[3]);
        step.with = is_scale ? number(params[4]) : 0;
    } else if (!strcmp(entry, "coll_copy")) {
        set_next(&step, number(params[1]));
        step.src = number(params[2]);
        step.len = number(params[3]);
    } else {
        set_next(&step, number(params[1]));
        step.with_in = COLL__CUDA_HERE;
        step.with = number(params[2]);
        step.src = number(params[3]);
        step.len = number(params[4]);
    }
    return step;
}

/* ---- comparison ------------------------------------------------------------ */

static void describe(const struct kernel_case *c, const char *what, char *why,
                     size_t len)
{
    static const char *const kinds[] = {"copy", "reduce", "scale", "multiply"};
    static const char *const targets[] = {"elsewhere", "left", "right"};

    snprintf(why, len,
             "%s %s %s, %zu elements at %zu %zu %zu %zu, in %s%s%s, %d ranks, "
             "%u x %u threads: %s",
             kinds[c->kind], coll_type_name(c->type), coll_op_name(c->op),
             c->count, c->at[DST], c->at[NEXT], c->at[A], c->at[B],
             targets[c->target], c->has_next ? ", next" : "",
             c->is_tight ? ", tight" : "", c->n_ranks, c->blocks, c->threads,
             what);
}

/* One NaN is like another: take what came for what was wanted. */
static int check_result(const struct kernel_case *c, const struct scene *s,
                        char *got, int buffer, char *why, size_t len)
{
    char *came = got + (s->here[buffer] - s->host), what[128];
    size_t i = first_difference(c->type, came, s->here[buffer], c->count);
    uint64_t is = 0, wanted = 0;

    if (i == c->count) {
        memcpy(came, s->here[buffer], s->len);
        return 0;
    }
    memcpy(&is, came + i * s->size, s->size);
    memcpy(&wanted, s->here[buffer] + i * s->size, s->size);
    snprintf(what, sizeof(what), "element %zu of %s is %#llx, not %#llx", i,
             buffer == NEXT ? "next" : "dst", (unsigned long long)is,
             (unsigned long long)wanted);
    describe(c, what, why, len);
    return -1;
}

int kernel_check(struct machine *m, const struct kernel_case *c, char *why,
                 size_t len)
{
    struct scene s;
    int status = -1;
    char *got;

    open_scene(m, c, &s);
    got = malloc(N_BUFFERS * s.room);
    need(got);
    memset(s.host, 0x5a, N_BUFFERS * s.room);
    fill(c->type, s.here[A], c->count, c->count + 1);
    fill(c->type, s.here[B], c->count, c->count + 77);
    send_over(m, &s);
    work_there(m, c, &s);
    fetch(m, &s, got);
    work_here(c, &s);
    if (check_result(c, &s, got, DST, why, len) ||
        (c->has_next && check_result(c, &s, got, NEXT, why, len)))
        goto done;
    status = 0;
    if (memcmp(got, s.host, N_BUFFERS * s.room)) {
        describe(c, "wrote elsewhere", why, len);
        status = -1;
    }
done:
    close_scene(m, &s);
    free(got);
    return status;
}

/* ---- lists of cases --------------------------------------------------------- */

const size_t kernel_counts[KERNEL_N_COUNTS] = {
    0, 1, 2, 7, 8, 15, 16, 17, 31, 61, 127, 257, 769, 1031, 4099};

/* Elements past 16 bytes, of dst, next, a and b. */
static const size_t places[][N_BUFFERS] = {
    {0, 0, 0, 0}, {1, 1, 1, 1}, {0, 0, 0, 1}, {0, 1, 0, 0},
    {3, 2, 1, 0}, {0, 5, 7, 3}, {7, 7, 6, 7},
};

/* All places and lengths of what is said of kind, type, operation, target. */
static int check_shapes(struct machine *m, struct kernel_case c, char *why,
                        size_t len)
{
    for (size_t p = 0; p < ARRAY_LEN(places); p++)
        for (size_t n = 0; n < KERNEL_N_COUNTS; n++) {
            memcpy(c.at, places[p], sizeof(c.at));
            c.count = kernel_counts[n];
            c.blocks = 1 + (unsigned)n % 3;
            c.threads = 32;
            c.has_next = (c.kind == KERNEL_COPY || c.kind == KERNEL_REDUCE) &&
                         (n + p) % 2;
            c.is_tight = n % 4 == 3 && c.count > 0;
            if (kernel_check(m, &c, why, len))
                return -1;
        }
    return 0;
}

/* As large as it is used, with whole blocks; and all but aligned. */
static int check_large(struct machine *m, struct kernel_case c, char *why,
                       size_t len)
{
    c.count = m->large / coll_type_size(c.type) + 3;
    c.threads = COLL__CUDA_THREADS;
    c.blocks = coll__cuda_blocks(m->large, 264);
    if (kernel_check(m, &c, why, len))
        return -1;
    c.at[A] = c.at[DST] = 1;
    c.blocks = 2;
    c.has_next = c.kind == KERNEL_COPY || c.kind == KERNEL_REDUCE;
    return kernel_check(m, &c, why, len);
}

static int check_case(struct machine *m, struct kernel_case c, char *why,
                      size_t len)
{
    return check_shapes(m, c, why, len) || check_large(m, c, why, len) ? -1 : 0;
}

int kernel_check_reductions(struct machine *m, enum coll_type type, char *why,
                            size_t len)
{
    for (int op = 0; op < COLL_N_OPS; op++)
        for (int target = 0; target < N_TARGETS; target++) {
            struct kernel_case c = {.kind = KERNEL_REDUCE,
                                    .type = type,
                                    .op = (enum coll_op)op,
                                    .target = (enum kernel_target)target};

            if (coll__cuda_reduce(type, c.op) && check_case(m, c, why, len))
                return -1;
        }
    return 0;
}

/* 300 ranks are more than an i8 holds, 70000 more than an i16. */
int kernel_check_others(struct machine *m, enum coll_type type, char *why,
                        size_t len)
{
    static const int ranks[] = {1, 2, 3, 7, 64, 300, 70000, 0x7fffffff};
    struct kernel_case c = {.type = type};

    for (int target = ELSEWHERE; target <= LEFT && coll__host_scale(type);
         target++) {
        c.target = (enum kernel_target)target;
        c.kind = KERNEL_MULTIPLY;
        if (coll__cuda_multiply(type) && check_case(m, c, why, len))
            return -1;
        c.kind = KERNEL_SCALE;
        for (size_t r = 0; r < ARRAY_LEN(ranks); r++) {
            c.n_ranks = ranks[r];
            if (check_case(m, c, why, len))
                return -1;
        }
    }
    c.target = ELSEWHERE;
    c.kind = KERNEL_COPY;
    return check_case(m, c, why, len);
}

/* ---- divisions --------------------------------------------------------------- */

#define N_PATTERNS 65536

/* Element i: every sign, exponent and first bits of a float, every small integer;
 * behind them every subnormal number with few bits. */
static void fill_patterns(enum coll_type type, char *at)
{
    size_t size = coll_type_size(type);

    for (uint64_t i = 0; i < N_PATTERNS; i++) {
        uint64_t upper = i << (size > 2 ? 8 * size - 16 : 0);
        uint64_t lower = size > 2 ? i * 40503 % N_PATTERNS : 0, small = i;

        upper |= i % 3 ? lower : 0;
        memcpy(at + i * size, &upper, size);
        memcpy(at + (N_PATTERNS + i) * size, &small, size);
    }
}

int kernel_check_divisions(struct machine *m, enum coll_type type, char *why,
                           size_t len)
{
    static const int ranks[] = {
        1,       2,       3,       5,        6,         7,       8,
        10,      12,      24,      41,       48,        100,     126,
        127,     128,     129,     255,      256,       257,     258,
        1000,    4098,    65535,   65536,    65537,     1 << 20, 1000006,
        2097150, 2097152, 2097153, 16777217, 0x7fffff40};
    struct kernel_case c = {.kind = KERNEL_SCALE,
                            .type = type,
                            .target = LEFT,
                            .count = 2 * N_PATTERNS,
                            .blocks = 8,
                            .threads = 64};
    struct scene s;
    char *got, *numbers;
    int status = 0;

    if (!coll__host_scale(type) || part_of_type(type) != type)
        return 0; /* complex numbers have the kernels of their parts */
    open_scene(m, &c, &s);
    need(got = malloc(N_BUFFERS * s.room));
    need(numbers = malloc(s.len));
    fill_patterns(type, numbers);
    for (size_t r = 0; r < ARRAY_LEN(ranks) && !status; r++) {
        c.n_ranks = ranks[r];
        memcpy(s.here[DST], numbers, s.len);
        send_over(m, &s);
        work_there(m, &c, &s);
        fetch(m, &s, got);
        work_here(&c, &s);
        status = check_result(&c, &s, got, DST, why, len);
    }
    close_scene(m, &s);
    free(got);
    free(numbers);
    return status;
}
