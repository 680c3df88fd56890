/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.h - collective operations over a group of processes; the whole API.
 *
 * A process that takes part is a rank.  A group of ranks is a communicator.  A
 * program makes a communicator with coll_comm_create_env(), coll_comm_create()
 * or coll_comm_create_oob(), calls any number of operations on it, and ends it
 * with coll_comm_destroy().
 *
 * A function that can fail returns COLL_OK, COLL_IN_PROGRESS or a negative enum
 * coll_status.  After an error, coll_last_error() returns one sentence with the
 * cause and the remedy.
 *
 * Sizes are in bytes, counts in elements and times in seconds.  All names of
 * this API begin with coll_ or COLL_.
 *
 * The description of a function says what its arguments must be (Shapes), what
 * it gives (Result), who frees what (Ownership), how it fails (Errors), who may
 * call it at the same time (Threads) and what it costs (Cost).  What a section
 * says under one of these labels holds for each function of that section.
 */
#ifndef COLL_COLL_H
#define COLL_COLL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct coll_comm;     /* a communicator: a group of ranks */
struct coll_request;  /* one operation, which can be started many times */
struct coll_creation; /* of a communicator, which goes on beside its caller */

/* ---- status codes ------------------------------------------------------- *
 *
 * COLL_OK is 0.  Errors are negative.  Each code has one value for ever.
 */

/* X(name, value, text): each line is a status code. */
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
    X(ERR_INTERNAL, -11, "a bug in libcoll")                                \
    X(ERR_TRUNCATED, -12, "the message is longer than the receive")

enum coll_status {
#define COLL_ENUMERATOR(name, value, text) COLL_##name = value,
    COLL_STATUS_MAP(COLL_ENUMERATOR)
#undef COLL_ENUMERATOR
};

/* ---- element types ------------------------------------------------------ *
 *
 * Integers, IEEE 754 floating-point numbers of 16, 32 and 64 bits, bfloat16, and
 * the 8-bit floating-point numbers of OCP: f8e4m3, which has no infinities (a
 * larger number than 448 becomes a NaN), and f8e5m2.  bool is a byte: 0 is false,
 * any other number is true, and a reduction gives 0 or 1.  c64 and c128 are complex
 * numbers: two f32 or two f64, the real part first, as C's float complex and double
 * complex have them.  f32_i32, f64_i32 and i32_i32 are pairs of a value and an index,
 * such as struct { float value; int32_t index; }.  f64_i32 has 4 more bytes behind the
 * index, as C's struct has; a reduction sets them to 0.
 */

/* X(name, text, bytes): each line is an element type. */
#define COLL_TYPE_MAP(X)                                                       \
    X(I8, "i8", 1)                                                             \
    X(U8, "u8", 1)                                                             \
    X(I16, "i16", 2)                                                           \
    X(U16, "u16", 2)                                                           \
    X(I32, "i32", 4)                                                           \
    X(U32, "u32", 4)                                                           \
    X(I64, "i64", 8)                                                           \
    X(U64, "u64", 8)                                                           \
    X(F16, "f16", 2)                                                           \
    X(BF16, "bf16", 2)                                                         \
    X(F32, "f32", 4)                                                           \
    X(F64, "f64", 8)                                                           \
    X(BOOL, "bool", 1)                                                         \
    X(F8E4M3, "f8e4m3", 1)                                                     \
    X(F8E5M2, "f8e5m2", 1)                                                     \
    X(C64, "c64", 8)                                                           \
    X(C128, "c128", 16)                                                        \
    X(F32_I32, "f32_i32", 8)                                                   \
    X(F64_I32, "f64_i32", 16)                                                  \
    X(I32_I32, "i32_i32", 8)

enum coll_type {
#define COLL_ENUMERATOR(name, text, bytes) COLL_##name,
    COLL_TYPE_MAP(COLL_ENUMERATOR)
#undef COLL_ENUMERATOR
    COLL_N_TYPES
};

/* ---- reduction operations ----------------------------------------------- *
 *
 * COLL_AVG is the sum divided by the number of ranks; for integers the quotient
 * is truncated towards zero.  For floating-point numbers of 8 and 16 bits each
 * input is first divided by the least power of two that is not less than the
 * number of ranks, so that no sum overflows (bf16 and f8e4m3 on more than 512
 * ranks: unless nearly every input is the largest number).  This is exact, but
 * for quotients below the least normal number (2^-14 in f16, 2^-6 in f8e4m3),
 * which are rounded to a multiple of the least number (2^-24 in f16, 2^-133 in
 * bf16, 2^-9 in f8e4m3, 2^-16 in f8e5m2).  bool has no average.
 * Of bool, COLL_SUM and COLL_MAX are "or", COLL_PROD and COLL_MIN are "and".
 * COLL_BAND, COLL_BOR and COLL_BXOR are bitwise and take integers and bool.
 * COLL_LAND, COLL_LOR and COLL_LXOR are logical: an element that is not zero is
 * true, a NaN too, and the result is 1 or 0.
 * Complex numbers have COLL_SUM, COLL_PROD and COLL_AVG.  A product is
 * (ac - bd) + (ad + bc)i, each operation rounded by itself.
 * COLL_MINLOC and COLL_MAXLOC are for pairs, which have no other operation.  The result
 * is the pair with the least or the greatest value; of pairs with equal values, that
 * with the least index.  -0 equals +0; if the indices are equal too, the least is -0
 * and the greatest +0.  A NaN comes before every number, and the result is then a NaN
 * with the least index that a NaN has.  So no result depends on the order of the ranks.
 * In a communicator of one rank every reduction operation copies its input, times the
 * factors that coll_op_create_premul() or struct coll_args give.
 *
 * Floating-point arithmetic rounds to nearest even and keeps subnormal numbers,
 * whatever state the program has set by fesetround() or as flush-to-zero.
 */

/* X(name, text): each line is a reduction operation. */
#define COLL_OP_MAP(X)                                                         \
    X(SUM, "sum")                                                              \
    X(PROD, "prod")                                                            \
    X(MIN, "min")                                                              \
    X(MAX, "max")                                                              \
    X(AVG, "avg")                                                              \
    X(BAND, "band")                                                            \
    X(BOR, "bor")                                                              \
    X(BXOR, "bxor")                                                            \
    X(LAND, "land")                                                            \
    X(LOR, "lor")                                                              \
    X(LXOR, "lxor")                                                            \
    X(MINLOC, "minloc")                                                        \
    X(MAXLOC, "maxloc")

enum coll_op {
#define COLL_ENUMERATOR(name, text) COLL_##name,
    COLL_OP_MAP(COLL_ENUMERATOR)
#undef COLL_ENUMERATOR
    COLL_N_OPS,
    COLL_OP_LAST = 0x7fffffff /* operations of the caller's own lie between */
};

/* ---- collectives -------------------------------------------------------- *
 *
 * The names of the operations, for struct coll_args.  COLL_SEND, COLL_RECV,
 * COLL_SEND_TAGGED and COLL_RECV_TAGGED concern two ranks, all others concern
 * every rank.
 */

/* X(name, text): each line is an operation. */
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
    X(RECV, "recv")                       \
    X(SCAN, "scan")                       \
    X(EXSCAN, "exscan")                   \
    X(SEND_TAGGED, "send_tagged")         \
    X(RECV_TAGGED, "recv_tagged")

enum coll_collective {
#define COLL_ENUMERATOR(name, text) COLL_##name,
    COLL_COLLECTIVE_MAP(COLL_ENUMERATOR)
#undef COLL_ENUMERATOR
    COLL_N_COLLECTIVES
};

/* ---- fork and cancellation ---------------------------------------------- *
 *
 * A communicator or request belongs to the process that made it.  A process may
 * call fork() at any time, also while other threads are in operations.  Its
 * child may call coll_comm_destroy(), coll_request_destroy() and
 * coll_mem_free() on what it inherited: they free the child's copy, and neither
 * the parent nor its peers notice.  Functions that only ask, such as
 * coll_comm_rank(), still answer in the child.  Everything else on an inherited
 * communicator is COLL_ERR_INVALID.
 *
 * A child may make communicators of its own with coll_comm_create() and
 * coll_comm_create_oob().  It may use coll_comm_create_env() only if its parent
 * had not, because the variables of a launcher describe one process.  Where the
 * parent had used the transport ucx, the child's communicators go without it.
 * A child that was forked inside a function that the library calls (a
 * coll_user_fn, an allgather function, a log handler) must end there.
 *
 * Do not cancel a thread with pthread_cancel() while it is in a call: the
 * operation that it began would never end.  Call coll_comm_abort() from another
 * thread instead, which ends the wait.
 */

/* ---- the library -------------------------------------------------------- */

/* Return the library's version.
 *
 * Result:    Text of the form "major.minor.patch".
 * Ownership: The string is static.
 * Errors:    None.
 * Threads:   Any.
 */
const char *coll_version(void);

/* Return the meaning of a status code in a few words.
 *
 * Result:    A text for every status, also for an unknown one.
 * Ownership: The string is static.
 * Errors:    None.
 * Threads:   Any.
 * See:       coll_last_error().
 */
const char *coll_strerror(int status);

/* Return the sentence that explains this thread's last error.
 *
 * Result:    One line with the cause and the remedy; "" if this thread has had
 *            no error.
 * Ownership: The string is the library's.  It is valid until this thread next
 *            calls libcoll.
 * Errors:    None.
 * Threads:   Any.  Each thread has its own last error.
 */
const char *coll_last_error(void);

/* Return the name of a type, operation or collective, or a type's size.
 *
 * Result:    coll_type_size() returns the size of an element in bytes.  For a
 *            value that is not in the enum, the name is "?" and the size is 0.
 * Ownership: The strings are static.
 * Errors:    None.
 * Threads:   Any.
 */
const char *coll_type_name(enum coll_type type);
size_t coll_type_size(enum coll_type type);
const char *coll_op_name(enum coll_op op);
const char *coll_collective_name(enum coll_collective collective);

/* The levels of log lines, the most important first. */
enum coll_log_level {
    COLL_LOG_ERROR,
    COLL_LOG_WARN,
    COLL_LOG_INFO,
    COLL_LOG_DEBUG,
    COLL_LOG_TRACE
};

