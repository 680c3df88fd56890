/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.h - collective operations over a group of ranks; the whole API.
 *
 * Life cycle: coll_comm_create*() once, any number of operations, then
 * coll_comm_destroy().  Functions return COLL_OK, COLL_IN_PROGRESS or a
 * negative enum coll_status; coll_last_error() then holds one sentence with
 * the cause and the remedy.  Sizes are bytes, counts are elements, times are
 * seconds.  Only names beginning coll_ or COLL_ belong to this API.
 *
 * Fork: communicators and requests stay with the process that made them.  A
 * child made by fork(), at any time, also while other threads are in
 * operations, may free its copies: coll_comm_destroy(),
 * coll_request_destroy() and coll_mem_free() then do that and no more, and the
 * parent and its peers do not notice.  coll_comm_rank() and its like still
 * answer; everything else is COLL_ERR_INVALID.  A child may make communicators
 * of its own: by coll_comm_create(), coll_comm_create_oob(), and by
 * coll_comm_create_env() if its parent had not (a launcher's variables describe
 * one process); without ucx if its parent had used that.  A child that was
 * forked within a function that the library calls (a coll_user_fn, an
 * allgather, a log handler) must end there.
 *
 * Cancellation: a thread that is within a call is not to be cancelled
 * (pthread_cancel()): what it has begun would never end.  coll_comm_abort() from
 * another thread ends its wait.
 */
#ifndef COLL_COLL_H
#define COLL_COLL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct coll_comm;    /* a group of ranks */
struct coll_request; /* one operation, started any number of times */

/* X(name, value, text): each line is a code, its ABI value and its message. */
#define COLL_STATUS_MAP(X)                                                  \
    X(OK, 0, "success")                                                     \
    X(IN_PROGRESS, 1, "operation still running")                            \
    X(ERR_INVALID, -1, "invalid argument")                                  \
    X(ERR_NOMEM, -2, "out of memory")                                       \
    X(ERR_SYSTEM, -3, "a system call failed")                               \
    X(ERR_PEER, -4, "a peer failed or went away")                           \
    X(ERR_TIMEOUT, -5, "the deadline passed")                               \
    X(ERR_MISMATCH, -6, "ranks disagree about the operation")               \
    X(ERR_UNSUPPORTED, -7, "not supported here")                            \
    X(ERR_ABORTED, -8, "the communicator was aborted")                      \
    X(ERR_BOOTSTRAP, -9, "the ranks could not find each other")             \
    X(ERR_TRANSPORT, -10, "a transport failed")                             \
    X(ERR_INTERNAL, -11, "a bug in libcoll")

enum coll_status {
#define COLL_ENUMERATOR(name, value, text) COLL_##name = value,
    COLL_STATUS_MAP(COLL_ENUMERATOR)
#undef COLL_ENUMERATOR
};

/* X(name, text, bytes): the element types. */
#define COLL_TYPE_MAP(X) \
    X(I8, "i8", 1)       \
    X(U8, "u8", 1)       \
    X(I16, "i16", 2)     \
    X(U16, "u16", 2)     \
    X(I32, "i32", 4)     \
    X(U32, "u32", 4)     \
    X(I64, "i64", 8)     \
    X(U64, "u64", 8)     \
    X(F16, "f16", 2)     \
    X(BF16, "bf16", 2)   \
    X(F32, "f32", 4)     \
    X(F64, "f64", 8)

enum coll_type {
#define COLL_ENUMERATOR(name, text, bytes) COLL_##name,
    COLL_TYPE_MAP(COLL_ENUMERATOR)
#undef COLL_ENUMERATOR
    COLL_N_TYPES
};

/* X(name, text): the reduction operations.  AVG is the sum over the number of
 * ranks; for integers the quotient is truncated towards zero.  BAND, BOR and
 * BXOR are bitwise, for integer types alone.  LAND and LOR take an element for
 * true when it is not zero (a NaN is true) and give 1 or 0.  A rank that is alone
 * gets its own elements as they are. */
#define COLL_OP_MAP(X) \
    X(SUM, "sum")      \
    X(PROD, "prod")    \
    X(MIN, "min")      \
    X(MAX, "max")      \
    X(AVG, "avg")      \
    X(BAND, "band")    \
    X(BOR, "bor")      \
    X(BXOR, "bxor")    \
    X(LAND, "land")    \
    X(LOR, "lor")

enum coll_op {
#define COLL_ENUMERATOR(name, text) COLL_##name,
    COLL_OP_MAP(COLL_ENUMERATOR)
#undef COLL_ENUMERATOR
    COLL_N_OPS,
    COLL_OP_LAST = 0x7fffffff /* those that callers make lie between */
};

/* X(name, text): the collective operations, and the two that only two ranks
 * take part in. */
#define COLL_COLLECTIVE_MAP(X)            \
    X(ALLREDUCE, "allreduce")             \
    X(BROADCAST, "broadcast")             \
    X(REDUCE, "reduce")                   \
    X(ALLGATHER, "allgather")             \
    X(ALLGATHERV, "allgatherv")           \
    X(REDUCE_SCATTER, "reduce_scatter")   \
    X(REDUCE_SCATTERV, "reduce_scatterv") \
    X(ALLTOALL, "alltoall")               \
    X(ALLTOALLV, "alltoallv")             \
    X(GATHER, "gather")                   \
    X(GATHERV, "gatherv")                 \
    X(SCATTER, "scatter")                 \
    X(SCATTERV, "scatterv")               \
    X(BARRIER, "barrier")                 \
    X(SEND, "send")                       \
    X(RECV, "recv")

enum coll_collective {
#define COLL_ENUMERATOR(name, text) COLL_##name,
    COLL_COLLECTIVE_MAP(COLL_ENUMERATOR)
#undef COLL_ENUMERATOR
    COLL_N_COLLECTIVES
};

