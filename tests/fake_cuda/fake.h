/* SPDX-License-Identifier: BSD-3-Clause */
/* fake.h - what the fake CUDA driver is made of; README.md says what it is for.
 *
 * One lock holds all of it (fake_enter() takes it, fake_leave() gives it back), one
 * condition tells whoever waits that something has changed.  Nothing that acts on
 * memory runs under the lock.
 *
 *   context   of a device; a thread's current one is the top of the thread's stack
 *   stream    a queue of operations, and a thread that runs them one by one
 *   channel   as many streams share one as CUDA_DEVICE_MAX_CONNECTIONS makes
 *             necessary; operations leave it in the order of the calls
 *   op        a piece of work in a stream; it starts when it is the first of its
 *             stream and of its channel, and what it depends on has ended
 *   work      what an op or a node of a graph does
 *   record    one cuEventRecord(): who waits for an event waits for its last record
 *   event     names its last record, or what it stands for in a capture
 *   region    addresses that the device knows: an allocation, an import, pinned or
 *             registered host memory, a mapping of cuMemMap
 *   block     the memory behind device addresses: a memfd, mapped once a process
 *   capture   from cuStreamBeginCapture() on: a graph that grows
 *   graph     nodes in an order in which they can run, each with those before it
 *
 * Device addresses lie in the first half of an address range (the arena) which has
 * no access rights.  The same memory has rights in the second half, which only the
 * streams' threads know: so the driver gets at device memory, and its user crashes.
 *
 * DA: CUDA Driver API reference, 13.0; PG: CUDA C++ Programming Guide, 13.0; H100:
 * what driver 580.159 answered (tests/gpu/reports), where it is silent or otherwise.
 */
#ifndef COLL_TESTS_FAKE_CUDA_H
#define COLL_TESTS_FAKE_CUDA_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAKE_VERSION = 13000,
    MAX_DEVICES = 16,
    MAX_CHANNELS = 32,
    CHANNEL_ROOM =
        1021 /* H100, queue/depth: 1020 behind a wait, then the caller waits */
};
#define GRANULE ((size_t)2 << 20)

/* ---- handles (object.c) -----------------------------------------------------
 *
 * A handle is a pointer to an object.  Objects are never used again, so that a
 * handle of what was destroyed is known as such; whoever uses one is ended with a
 * sentence, where NVIDIA's driver leaves it open what happens (DA, "undefined"). */

enum kind {
    CONTEXT,
    STREAM,
    EVENT,
    MODULE,
    FUNCTION,
    GRAPH,
    NODE,
    EXEC,
    POOL,
    USER_OBJECT,
    PHYSICAL
};

struct object {
    enum kind kind;
    int is_alive;
};

void *object_new(enum kind kind, size_t size);

/* The object, alive; else the process ends. */
void *object_of(const void *handle, enum kind kind, const char *entry);

/* The same, dead ones too; NULL for what never was one. */
void *object_find(const void *handle, enum kind kind);

_Noreturn void fake_misuse(const char *entry, const char *what,
                           const void *handle);

/* ---- contexts (context.c) and devices (device.c) ------------------------- */

struct context {
    struct object object;
    int device, is_primary, n_retained;
    uint64_t id; /* never used again */
    int is_live; /* a primary context's handle outlives it */
    unsigned flags;
    unsigned peers; /* a bit for each device that it may reach */
    struct stream *legacy, *streams;
};

struct device {
    int number; /* of the machine; its index is what is visible */
    struct context *primary;
    struct pool *pool;
    size_t used;
};

int device_count(void);
struct device *device_at(int i);
int device_attribute(int name);
size_t device_memory(void);
CUresult device_init(void);
int device_peers(int from, int to); /* may one reach the other? */
void device_uuid(int device, CUuuid *id);
int device_by_uuid(const CUuuid *id); /* -1: not visible */

/* Streams, memory, events and modules go; the caller has drained it. */
void context_end(struct context *ctx);

/* Wait until nothing is left in its streams. */
void context_drain(struct context *ctx);

/* The current one; NULL, and why in *rc. */
struct context *context_current(CUresult *rc);

/* ---- work (work.c) ------------------------------------------------------- */

struct kernel {
    const char *name;
    /* p: address of len bytes, n: the same or NULL, l: that len, a: address, s: a span
     * (16 bytes: an address and its len), w: 8 bytes, u: 4 bytes */
    const char *params;
    int max_threads;
    /* By hand, for a PTX text; NULL: one of the product's kernels. */
    CUresult (*run)(struct stream *s, void **params);
};

enum work_kind {
    W_COPY,
    W_FILL,
    W_KERNEL,
    W_FOREIGN,
    W_MEMOPS,
    W_HOST,
    W_CALLBACK,
    W_RECORD,
    W_WAIT,
    W_LAUNCH,
    W_ALLOC,
    W_FREE
};