/* Send log lines to a function instead of to stderr.
 *
 * Shapes:    handler gets each line that the level of COLL_LOG lets through:
 *            its level, the part of the library that speaks (such as "topo" or
 *            "ucx"), the text without prefix and newline, and arg.  A handler
 *            of NULL sends lines to stderr again.
 * Ownership: part and text are the library's, valid during the call only.
 * Errors:    None.  128 lines wait for a handler or a reader of stderr that is
 *            slow; more than that are dropped and counted.  No operation waits
 *            for them.
 * Threads:   Any.  The library calls the handler from threads that call the
 *            library: at the end of a call, at the end of a group, or while the
 *            thread waits for an operation.  So several threads may be in the
 *            handler at once, and one may still be in the old handler when this
 *            function returns.  The handler may call the library; lines that
 *            this causes come later.  Lines of the library's own thread come
 *            with the next call, and after the last call go to stderr.
 * Cost:      None for lines that COLL_LOG leaves out.  This function waits up
 *            to 0.5 s for a line that is being written to stderr.
 * See:       coll-variables(7).
 */
void coll_set_log_handler(void (*handler)(enum coll_log_level level,
                                          const char *part, const char *text,
                                          void *arg),
                          void *arg);

/* One COLL_* variable of the environment. */
struct coll_param {
    const char *name;     /* "COLL_TIMEOUT" */
    const char *what;     /* its meaning in one line */
    const char *standard; /* its default, as text */
    const char *value;    /* in force: the environment's or the default */
    int is_set;           /* 1 if the environment sets it */
};

/* List the COLL_* variables of the environment, one a call.
 *
 * Shapes:    index counts from 0.
 * Result:    *param describes the variable with this index.
 * Ownership: The strings are static or the environment's.
 * Errors:    COLL_ERR_INVALID: index is past the last variable.  No message is
 *            logged.
 * Threads:   Any, while no thread changes the environment.
 * See:       coll_info(1), coll-variables(7).
 */
int coll_param_list(size_t index, struct coll_param *param);

/* Something that libcoll can be built with. */
struct coll_feature {
    const char *group;  /* "Bootstraps", "Transports", "Devices", "Libraries" */
    const char *name;   /* "ucx" */
    const char *detail; /* its version, or why it is missing */
    int is_built;       /* 1 if this build has it */
};

/* List what this build of the library can and cannot do, one item a call.
 *
 * Shapes:    index counts from 0.
 * Result:    *feature describes the item with this index.
 * Ownership: The strings are static.
 * Errors:    COLL_ERR_INVALID: index is past the last item.  No message is
 *            logged.
 * Threads:   Any.
 * See:       coll_info(1).
 */
int coll_feature_list(size_t index, struct coll_feature *feature);

/* A transport, and whether it works on this machine. */
struct coll_transport_info {
    const char *name;
    const char *what; /* its meaning in one line */
    int is_allowed;   /* 1 if COLL_TRANSPORTS allows it */
    int is_usable;    /* 1 if it works on this machine */
    char why[256];    /* if it does not work: the reason and the remedy */
    char note[512];   /* what else to know about it on this machine, or "" */
};

/* List the transports and whether they work on this machine, one a call.
 *
 * Shapes:    index counts from 0.
 * Result:    *info describes the transport with this index.
 * Ownership: name and what are static strings.
 * Errors:    COLL_ERR_INVALID: index is past the last transport.  No message is
 *            logged.
 * Threads:   Any, while no thread changes the environment.
 * Cost:      The transport is tried out.
 * See:       coll_info(1).
 */
int coll_transport_list(size_t index, struct coll_transport_info *info);

/* Mark a span of the program's own work in the file of COLL_TIMELINE.
 *
 * The span stands beside the library's operations in the picture:
 *
 *     double begin = coll_timeline_begin();
 *     forward();
 *     coll_timeline_end("FORWARD", "layer 1", begin);
 *
 * Shapes:    row names the row of the picture and what names the span in it.
 *            Each has up to 80 ASCII characters; any other character becomes
 *            '_'.  There are up to 256 rows.  begin is what
 *            coll_timeline_begin() returned.
 * Result:    coll_timeline_begin() returns the time of the monotonic clock in
 *            seconds.  Without a timeline it returns 0, and coll_timeline_end()
 *            does nothing.
 * Ownership: row and what are copied.
 * Errors:    None.
 * Threads:   Any.  Spans that overlap in a row are drawn in rows of their own.
 * Cost:      A load and a branch without a timeline; else a lock and a write.
 * See:       coll_timeline_add(3), coll-variables(7).
 */
double coll_timeline_begin(void);
void coll_timeline_end(const char *row, const char *what, double begin);

/* Mark a span that is over in the file of COLL_TIMELINE.
 *
 * It is for work whose times the program learns afterwards, such as that of a
 * GPU:
 *
 *     coll_timeline_add("FORWARD", "layer 1", begin, begin + 0.0021);
 *
 * Shapes:    row and what are as in coll_timeline_end().  begin and end are
 *            times of the monotonic clock in seconds, as coll_timeline_begin()
 *            returns them; end is not before begin.
 * Result:    None.  Without a timeline, the function does nothing.
 * Ownership: row and what are copied.
 * Errors:    None.
 * Threads:   Any.  A span that begins before the end of the span that was last
 *            added to its row is drawn in a row of its own.
 * Cost:      A load and a branch without a timeline; else a lock and a write.
 * See:       coll_timeline_begin(3), coll-variables(7).
 */
void coll_timeline_add(const char *row, const char *what, double begin,
                       double end);

/* The forms in which coll_topo_export() describes a machine. */
enum coll_topo_format { COLL_TOPO_TEXT, COLL_TOPO_XML, COLL_TOPO_DOT };

/* Describe this machine as the library sees it.
 *
 * Shapes:    format is COLL_TOPO_TEXT for people, COLL_TOPO_XML for hwloc and
 *            COLL_TOPO_FILE, or COLL_TOPO_DOT for graphviz.
 * Result:    *text = a tree of packages, NUMA nodes, caches, cores, NICs and
 *            GPUs.
 * Ownership: *text is the caller's, to release with free().
 * Errors:    On an error *text is untouched.
 *            COLL_ERR_INVALID: the format is unknown, or COLL_TOPO_FILE cannot
 *            be read.
 *            COLL_ERR_NOMEM: there is not enough memory.
 *            COLL_ERR_SYSTEM: the machine cannot be discovered.
 * Threads:   Any.
 * See:       coll_info(1).
 */
int coll_topo_export(enum coll_topo_format format, char **text);

/* ---- communicators ------------------------------------------------------ */

/* Options of a new communicator.
 *
 * Set size = sizeof(struct coll_config), and every other field that is not
 * wanted to 0, its default.
 */
struct coll_config {
    size_t size;
    /* The longest time in seconds that a call waits for other ranks, whether
     * data still moves or not.  0: the value of COLL_TIMEOUT, which is 300 by
     * default. */
    double timeout;
    /* 1: a reduction combines in the same order whatever the size, the
     * algorithm and the placement.  0: as COLL_REPRODUCIBLE says. */
    int reproducible;
    /* 1: coll_comm_destroy() does not wait for other ranks while this process
     * has other communicators.  A duplicate or split communicator inherits
     * it. */
    int deferred;
    /* 1: a thread of the library moves started operations while the caller does
     * something else.  A duplicate or split communicator inherits it.  0: as
     * COLL_PROGRESS says. */
    int progress_thread;
    /* Not NULL: an operation on host buffers that waits for other ranks calls
     * idle(idle_arg) again and again, in the thread that waits, so that a
     * library beside libcoll moves its own messages meanwhile.  The first call
     * comes when the wait outlasts some 1,000 polls, and there are 1 ms between
     * two calls at most.  The function may not wait for this communicator.  A
     * duplicate or split communicator inherits it. */
    void (*idle)(void *arg);
    void *idle_arg;
};

#define COLL_UNIQUE_ID_BYTES 128

/* The name and the secret of a group that is about to form.
 *
 * Rank 0 makes it with coll_get_unique_id() and passes it to the other ranks by
 * a private channel: whoever has it can join the group.
 */
struct coll_unique_id {
    unsigned char bytes[COLL_UNIQUE_ID_BYTES];
};

/* Make the id of a new group, in the process that will be its rank 0.
 *
 * Result:    *id holds this process's address and a new secret.  A listening
 *            socket stays open in this process until rank 0 has joined, or
 *            until coll_unique_id_free().
 * Ownership: *id is plain bytes, which may be copied and sent.
 * Errors:    COLL_ERR_INVALID: id is NULL.
 *            COLL_ERR_SYSTEM: no port is free within COLL_NET_PORTS.
 * Threads:   Any.
 * See:       coll_comm_create(), coll_unique_id_free().
 */
int coll_get_unique_id(struct coll_unique_id *id);

/* Give back an id that no group will use, and its listening socket.
 *
 * When rank 0 joins by an id, that also gives the id back.
 *
 * Shapes:    id is from coll_get_unique_id(), in any process.
 * Result:    No rank can join by the id any more.  In a process that has not
 *            made the id, or has used it, nothing changes.  A child made by
 *            fork() has a socket of its own to give back.
 * Ownership: The bytes of *id stay the caller's.
 * Errors:    COLL_ERR_INVALID: id is NULL, or no unique id.
 * Threads:   Any, but not while rank 0 joins by this id.
 * Cost:      Closes one socket.
 * See:       coll_get_unique_id().
 */
int coll_unique_id_free(const struct coll_unique_id *id);

/* Join a group by its id; return when all ranks have joined.
 *
 * Shapes:    0 <= rank < nranks.  Every rank passes the same nranks and id, and
 *            another rank.  config may be NULL for the defaults.
 * Result:    *comm is ready for operations.  Either every rank that returns gets
 *            it, or every one gets an error, also when ranks die meanwhile.
 * Ownership: *comm is the caller's, to end with coll_comm_destroy().  config is
 *            read during the call only.
 * Errors:    On an error *comm is untouched.
 *            COLL_ERR_INVALID: an argument or a COLL_* variable is wrong.
 *            COLL_ERR_NOMEM: there is not enough memory.
 *            COLL_ERR_BOOTSTRAP: a rank did not join within the deadline, or
 *            could not prove that it knows the secret.
 *            COLL_ERR_PEER: a rank died meanwhile.
 *            COLL_ERR_TIMEOUT: a rank joined, but did not finish within the deadline.
 *            The others take a rank that returns this for dead.
 *            COLL_ERR_TRANSPORT: no transport connects two of the ranks.
 *            COLL_ERR_MISMATCH: the ranks have different settings.
 * Threads:   Any.  Several threads may create communicators at once.
 * Cost:      Some round trips over TCP, and one control thread a process.
 * See:       coll_get_unique_id(), coll_comm_create_env().
 */
int coll_comm_create(struct coll_comm **comm, int nranks,
                     const struct coll_unique_id *id, int rank,
                     const struct coll_config *config);

/* The address of a process, at which groups of any processes can meet. */
struct coll_handle {
    unsigned char bytes[COLL_UNIQUE_ID_BYTES];
};