/* ---- the library ------------------------------------------------------ */

/* Return the version as text, "major.minor.patch".
 *
 * Ownership: a static string.
 * Threads:   any.
 */
const char *coll_version(void);

/* Return the meaning of a status in a few words.
 *
 * Ownership: a static string, also for an unknown code.
 * Threads:   any.
 */
const char *coll_strerror(int status);

/* Return the sentence that explains this thread's last error.
 *
 * Result:    cause and remedy, one line; "" when this thread had no error.
 * Ownership: the library's, valid until this thread's next libcoll call.
 * Threads:   any; each thread has its own.
 */
const char *coll_last_error(void);

/* Return the name, or the element size in bytes, of an enum's value.
 *
 * Result:    "?" or 0 for a value that is none of the enum's.
 * Ownership: static strings.
 * Threads:   any.
 */
const char *coll_type_name(enum coll_type type);
size_t coll_type_size(enum coll_type type);
const char *coll_op_name(enum coll_op op);
const char *coll_collective_name(enum coll_collective collective);

enum coll_log_level {
    COLL_LOG_ERROR,
    COLL_LOG_WARN,
    COLL_LOG_INFO,
    COLL_LOG_DEBUG,
    COLL_LOG_TRACE
};

/* Send log lines to `handler` instead of stderr; NULL restores stderr.
 *
 * Shapes:    the handler gets one line, without prefix and newline, and the
 *            part of the library that speaks ("topo", "ucx").
 * Ownership: the text is the library's, valid during the call only.
 * Threads:   any.  The handler is called by threads that call the library, at
 *            the end of a call (of a group: at its end) or while one waits for
 *            an operation: it must take several at once, one may still be under
 *            way when this returns, and it may call the library itself (what it
 *            makes the library say comes later).  What the library's own thread
 *            says comes with the next call, and after the last one to stderr.
 * Errors:    nothing else waits for who reads stderr, or for a handler: 128
 *            lines that nobody takes are kept, and later ones counted.
 * Cost:      nothing while the level asked for by COLL_LOG is quieter; this waits
 *            for a line that is being written to stderr, 0.5 s at most.
 */
void coll_set_log_handler(void (*handler)(enum coll_log_level level,
                                          const char *part, const char *text,
                                          void *arg),
                          void *arg);

/* One parameter of the environment, as coll_info --params prints it. */
struct coll_param {
    const char *name;     /* "COLL_TIMEOUT" */
    const char *what;     /* one line */
    const char *standard; /* its default, as text */
    const char *value;    /* in force: the environment's or the default */
    int is_set;           /* 1 when the environment sets it */
};

/* Fill in the parameter with this index.
 *
 * Result:    COLL_OK, or COLL_ERR_INVALID past the last one (no message).
 * Ownership: strings are static or the environment's.
 * Threads:   any, while no thread changes the environment.
 */
int coll_param_list(size_t index, struct coll_param *param);

/* One thing that this build can or cannot do, as --check-build prints it. */
struct coll_feature {
    const char *group;  /* "Bootstraps", "Transports", "Devices" */
    const char *name;   /* "ucx" */
    const char *detail; /* version, or why it is missing */
    int is_built;
};

/* Fill in the feature with this index; as coll_param_list(). */
int coll_feature_list(size_t index, struct coll_feature *feature);

/* One transport and whether this machine lets it work. */
struct coll_transport_info {
    const char *name;
    const char *what;
    int is_allowed; /* by COLL_TRANSPORTS */
    int is_usable;
    char why[256]; /* when it is not usable: the reason and the remedy */
    char note[512]; /* "", or what else to know about it on this machine */
};

/* Fill in the transport with this index, probing it; as coll_param_list(). */
int coll_transport_list(size_t index, struct coll_transport_info *info);

/* Mark a span of the caller's own work in the file of COLL_TIMELINE, so that it
 * stands beside the operations: FORWARD, BACKWARD.
 *
 *     double t = coll_timeline_begin();
 *     forward();
 *     coll_timeline_end("FORWARD", "layer 1", t);
 *
 * Shapes:    row: the row of the picture; what: the name of the span in it; up
 *            to 80 letters of ASCII each, others become '_'; begin: what
 *            coll_timeline_begin() returned.  256 rows at most.
 * Result:    begin: a moment of the monotonic clock, s; 0 while there is no
 *            timeline, and then end does nothing.
 * Threads:   any, also at once: spans that overlap in a row get rows of their own.
 * Cost:      a load and a branch without a timeline, else a lock and a write.
 */
double coll_timeline_begin(void);
void coll_timeline_end(const char *row, const char *what, double begin);

enum coll_topo_format { COLL_TOPO_TEXT, COLL_TOPO_XML, COLL_TOPO_DOT };

/* Describe this machine as the library sees it.
 *
 * Result:    *text = a tree of packages, NUMA nodes, caches, cores and NICs.
 * Ownership: *text is the caller's, to release by free().
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_SYSTEM, COLL_ERR_INVALID (format, or a
 *            COLL_TOPO_FILE that cannot be read).
 * Threads:   any.
 */
int coll_topo_export(enum coll_topo_format format, char **text);

/* ---- communicators ---------------------------------------------------- */

/* Options; zero everywhere means default.  Set size = sizeof(config). */
struct coll_config {
    size_t size;
    double timeout; /* deadline of each wait, s from its start on, though data
                     * may move meanwhile; 0 = COLL_TIMEOUT (300) */
    int reproducible; /* 1: combine in the same order whatever the size, the
                       * algorithm and the placement; 0 = COLL_REPRODUCIBLE */
    int deferred; /* 1: coll_comm_destroy() does not wait for other ranks while
                   * this process has other communicators; dup and split keep
                   * it */
    int progress_thread; /* 1: a thread of the process moves started operations
                          * while their caller does something else; dup and
                          * split keep it; 0 = COLL_PROGRESS */
};