/* What an operation does.  Addresses are as the caller gave them. */
struct work {
    enum work_kind kind;
    /* W_WAIT, W_RECORD of a graph: waited for, or recorded, at each launch */
    struct event *outside;
    union {
        struct {
            CUdeviceptr dst, src;
            size_t len;
            void *staged; /* pageable memory, read at the call; or NULL */
        } copy;
        struct {
            CUdeviceptr dst;
            size_t n;
            unsigned value, width;
        } fill;
        struct {
            const struct kernel *kernel;
            unsigned blocks, threads;
            uint64_t *values; /* of its parameters: kernel_words() */
        } kernel;
        struct foreign *foreign;
        struct {
            unsigned n;
            CUstreamBatchMemOpParams *ops;
        } memops;
        struct {
            CUhostFn fn;
            CUstreamCallback callback;
            CUstream stream;
            void *arg;
        } host;
        struct record *record; /* W_RECORD, W_WAIT; NULL: never recorded, or of
                                * a graph that is not launched */
        struct run *run;       /* W_LAUNCH */
        struct {
            uint64_t id; /* of the region */
        } memory;        /* W_ALLOC, W_FREE */
    };
};

void work_copy(struct work *to, const struct work *from);
void work_fini(struct work *w);

/* Do it, without the lock: CUDA_SUCCESS, or what becomes of the process. */
CUresult work_run(struct work *w, struct stream *s);

/* Of memory operations: do them from *next on, up to a wait that does not pass.  1
 * when all are done, or *rc is set. */
int memops_step(struct work *w, unsigned *next, struct stream *s, CUresult *rc);
void memops_nap(unsigned *n_naps);

CUresult kernel_run(struct work *w, struct stream *s);

/* How many words of 8 bytes the values of its parameters are. */
size_t kernel_words(const struct kernel *k);

/* Of other libraries (foreign.h); one that free() ends. */
struct foreign *foreign_copy(const struct foreign *from);
CUresult foreign_run(const struct foreign *f, struct stream *s);

/* For fake_cuda_counts(): what is put into a stream (counts.c). */
void counts_add(const struct work *w);
void counts_add_call(const char *entry);

/* The same when a kernel goes through a plan, which it finds in memory: 0, or -1. */
int counts_add_plan(const uint64_t *params, struct context *ctx);

/* Has its time come?  The lock is held. */
int work_is_ready(const struct work *w);

/* ---- streams (stream.c, queue.c) ----------------------------------------- */

struct op {
    struct op *next, *channel_next;
    struct stream *stream;
    uint64_t number; /* of the process, in the order of the calls */
    int is_started, is_done, is_counted, n_waiting;
    struct work work;
};

struct channel {
    struct op *first, *last;
    int n; /* that take room */
};

struct stream {
    struct object object;
    struct context *ctx;
    struct stream *next, *all_next;         /* of the context, of the process */
    int is_blocking, is_legacy, is_running; /* has a thread */
    int priority;
    struct channel *channel;
    struct op *first, *last;
    struct capture *capture;
    struct set *frontier; /* nodes that its next one depends on */
    uint64_t id, dice;
    unsigned most_delay; /* microseconds */
    int is_released; /* a wait has passed by the high half of its word alone */
    pthread_cond_t wake;
};

/* Go on where that is possible now. */
void queue_kick(void);
void queue_add(struct stream *s);
void queue_add_legacy(struct stream *s);
void queue_remove(struct stream *s);
struct op *queue_put(struct stream *s, struct work *w, int is_waited_for);

/* Find the stream of a handle; NULL, 1 and 2 need a current context. */
CUresult stream_of(CUstream handle, const char *entry, struct stream **s);
struct stream *stream_new(struct context *ctx, int is_blocking);
void stream_destroy(struct stream *s);
int stream_is_idle(const struct stream *s);

/* Put work into a stream, or into the graph that it captures; takes the work over,
 * whatever it returns.  CUDA_SUCCESS comes before the work is done. */
CUresult stream_put(struct stream *s, struct work *w);

/* The same, and wait for its end. */
CUresult stream_put_and_wait(struct stream *s, struct work *w);

/* Wait until it is past what it has now. */
void stream_wait(struct stream *s);

/* May this stream be used so?  Of a legacy stream: 906 (PG, "Prohibited and
 * Unhandled Operations"). */
CUresult stream_check(struct stream *s);

/* Wait for the lock's condition; tell those who do; give the lock away for a while. */
void fake_wait(void);
void fake_changed(void);
void fake_nap(void);
pthread_mutex_t *fake_lock(void);