/* Get the handle of this process.
 *
 * Pass it to the other processes by a private channel: whoever has it can join
 * the groups that meet there.
 *
 * Result:    *handle is the same in each call of a process, and serves for any
 *            number of communicators.  A listening socket stays open from the
 *            first call on.
 * Ownership: *handle is plain bytes, which may be copied and sent.
 * Errors:    COLL_ERR_INVALID: handle is NULL.
 *            COLL_ERR_SYSTEM: no port is free within COLL_NET_PORTS.
 * Threads:   Any.  A child made by fork() gets another handle.
 * See:       coll_comm_create_handles().
 */
int coll_comm_handle(struct coll_handle *handle);

/* Make a communicator of the processes that have these handles.
 *
 * No launcher is needed.  The processes may be members of other communicators,
 * also of ones that have failed: so those that are left of a job can form a new
 * group, with newcomers.
 *
 * Shapes:    handles has nranks entries; every rank passes the same ones, and as
 *            rank the place of its own.  uuid names the group: every rank passes
 *            the same one, and the process handles[0] uses each only once.
 * Result:    As coll_comm_create(): *comm on every rank, or an error on every rank.
 * Ownership: handles and config are only read during the call.  *comm is the
 *            caller's, to end with coll_comm_destroy().
 * Errors:    As coll_comm_create().
 *            COLL_ERR_INVALID is also the error for a handle that is none, and
 *            for handles[rank] of another process.
 * Threads:   Any.  Several threads may create communicators at once.
 * Cost:      As coll_comm_create().
 * See:       coll_comm_handle().
 */
int coll_comm_create_handles(struct coll_comm **comm, int nranks,
                             const struct coll_handle handles[], int rank,
                             uint64_t uuid, const struct coll_config *config);

/* Join the group that the launcher describes in the environment.
 *
 * The launchers are collrun, mpirun and srun by PMIx, mpiexec of MPICH and
 * Intel MPI and srun by PMI, torchrun, horovodrun, and srun without either.
 * Without a launcher the communicator has a single rank.  If COLL_BOOTSTRAP is
 * set, the launcher that it names is used.
 *
 * In a process that collrun --min-np has started in place of a dead rank, the call
 * waits, without a deadline, until the ranks let it in by coll_comm_grow(); *comm is
 * what they get.  It may be called again if a rank or another newcomer died meanwhile.
 *
 * Shapes:    config may be NULL for the defaults.
 * Result:    As coll_comm_create(): *comm on every rank, or an error on every rank.
 * Ownership: *comm is the caller's, to end with coll_comm_destroy().  config is
 *            read during the call only.
 * Errors:    As coll_comm_create().  COLL_ERR_BOOTSTRAP is also the error for a
 *            set of variables that is not complete, such as RANK without
 *            WORLD_SIZE.  COLL_ERR_INVALID is also the error in a program that
 *            a rank has started: it inherits the launcher's variables but is
 *            no rank.  COLL_BOOTSTRAP=single lets it run alone.  COLL_ERR_ABORTED:
 *            the launcher has gone while this process waited to be let in.
 * Threads:   Any.
 * Cost:      As coll_comm_create().
 * See:       coll_comm_create(), coll_comm_waiting(), collrun(1), coll-variables(7).
 */
int coll_comm_create_env(struct coll_comm **comm,
                         const struct coll_config *config);

/* How a communicator is made: by an id, by handles, or, with both NULL, as the
 * launcher describes it.
 *
 * Set size = sizeof(struct coll_create_args), and the fields that are not needed
 * to 0.
 */
struct coll_create_args {
    size_t size;
    int nranks, rank; /* with id or handles */
    const struct coll_unique_id *id;
    const struct coll_handle *handles; /* [nranks] */
    uint64_t uuid;                     /* with handles */
    const struct coll_config *config;  /* or NULL */
};

/* Begin to make a communicator, and return at once.
 *
 * Shapes:    args as for coll_comm_create(), coll_comm_create_handles() or
 *            coll_comm_create_env().
 * Result:    *creation goes on in a thread of its own, with this thread's
 *            current GPU, until coll_comm_create_test() has told its end.
 * Ownership: What args points to is copied.  *creation is the caller's, until
 *            coll_comm_create_test() has told its end.
 * Errors:    On an error nothing was begun.
 *            COLL_ERR_INVALID: an argument is wrong.
 *            COLL_ERR_NOMEM: there is not enough memory.
 *            COLL_ERR_SYSTEM: no thread could be started.
 * Threads:   Any.
 * See:       coll_comm_create_test().
 */
int coll_comm_create_start(const struct coll_create_args *args,
                           struct coll_creation **creation);

/* Ask whether a communicator has been made.
 *
 * Result:    COLL_OK: *comm is ready for operations, and creation is freed.
 *            COLL_IN_PROGRESS: it is not ready yet.  It is within the deadline
 *            of its config, with COLL_OK or an error.
 * Ownership: creation is freed by every result but COLL_IN_PROGRESS and
 *            COLL_ERR_INVALID for an argument of this call.  *comm is the
 *            caller's, to end with coll_comm_destroy().
 * Errors:    As coll_comm_create(), coll_comm_create_handles() or
 *            coll_comm_create_env().
 * Threads:   One caller at a time a creation.
 * Cost:      Does not wait.
 * See:       coll_comm_create_start().
 */
int coll_comm_create_test(struct coll_creation *creation,
                          struct coll_comm **comm);

/* A way of the caller's own to exchange a few bytes among the ranks.
 *
 * Set size = sizeof(struct coll_oob).  The function allgather gathers len bytes
 * from each rank into out[nranks * len], in the order of the ranks, on every
 * rank.  It returns 0, or any other value if it failed.
 */
struct coll_oob {
    size_t size;
    int rank, nranks;
    int (*allgather)(void *arg, const void *in, void *out, size_t len);
    void *arg;
};

/* Join a group whose ranks can already exchange bytes, by MPI for example.
 *
 * Shapes:    oob describes this rank and the exchange.  config may be NULL for
 *            the defaults.
 * Result:    As coll_comm_create(): *comm on every rank, or an error on every rank.
 * Ownership: *comm is the caller's, to end with coll_comm_destroy().  oob and
 *            config are read, and allgather is called, during the call only.
 * Errors:    As coll_comm_create().  COLL_ERR_BOOTSTRAP is also the error when
 *            allgather fails.
 * Threads:   Any.
 * Cost:      As coll_comm_create().
 * See:       coll_comm_create().
 */
int coll_comm_create_oob(struct coll_comm **comm, const struct coll_oob *oob,
                         const struct coll_config *config);

#define COLL_NO_COLOR (-1)

/* Divide the ranks of a communicator into new communicators, one a color.
 *
 * Every rank of comm calls it, while no operation of comm runs.
 *
 * Shapes:    color >= 0, or COLL_NO_COLOR to be in no new communicator.  Ranks
 *            of one color are numbered by key, and by their rank in comm where
 *            the keys are equal.
 * Result:    *split is this rank's new communicator, or NULL for COLL_NO_COLOR.
 *            It has comm's configuration and does not depend on comm.
 * Ownership: *split is the caller's, to end with coll_comm_destroy().
 * Errors:    As coll_comm_create(), and those that comm has failed with.  On an
 *            error *split is untouched.  If the communicator of one color
 *            cannot be made, comm and the communicators of the other colors are
 *            not affected.
 *            COLL_ERR_INVALID: a rank passed a wrong color or NULL, or has an
 *            operation running.  Every rank gets this error.
 *            COLL_ERR_PEER: a rank of comm died meanwhile.  The message has its
 *            number in comm.
 * Threads:   One caller at a time a communicator.
 * Cost:      Two exchanges among the ranks of comm, and what coll_comm_create()
 *            does once the ranks have met.
 * See:       coll_comm_dup().
 */
int coll_comm_split(struct coll_comm *comm, int color, int key,
                    struct coll_comm **split);

/* Make a second communicator of the same ranks.
 *
 * Every rank of comm calls it, while no operation of comm runs.
 *
 * Result:    *dup has comm's ranks, with the same numbers, and comm's
 *            configuration.  It does not depend on comm.
 * Ownership: *dup is the caller's, to end with coll_comm_destroy().
 * Errors:    As coll_comm_split().
 * Threads:   One caller at a time a communicator.
 * Cost:      As coll_comm_split().
 * See:       coll_comm_split().
 */
int coll_comm_dup(struct coll_comm *comm, struct coll_comm **dup);

/* Return this rank's place in the communicator and on its host.
 *
 * Result:    coll_comm_rank() and coll_comm_size() return this rank and the
 *            number of ranks.  coll_comm_local_rank() and
 *            coll_comm_local_size() return the same among the ranks of this
 *            host.  coll_comm_host() and coll_comm_n_hosts() return the number
 *            of this host and how many there are; hosts are numbered in the
 *            order of their lowest ranks.
 * Errors:    None.  comm must not be NULL.
 * Threads:   Any.
 */
int coll_comm_rank(const struct coll_comm *comm);
int coll_comm_size(const struct coll_comm *comm);
int coll_comm_local_rank(const struct coll_comm *comm);
int coll_comm_local_size(const struct coll_comm *comm);
int coll_comm_host(const struct coll_comm *comm);
int coll_comm_n_hosts(const struct coll_comm *comm);

/* Say whether each rank of this host has a core for a second thread.
 *
 * The answer helps to decide whether a thread beside the calling one pays off.
 * It counts the cores that affinity masks and the quota of the control group
 * leave, not those that are visible.
 *
 * Result:    1 or 0.  If the rank is bound to a core, a new thread inherits the
 *            rank's affinity mask; to run on the spare core it must set a mask
 *            of its own.
 * Errors:    None.  comm must not be NULL.
 * Threads:   Any.
 * Cost:      Some ms, because it looks at the machine.
 */
int coll_comm_has_spare_core(const struct coll_comm *comm);

/* Return the transports that connect this rank to the others.
 *
 * Result:    A list such as "shm,tcp".
 * Ownership: The string is the communicator's, valid until its end.
 * Errors:    None.  comm must not be NULL.
 * Threads:   Any.
 * See:       coll-variables(7).
 */
const char *coll_comm_transports(const struct coll_comm *comm);

/* Fail all operations of a communicator, on every rank.
 *
 * Shapes:    why is a sentence for the other ranks, or NULL.
 * Result:    Operations that run or that are called later return
 *            COLL_ERR_ABORTED on every rank, with why in the message.
 *            coll_comm_agree() and coll_comm_shrink() work as before: this is what
 *            ULFM calls revoke.
 * Ownership: why is copied.
 * Errors:    COLL_ERR_INVALID: comm is NULL or was inherited over fork().
 * Threads:   Any, also while another thread waits in an operation, and destroys
 *            comm as soon as that has failed.
 * See:       coll_comm_async_error(), coll_comm_destroy().
 */