#define COLL_UNIQUE_ID_BYTES 128

/* Names a group that is about to form, and holds its secret: rank 0 makes it
 * and hands it to the others by any private way. */
struct coll_unique_id {
    unsigned char bytes[COLL_UNIQUE_ID_BYTES];
};

/* Make the id of a new group; call it in the process that becomes rank 0.
 *
 * Result:    *id holds this process's address and a fresh secret; a listening
 *            socket stays open in this process until rank 0 joins.
 * Errors:    COLL_ERR_SYSTEM (no port free within COLL_NET_PORTS).
 * Threads:   any.
 * See:       coll_comm_create().
 */
int coll_get_unique_id(struct coll_unique_id *id);

/* Join the group `id` as `rank` of `nranks`; returns when all have joined.
 *
 * Shapes:    0 <= rank < nranks; the same nranks and id on every rank.
 * Result:    *comm is ready for operations.
 * Ownership: *comm is the caller's, to end by coll_comm_destroy(); config is
 *            read during the call only and may be NULL.
 * Errors:    COLL_ERR_INVALID, COLL_ERR_NOMEM, COLL_ERR_BOOTSTRAP (a rank did
 *            not come within the deadline, or could not prove the secret),
 *            COLL_ERR_TRANSPORT (no transport joins two of the ranks); *comm
 *            is untouched.
 * Threads:   any; several communicators may be made at once.
 * Cost:      some round trips over TCP; a control thread per process.
 */
int coll_comm_create(struct coll_comm **comm, int nranks,
                     const struct coll_unique_id *id, int rank,
                     const struct coll_config *config);

/* Join the group that the launcher describes: collrun, mpirun and srun (PMIx),
 * mpiexec of MPICH and Intel MPI, and srun (PMI), torchrun, horovodrun, srun alone,
 * or a single rank when there is none.
 *
 * Errors:    as coll_comm_create(); COLL_ERR_BOOTSTRAP also for a set of
 *            variables that is only half there (RANK without WORLD_SIZE).
 * See:       COLL_BOOTSTRAP in coll_info --params; coll_comm_create().
 */
int coll_comm_create_env(struct coll_comm **comm,
                         const struct coll_config *config);

/* The caller's own way to exchange a few bytes among the ranks. */
struct coll_oob {
    size_t size; /* sizeof(struct coll_oob) */
    int rank, nranks;
    /* Gather len bytes from each rank into out[nranks * len], in rank order,
     * on every rank; return 0, or anything else for failure. */
    int (*allgather)(void *arg, const void *in, void *out, size_t len);
    void *arg;
};

/* Join the group that `oob` connects; its allgather is called from this
 * function only.  Otherwise as coll_comm_create(). */
int coll_comm_create_oob(struct coll_comm **comm, const struct coll_oob *oob,
                         const struct coll_config *config);

/* Divide the ranks into new communicators: one for each color.
 *
 * Shapes:    color >= 0, or COLL_NO_COLOR to be in none; within a color ranks
 *            are numbered by key, then by their rank in comm.  Collective over
 *            comm, while no operation of it runs.
 * Result:    *split is this rank's new communicator, independent of comm, with
 *            comm's configuration; NULL for COLL_NO_COLOR.
 * Ownership: *split is the caller's, to end by coll_comm_destroy().
 * Errors:    as coll_comm_create(), and those of comm; *split is untouched.
 *            COLL_ERR_INVALID, on every rank, when one passes a wrong color or
 *            NULL or has an operation running.  A color whose communicator
 *            cannot be made leaves the others, and comm.  COLL_ERR_PEER, at
 *            once, when a rank of comm dies meanwhile, by its number in comm.
 * Threads:   as the operations of comm.
 * Cost:      two exchanges over comm's control tree, then what
 *            coll_comm_create() does once the ranks have met.
 */
#define COLL_NO_COLOR (-1)
int coll_comm_split(struct coll_comm *comm, int color, int key,
                    struct coll_comm **split);

/* Make a second communicator of the same ranks; as coll_comm_split(). */
int coll_comm_dup(struct coll_comm *comm, struct coll_comm **dup);

/* Return this rank, the number of ranks, and the same within this host; the
 * host's index in order of lowest rank, and the number of hosts.
 *
 * Errors:    comm must not be NULL.
 * Threads:   any.
 */
int coll_comm_rank(const struct coll_comm *comm);
int coll_comm_size(const struct coll_comm *comm);
int coll_comm_local_rank(const struct coll_comm *comm);
int coll_comm_local_size(const struct coll_comm *comm);
int coll_comm_host(const struct coll_comm *comm);
int coll_comm_n_hosts(const struct coll_comm *comm);

/* Say whether this host has a core to spare for one thread more of each of its
 * ranks, beside the one that calls: 1 or 0.  Affinity masks and the quota of the
 * control group count, not what is visible; a thread of a rank that is bound must
 * leave that rank's mask to get there.
 *
 * Errors:    comm must not be NULL.
 * Threads:   any.
 * Cost:      some ms: the machine is looked at.
 */
int coll_comm_has_spare_core(const struct coll_comm *comm);

/* Return the transports that join this rank to the others, "shm,tcp".
 *
 * Ownership: the communicator's, valid until it is destroyed.
 * Threads:   any.
 */
const char *coll_comm_transports(const struct coll_comm *comm);

/* Fail every operation of this communicator, running and to come, on every
 * rank, with COLL_ERR_ABORTED and `why`.
 *
 * Ownership: why is copied; it may be NULL.
 * Threads:   any, also while another thread waits in an operation.
 */
int coll_comm_abort(struct coll_comm *comm, const char *why);