/* A number below n, 0 where delays are off; a nap where CUDA promises nothing. */
unsigned stream_dice(struct stream *s, unsigned n);
void stream_delay(struct stream *s);

/* ---- events (event.c) ---------------------------------------------------- */

/* Of an interprocess event: in memory that its processes share. */
struct shared_event {
    _Atomic uint64_t n_recorded, n_done;
};

struct record {
    int n_users;
    atomic_int is_done; /* graphs that run ask without the lock */
    double at; /* seconds */
    struct shared_event *shared;
    uint64_t number; /* of the shared event: done when n_done has come there */
};

struct event {
    struct object object;
    struct context *ctx;
    unsigned flags;
    int is_import, fd;
    uint64_t id;
    struct record *last;
    struct shared_event *shared;
    uint64_t capture_id;     /* not 0: recorded in that capture */
    struct capture *capture; /* NULL when it has ended */
    struct set *frontier;
};

/* The event's last record, or a new one, for one more user; last: NULL when there is
 * none. */
struct record *event_last(struct event *e);
struct record *event_record(struct event *e);

void record_drop(struct record *r);
int record_is_done(const struct record *r);
void record_end(struct record *r);
struct event *event_new(struct context *ctx, unsigned flags);
int event_by_id(uint64_t id); /* its file descriptor, -1 */

/* ---- memory (memory.c, block.c) ------------------------------------------ */

struct block {
    struct block *next;
    int fd, n_users, device;
    size_t len;
    CUdeviceptr at; /* where its first byte is mapped */
    uint64_t id;
    int owner_pid;      /* of an import */
    uint64_t owner_id;  /* the owner's id */
    int is_shared_room; /* small allocations lie in it */
};

enum region_kind {
    R_DEVICE,
    R_IMPORT,
    R_HOST,
    R_REGISTERED,
    R_POOL,
    R_POOL_IMPORT,
    R_MAPPED
};

struct region {
    CUdeviceptr at;
    size_t len;
    enum region_kind kind;
    struct context *ctx; /* NULL: of none */
    int device;          /* -1: of the host */
    uint64_t id;         /* never used again */
    struct block *block; /* NULL: of the host */
    int n_opened;        /* an import: how often */
    unsigned char handle[64];
    int is_accessible; /* cuMemSetAccess */
    struct stream
        *freed; /* cuMemFreeAsync: there until this one has come to it */
    struct physical *physical; /* of a mapping */
    int is_sync;               /* SYNC_MEMOPS */
    unsigned host_flags;
    struct pool *pool;
    uint64_t handle_types;
};

/* Does the range touch one that is known? */
int region_touches(CUdeviceptr at, size_t len);

struct region *region_add(CUdeviceptr at, size_t len, enum region_kind kind);
void region_remove(struct region *r); /* and its block, when it was the last */
struct region *region_at(CUdeviceptr at);
struct region *region_each(int i); /* by address; NULL behind the last */
struct region *region_by_id(uint64_t id);
uint64_t fake_next_id(void);

/* Is all of it known, in one region that this context reaches? */
CUresult region_check(CUdeviceptr at, size_t len, struct context *ctx,
                      struct region **r);

/* Where the driver itself finds it; NULL where a device would fault.  Takes the
 * lock. */
void *memory_view(CUdeviceptr at, size_t len, struct context *ctx);

/* The number of the machine's device and what for, from a descriptor's own name; -1
 * when it is not one of these. */
int memory_file(const char *what, int device);
int memory_file_device(const char *what, int fd);

CUresult block_new(size_t len, int device, struct block **b);
struct block *block_import(int fd, size_t len, int device);
void block_drop(struct block *b);
CUdeviceptr arena_take(size_t len); /* 0: full */
void arena_give(CUdeviceptr at, size_t len);
int arena_has(CUdeviceptr at);
int block_map(int fd, CUdeviceptr at, size_t len);
void block_unmap(CUdeviceptr at, size_t len);
void *arena_view(CUdeviceptr at);
struct block *block_each(struct block *b); /* NULL: the first */

/* A room of len bytes on a device, among others of its kind if it is small. */
CUresult memory_new(size_t len, int device, struct context *ctx,
                    enum region_kind kind, struct region **r);

/* ---- pools (pool.c), modules (module.c, ptx.c), captures and graphs ------ */

struct pool {
    struct object object;
    int device, is_import;
    uint64_t handle_types;
};
void pool_forget(uint64_t id); /* what a stream has freed, in its turn */

struct module {
    struct object object;
    struct context *ctx;
    int is_ptx;
    char *text;
};
struct function {
    struct object object;
    struct module *module;
    const struct kernel *kernel;
};
const struct kernel *ptx_kernel(const char *name);

