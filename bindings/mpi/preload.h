/* SPDX-License-Identifier: BSD-3-Clause */
/* preload.h - MPI programs whose collectives run on libcoll, by LD_PRELOAD.
 *
 * The library defines MPI_Allreduce() and others before MPI does, and reaches
 * MPI's own functions by their PMPI_ names.  It is compiled once for each MPI.
 * A call is either carried, by libcoll, or left to MPI.
 *
 * What is carried: collectives of intracommunicators of two ranks or more that
 * MPI_Init(), MPI_Comm_dup(), MPI_Comm_split() and the like have made.  When MPI
 * makes one, its ranks make a communicator of libcoll beside it (comms.c).  A
 * map finds it by the handle; MPI calls an attribute's delete function when the
 * handle is freed, and the communicator of libcoll ends without waiting.
 *
 * The invariant: whether a call is carried follows from what MPI has all ranks
 * pass alike (communicator, operation, the type of a reduction), so all ranks
 * decide the same.  Data movement is carried as bytes, since ranks may describe
 * the same bytes by different types and counts.
 *
 * Progress: while a carried call waits, libcoll asks MPI about a
 * request that never ends (the option idle of a communicator), so that MPI's own
 * messages move.  Carried
 * calls that do not block move in libcoll's thread while the program is in a
 * function of MPI or computes.
 *
 * A wrong argument that MPI would refuse is left to MPI, which reports it.
 */
#ifndef COLL_BINDINGS_MPI_PRELOAD_H
#define COLL_BINDINGS_MPI_PRELOAD_H

#include "include/coll/coll.h"

#include <mpi.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define MPI_PRELOAD_API __attribute__((visibility("default")))

/* ---- map.c: what belongs to a handle ------------------------------------- */

struct map_entry {
    uintptr_t key;
    void *value;
    struct map_entry *next;
};

struct map {
    pthread_mutex_t lock;
    struct map_entry *buckets[256];
};

#define MAP_INIT                                                               \
    {                                                                          \
        .lock = PTHREAD_MUTEX_INITIALIZER                                      \
    }

/* 0, or -1 without memory. */
int map_put(struct map *map, uintptr_t key, void *value);
/* The value, or NULL. */
void *map_get(struct map *map, uintptr_t key);
/* Remove the key; its value, or NULL. */
void *map_take(struct map *map, uintptr_t key);
/* Some value other than this one, or NULL. */
void *map_other(struct map *map, const void *value);

/* ---- report.c ------------------------------------------------------------- */

/* X(name, text): why calls are left to MPI. */
#define LEFT_MAP(X)                                                            \
    X(COMM, "communicator")                                                    \
    X(TYPE, "type or operation")                                               \
    X(FORM, "form")                                                            \
    X(ARGUMENTS, "arguments")

enum left_why {
#define LEFT_ENUMERATOR(name, text) LEFT_##name,
    LEFT_MAP(LEFT_ENUMERATOR)
#undef LEFT_ENUMERATOR
        N_LEFT
};

void report_carried(enum coll_collective collective);
void report_left(enum coll_collective collective, enum left_why why);
/* Say at finalize what was carried, with COLL_MPI_REPORT=1. */
void report_say(void);

/* ---- types.c -------------------------------------------------------------- */

/* What MPI allows in reductions of a type. */
enum type_class {
    CLASS_OTHER, /* no reduction of MPI's own, or libcoll lacks it */
    CLASS_INTEGER,
    CLASS_FLOAT,
    CLASS_COMPLEX,
    CLASS_FLOAT_INT, /* a float or double, and an int as its index */
    CLASS_TWO_INTS,
    CLASS_LOGICAL,
    CLASS_BYTE
};

struct type_info {
    MPI_Datatype handle;
    enum type_class class;
    enum coll_type coll; /* unless CLASS_OTHER */
    int is_named;
    int is_plain; /* elements are bytes without a gap, in order */
    size_t size, extent;
    size_t align;  /* of elements that libcoll reduces in place */
    size_t staged; /* bytes of an element in a stage: size, or more with gaps */
};

/* Build the table of MPI's own types; once, when MPI is initialised. */
void types_init(void);

/* Describe a type; 0: it is no type. */
int type_describe(MPI_Datatype type, struct type_info *info);

/* How libcoll reduces elements of the type by the operation: *as and *by.  Returns 0
 * where it cannot. */
int type_reduces(const struct type_info *info, MPI_Op op, enum coll_type *as,
                 enum coll_op *by);

/* ---- user_op.c ------------------------------------------------------------ */

/* Find libcoll's operation for one of MPI_Op_create() on elements of a type of MPI's
 * own.  Returns 0 if there is none. */
int user_op_find(MPI_Op op, const struct type_info *type, enum coll_op *by);

/* ---- comms.c -------------------------------------------------------------- */

struct comm {
    MPI_Comm handle;
    struct coll_comm *coll;
    int rank, size;
    atomic_int users;     /* the handle, and requests that have not ended */
    atomic_int n_pending; /* requests that run */
    /* [size] each, for the arrays of one call: counts and displacements. */
    size_t *in_counts, *in_displs, *out_counts, *out_displs;
    struct comm *next; /* among spare records */
};

extern struct comms {
    int is_threaded; /* MPI_THREAD_MULTIPLE */
    int keyval;
    MPI_Comm self;        /* of this process alone */
    MPI_Request standing; /* a receive there, which ends with MPI */
    _Atomic(struct comm *) last;
} comms;