/* Return the error that ended this communicator, or COLL_OK while it lives.
 *
 *            A device's failure comes with the driver's own words.
 * Threads:   any.
 */
int coll_comm_async_error(struct coll_comm *comm);

/* Leave the group and free everything that the communicator holds.
 *
 * Result:    with the last communicator of the process: returns once every rank
 *            came here and to the end of those that were destroyed before (or
 *            the group has failed, or the deadline passed), so that no message
 *            is cut off.  With another one: waits a moment (10 ms; not at all
 *            with config.deferred) for the ranks that have not come; what is
 *            left is done by a thread of the library (of one that has called
 *            operations of GPU streams: by later calls of this function), until
 *            the last one is destroyed or the program exits; so ranks may
 *            destroy theirs in different orders, and compute meanwhile.
 *            Waits until streams have come to all that was called for them.
 *            In a child made by fork(): returns at once.
 * Ownership: comm is gone, whatever the result; so are its requests' uses.
 *            NULL is allowed and does nothing.
 * Errors:    COLL_ERR_INVALID when a request still runs or was not destroyed
 *            (it is now) or a group that has operations of it is not ended,
 *            COLL_ERR_PEER, COLL_ERR_TIMEOUT,
 *            COLL_ERR_MISMATCH (the ranks called different operations); comm
 *            is freed all the same.  Also when that was found meanwhile of a
 *            communicator that was destroyed before.
 * Threads:   one caller, with no operation running.
 */
int coll_comm_destroy(struct coll_comm *comm);

/* ---- reduction operations of the caller's own -------------------------- */

/* Combine count > 0 elements: out[i] = left[i] op right[i].
 *
 * Shapes:    out is left or right; the other one does not overlap it.  A call
 *            has any part of the operation's elements, in any order of parts.
 * Threads:   called by any thread of the process that is within a call of
 *            libcoll, or by its own, for one communicator by one at a time; it
 *            must call nothing of libcoll itself (COLL_ERR_INVALID, of what
 *            would wait for the same communicator).  The buffers are the host's,
 *            also in operations on a GPU's.
 */
typedef void coll_user_fn(const void *left, const void *right, void *out,
                          size_t count, enum coll_type type, void *arg);

/* Make an operation that multiplies each rank's input by a scalar and sums.
 *
 * Shapes:    *scalar is one element of `type`, and each rank has its own.
 * Result:    *op is to be used with that type alone, wherever an operation is
 *            asked for, in any communicator of this process.  Products are
 *            rounded to the type (integers wrap) before they are summed.  in
 *            is only read, unless out is in.
 * Ownership: scalar is copied; *op is the caller's, to end by
 *            coll_op_destroy() when no call of another thread and no group
 *            that has not ended uses it.  Requests that were made with it
 *            keep what it stands for.
 * Errors:    COLL_ERR_INVALID, COLL_ERR_NOMEM (1,000 exist already); *op is
 *            untouched.
 * Threads:   any.
 */
int coll_op_create_premul(const void *scalar, enum coll_type type,
                          enum coll_op *op);

/* Make an operation of the caller's function, which must be associative.
 *
 * Shapes:    commutes: 0 combines strictly in the order of the ranks; 1 leaves
 *            the order to the library.  Equal on every rank.
 * Ownership: fn and arg must live until coll_op_destroy(), and until the last
 *            request that was made with the operation is gone and streams have
 *            passed all calls with it.
 * Otherwise as coll_op_create_premul(); for any type.
 */
int coll_op_create_user(coll_user_fn *fn, void *arg, int commutes,
                        enum coll_op *op);

/* End such an operation.  COLL_ERR_INVALID when op is none (any more). */
int coll_op_destroy(enum coll_op op);

/* ---- operations ---------------------------------------------------------- *
 *
 * Buffers are aligned as their element type asks for.
 *
 * With stream NULL and buffers of the host these return when this rank's part is
 * done.  With buffers of a GPU, or with a stream (a CUstream or cudaStream_t of the
 * buffers' GPU; NULL is the legacy stream then), the call puts the operation into
 * the stream and returns:
 *
 * Result:    out is there for what comes behind in the stream.  Operations of one
 *            communicator go in the order of their calls, whatever their streams,
 *            and wait for no operation on host buffers, nor the reverse.  COLL_OK
 *            says that the call was right; what fails later is told by
 *            coll_comm_async_error() and by all later calls, and streams that wait
 *            go on then, with results that are void.
 * Shapes:    in and out are memory of the stream's GPU or pinned memory of the host
 *            (cudaHostRegister, cudaMallocHost), each as it likes.  All ranks call
 *            an operation for a stream, or none; a rank that has no buffer in it
 *            passes a stream that is not NULL.  All of a communicator's streams are
 *            of one GPU, which several ranks may share.  Operations may be
 *            captured, on all ranks or none; what was captured is launched in the
 *            same order on all, among each other and among calls, one behind the
 *            other (by one stream, or events), and before the communicator ends.
 * Ownership: buffers stay the caller's, untouched until the stream has passed the
 *            operation; so do pinned ones, by the host as well; those of a graph,
 *            and what a function of the caller's needs, as long as it is launched.
 * Errors:    COLL_ERR_INVALID: memory that CUDA does not know (freed, or the host's
 *            and not pinned), of another GPU than the stream's, or no current
 *            context for NULL.  COLL_ERR_UNSUPPORTED: no CUDA driver, or a build
 *            without; a COLL_CUDA_STAGE that is too small.  Nothing was put into the
 *            stream.  Whether the ranks' calls fit each other is seen where they
 *            pass through the host, with COLL_CHECK=1, and when a stream stands
 *            still (COLL_ERR_MISMATCH, COLL_ERR_TIMEOUT by coll_comm_async_error).
 * Threads:   the progress thread carries it out, or watches, and is started for it.
 * Cost:      device memory (COLL_CUDA_SLOT, 64 MiB a rank at most) from the
 *            communicator's making on, where its ranks' GPUs are joined; pinned
 *            memory (COLL_CUDA_STAGE) from the first such call of the communicator
 *            on, kept for later ones at its end; a call of the driver for each copy
 *            and hand-over.  To free device memory waits for all
 *            streams of the context: where ranks are threads, or the next call of
 *            this rank is what another one's stream waits for, free later.
 */