/* Is it a text that can be compiled? */
CUresult ptx_check(const char *text);
int ptx_has(const char *text, const char *name);

/* Indices of nodes. */
struct set {
    int n, room;
    int *at;
};
struct set *set_new(void);
void set_add(struct set *s, int i);
void set_add_all(struct set *s, const struct set *other);
void set_free(struct set *s);

struct node {
    struct object object;
    struct graph *graph;
    int index;
    struct work work;
    struct set *before;
};

struct user_object;
struct held_object {
    struct held_object *next;
    struct user_object *object;
    unsigned n;
};

struct graph {
    struct object object;
    int is_plain; /* a copy: nobody has handles of it */
    int n, room;
    struct node **nodes;
    struct held_object *held;
};

struct capture {
    struct capture *next;
    struct stream *origin;
    struct context *ctx;
    struct graph *graph;
    CUstreamCaptureMode mode;
    pthread_t thread;
    uint64_t id;
    int is_invalid;
    struct event **events; /* that stand for something in it */
    int n_events;
};

/* One launch of an executable graph. */
struct run {
    struct exec *exec;
    uint64_t number; /* of its launches */
    struct graph *graph;
};

struct exec {
    struct object object;
    struct graph *graph;
    int n_users;
    uint64_t n_launched, n_done;
};

/* Of user objects: references more, for a graph, and fewer. */
void held_more(struct user_object *o, unsigned n);
void held_add(struct graph *g, struct user_object *o, unsigned n);
void held_let_go(struct user_object *o, unsigned n);

struct capture *capture_list(void);
void capture_invalidate(struct capture *c);
CUresult capture_put(struct stream *s, struct work *w);
CUresult capture_wait(struct stream *s, struct event *e, unsigned flags);
void capture_record(struct stream *s, struct event *e);
void capture_abandon(struct stream *s); /* that is destroyed */

/* May this thread make an unsafe call?  Else 900, and what forbids it is over. */
CUresult capture_allows(void);

/* The same for what concerns a whole context. */
CUresult capture_allows_context(struct context *ctx);

struct graph *graph_new(void);
struct node *graph_add(struct graph *g, struct work *w,
                       const struct set *before);
struct graph *graph_copy(const struct graph *g);
void graph_drop(struct graph *g);
CUresult graph_run(struct graph *g, struct stream *s);
void run_end(struct run *run); /* with the lock */

/* ---- calls (call.c, fault.c) --------------------------------------------- */

enum need {
    NEED_CONTEXT = 1, /* a current one, alive */
    UNSAFE = 2,       /* forbidden beside a capture: capture_allows() */
    IN_ERROR = 4,     /* answers although the process is lost */
    NO_INIT = 8,      /* before cuInit() */
    ALONE = 16 /* not while a thread waits in a copy of pageable memory (H200,
                * queue/beside_copy) */
};

extern int fake_n_copies; /* threads in such copies; under the lock */

/* Begin a call: the lock is held when CUDA_SUCCESS comes back. */
CUresult fake_enter(const char *entry, unsigned need, struct context **ctx);
CUresult fake_leave(CUresult rc);

/* The same with a stream: which need not be of the current context. */
CUresult fake_enter_stream(const char *entry, unsigned need, CUstream handle,
                           struct stream **s);

/* The error of the device that stays; set by what finds it. */
CUresult fake_error(void);
void fake_fail(CUresult rc);

/* FAKE_CUDA_FAULT: what this call is to answer, CUDA_SUCCESS for nothing. */
CUresult fault_of(const char *entry);

int fake_is_inited(void);
CUresult fake_init(void);

/* This thread runs a function for the user: it may not call the driver. */
extern __thread int fake_is_in_host_function;
extern __thread CUstreamCaptureMode fake_capture_mode;

long fake_setting(const char *name, long value); /* of the environment */
double fake_now(void);

/* ---- other processes (handles.c, ipc.c) ------------------------------------- */

enum handle_kind { HANDLE_MEMORY = 1, HANDLE_EVENT, HANDLE_POOL };

struct shared_handle {
    uint32_t magic, kind;
    uint32_t pid, device; /* device: of the machine */
    uint64_t cookie, pid_namespace;
    uint64_t id, block, offset, len;
};
_Static_assert(sizeof(struct shared_handle) <= 64, "a handle has 64 bytes");

/* Fill in who we are, and answer whoever asks from now on. */
CUresult handle_open(struct shared_handle *h, enum handle_kind kind);

/* Ask the owner for what the handle names: its descriptor in *fd. */
CUresult handle_ask(const struct shared_handle *h, enum handle_kind kind,
                    int *fd);

/* What the owner's thread hands out; with the lock.  -1: gone. */
int memory_descriptor(uint64_t id);

#endif