int coll_comm_abort(struct coll_comm *comm, const char *why);

/* Return the error that a communicator has failed with.
 *
 * Result:    COLL_OK as long as the communicator has not failed.  If it returns
 *            COLL_OK after a stream has passed an operation, the results of that
 *            operation are right on this rank.  If a GPU failed,
 *            coll_last_error() has the driver's own words.
 * Errors:    COLL_ERR_INVALID: comm is NULL or was inherited over fork().
 * Threads:   Any.
 * Cost:      No message.  If a rank of this host has failed and its words have
 *            yet to come, the call waits for them, half a second at most.
 */
int coll_comm_async_error(struct coll_comm *comm);

/* Get the ranks of a communicator that this process knows to be dead.
 *
 * A rank that has destroyed its failed communicator counts as dead, too.
 *
 * Shapes:    ranks[*n], or NULL if *n is 0.
 * Result:    *n is the number of dead ranks, and ranks holds the first of them in
 *            ascending order, at most as many as it has room for.  Ranks learn of
 *            deaths at different times: call coll_comm_agree() for one answer.
 * Errors:    COLL_ERR_INVALID: comm or n is NULL, or *n is wrong.
 *            COLL_ERR_NOMEM: there is not enough memory.
 * Threads:   Any.
 * Cost:      No message.
 * See:       coll_comm_shrink().
 */
int coll_comm_failed(struct coll_comm *comm, int ranks[], int *n);

/* Agree with all living ranks, although others die or have died.
 *
 * Every living rank calls it, whether comm has failed or not.
 *
 * Shapes:    *flags has the bits of this rank.
 * Result:    *flags has the bits that all ranks passed.  A rank that dies
 *            meanwhile counts or does not, but every rank that returns gets the
 *            same, and knows the same ranks to be dead.
 * Errors:    COLL_ERR_INVALID: comm or flags is NULL, or coll_comm_shrink() has timed out
 *            and was not called again.
 *            COLL_ERR_TIMEOUT: a living rank has not called it within the
 *            communicator's timeout.  The next call goes on with the same
 *            agreement.
 *            COLL_ERR_PEER: the other ranks have taken this rank for dead.
 * Threads:   One caller at a time a communicator.
 * Cost:      O(log p) messages a rank, and again for each death meanwhile.
 * See:       coll_comm_shrink(), coll_comm_failed().
 */
int coll_comm_agree(struct coll_comm *comm, uint64_t *flags);

/* 1: end what still runs on the communicator, on all ranks, as coll_comm_abort(). */
#define COLL_SHRINK_ABORT 1

/* Make a communicator of the ranks that live.
 *
 * Every living rank of comm calls it, but for those that are excluded, whether comm
 * has failed or not.
 *
 * Shapes:    exclude[n_exclude]: ranks of comm that are not to be in it, the same
 *            on all that call, or NULL.  flags: 0 or COLL_SHRINK_ABORT.
 * Result:    *rest has the same ranks everywhere, in the order of their ranks in
 *            comm, without any that a caller knew to be dead.  It has comm's
 *            configuration and does not depend on comm, which is to be
 *            destroyed.  Either every rank that returns gets it, or every one gets
 *            an error, also when ranks die meanwhile.
 * Ownership: *rest is the caller's, to end with coll_comm_destroy().
 * Errors:    On an error *rest is untouched.
 *            COLL_ERR_INVALID: an argument is wrong, or operations run and flags
 *            is 0.
 *            COLL_ERR_TIMEOUT: a living rank has not called it within the
 *            communicator's timeout.  The next call of coll_comm_shrink() goes on where
 *            this one was; until then coll_comm_agree() is COLL_ERR_INVALID.
 *            COLL_ERR_PEER: as coll_comm_agree().
 *            Others: as coll_comm_create().
 * Threads:   One caller at a time a communicator.
 * Cost:      Two agreements, and what coll_comm_create() does once the ranks have
 *            met; again if a rank dies meanwhile.
 * See:       coll_comm_agree(), coll_comm_abort().
 */
int coll_comm_shrink(struct coll_comm *comm, const int exclude[],
                     int n_exclude, int flags, struct coll_comm **rest);

/* Count the newcomers that wait at the launcher to join.
 *
 * collrun --min-np starts a process in place of one that has died.  The newcomer calls
 * coll_comm_create_env() as every process of the job does, and waits there until the
 * ranks let it in by coll_comm_grow().  Typically rank 0 asks once a step and tells the
 * others.
 *
 * Shapes:    any rank of comm may call it, and the others need not.
 * Result:    *n newcomers wait; 0 if the launcher starts none.
 * Errors:    On an error *n is untouched.
 *            COLL_ERR_INVALID: comm or n is NULL.
 *            COLL_ERR_BOOTSTRAP: the launcher does not answer within comm's timeout.
 * Threads:   Any.
 * Cost:      A connection to the launcher, and an exchange with it.  No message to
 *            other ranks.
 * See:       coll_comm_grow(), collrun(1).
 */
int coll_comm_waiting(struct coll_comm *comm, int *n);

/* Make a communicator of all ranks of comm and of n_new others.
 *
 * Every rank of comm calls it, and each newcomer calls coll_comm_create() with
 * coll_comm_size(comm) + n_new ranks, the same id, and a rank from
 * coll_comm_size(comm) on.  With id NULL on rank 0, the newcomers are processes that
 * wait at the launcher, in coll_comm_create_env().
 *
 * Shapes:    n_new >= 1, the same on all ranks.  id: on rank 0, which has made it by
 *            coll_get_unique_id(), or NULL; ignored on the others.  The call uses it
 *            up, whatever it returns.
 * Result:    *grown has the ranks of comm by their numbers there, and then the
 *            newcomers.  It has comm's configuration and does not depend on comm.
 *            Either every rank and newcomer that returns gets it, or every one gets
 *            an error, also when some die meanwhile.
 * Ownership: *grown is the caller's, to end with coll_comm_destroy().
 * Errors:    On an error *grown is untouched, and comm is as good as before unless
 *            one of its ranks died, or did not call.
 *            COLL_ERR_INVALID: a rank passed a wrong argument.  All ranks of comm get
 *            this error.
 *            COLL_ERR_BOOTSTRAP: fewer newcomers wait at the launcher, one of these died
 *            before it came, or one did not come within comm's timeout.
 *            COLL_ERR_PEER: a rank of comm died, or a newcomer that had come.
 *            All know of these deaths within about a second, and the other newcomers
 *            get an error, too.
 *            COLL_ERR_TIMEOUT: a rank of comm did not call within comm's timeout, and
 *            comm has failed; or as coll_comm_create().
 *            Others: as coll_comm_create(), and those that comm has failed with.
 * Threads:   One caller at a time a communicator.
 * Cost:      An exchange among the ranks of comm, and coll_comm_create().
 * See:       coll_comm_shrink(), coll_comm_waiting(), coll_get_unique_id().
 */
int coll_comm_grow(struct coll_comm *comm, int n_new,
                   const struct coll_unique_id *id, struct coll_comm **grown);

/* End a communicator and free everything that it holds.
 *
 * So that no message is cut off, ranks wait for each other.  If this is the
 * process's last communicator, the call returns when every rank has called it
 * and all communicators that were destroyed before have ended; or when the
 * group has failed or the deadline has passed.  If the process has other
 * communicators, the call waits at most 10 ms for ranks that have not called it
 * yet, or not at all with coll_config.deferred.  A thread of the library then
 * does the rest, until the last communicator is destroyed or the program exits.
 * So ranks may destroy their communicators in different orders and compute
 * meanwhile.  If the communicator has run operations on streams, later calls of
 * this function do the rest instead of a thread.
 *
 * The call waits until streams have passed all operations of the communicator.
 * In a child of fork() it returns at once.
 *
 * Shapes:    comm may be NULL; then nothing happens.
 * Ownership: comm is freed, whatever the result.  Its requests cannot be used
 *            any more.
 * Errors:    These may also concern a communicator that was destroyed earlier
 *            and has ended since.
 *            COLL_ERR_INVALID: a request still ran or had not been destroyed,
 *            or a group with operations of comm has not ended.
 *            COLL_ERR_PEER: a rank died.
 *            COLL_ERR_TIMEOUT: a rank did not call this function within the
 *            deadline.
 *            COLL_ERR_MISMATCH: the ranks had called different operations, or a
 *            message was never received.
 * Threads:   One caller, while no operation of comm runs.
 */
int coll_comm_destroy(struct coll_comm *comm);

/* ---- reduction operations of the caller's own --------------------------- */

/* A function of the caller's own that combines two vectors.
 *
 * It sets out[i] = left[i] op right[i] for every i below count.
 *
 * Shapes:    count > 0 elements of type.  out is left or right, and does not
 *            overlap the other one.  Each call gets some part of the vector,
 *            and the parts may come in any order.  The buffers are in host
 *            memory, also for operations on GPU buffers.
 * Threads:   The library calls it from any thread that is in a call of libcoll,
 *            and from its own thread; for one communicator by one thread at a
 *            time.  The function must not call libcoll: a call that would wait
 *            for the same communicator is COLL_ERR_INVALID.  It runs in the
 *            floating-point state of that thread; ranks whose states differ may
 *            get different bits.
 * See:       coll_op_create_user().
 */
typedef void coll_user_fn(const void *left, const void *right, void *out,
                          size_t count, enum coll_type type, void *arg);

/* Make an operation that multiplies each rank's input by a scalar and sums up.
 *
 * Shapes:    *scalar is one element of type, also of a complex one; each rank
 *            may have another one.
 * Result:    *op can be used with this type only, in any communicator of this
 *            process.  Each product is rounded to the type, or wraps for
 *            integers, before it is summed.  Input buffers are only read,
 *            unless in == out.  For floating-point numbers coll_args.prescale
 *            does the same with a factor that may be more exact.
 * Ownership: scalar is copied.  *op is the caller's, to end with
 *            coll_op_destroy() when no call of another thread and no open group
 *            uses it.  Requests that were made with it stay valid.
 * Errors:    On an error *op is untouched.
 *            COLL_ERR_INVALID: an argument is NULL or unknown, or type is
 *            COLL_BOOL or a pair.
 *            COLL_ERR_NOMEM: there are already 1,000 such operations.
 * Threads:   Any.
 * See:       coll_op_destroy().
 */
int coll_op_create_premul(const void *scalar, enum coll_type type,
                          enum coll_op *op);