/* Reduce `count` elements across all ranks, leaving the result on each.
 *
 * Shapes:    in[count], out[count] of `type`; the same count, type and op on
 *            every rank.  in == out is in place; other overlap is invalid.
 * Result:    out = op over every in, combined in an order fixed by p, count,
 *            type and topology: equal runs give equal bits, and every rank
 *            gets the same (but for the sign and payload of a NaN).
 * Ownership: in and out stay the caller's, untouched by it until completion.
 * Errors:    COLL_ERR_INVALID (nothing was sent), COLL_ERR_NOMEM,
 *            COLL_ERR_PEER, COLL_ERR_TIMEOUT, COLL_ERR_MISMATCH,
 *            COLL_ERR_ABORTED; after all but the first two the communicator
 *            has failed and only coll_comm_destroy() is of use.
 * Threads:   one caller at a time per communicator.
 * Cost:      no allocation or system call once the plan for this shape exists.
 * See:       lib/algo/allreduce_*.c, each with its cost and its source.
 */
int coll_allreduce(const void *in, void *out, size_t count,
                   enum coll_type type, enum coll_op op,
                   struct coll_comm *comm, void *stream);

/* Copy `count` elements from the root's `in` to every rank's `out`.
 *
 * Shapes:    out[count] of `type`; in[count] is read on the root alone (other
 *            ranks may pass NULL) and may equal out.
 * Result:    out = the root's in, on every rank.  Ranks that name different
 *            roots are found out here or, when the messages are small, by the
 *            next operation or coll_comm_destroy().
 * Ownership, Errors, Threads, Cost: as coll_allreduce().
 * See:       lib/algo/broadcast_*.c
 */
int coll_broadcast(const void *in, void *out, size_t count,
                   enum coll_type type, int root, struct coll_comm *comm,
                   void *stream);

/* Reduce `count` elements across all ranks, leaving the result on the root.
 *
 * Shapes:    in[count]; out[count] on the root alone (others may pass NULL).
 *            in == out on the root is in place.
 * Result:    as coll_allreduce(), on the root.
 * Ownership, Errors, Threads, Cost: as coll_allreduce().
 * See:       lib/algo/reduce_*.c
 */
int coll_reduce(const void *in, void *out, size_t count, enum coll_type type,
                enum coll_op op, int root, struct coll_comm *comm,
                void *stream);

/* Gather `count` elements from each rank into every rank's `out`.
 *
 * Shapes:    in[count], out[size * count] of `type`; in place when
 *            in == out + rank * count, other overlap is invalid.
 * Result:    out[r * count ...] = rank r's in, on every rank.
 * Ownership, Errors, Threads, Cost: as coll_allreduce().
 * See:       lib/algo/allgather_*.c
 */
int coll_allgather(const void *in, void *out, size_t count,
                   enum coll_type type, struct coll_comm *comm, void *stream);

/* Gather counts[r] elements from each rank r into every rank's `out`.
 *
 * Shapes:    in[counts[rank]]; rank r's part begins at out[displs[r]]; parts do
 *            not overlap; displs NULL packs them.  counts and displs are
 *            elements, [size], the same counts on every rank.  In place when
 *            in == out + displs[rank].
 * Ownership: counts and displs are read during the call only.
 * Otherwise as coll_allgather().
 */
int coll_allgatherv(const void *in, void *out, const size_t counts[],
                    const size_t displs[], enum coll_type type,
                    struct coll_comm *comm, void *stream);

/* Reduce a vector across all ranks and leave each rank one block of it.
 *
 * Shapes:    in[size * count], out[count]; in place when out == in + rank *
 *            count (the rest of in stays as it was), other overlap is invalid.
 * Result:    out = op over every rank's in[rank * count ...], where rank is
 *            the one that gets it.
 * Ownership, Errors, Threads, Cost: as coll_allreduce().
 * See:       lib/algo/reduce_scatter_*.c
 */
int coll_reduce_scatter(const void *in, void *out, size_t count,
                        enum coll_type type, enum coll_op op,
                        struct coll_comm *comm, void *stream);

/* The same with blocks of counts[r] elements, packed in in; [size], the same
 * on every rank. */
int coll_reduce_scatterv(const void *in, void *out, const size_t counts[],
                         enum coll_type type, enum coll_op op,
                         struct coll_comm *comm, void *stream);

/* Give block q of `in` to rank q, from every rank.
 *
 * Shapes:    in[size * count], out[size * count]; in == out is in place.
 * Result:    out[r * count ...] = block `rank` of rank r's in.
 * Ownership, Errors, Threads, Cost: as coll_allreduce().
 * See:       lib/algo/alltoall_*.c
 */
int coll_alltoall(const void *in, void *out, size_t count, enum coll_type type,
                  struct coll_comm *comm, void *stream);

/* The same with blocks of any size: to rank q go in_counts[q] elements from
 * in[in_displs[q]], and out_counts[r] from rank r come to out[out_displs[r]].
 *
 * Shapes:    all in elements, [size]; displs NULL packs; what q gets from r
 *            must be what r gives q, or it is COLL_ERR_MISMATCH.  Never in
 *            place.
 */
int coll_alltoallv(const void *in, const size_t in_counts[],
                   const size_t in_displs[], void *out,
                   const size_t out_counts[], const size_t out_displs[],
                   enum coll_type type, struct coll_comm *comm, void *stream);