struct comm *comm_find_slowly(MPI_Comm handle);

/* The communicator's record; NULL: its calls are left to MPI. */
static inline struct comm *comm_find(MPI_Comm handle)
{
    struct comm *last = atomic_load_explicit(&comms.last, memory_order_acquire);

    return __builtin_expect(last && __atomic_load_n(&last->handle,
                                                    __ATOMIC_RELAXED) == handle,
                            1)
               ? last
               : comm_find_slowly(handle);
}

void comm_use(struct comm *comm);
void comm_release(struct comm *comm);

/* MPI's error code for a status of libcoll; its text is coll_last_error(). */
int status_code(int status);

/* Report a status of libcoll by the communicator's error handler; returns the code. */
int comm_error(MPI_Comm handle, int status);

/* Let MPI's messages move. */
void mpi_progress(void *unused);

/* ---- call.c: one call ----------------------------------------------------- */

/* A buffer of the program.  If its elements have gaps, or a reduction would find them
 * misaligned, libcoll works on a copy without gaps, the stage. */
struct area {
    char *at;
    struct type_info type;
    size_t count;               /* elements, without counts */
    const int *counts, *displs; /* of n blocks; NULL: one block */
    int n;
    char *stage; /* NULL: libcoll works on the buffer itself */
    int is_owner;
};

struct call {
    struct coll_args args;
    struct comm *comm;
    struct area in, out;
    int is_short; /* no memory for a stage */
    int is_user_op;
    int is_kept; /* types and arrays are copies: call_keep() */
};

/* Begin to describe a call.  0: it is left to MPI. */
int call_begin(struct call *call, enum coll_collective collective,
               MPI_Comm comm);

/* Count a call that is left to MPI; returns 0. */
int call_leave(enum coll_collective collective, enum left_why why);

/* Describe a buffer of count elements; 0: no such buffer.  The second form has blocks as
 * the v functions of MPI have them. */
int area_set(struct area *area, const void *at, int count, MPI_Datatype type);
int area_set_blocks(struct area *area, const void *at, const int counts[],
                    const int displs[], int n, MPI_Datatype type);
size_t area_bytes(const struct area *area);

/* Have libcoll work on a stage if it must; where it works then.  is_needed: also for
 * elements without gaps. */
char *area_stage(struct call *call, struct area *area, int is_needed);

/* Fill the byte counts and displacements of the area's blocks. */
void area_spread(const struct area *area, size_t counts[], size_t displs[]);

/* Carry the call out.  Returns MPI's error code. */
int call_run(struct call *call);

/* Parts of call_run(), for calls that do not block: copy into the stages; copy out of
 * them; free them. */
int call_pack(struct call *call);
int call_unpack(struct call *call);
void call_free(struct call *call);
/* Make copies of what the program may change or free before the call ends.  0, or -1. */
int call_keep(struct call *call);

/* ---- moves.c and reductions.c: the collectives ---------------------------- *
 *
 * Each fills a struct call.  1: it is carried; 0: it is left to MPI.
 */

#define MPI_PLACE (const void *)MPI_IN_PLACE

/* A send or receive side: buffer, count, type. */
struct side {
    const void *at;
    int count;
    MPI_Datatype type;
    const int *counts, *displs;
};

int prepare_barrier(struct call *call, MPI_Comm comm);
int prepare_bcast(struct call *call, struct side buf, int root, MPI_Comm comm);
int prepare_allgather(struct call *call, struct side in, struct side out,
                      MPI_Comm comm);
int prepare_allgatherv(struct call *call, struct side in, struct side out,
                       MPI_Comm comm);
int prepare_alltoall(struct call *call, struct side in, struct side out,
                     MPI_Comm comm);
int prepare_alltoallv(struct call *call, struct side in, struct side out,
                      MPI_Comm comm);
int prepare_gather(struct call *call, struct side in, struct side out, int root,
                   MPI_Comm comm);
int prepare_gatherv(struct call *call, struct side in, struct side out,
                    int root, MPI_Comm comm);
int prepare_scatter(struct call *call, struct side in, struct side out,
                    int root, MPI_Comm comm);
int prepare_scatterv(struct call *call, struct side in, struct side out,
                     int root, MPI_Comm comm);

/* The arguments of a reduction. */
struct reduction {
    const void *in;
    void *out;
    int count;
    const int *counts;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
};

int prepare_allreduce(struct call *call, const struct reduction *r);
int prepare_reduce(struct call *call, const struct reduction *r, int root);
int prepare_reduce_scatter_block(struct call *call, const struct reduction *r);
int prepare_reduce_scatter(struct call *call, const struct reduction *r);
int prepare_scan(struct call *call, const struct reduction *r);
int prepare_exscan(struct call *call, const struct reduction *r);

/* ---- requests.c ----------------------------------------------------------- */

/* Prepare a call that does not block: 1 if it is carried, else it is left to MPI. */
int call_may_start(struct call *call);
/* Start it.  Returns MPI's error code. */
int call_start(struct call *call, MPI_Request *request);

/* The same for a call that is prepared once. */
int call_persist(struct call *call, MPI_Request *request);

/* Carry out a call that blocks while other threads may wait for requests of the same
 * communicator. */
int call_run_beside(struct call *call);

/* How many carried calls run that do not block. */
extern atomic_int requests_running;

#endif