/* Make an operation of the caller's own function.
 *
 * Shapes:    fn must be associative; it is told the type of each call, so one
 *            operation can serve several types.  commutes = 0 combines strictly in the
 *            order of the ranks; 1 leaves the order to the library.  Every rank
 *            passes the same value.
 * Result:    *op can be used with any type, in any communicator of this
 *            process.
 * Ownership: *op is the caller's, to end with coll_op_destroy().  fn and arg
 *            must stay valid until then, and until the last request that was
 *            made with *op is destroyed and streams have passed all operations
 *            with it.
 * Errors:    As coll_op_create_premul().
 * Threads:   Any.
 * See:       coll_user_fn(), coll_op_destroy().
 */
int coll_op_create_user(coll_user_fn *fn, void *arg, int commutes,
                        enum coll_op *op);

/* End an operation of the caller's own.
 *
 * Shapes:    op is from coll_op_create_premul() or coll_op_create_user().
 * Result:    op cannot be used in new calls any more.
 * Ownership: op is released; see the function that made it for when that may
 *            be.
 * Errors:    COLL_ERR_INVALID: op is no such operation, or has already ended.
 * Threads:   Any.
 */
int coll_op_destroy(enum coll_op op);

/* ---- operations on streams ---------------------------------------------- *
 *
 * An operation goes to a GPU's stream if it gets a stream, or buffers in GPU
 * memory.  The stream is a CUstream or cudaStream_t of the buffers' GPU; NULL
 * is then the legacy stream.  The call puts the operation into the stream and
 * returns.
 *
 * Shapes:    in and out are each memory of the stream's GPU or pinned host
 *            memory (cudaHostRegister, cudaMallocHost).  Either all ranks call
 *            an operation for a stream, or none.  A rank without buffers in the
 *            operation passes a stream that is not NULL.  All streams of a
 *            communicator are of one GPU; several ranks may share it.
 *            Operations may be captured in a graph, on all ranks or on none.
 *            Graphs must be launched in the same order on all ranks, also
 *            relative to calls, one after the other (on one stream, or ordered
 *            by events), and must have ended when coll_comm_destroy() is
 *            called.  A later launch ends, too, but its results mean nothing.
 * Result:    Later work in the stream finds the result in out.  Operations of a
 *            communicator run in the order of their calls, whatever their
 *            streams.  They do not wait for operations on host buffers, nor the
 *            reverse.  COLL_OK says that the arguments were valid.  A later
 *            failure is returned by coll_comm_async_error() and by every later
 *            call; streams then continue, and results are undefined.  So ask
 *            coll_comm_async_error() after the stream has passed the operation.
 * Ownership: Buffers stay the caller's.  Neither the GPU nor the host may write
 *            them, nor read out, until the stream has passed the operation.
 *            For a captured operation this holds as long as the graph may be
 *            launched.  The same is true of what a coll_user_fn needs.
 * Errors:    After these errors nothing was put into the stream.
 *            COLL_ERR_INVALID: CUDA does not know the memory (it was freed, or
 *            is host memory that is not pinned); or the memory is of another
 *            GPU than the stream; or the stream is NULL and no context is
 *            current.
 *            COLL_ERR_UNSUPPORTED: there is no CUDA driver, or libcoll was
 *            built without CUDA, here or on another rank.
 *            COLL_ERR_MISMATCH, COLL_ERR_TIMEOUT: the calls of the ranks do not
 *            match.  The call returns this with COLL_CHECK=1.  Otherwise it is
 *            found when the host carries a message, or when a stream makes no
 *            progress, and coll_comm_async_error() returns it.
 * Threads:   As for operations on host buffers.  The library starts its
 *            progress thread, which carries out or watches what streams wait
 *            for.
 * Cost:      Device memory, up to 64 MiB a rank, from the creation of a
 *            communicator whose ranks' GPUs are connected; pinned memory, as
 *            much, from the first message that the host carries, kept for later
 *            communicators; a call of the driver for each copy and each
 *            hand-over.  Freeing device memory waits for all
 *            streams of the context.  A stream may be waiting for the next call
 *            of this thread; so free device memory before the operation or
 *            after it has ended, above all where ranks are threads of one
 *            process.
 */

/* ---- operations --------------------------------------------------------- *
 *
 * Between coll_group_start() and coll_group_end() a call only notes what to do.
 *
 * Shapes:    size is the number of ranks, and rank is the number of this rank.
 *            Buffers are aligned to the size of their type.  stream is NULL for
 *            host buffers, else the stream of a GPU.
 * Result:    For host buffers the call returns when this rank's part of the
 *            operation is done.  For a stream or GPU buffers it returns at
 *            once, and the operation runs in the stream: see "Operations on
 *            streams" in libcoll(7).
 * Ownership: in and out stay the caller's.  The caller does not touch them
 *            until the operation is complete.
 * Errors:    COLL_ERR_INVALID: an argument is wrong.  Nothing was sent.
 *            COLL_ERR_UNSUPPORTED: no algorithm can carry out the call.
 *            Nothing was sent.
 *            COLL_ERR_NOMEM: there is not enough memory.
 *            COLL_ERR_PEER: a rank died, or cannot be reached any more.
 *            COLL_ERR_TIMEOUT: the deadline passed; the message names the ranks
 *            that did not call the operation.
 *            COLL_ERR_MISMATCH: ranks called different operations; the message
 *            has both calls.
 *            COLL_ERR_ABORTED: a rank called coll_comm_abort().
 *            COLL_ERR_SYSTEM, COLL_ERR_TRANSPORT: a connection failed.
 *
 *            After an error other than COLL_ERR_INVALID, COLL_ERR_UNSUPPORTED,
 *            COLL_ERR_NOMEM and COLL_ERR_TRUNCATED the communicator has failed,
 *            and only coll_comm_destroy() is of use.
 * Threads:   One caller at a time a communicator.
 * Cost:      No allocation and no system call once the plan for this shape (the
 *            same operation, type, count, root and factors) exists.
 */

/* Reduce a vector across all ranks and leave the result on each.
 *
 * Shapes:    in[count] and out[count] of type.  Every rank passes the same
 *            count, type and op.  in == out works in place; other overlap is
 *            invalid.
 * Result:    out[i] = op over every rank's in[i].  The order of the combination
 *            depends on the number of ranks, count, type and topology only: the
 *            same run gives the same bits, and all ranks get the same bits,
 *            except for the sign and payload of a NaN.
 * See:       coll_reduce(), coll_reduce_scatter(); lib/algo/allreduce_*.c.
 */
int coll_allreduce(const void *in, void *out, size_t count,
                   enum coll_type type, enum coll_op op,
                   struct coll_comm *comm, void *stream);

/* Copy a vector from one rank, the root, to all ranks.
 *
 * Shapes:    out[count] of type.  in[count] is read on the root only; other
 *            ranks may pass NULL.  in == out is allowed on the root.  Every
 *            rank passes the same count, type and root.
 * Result:    out = the root's in, on every rank.  If ranks pass different roots
 *            and the vector is small, it may be the next operation or
 *            coll_comm_destroy() that returns COLL_ERR_MISMATCH.
 * See:       coll_scatter(); lib/algo/broadcast_*.c.
 */
int coll_broadcast(const void *in, void *out, size_t count,
                   enum coll_type type, int root, struct coll_comm *comm,
                   void *stream);

/* Reduce a vector across all ranks and leave the result on one, the root.
 *
 * Shapes:    in[count] of type.  out[count] is written on the root only; other
 *            ranks may pass NULL.  in == out works in place on the root.  Every
 *            rank passes the same count, type, op and root.
 * Result:    out[i] = op over every rank's in[i], on the root.  The order of
 *            the combination depends on the number of ranks, count, type and
 *            topology only: the same run gives the same bits.
 * See:       coll_allreduce(); lib/algo/reduce_*.c.
 */
int coll_reduce(const void *in, void *out, size_t count, enum coll_type type,
                enum coll_op op, int root, struct coll_comm *comm,
                void *stream);

/* Gather equal blocks from all ranks on all ranks.
 *
 * Shapes:    in[count] and out[size * count] of type.  Every rank passes the
 *            same count and type.  in == out + rank * count works in place;
 *            other overlap is invalid.
 * Result:    out[r * count + i] = rank r's in[i], on every rank.
 * See:       coll_allgatherv(), coll_gather(); lib/algo/allgather_*.c.
 */
int coll_allgather(const void *in, void *out, size_t count,
                   enum coll_type type, struct coll_comm *comm, void *stream);

/* Gather blocks of different lengths from all ranks on all ranks.
 *
 * Shapes:    in[counts[rank]] of type.  counts and displs have one entry a
 *            rank, in elements.  Every rank passes the same counts and type.
 *            The block of rank r begins at out[displs[r]]; blocks do not
 *            overlap.  With displs NULL the blocks follow each other without a
 *            gap.  in == out + displs[rank] works in place; other overlap is
 *            invalid.
 * Result:    out[displs[r] + i] = rank r's in[i], on every rank.
 * Ownership: counts and displs are read during the call only.
 * See:       coll_allgather(); lib/algo/allgather_*.c.
 */
int coll_allgatherv(const void *in, void *out, const size_t counts[],
                    const size_t displs[], enum coll_type type,
                    struct coll_comm *comm, void *stream);

/* Reduce a vector across all ranks and leave each rank one block of it.
 *
 * Shapes:    in[size * count] and out[count] of type.  Every rank passes the
 *            same count, type and op.  out == in + rank * count works in place
 *            and leaves the rest of in as it was; other overlap is invalid.
 * Result:    out[i] = op over every rank's in[rank * count + i], where rank is
 *            the receiving one.
 * See:       coll_reduce_scatterv(), coll_allreduce();
 *            lib/algo/reduce_scatter_*.c.
 */
int coll_reduce_scatter(const void *in, void *out, size_t count,
                        enum coll_type type, enum coll_op op,
                        struct coll_comm *comm, void *stream);

/* Reduce a vector across all ranks and leave each rank a block of any length.
 *
 * Shapes:    in has counts[0] + counts[1] + ... elements of type, the blocks
 *            without a gap; out has counts[rank].  counts has one entry a rank,
 *            in elements.  Every rank passes the same counts, type and op.  It
 *            works in place if out is where this rank's block begins in in;
 *            other overlap is invalid.
 * Result:    out[i] = op over element i of this rank's block in every rank's
 *            in.
 * Ownership: counts is read during the call only.
 * See:       coll_reduce_scatter(); lib/algo/reduce_scatter_*.c.
 */
int coll_reduce_scatterv(const void *in, void *out, const size_t counts[],
                         enum coll_type type, enum coll_op op,
                         struct coll_comm *comm, void *stream);