/* Gather `count` elements from each rank into the root's `out`.
 *
 * Shapes:    in[count]; out[size * count] on the root alone.  In place when
 *            the root's in == out + root * count.
 * Result:    out[r * count ...] = rank r's in, on the root.
 * Ownership, Errors, Threads, Cost: as coll_allreduce().
 * See:       lib/algo/gather_*.c
 */
int coll_gather(const void *in, void *out, size_t count, enum coll_type type,
                int root, struct coll_comm *comm, void *stream);

/* The same with `count` elements from this rank, and counts[r] from rank r to
 * out[displs[r]]; counts and displs are read on the root alone, [size], displs
 * NULL packs.  counts[r] must be rank r's count, or it is COLL_ERR_MISMATCH. */
int coll_gatherv(const void *in, size_t count, void *out,
                 const size_t counts[], const size_t displs[],
                 enum coll_type type, int root, struct coll_comm *comm,
                 void *stream);

/* Give block r of the root's `in` to rank r.
 *
 * Shapes:    in[size * count] on the root alone; out[count].  In place when
 *            the root's out == in + root * count.
 * Ownership, Errors, Threads, Cost: as coll_allreduce().
 * See:       lib/algo/scatter_*.c
 */
int coll_scatter(const void *in, void *out, size_t count, enum coll_type type,
                 int root, struct coll_comm *comm, void *stream);

/* The same with counts[r] elements from in[displs[r]] for rank r, read on the
 * root alone; `count` is this rank's own. */
int coll_scatterv(const void *in, const size_t counts[], const size_t displs[],
                  void *out, size_t count, enum coll_type type, int root,
                  struct coll_comm *comm, void *stream);

/* Send `count` elements to `peer`, which receives them by coll_recv() with the
 * same count and type.
 *
 * Shapes:    peer may be this rank itself, from a group or a request.
 * Result:    messages between two ranks arrive in the order of the calls; they
 *            have no order with collectives, which neither wait for them nor hold
 *            them up.
 *            COLL_OK says that `in` may be used again, not that the peer has
 *            received it.  The call may return only when the receive has begun:
 *            two ranks that send to each other do so in a group, or by requests.
 * Errors:    as coll_allreduce(); COLL_ERR_INVALID for a blocking message to
 *            itself that nothing can receive; COLL_ERR_MISMATCH for other counts
 *            or types, also from coll_comm_destroy() for what was never received.
 */
int coll_send(const void *in, size_t count, enum coll_type type, int peer,
              struct coll_comm *comm, void *stream);
int coll_recv(void *out, size_t count, enum coll_type type, int peer,
              struct coll_comm *comm, void *stream);

/* Return when every rank has called it.
 *
 * Errors, Threads, Cost: as coll_allreduce().
 * See:       lib/algo/barrier_dissemination.c
 */
int coll_barrier(struct coll_comm *comm, void *stream);

/* ---- groups: several operations as one ---------------------------------- */

/* Begin a group: the operations that this thread calls from here on only note
 * what is to be done, in any communicators, and return COLL_OK.
 *
 * Result:    groups nest; the outermost coll_group_end() counts.
 * Errors:    those of the arguments, at each call; the group then does nothing
 *            and its end returns the same error.
 * Threads:   each thread has its own group.
 */
int coll_group_start(void);

/* Start all operations of the group, and return when all are done.
 *
 * Shapes:    every rank of a communicator has the same collectives in its
 *            group, in the same order; sends and receives, which run beside
 *            them, in any order.  Ranks may list several communicators in
 *            different orders, but for those of one stream.  No operation uses
 *            what another one of the group writes.  Sends and receives on streams
 *            have one stream for each communicator, and come before collectives
 *            there; the end does not wait for them.
 * Result:    a communicator's allreduces that follow each other, sends and
 *            receives apart, of one type and operation and of no more than
 *            COLL_FUSE bytes in all, travel as one, in place of the first.
 *            Of operations of the caller's own that means one handle, on
 *            every rank or on none.
 * Errors:    the first error of any of them, when all have ended;
 *            COLL_ERR_INVALID without a start.
 * Cost:      allocates; each fused allreduce is copied in and out.
 */
int coll_group_end(void);

/* ---- requests: the same operations, non-blocking and persistent --------- *
 *
 * A group is of blocking calls: requests that are made, started or waited for
 * within one run as they would outside of it. */

/* What to do.  Set size = sizeof(args); fields that the collective has no use
 * for stay 0. */
struct coll_args {
    size_t size;
    enum coll_collective collective;
    enum coll_type type;
    enum coll_op op;
    int root; /* or the peer of a send or receive */
    const void *in;
    void *out;
    size_t count;
    void *stream; /* NULL for host buffers, or the legacy stream; see above */
    /* Of the collectives whose name ends in v: elements, [size]; displs NULL
     * packs.  allgatherv and gatherv have out's, reduce_scatterv and scatterv
     * in's, alltoallv both.  Read while the request is made only. */
    const size_t *in_counts, *in_displs, *out_counts, *out_displs;
    /* Use this algorithm instead of choosing one, as COLL_ALGO does; equal on
     * every rank, else COLL_ERR_MISMATCH.  NULL chooses.  Copied. */
    const char *algo;
    /* 1: once it is started, a thread of the process moves it on while the
     * caller does something else, unless COLL_PROGRESS=off.  Each rank may say
     * what it likes. */
    int background;
};

/* Prepare an operation, to be started any number of times.
 *
 * Shapes:    as the blocking call of the same name.
 * Result:    *request, not started; the plan is built and bound.
 * Ownership: *request is the caller's, to end by coll_request_destroy() before
 *            its communicator; args is copied, its buffers stay the caller's.
 * Errors:    COLL_ERR_INVALID (also an algorithm that refuses, and why),
 *            COLL_ERR_UNSUPPORTED (every algorithm refuses), COLL_ERR_NOMEM;
 *            nothing remains.
 * Threads:   as the blocking calls.
 */