/* Reduce a vector across the ranks up to this one.
 *
 * Shapes:    in[count] and out[count] of type.  Every rank passes the same
 *            count, type and op.  in == out works in place; other overlap is
 *            invalid.
 * Result:    out[i] = op over the in[i] of ranks 0 to rank, in the order of the
 *            ranks.  The order of the combination depends on the number of
 *            ranks, count, type and topology only: the same run gives the same
 *            bits.
 * Errors:    COLL_ERR_INVALID is also the error for COLL_AVG.
 * See:       coll_exscan(), coll_allreduce(); lib/algo/scan_*.c.
 */
int coll_scan(const void *in, void *out, size_t count, enum coll_type type,
              enum coll_op op, struct coll_comm *comm, void *stream);

/* Reduce a vector across the ranks before this one.
 *
 * Shapes:    in[count] and out[count] of type.  Every rank passes the same
 *            count, type and op.  in == out works in place; other overlap is
 *            invalid.  Rank 0 may pass NULL as out.
 * Result:    out[i] = op over the in[i] of ranks 0 to rank - 1, in the order of
 *            the ranks.  On rank 0 out is not written.  The order of the
 *            combination depends on the number of ranks, count, type and
 *            topology only: the same run gives the same bits.
 * Errors:    COLL_ERR_INVALID is also the error for COLL_AVG.
 * See:       coll_scan(); lib/algo/scan_*.c.
 */
int coll_exscan(const void *in, void *out, size_t count, enum coll_type type,
                enum coll_op op, struct coll_comm *comm, void *stream);

/* Send an equal block from every rank to every rank.
 *
 * Shapes:    in[size * count] and out[size * count] of type.  Every rank passes
 *            the same count and type.  in == out works in place; other overlap
 *            is invalid.
 * Result:    out[r * count + i] = rank r's in[rank * count + i], where rank is
 *            the receiving one.
 * See:       coll_alltoallv(); lib/algo/alltoall_*.c.
 */
int coll_alltoall(const void *in, void *out, size_t count, enum coll_type type,
                  struct coll_comm *comm, void *stream);

/* Send a block of any length from every rank to every rank.
 *
 * Shapes:    in_counts[q] elements go from in[in_displs[q]] to rank q, and
 *            out_counts[r] elements come from rank r to out[out_displs[r]].
 *            The arrays have one entry a rank, in elements.  With in_displs or
 *            out_displs NULL, blocks follow each other without a gap.  in and
 *            out must not overlap.  What rank q expects from rank r must be
 *            what rank r sends to rank q; else the call returns
 *            COLL_ERR_MISMATCH.
 * Result:    out has a block from every rank.
 * Ownership: The arrays are read during the call only.
 * See:       coll_alltoall(); lib/algo/alltoall_*.c.
 */
int coll_alltoallv(const void *in, const size_t in_counts[],
                   const size_t in_displs[], void *out,
                   const size_t out_counts[], const size_t out_displs[],
                   enum coll_type type, struct coll_comm *comm, void *stream);

/* Gather equal blocks from all ranks on one, the root.
 *
 * Shapes:    in[count] of type.  out[size * count] is written on the root only;
 *            other ranks may pass NULL.  Every rank passes the same count, type
 *            and root.  On the root, in == out + root * count works in place;
 *            other overlap is invalid.
 * Result:    out[r * count + i] = rank r's in[i], on the root.
 * See:       coll_gatherv(), coll_allgather(); lib/algo/gather_*.c.
 */
int coll_gather(const void *in, void *out, size_t count, enum coll_type type,
                int root, struct coll_comm *comm, void *stream);

/* Gather blocks of different lengths from all ranks on one, the root.
 *
 * Shapes:    in[count] of type; count is this rank's own.  out, counts and
 *            displs are used on the root only.  counts[r] elements from rank r
 *            go to out[displs[r]]; both arrays have one entry a rank, in
 *            elements, and with displs NULL blocks follow each other without a
 *            gap.  counts[r] must be the count of rank r; else the call returns
 *            COLL_ERR_MISMATCH.  Every rank passes the same type and root.  On
 *            the root, in == out + displs[root] works in place; other overlap
 *            is invalid.
 * Result:    out[displs[r] + i] = rank r's in[i], on the root.
 * Ownership: counts and displs are read during the call only.
 * See:       coll_gather(); lib/algo/gather_*.c.
 */
int coll_gatherv(const void *in, size_t count, void *out,
                 const size_t counts[], const size_t displs[],
                 enum coll_type type, int root, struct coll_comm *comm,
                 void *stream);

/* Send an equal block from one rank, the root, to each rank.
 *
 * Shapes:    in[size * count] of type is read on the root only; other ranks may
 *            pass NULL.  out[count] of type.  Every rank passes the same count,
 *            type and root.  On the root, out == in + root * count works in
 *            place; other overlap is invalid.
 * Result:    out[i] = the root's in[rank * count + i], where rank is the
 *            receiving one.
 * See:       coll_scatterv(), coll_broadcast(); lib/algo/scatter_*.c.
 */
int coll_scatter(const void *in, void *out, size_t count, enum coll_type type,
                 int root, struct coll_comm *comm, void *stream);

/* Send a block of any length from one rank, the root, to each rank.
 *
 * Shapes:    in, counts and displs are used on the root only.  counts[r]
 *            elements go from in[displs[r]] to rank r; both arrays have one
 *            entry a rank, in elements, and with displs NULL blocks follow each
 *            other without a gap.  out[count] of type; count is this rank's
 *            own.  The root's counts[r] must be the count of rank r; else the
 *            call returns COLL_ERR_MISMATCH.  Every rank passes the same type
 *            and root.  On the root, out == in + displs[root] works in place;
 *            other overlap is invalid.
 * Result:    out[i] = the root's in[displs[rank] + i], where rank is the
 *            receiving one.
 * Ownership: counts and displs are read during the call only.
 * See:       coll_scatter(); lib/algo/scatter_*.c.
 */
int coll_scatterv(const void *in, const size_t counts[], const size_t displs[],
                  void *out, size_t count, enum coll_type type, int root,
                  struct coll_comm *comm, void *stream);

/* Send a message to one rank, or receive one from it.
 *
 * Shapes:    in[count] or out[count] of type.  The two ranks pass the same
 *            count and type, and each other as peer.  peer may be this rank
 *            itself in a group or a request.
 * Result:    Messages between two ranks arrive in the order of the calls.
 *            Messages and collectives do not wait for each other.  COLL_OK from
 *            coll_send() says that in may be used again, not that the peer has
 *            received the message.  coll_send() may wait until the receive has
 *            begun: two ranks that send to each other do so in a group or with
 *            requests.
 * Errors:    COLL_ERR_INVALID is also the error for a blocking message to this
 *            rank itself, which nothing could receive.  COLL_ERR_MISMATCH is
 *            also the error for another count or type at the peer.  For a
 *            message that was never received coll_comm_destroy() returns it.
 * See:       coll_group_start(), coll_request_create().
 */
int coll_send(const void *in, size_t count, enum coll_type type, int peer,
              struct coll_comm *comm, void *stream);
int coll_recv(void *out, size_t count, enum coll_type type, int peer,
              struct coll_comm *comm, void *stream);

#define COLL_ANY_RANK (-1) /* the peer of a receive: any rank */
#define COLL_ANY_TAG (-1)  /* the tag of a receive: any tag */

/* The message that a receive with a tag has got.
 *
 * Set size = sizeof(struct coll_recv_status) before the call.
 */
struct coll_recv_status {
    size_t size;
    int source;   /* the rank that sent it */
    int tag;      /* its tag */
    size_t count; /* its elements */
};

/* Send a message with a tag, or receive one.
 *
 * A receive names the rank and the tag of the message that it wants, or takes
 * any.  The rules are those of MPI.  A message that comes takes the earliest
 * receive that matches it, and a receive takes the earliest message.  So
 * messages of one rank that match the same receives do not overtake each other.
 * Messages with tags and those of coll_send() never match each other.
 *
 * Shapes:    in[count] or out[count] of type, in host memory; stream is NULL.
 *            tag is 0 to INT_MAX.  For a receive, peer may be COLL_ANY_RANK and
 *            tag may be COLL_ANY_TAG.  Both ranks pass the same type.  The
 *            message may have fewer elements than the receive.  peer may be
 *            this rank itself.  status may be NULL.
 * Result:    coll_send_tagged() returns COLL_OK when in may be used again, not
 *            when the peer has received the message.  coll_recv_tagged()
 *            returns COLL_OK when out has the message, and *status says where
 *            it is from, its tag and how many elements it has; the rest of out
 *            is untouched.
 * Ownership: *status is written when the receive ends; in a request or a group
 *            it must be valid until then.
 * Errors:    COLL_ERR_TRUNCATED, at the receiver only: the message is longer
 *            than the receive.  The message is gone, out is untouched, and
 *            *status describes the message.  The communicator has not failed.
 *            COLL_ERR_MISMATCH: the two ranks passed different types.
 *            COLL_ERR_UNSUPPORTED: stream is not NULL, or the buffer is GPU
 *            memory.
 *            COLL_ERR_INVALID is also the error for a blocking call that waits
 *            for this rank itself while nothing of this rank could end the
 *            wait.  For a message that was never received coll_comm_destroy()
 *            returns COLL_ERR_MISMATCH.
 * Cost:      A message of at most 8 KiB is sent at once and kept at the
 *            receiver until a receive takes it.  Each rank keeps at most 64 KiB
 *            for each other rank, 128 bytes for each message included.  A
 *            message that is longer, or comes when these 64 KiB are full, waits
 *            at its sender: the receiver keeps some 400 bytes for it, and
 *            coll_send_tagged() returns when a receive has taken it.  A message
 *            that comes before its receive allocates memory.
 * See:       coll_send(), coll_request_create().
 */
int coll_send_tagged(const void *in, size_t count, enum coll_type type,
                     int peer, int tag, struct coll_comm *comm, void *stream);
int coll_recv_tagged(void *out, size_t count, enum coll_type type, int peer,
                     int tag, struct coll_comm *comm, void *stream,
                     struct coll_recv_status *status);

/* Wait until every rank has called this function.
 *
 * Result:    COLL_OK when every rank has called coll_barrier().  With a stream,
 *            the stream waits instead of the caller.
 * See:       lib/algo/barrier_dissemination.c.
 */
int coll_barrier(struct coll_comm *comm, void *stream);

/* ---- groups: several operations as one ---------------------------------- *
 *
 * A group is a list of operations that start together.  It holds calls of the
 * operations above.  Requests that are made, started or waited for between
 * coll_group_start() and coll_group_end() behave as they do outside.
 */