int coll_request_create(const struct coll_args *args, struct coll_comm *comm,
                        struct coll_request **request);

/* Start the operation; every rank starts its collectives in the same order.
 * Sends and receives begin at once, and run beside all else.  A collective begins
 * when those before it have ended; but one that moves no more than COLL_OVERTAKE
 * bytes in all (64 KiB) waits for its like alone, and larger ones for theirs: so a
 * small one overtakes a large one.  Those of which no rank knows all counts
 * (alltoallv, gatherv, scatterv) are with the large ones.  What an operation reads
 * is not what another one that has not ended writes.
 *
 * With a stream it begins when the stream comes to it, in the order of the calls
 * on streams, and has ended when the stream has passed it.
 *
 * Result:    COLL_OK at once; progress is made inside test, wait and every
 *            other call that waits for ranks, of whatever communicator: so ranks
 *            may wait for those of several communicators in different orders.
 *            With a progress thread (COLL_PROGRESS, coll_config.progress_thread,
 *            coll_args.background) it is made at all times; functions of
 *            coll_op_create_user() are then called by that thread, too.  Where
 *            that thread has a core of its own, operations of 256 KiB and more
 *            are left to it from their first byte on: a failure that is known
 *            already is then told by test or wait.
 * Errors:    COLL_ERR_INVALID when it already runs; the communicator's error.
 */
int coll_start(struct coll_request *request);

/* Make progress and say whether the operation is done.
 *
 * Result:    COLL_OK when done (or never started), COLL_IN_PROGRESS, or an
 *            error as from the blocking call.  Does not block.  COLL_ERR_TIMEOUT
 *            when nothing has moved for the communicator's timeout.
 */
int coll_test(struct coll_request *request);

/* Wait until the operation is done.
 *
 * Shapes:    timeout in seconds, from this call on, though data may move
 *            meanwhile; 0 means the communicator's.
 * Errors:    COLL_ERR_TIMEOUT fails the communicator, a moment after the deadline:
 *            who has not come is asked for; otherwise as coll_test().
 * Cost:      where nothing moves for a second the ranks are asked whether they
 *            agree, twice as long later again: O(log p) messages a rank and O(p)
 *            in all, however many wait; data goes on moving.
 */
int coll_wait(struct coll_request *request, double timeout);

/* Free the request.
 *
 * Errors:    COLL_ERR_INVALID while it runs (it is not freed).  NULL is
 *            allowed and does nothing.
 */
int coll_request_destroy(struct coll_request *request);

/* ---- memory ------------------------------------------------------------- */

/* Allocate a buffer that the other ranks of this host can read in place.
 *
 * Shapes:    any number of bytes; 0 gives an address that is no other's, too.
 * Result:    *ptr = the first of so many zero bytes, aligned to 4096.  Any
 *            operation takes any part of them wherever it takes other memory.
 *            A large message that leaves from there is read, or combined, by
 *            its receiver straight from there, where the ranks of a host can
 *            open each other's files below /proc; elsewhere it is copied on
 *            the way as other memory is.
 * Ownership: *ptr is the caller's, to release by coll_mem_free().  A child made
 *            by fork() shares it with its parent: both see what either writes.
 * Errors:    COLL_ERR_INVALID (ptr is NULL), COLL_ERR_NOMEM, COLL_ERR_SYSTEM
 *            (no file descriptor left); *ptr is untouched.
 * Threads:   any; no communicator is needed.
 * Cost:      some system calls, and a file descriptor for as long as it lives,
 *            so make few and large ones.  Pages exist once they are touched.
 * See:       COLL_MEM_MIN in coll_info --params; lib/device/area.h.
 */
int coll_mem_alloc(void **ptr, size_t bytes);

/* Allocate a buffer in GPU memory that the other ranks of this host can map.
 *
 * Shapes:    any number of bytes, of which whole 2 MiB are taken, so that nothing
 *            else of this process lies in what others map.  device as this process
 *            counts its GPUs (cudaSetDevice()), -1: the current one.
 * Result:    *ptr = the first of so many bytes, of any value, aligned to 512.  They
 *            are as those of cudaMalloc(), whatever allocator the program has
 *            otherwise: coll_mem_register() can have the other ranks read there.
 * Ownership: *ptr is the caller's, to release by coll_mem_free().  It lies in the
 *            current context if that is of this device, else in its primary one.
 * Errors:    COLL_ERR_INVALID (ptr is NULL, there is no such GPU, or no current one),
 *            COLL_ERR_NOMEM, COLL_ERR_UNSUPPORTED (no driver, or this libcoll was
 *            built without CUDA), COLL_ERR_SYSTEM; *ptr is untouched.
 * Threads:   any; no communicator is needed.  It is no part of a capture.
 * Cost:      a call of the driver, some hundred us: allocate once.
 * See:       lib/device/cuda_buffer.c.
 */
int coll_mem_alloc_device(void **ptr, size_t bytes, int device);

/* Free such a buffer.
 *
 * Shapes:    ptr is what coll_mem_alloc() or coll_mem_alloc_device() gave; NULL is
 *            allowed and does nothing.
 * Result:    its pages go back at once; the ranks that read there still have
 *            the addresses until they next read from new memory, or leave.
 *            Of GPU memory the driver waits for what the GPU's streams have been
 *            given before.  What other processes have mapped since it was
 *            registered (COLL_CUDA_MAPS) goes back with the next
 *            coll_mem_register() or coll_mem_deregister() of that communicator,
 *            or when all have destroyed it.
 * Errors:    COLL_ERR_INVALID when ptr is not the start of such a buffer (any
 *            more), or is GPU memory that is registered (coll_mem_deregister(), or
 *            coll_comm_destroy(), end that): it is not freed.
 * Threads:   any, when every operation that was given a part of it has ended
 *            on this rank.
 */