/* Begin a group: the operations that follow are noted, not started.
 *
 * Until coll_group_end() the calls of this thread, on any communicators, check
 * their arguments and return.
 *
 * Result:    COLL_OK.  Groups nest; the outermost coll_group_end() starts the
 *            operations.
 * Errors:    None of its own.  A call in the group whose arguments are wrong
 *            returns its error; the group then starts nothing, and its
 *            coll_group_end() returns the same error.
 * Threads:   Any.  Each thread has its own group.
 * See:       coll_group_end().
 */
int coll_group_start(void);

/* End a group: start its operations and wait until all of them are done.
 *
 * Shapes:    every rank of a communicator has the same collectives in its
 *            group, in the same order; sends and receives may be in any order.
 *            Ranks may list several communicators in different orders, unless
 *            they share a stream.  No operation may use a buffer that another
 *            operation of the group writes.  Sends and receives on streams use
 *            one stream a communicator, and run before the collectives there.
 * Result:    all operations are complete; those on streams have been put into
 *            their streams.  The library may combine allreduces: those of a
 *            communicator that follow each other (leaving out sends and
 *            receives), have the same type and op and are together no larger
 *            than COLL_FUSE travel as one.  They can do so with an operation of
 *            the caller's own too, so either all ranks use the same handle for
 *            all of them, or none does.
 * Errors:    The first error of an operation, when all have ended.
 *            COLL_ERR_INVALID: no group was begun.
 * Threads:   The thread that began the group.
 * Cost:      Allocates memory.  Allreduces that travel as one are copied in and
 *            out.
 * See:       coll_group_start(), coll-variables(7).
 */
int coll_group_end(void);

/* ---- requests: operations that do not block ----------------------------- *
 *
 * A request is one operation with its arguments.  It is made once and can be
 * started any number of times; the call that starts it returns at once.
 */

/* The arguments of an operation.
 *
 * Set size = sizeof(struct coll_args), and the fields that the collective does
 * not need to 0.  The fields mean what they mean for the blocking call of the
 * same name.
 */
struct coll_args {
    size_t size;
    enum coll_collective collective;
    enum coll_type type;
    enum coll_op op;
    int root; /* or the peer of a send or receive */
    const void *in;
    void *out;
    size_t count;
    void *stream; /* NULL for host buffers or the legacy stream */
    /* The arrays of the collectives whose names end in v, one entry a rank, in
     * elements.  allgatherv and gatherv use those of out, reduce_scatterv and
     * scatterv those of in, alltoallv both.  displs NULL: without gaps.  They
     * are read only while the request is made. */
    const size_t *in_counts, *in_displs, *out_counts, *out_displs;
    /* The algorithm to use, as in COLL_ALGO; NULL lets the library choose.  It
     * is copied.  If it is not equal on all ranks, the operation returns
     * COLL_ERR_MISMATCH. */
    const char *algo;
    /* 1: a thread of the library moves the operation once it is started, while
     * the caller does something else, unless COLL_PROGRESS is off.  It need not
     * be equal on all ranks. */
    int background;
    /* 1: when the operation ends, coll_completion_fd() becomes readable.  Not
     * with a stream.  It need not be equal on all ranks. */
    int notify;
    /* Of a receive with a tag: written each time the operation ends, or NULL. */
    struct coll_recv_status *status;
    int tag; /* of COLL_SEND_TAGGED and COLL_RECV_TAGGED */
    /* A number by which the caller knows the operation again, or 0: shown with it in
     * error sentences, log lines, COLL_TIMELINE and COLL_HISTORY.  Ranks do not compare
     * it. */
    uint64_t user_tag;
    /* Factors of a reduction with COLL_SUM or COLL_AVG of floating-point or
     * complex numbers: this rank's input is multiplied by prescale, and the
     * result by postscale.  0, as 1, is none.  Numbers of 8, 16 and 32 bits are
     * multiplied in f32 by the factor as an f32, and then rounded to their type;
     * f64 in f64; a complex number part by part.  COLL_AVG with a postscale
     * multiplies the sum once, by postscale / ranks.  prescale need not be equal
     * on all ranks, postscale must be.  An operation of
     * coll_op_create_premul() takes postscale only, coll_scan() and
     * coll_exscan() take prescale only.  A prescale needs memory for a copy of
     * the input, and each pair of factors a plan of its own. */
    double prescale, postscale;
    /* 1: ranks may start this request and others with any_order in different orders:
     * see coll_start().  For collectives on host buffers.  It must be equal on all
     * ranks. */
    int any_order;
};

/* Prepare an operation that can be started many times.
 *
 * Shapes:    args as for the blocking call of the same name.
 * Result:    *request is not started.  Its plan is built.
 * Ownership: *request is the caller's, to end with coll_request_destroy()
 *            before its communicator ends.  args is copied; the buffers stay
 *            the caller's.
 * Errors:    On an error nothing was made.
 *            COLL_ERR_INVALID: an argument is wrong, or the algorithm asked for
 *            refuses the operation; the message has the reason.
 *            COLL_ERR_UNSUPPORTED: every algorithm refuses the operation.
 *            COLL_ERR_NOMEM: there is not enough memory.
 * Threads:   One caller at a time a communicator.
 * Cost:      Allocates memory and builds the plan, unless the communicator has
 *            kept those of a call of this shape.
 * See:       coll_start().
 */
int coll_request_create(const struct coll_args *args, struct coll_comm *comm,
                        struct coll_request **request);

/* Start the operation of a request.
 *
 * Every rank starts its collectives in the same order, but for requests with
 * coll_args.any_order.  Sends and receives begin at once and run beside
 * everything else.  A collective begins when those before it have ended, with
 * one exception: collectives that move no more than 64 KiB in all wait for
 * other small ones only, and larger ones for other large ones.  So a small one
 * overtakes a large one.  alltoallv, gatherv and scatterv, whose counts no rank
 * knows completely, count as large.  No operation may read a buffer that
 * another operation, which has not ended, writes.
 *
 * Requests with any_order are made in the same order on all ranks and started
 * in any order.  The ranks match them by the number that coll_request_create()
 * gave them: it counts its calls with any_order on this communicator, also
 * those that fail.  The operation begins when all ranks have started it.  It
 * runs beside operations that are not in any order; those in any order that
 * are small, or large, run one after another, in the order in which all ranks
 * had started them.  Before it is started again, it must have ended here, not
 * on the other ranks.
 *
 * With a stream the operation runs when the stream reaches it, in the order of
 * the calls on streams, and has ended when the stream has passed it.
 *
 * Result:    COLL_OK at once.  The operation makes progress in coll_test(), in
 *            coll_wait() and in every other call that waits for ranks, on any
 *            communicator.  So ranks may wait for operations of several
 *            communicators in different orders.  With a progress thread
 *            (COLL_PROGRESS, coll_config.progress_thread, coll_args.background)
 *            it makes progress at all times, and that thread, too, calls the
 *            functions given to coll_op_create_user().  If the thread has a
 *            core of its own, it starts operations of 256 KiB and more itself:
 *            coll_test() or coll_wait() then returns an error that coll_start()
 *            would have found.
 * Ownership: The buffers may not be touched until the operation has ended.
 * Errors:    COLL_ERR_INVALID: the request already runs.
 *            Any other: the error that the communicator has failed with.
 * Threads:   One caller at a time a communicator.
 * Cost:      No allocation.  With any_order two messages more between each rank
 *            and its parent in a tree of the ranks, in which a rank has four
 *            children: 2 log4 p messages one after another.
 * See:       coll_request_create(), coll_test(), coll_wait().
 */
int coll_start(struct coll_request *request);

/* Make progress, and say whether the operation of a request is done.
 *
 * Result:    COLL_OK if it is done or was never started, COLL_IN_PROGRESS if it
 *            still runs.  The call does not block.
 * Ownership: request stays the caller's.
 * Errors:    As the blocking call of the same name.
 *            COLL_ERR_TIMEOUT: nothing has moved for the communicator's
 *            timeout.
 * Threads:   One caller at a time a communicator.
 * Cost:      No allocation.
 * See:       coll_wait().
 */
int coll_test(struct coll_request *request);

/* Wait until the operation of a request is done.
 *
 * Shapes:    timeout is the longest time in seconds that this call waits,
 *            whether data still moves or not.  0 means the communicator's
 *            timeout.
 * Result:    COLL_OK when it is done or was never started.
 * Ownership: request stays the caller's.
 * Errors:    As the blocking call of the same name.
 *            COLL_ERR_TIMEOUT: the deadline passed.  The communicator has
 *            failed.  The error comes a moment after the deadline, because the
 *            library first asks which ranks are missing.
 * Threads:   One caller at a time a communicator.
 * Cost:      No allocation.  If nothing moves for a second, the ranks compare
 *            their calls, and again after twice the time: O(log p) messages a
 *            rank, O(p) in all.  Data still moves meanwhile.
 * See:       coll_test().
 */
int coll_wait(struct coll_request *request, double timeout);

/* Ask whether the operation of a request is done, without moving it.
 *
 * Result:    As coll_test().  For an operation on a stream it is what the last
 *            coll_test() or coll_wait() found.
 * Ownership: request stays the caller's.
 * Errors:    As the blocking call of the same name.
 * Threads:   Any, also while another thread calls or waits.
 * Cost:      No allocation; one load.
 * See:       coll_completion_fd().
 */
int coll_request_status(const struct coll_request *request);

/* Make progress with everything that runs in this process.
 *
 * Result:    COLL_IN_PROGRESS while operations run, on any communicator; else
 *            COLL_OK.  The call does not block.
 * Errors:    None: coll_test() or coll_wait() return those of an operation.
 * Threads:   Any.  What another thread moves just now is left to it.
 * Cost:      No allocation.
 * See:       coll_completion_fd().
 */
int coll_progress(void);

/* Get the file descriptor by which an event loop learns that operations ended.
 *
 * It becomes readable, for poll(), when an operation ends whose request was made
 * with coll_args.notify, well or not.  read() of 8 bytes returns the number of
 * those that ended since the last read(), as a uint64_t (eventfd(2)), and does
 * not wait; then ask coll_request_status() which ones they are.  For an operation
 * that nobody waits for set coll_args.background, too, or call coll_progress():
 * otherwise nothing moves it.
 *
 * Result:    *fd, one for the process, the same in each call.
 * Ownership: *fd is the library's, which never closes it.  After fork() the
 *            child has another one.
 * Errors:    COLL_ERR_INVALID: fd is NULL.
 *            COLL_ERR_SYSTEM: no descriptor could be made.
 * Threads:   Any.  Each notice goes to one reader, whoever reads first.
 * Cost:      One system call for each operation that ends so.
 * See:       coll_request_create(), coll_request_status().
 */