int coll_mem_free(void *ptr);

/* Have the other ranks read a buffer in GPU memory in place.
 *
 * Shapes:    `bytes` at ptr, anywhere in one allocation of this rank's GPU; as many
 *            on every rank.  Areas lie apart.
 * Result:    an allreduce, allgather, reduce_scatter or alltoall of which `in`, `out`
 *            or both lie in it, or a broadcast of which `out` does: the other ranks
 *            read there, and a copy of each such message falls away.  All ranks pass
 *            buffers at the same place of it, or none does, and all work in place or
 *            none; but of an allgather in place that is asked of `out`, and of a
 *            reduce_scatter of `in`; of a broadcast of `out`, in place or not.
 *            Collectives with counts go by slots, since each rank has displacements
 *            of its own.  What differs is COLL_ERR_MISMATCH with COLL_CHECK; else
 *            of the communicator, when a stream has stood still for a second, or,
 *            where that has not come about by chance and data are wrong, of
 *            coll_comm_destroy().
 *            Operations that are one kernel go by slots as ever.  Where GPU buffers
 *            pass through the host, nothing changes.
 * Ownership: the memory stays the caller's, not to be freed before
 *            coll_mem_deregister() or the communicator's end.
 * Errors:    COLL_ERR_INVALID (no memory of the communicator's GPU, a part of it is
 *            registered), COLL_ERR_MISMATCH (of another length on another rank),
 *            COLL_ERR_UNSUPPORTED (memory that other processes cannot map, as that
 *            of pools), COLL_ERR_NOMEM: alike on all ranks, and nothing has changed.
 * Threads:   as the blocking calls; all ranks call it, in the same order among their
 *            operations.  It waits for those of streams.
 * Cost:      two exchanges; the driver maps each allocation of other processes, some
 *            hundred us, unless it is mapped: a part of it is registered, or it is
 *            of coll_mem_alloc_device() and among the last ones that were
 *            (COLL_CUDA_MAPS).  An operation on registered memory ends on the stream when
 *            the others have read it.
 */
int coll_mem_register(struct coll_comm *comm, void *ptr, size_t bytes);

/* Have them do so no more, of what was registered at ptr.
 *
 * Ownership: then the memory may be freed.  No graph that has it is launched again.
 * Errors:    COLL_ERR_INVALID (nothing is registered at ptr), COLL_ERR_MISMATCH
 *            (another area on another rank): alike on all ranks, and nothing has
 *            changed.
 * Threads:   as coll_mem_register().
 */
int coll_mem_deregister(struct coll_comm *comm, void *ptr);

/* ---- questions ---------------------------------------------------------- */

/* How an operation would be carried out.  Set size = sizeof(info). */
struct coll_plan_info {
    size_t size;
    char algorithm[32];
    double seconds;   /* predicted */
    size_t n_steps;   /* of this rank */
    size_t tmp_bytes; /* scratch of this rank */
};

/* Say which plan the library would use for `args` on this rank.
 *
 * Shapes:    buffers are not read; in == out chooses the in-place plan.
 * Errors:    as coll_request_create().
 * Threads:   as the blocking calls; sends nothing.
 */
int coll_plan_query(const struct coll_args *args, struct coll_comm *comm,
                    struct coll_plan_info *info);

/* Fill in the candidate with this index among the algorithms that could carry
 * out `args`, the cheapest first; coll_args.algo then asks for it by name.
 *
 * Result:    COLL_OK, or COLL_ERR_INVALID past the last one (no message).
 *            seconds is predicted; n_steps and tmp_bytes are 0 (its plan is
 *            not built).
 * Threads:   as coll_plan_query().
 */
int coll_plan_candidate(const struct coll_args *args, struct coll_comm *comm,
                        size_t index, struct coll_plan_info *info);

/* What a communicator holds of memory, in bytes, beside some 100 KiB.  Set size =
 * sizeof(stats). */
struct coll_mem_stats {
    size_t size;
    size_t plans; /* operations as prepared; COLL_CACHE bounds those of calls */
    size_t scratch; /* of the host: what operations hold between their steps */
    size_t shared;  /* of the host: what its ranks have together, messages pass
                     * through it; each of them counts all of it */
    size_t pinned; /* of the host: GPU buffers pass through it; it stays for the
                     * next communicator (COLL_CUDA_STAGE) */
    size_t device; /* of this rank's GPU: slots that other ranks write to, and
                     * scratch of operations that streams carry out alone, and
                     * the steps of those that are one kernel */
    size_t mapped; /* of other ranks' GPUs, mapped into this process: slots, and
                    * allocations that are registered, or were and stay so */
};

/* Say what the communicator holds of memory on this rank.
 *
 * Shapes:    as the library has asked for it: pages of the host exist once they are
 *            touched.
 * Result:    *stats.  device is 0 until GPU buffers can go from GPU to GPU, and
 *            where there is one rank, whose premul operations alone have scratch;
 *            else 64 MiB of slots at most (COLL_CUDA_SLOT times twice
 *            COLL_CUDA_SLOTS for each other rank of the host), and four times the
 *            scratch that the largest operation so far has needed; and for each
 *            shape of operation that is one kernel, the 128 used last, 68 bytes a
 *            step, of which there is a power of two from 4 KiB on.  Memory of UCX
 *            and of CUDA's contexts is not known.
 * Errors:    COLL_ERR_INVALID (NULL, a size that is not known); *stats is untouched.
 * Threads:   as the blocking calls; sends nothing.
 * Cost:      a look at each plan that is kept.
 */
int coll_comm_mem_stats(struct coll_comm *comm, struct coll_mem_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