int coll_completion_fd(int *fd);

/* Free a request.
 *
 * Shapes:    request may be NULL; then nothing happens.
 * Ownership: request is freed, unless it runs.
 * Errors:    COLL_ERR_INVALID: the request runs.  It is not freed.
 * Threads:   One caller at a time a communicator.
 * See:       coll_request_create().
 */
int coll_request_destroy(struct coll_request *request);

/* ---- memory ------------------------------------------------------------- */

/* Allocate host memory that the other ranks of this host can read in place.
 *
 * Shapes:    bytes may be any number.  0 also gives an address that no other
 *            buffer has.
 * Result:    *ptr is the first of bytes zero bytes, aligned to 4096.  Any part
 *            of the buffer can be used as any other memory.  Receivers read
 *            large messages straight from it where the ranks of a host can open
 *            each other's files in /proc; elsewhere the messages are copied as
 *            from other memory.
 * Ownership: *ptr is the caller's, to release with coll_mem_free().  A child of
 *            fork() shares the memory with its parent.
 * Errors:    On an error *ptr is untouched.
 *            COLL_ERR_INVALID: ptr is NULL.
 *            COLL_ERR_NOMEM: there is not enough memory.
 *            COLL_ERR_SYSTEM: there is no file descriptor left.
 * Threads:   Any.  It needs no communicator.
 * Cost:      Some system calls, and a file descriptor until the buffer is
 *            freed: make a few large buffers.  Pages exist once they are
 *            touched.
 * See:       coll_mem_free().
 */
int coll_mem_alloc(void **ptr, size_t bytes);

/* Allocate GPU memory that the other ranks of this host can map.
 *
 * The memory is of the kind that cudaMalloc() gives, whichever allocator the
 * program uses elsewhere, so that coll_mem_register() works with it.
 *
 * Shapes:    bytes may be any number.  It is rounded up to a multiple of 2 MiB,
 *            so that other processes map nothing else of this process.  device
 *            is the number of a GPU as in cudaSetDevice(); -1 is the current
 *            one.
 * Result:    *ptr is the first of bytes bytes of any value, aligned to 512.
 * Ownership: *ptr is the caller's, to release with coll_mem_free().  The memory
 *            belongs to the current context if that is of this GPU, else to the
 *            GPU's primary context.
 * Errors:    On an error *ptr is untouched.
 *            COLL_ERR_INVALID: ptr is NULL, there is no such GPU, or no GPU is
 *            current.
 *            COLL_ERR_NOMEM: there is not enough memory.
 *            COLL_ERR_UNSUPPORTED: there is no CUDA driver, or libcoll was
 *            built without CUDA.
 *            COLL_ERR_SYSTEM: the driver failed.
 * Threads:   Any.  It needs no communicator, and cannot be captured in a graph.
 * Cost:      Some hundred us, in the driver: allocate once.
 * See:       coll_mem_register(), coll_mem_free().
 */
int coll_mem_alloc_device(void **ptr, size_t bytes, int device);

/* Free a buffer of coll_mem_alloc() or coll_mem_alloc_device().
 *
 * Shapes:    ptr is an address that one of these two functions gave.  It may be
 *            NULL; then nothing happens.
 * Result:    The pages of host memory go back at once.  Ranks that read from
 *            the buffer keep the addresses until they next read from new memory
 *            or their communicator ends.  For GPU memory the driver waits for
 *            all streams of the GPU.  GPU memory that other processes still
 *            map, because it was registered, goes back at the next
 *            coll_mem_register() or coll_mem_deregister() of that communicator,
 *            or when all ranks have destroyed it.
 * Ownership: ptr is released.
 * Errors:    On an error the buffer is not freed.
 *            COLL_ERR_INVALID: ptr is not the start of such a buffer, or the
 *            buffer is still registered; call coll_mem_deregister() or
 *            coll_comm_destroy() first.
 * Threads:   Any, when all operations that use the buffer have ended on this
 *            rank.
 * See:       coll_mem_alloc(), coll_mem_alloc_device().
 */
int coll_mem_free(void *ptr);

/* Let the other ranks read a buffer in GPU memory in place.
 *
 * An operation on registered memory saves one copy of each message.  All ranks
 * call it, in the same order among their operations.
 *
 * Shapes:    bytes at ptr, anywhere in one allocation on this rank's GPU.
 *            Every rank passes the same number of bytes.  Registered buffers do
 *            not overlap.
 * Result:    The other ranks read in place for an allreduce, allgather,
 *            reduce_scatter or alltoall with in, out or both in a registered
 *            buffer, and for a broadcast with out in one.  Either all ranks
 *            pass addresses at the same offset of the buffer, or none passes a
 *            registered buffer; and all work in place or none does.  For an
 *            allgather in place only out counts, for a reduce_scatter in place
 *            only in, for a broadcast only out.  Collectives with counts, and
 *            operations that run as one kernel, do not use it.  Where GPU
 *            buffers pass through the host, nothing changes.
 * Ownership: The memory stays the caller's.  It must not be freed before
 *            coll_mem_deregister() or the end of the communicator.
 * Errors:    Every rank gets the same error, and nothing has changed.
 *            COLL_ERR_INVALID: the memory is not of the communicator's GPU, or
 *            a part of it is already registered.
 *            COLL_ERR_MISMATCH: another rank passed another number of bytes.
 *            COLL_ERR_UNSUPPORTED: other processes cannot map this memory, such
 *            as that of a memory pool.
 *            COLL_ERR_NOMEM: there is not enough memory.
 *
 *            If ranks later break the rules for registered buffers, the
 *            operation returns COLL_ERR_MISMATCH with COLL_CHECK=1.  Without
 *            COLL_CHECK the results are undefined; if a stream makes no
 *            progress for a second, coll_comm_async_error() returns the error.
 * Threads:   One caller at a time a communicator.  It waits for operations on
 *            streams.
 * Cost:      Two exchanges among the ranks.  The driver maps each allocation of
 *            another process, in some hundred us, unless it is still mapped.
 *            An operation on registered memory ends in the stream only when the
 *            other ranks have read it.
 * See:       coll_mem_deregister(), coll_mem_alloc_device().
 */
int coll_mem_register(struct coll_comm *comm, void *ptr, size_t bytes);

/* End the registration of a buffer in GPU memory.
 *
 * All ranks call it, in the same order among their operations.
 *
 * Shapes:    ptr is the address that was registered.
 * Result:    The other ranks do not read the buffer any more.
 * Ownership: The memory may then be freed.  A graph that uses the registered
 *            buffer must not be launched again.
 * Errors:    Every rank gets the same error, and nothing has changed.
 *            COLL_ERR_INVALID: nothing is registered at ptr.
 *            COLL_ERR_MISMATCH: another rank named another buffer.
 * Threads:   One caller at a time a communicator.  It waits for operations on
 *            streams.
 * Cost:      Two exchanges among the ranks.
 * See:       coll_mem_register().
 */
int coll_mem_deregister(struct coll_comm *comm, void *ptr);

/* ---- questions ---------------------------------------------------------- */

/* How the library carries out an operation.
 *
 * Set size = sizeof(struct coll_plan_info) before the call.
 */
struct coll_plan_info {
    size_t size;
    char algorithm[32];
    double seconds;   /* the predicted time */
    size_t n_steps;   /* steps of this rank */
    size_t tmp_bytes; /* scratch memory of this rank */
};

/* Say which plan the library would use for an operation on this rank.
 *
 * Shapes:    args as for coll_request_create().  The buffers are not read;
 *            in == out chooses the plan that works in place.
 * Result:    *info describes the plan.
 * Ownership: args and info stay the caller's.
 * Errors:    As coll_request_create().
 * Threads:   One caller at a time a communicator.
 * Cost:      Builds the plan.  Nothing is sent.
 * See:       coll_plan_candidate(), coll_plan(1).
 */
int coll_plan_query(const struct coll_args *args, struct coll_comm *comm,
                    struct coll_plan_info *info);

/* List the algorithms that can carry out an operation, one a call.
 *
 * Shapes:    args as for coll_request_create().  index counts from 0, the
 *            cheapest algorithm.
 * Result:    *info has the name and the predicted time of the algorithm with
 *            this index.  Its plan is not built, so n_steps and tmp_bytes are
 *            0.  coll_args.algo asks for an algorithm by its name.
 * Ownership: args and info stay the caller's.
 * Errors:    As coll_request_create().
 *            COLL_ERR_INVALID: index is past the last algorithm.  No message is
 *            logged.
 * Threads:   One caller at a time a communicator.
 * Cost:      Prices every algorithm.  Nothing is sent.
 * See:       coll_plan_query(), coll_plan(1).
 */
int coll_plan_candidate(const struct coll_args *args, struct coll_comm *comm,
                        size_t index, struct coll_plan_info *info);

/* The memory that a communicator holds, in bytes, beside some 100 KiB.
 *
 * Set size = sizeof(struct coll_mem_stats) before the call.
 */
struct coll_mem_stats {
    size_t size;
    size_t plans;   /* prepared operations; COLL_CACHE bounds those of calls */
    size_t scratch; /* on the host: results between the steps of operations */
    size_t shared;  /* on the host: shared by its ranks, to pass messages;
                     * every rank counts all of it */
    size_t pinned;  /* on the host: GPU buffers pass through it; the next
                     * communicator takes it over */
    size_t device;  /* on this rank's GPU: slots that other ranks write to,
                     * scratch and kernel programs of operations on streams */
    size_t mapped;  /* on other ranks' GPUs, mapped into this process: slots,
                     * and allocations that are or were registered */
};

/* Say how much memory a communicator holds on this rank.
 *
 * Result:    *stats has the bytes that the library asked for; pages of host
 *            memory exist once they are touched.  stats->device is 0 until
 *            buffers can go from GPU to GPU.  It then has up to 64 MiB of
 *            slots, four times the scratch of the largest operation so far, and
 *            the kernel programs of the last 128 shapes that ran as one kernel:
 *            68 bytes a step, rounded up to a power of two of at least 4 KiB.
 *            A communicator of one rank has scratch for operations of
 *            coll_op_create_premul() only.  Memory of UCX and of CUDA contexts
 *            is not known.
 * Ownership: stats stays the caller's.
 * Errors:    COLL_ERR_INVALID: an argument is NULL, or stats->size is unknown.
 *            *stats is untouched.
 * Threads:   One caller at a time a communicator.
 * Cost:      A look at each plan.  Nothing is sent.
 */
int coll_comm_mem_stats(struct coll_comm *comm, struct coll_mem_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
