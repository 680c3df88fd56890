/* SPDX-License-Identifier: BSD-3-Clause */
/* comms.c - the communicators of libcoll beside those of MPI.
 *
 * One is made right after MPI has made its own, while all ranks of it are in the same
 * call, over an exchange of MPI.  If a rank fails to make it, no rank keeps it, and the
 * calls of the communicator are left to MPI.
 */
#include "bindings/mpi/preload.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_DEADLINE 1e9 /* s: MPI has none */

struct comms comms = {.keyval = MPI_KEYVAL_INVALID, .self = MPI_COMM_NULL};

static struct map records = MAP_INIT;

/* Records that have no handle any more.  A thread that looks for another handle may still
 * read one of these, so they are used again and never freed. */
static struct comm *spare;
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;

struct comm *comm_find_slowly(MPI_Comm handle)
{
    struct comm *comm = map_get(&records, (uintptr_t)handle);

    if (comm)
        atomic_store_explicit(&comms.last, comm, memory_order_release);
    return comm;
}

void mpi_progress(void *unused)
{
    int flag;

    (void)unused;
    if (comms.self != MPI_COMM_NULL) /* MPICH's probes move nothing */
        PMPI_Request_get_status(comms.standing, &flag, MPI_STATUS_IGNORE);
}

/* ---- making one ----------------------------------------------------------- */

static int exchange(void *arg, const void *in, void *out, size_t len)
{
    MPI_Comm *handle = arg;

    return PMPI_Allgather(in, (int)len, MPI_BYTE, out, (int)len, MPI_BYTE,
                          *handle);
}

/* Make a communicator of libcoll for the ranks of one of MPI's.  Collective.  The status
 * is the same on all ranks. */
static int make_coll(MPI_Comm handle, struct coll_comm **coll)
{
    struct coll_config config = {.size = sizeof(config),
                                 .timeout = NO_DEADLINE,
                                 .deferred = 1,
                                 .idle = mpi_progress};
    struct coll_oob oob = {
        .size = sizeof(oob), .allgather = exchange, .arg = &handle};
    int rc, worst;

    if (getenv("COLL_TIMEOUT"))
        config.timeout = 0;
    PMPI_Comm_rank(handle, &oob.rank);
    PMPI_Comm_size(handle, &oob.nranks);
    *coll = NULL;
    rc = coll_comm_create_oob(coll, &oob, &config);
    if (PMPI_Allreduce(&rc, &worst, 1, MPI_INT, MPI_MIN, handle))
        worst = COLL_ERR_BOOTSTRAP;
    if (worst && oob.rank == 0)
        fprintf(stderr,
                "libcoll: a communicator of %d ranks is left to MPI: %s\n",
                oob.nranks, rc ? coll_last_error() : coll_strerror(worst));
    if (worst && *coll) {
        coll_comm_destroy(*coll);
        *coll = NULL;
    }
    return worst;
}

static void comm_free(struct comm *comm)
{
    coll_comm_destroy(comm->coll);
    free(comm->in_counts);
    pthread_mutex_lock(&spare_lock);
    comm->next = spare;
    spare = comm;
    pthread_mutex_unlock(&spare_lock);
}

static struct comm *take_spare(void)
{
    struct comm *comm;

    pthread_mutex_lock(&spare_lock);
    comm = spare;
    if (comm)
        spare = comm->next;
    pthread_mutex_unlock(&spare_lock);
    if (comm)
        return comm;
    return calloc(1, sizeof(*comm));
}

/* The record of a communicator, without that of libcoll; NULL: no memory. */
static struct comm *comm_new(MPI_Comm handle)
{
    struct comm *comm = take_spare();
    size_t n;

    if (!comm)
        return NULL;
    __atomic_store_n(&comm->handle, handle, __ATOMIC_RELAXED);
    comm->coll = NULL;
    PMPI_Comm_rank(handle, &comm->rank);
    PMPI_Comm_size(handle, &comm->size);
    atomic_store(&comm->users, 1);
    n = (size_t)comm->size;
    comm->in_counts = calloc(4 * n, sizeof(*comm->in_counts));
    if (!comm->in_counts) {
        comm_free(comm);
        return NULL;
    }
    comm->in_displs = comm->in_counts + n;
    comm->out_counts = comm->in_displs + n;
    comm->out_displs = comm->out_counts + n;
    return comm;
}

/* Keep the record under the handle; all ranks do, or none. */
static void comm_register(struct comm *comm, struct coll_comm *coll,
                          MPI_Comm handle)
{
    int has = comm && !map_put(&records, (uintptr_t)handle, comm), all;

    if (has && PMPI_Comm_set_attr(handle, comms.keyval, comm)) {
        map_take(&records, (uintptr_t)handle);
        has = 0;
    }
    PMPI_Allreduce(&has, &all, 1, MPI_INT, MPI_MIN, handle);
    if (comm)
        comm->coll = coll;
    else
        coll_comm_destroy(coll);
    if (has && !all)
        PMPI_Comm_delete_attr(handle, comms.keyval); /* which frees it */
    else if (comm && !has)
        comm_free(comm);
}

/* MPI has made this communicator: make one of libcoll if its calls can be carried. */
static void adopt(MPI_Comm handle)
{
    struct coll_comm *coll;
    int size, is_inter;

    if (comms.keyval == MPI_KEYVAL_INVALID || handle == MPI_COMM_NULL ||
        PMPI_Comm_test_inter(handle, &is_inter) || is_inter ||
        PMPI_Comm_size(handle, &size) || size < 2 || make_coll(handle, &coll))
        return;
    comm_register(comm_new(handle), coll, handle);
}

/* ---- its end -------------------------------------------------------------- */

void comm_use(struct comm *comm) { atomic_fetch_add(&comm->users, 1); }

void comm_release(struct comm *comm)
{
    if (atomic_fetch_sub(&comm->users, 1) == 1)
        comm_free(comm);
}

/* MPI frees the handle. */
static int forget(MPI_Comm handle, int keyval, void *value, void *extra)
{
    struct comm *comm = value, *last = comm;

    (void)keyval;
    (void)extra;
    map_take(&records, (uintptr_t)handle);
    atomic_compare_exchange_strong(&comms.last, &last, NULL);
    comm_release(comm);
    return MPI_SUCCESS;
}

/* The communicator whose standing receive is for mpi_progress(). */
static int open_self(void)
{
    int rc = PMPI_Comm_dup(MPI_COMM_SELF, &comms.self);

    return rc ? rc
              : PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, comms.self,
                           &comms.standing);
}

static void close_self(void)
{
    MPI_Comm self = comms.self;

    PMPI_Send(NULL, 0, MPI_BYTE, 0, 0, self);
    comms.self = MPI_COMM_NULL;
    PMPI_Wait(&comms.standing, MPI_STATUS_IGNORE);
    PMPI_Comm_free(&self);
}

/* MPI ends: every rank is in MPI_Finalize() after the barrier, so no rank waits for a
 * message of MPI while this one waits for it in libcoll. */
static int finalize(MPI_Comm self, int keyval, void *value, void *extra)
{
    struct comm *world = map_get(&records, (uintptr_t)MPI_COMM_WORLD), *comm;

    (void)self;
    (void)keyval;
    (void)value;
    (void)extra;
    PMPI_Barrier(MPI_COMM_WORLD);
    report_say();
    while ((comm = map_other(&records, world)))
        PMPI_Comm_delete_attr(comm->handle, comms.keyval);
    if (world) /* the last one, whose end waits for the other ranks */
        PMPI_Comm_delete_attr(MPI_COMM_WORLD, comms.keyval);
    close_self();
    return MPI_SUCCESS;
}

/* ---- the beginning -------------------------------------------------------- */

/* May ranks pass buffers in GPU memory?  libcoll would return before a stream has moved
 * them, and MPI may not. */
static int takes_gpu_buffers(void)
{
    int (*asked)(void) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"), *driver;
    int may = 0, any, rank;

    if (found)
        memcpy(&asked, &found, sizeof(asked));
    if (asked && asked()) {
        driver = dlopen("libcuda.so.1", RTLD_LAZY);
        may = driver != NULL;
    }
    PMPI_Allreduce(&may, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (any && rank == 0)
        fprintf(stderr, "libcoll: this MPI takes buffers in GPU memory, which "
                        "libcoll does not carry for it; all calls are left to "
                        "MPI\n");
    return any;
}

static void begin(void)
{
    int level, at_end;

    if (takes_gpu_buffers())
        return;
    PMPI_Query_thread(&level);
    comms.is_threaded = level == MPI_THREAD_MULTIPLE;
    types_init();
    if (open_self() ||
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalize, &at_end,
                                NULL) ||
        PMPI_Comm_set_attr(MPI_COMM_SELF, at_end, NULL) ||
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &comms.keyval,
                                NULL)) {
        comms.keyval = MPI_KEYVAL_INVALID;
        return;
    }
    adopt(MPI_COMM_WORLD);
}

MPI_PRELOAD_API int MPI_Init(int *argc, char ***argv)
{
    int rc = PMPI_Init(argc, argv);

    if (rc == MPI_SUCCESS)
        begin();
    return rc;
}

MPI_PRELOAD_API int MPI_Init_thread(int *argc, char ***argv, int wanted,
                                    int *level)
{
    int rc = PMPI_Init_thread(argc, argv, wanted, level);

    if (rc == MPI_SUCCESS)
        begin();
    return rc;
}

/* ---- the functions that make communicators -------------------------------- */

/* Adopt what a function of MPI has made, if it has; returns its result. */
static int made(int rc, const MPI_Comm *handle)
{
    if (rc == MPI_SUCCESS)
        adopt(*handle);
    return rc;
}

MPI_PRELOAD_API int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *out)
{
    return made(PMPI_Comm_dup(comm, out), out);
}

MPI_PRELOAD_API int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info,
                                           MPI_Comm *out)
{
    return made(PMPI_Comm_dup_with_info(comm, info, out), out);
}

MPI_PRELOAD_API int MPI_Comm_create(MPI_Comm comm, MPI_Group group,
                                    MPI_Comm *out)
{
    return made(PMPI_Comm_create(comm, group, out), out);
}

MPI_PRELOAD_API int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group,
                                          int tag, MPI_Comm *out)
{
    return made(PMPI_Comm_create_group(comm, group, tag, out), out);
}

MPI_PRELOAD_API int MPI_Comm_split(MPI_Comm comm, int color, int key,
                                   MPI_Comm *out)
{
    return made(PMPI_Comm_split(comm, color, key, out), out);
}

MPI_PRELOAD_API int MPI_Comm_split_type(MPI_Comm comm, int type, int key,
                                        MPI_Info info, MPI_Comm *out)
{
    return made(PMPI_Comm_split_type(comm, type, key, info, out), out);
}

MPI_PRELOAD_API int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *out)
{
    return made(PMPI_Intercomm_merge(comm, high, out), out);
}

MPI_PRELOAD_API int MPI_Cart_create(MPI_Comm comm, int n, const int dims[],
                                    const int periods[], int reorder,
                                    MPI_Comm *out)
{
    return made(PMPI_Cart_create(comm, n, dims, periods, reorder, out), out);
}

MPI_PRELOAD_API int MPI_Cart_sub(MPI_Comm comm, const int dims[], MPI_Comm *out)
{
    return made(PMPI_Cart_sub(comm, dims, out), out);
}

MPI_PRELOAD_API int MPI_Graph_create(MPI_Comm comm, int n, const int index[],
                                     const int edges[], int reorder,
                                     MPI_Comm *out)
{
    return made(PMPI_Graph_create(comm, n, index, edges, reorder, out), out);
}

MPI_PRELOAD_API int MPI_Dist_graph_create(MPI_Comm comm, int n,
                                          const int sources[],
                                          const int degrees[],
                                          const int destinations[],
                                          const int weights[], MPI_Info info,
                                          int reorder, MPI_Comm *out)
{
    return made(PMPI_Dist_graph_create(comm, n, sources, degrees, destinations,
                                       weights, info, reorder, out),
                out);
}

MPI_PRELOAD_API int MPI_Dist_graph_create_adjacent(
    MPI_Comm comm, int n_in, const int sources[], const int in_weights[],
    int n_out, const int destinations[], const int out_weights[], MPI_Info info,
    int reorder, MPI_Comm *out)
{
    return made(PMPI_Dist_graph_create_adjacent(
                    comm, n_in, sources, in_weights, n_out, destinations,
                    out_weights, info, reorder, out),
                out);
}

/* ---- errors --------------------------------------------------------------- */

static int class_of(int status)
{
    return status == COLL_ERR_NOMEM      ? MPI_ERR_NO_MEM
           : status == COLL_ERR_INVALID  ? MPI_ERR_ARG
           : status == COLL_ERR_MISMATCH ? MPI_ERR_TRUNCATE
                                         : MPI_ERR_OTHER;
}

int status_code(int status)
{
    char text[MPI_MAX_ERROR_STRING];
    int code;

    snprintf(text, sizeof(text), "libcoll: %s", coll_last_error());
    if (PMPI_Add_error_code(class_of(status), &code) == MPI_SUCCESS)
        PMPI_Add_error_string(code, text);
    else
        code = class_of(status);
    return code;
}

int comm_error(MPI_Comm handle, int status)
{
    int code = status_code(status);

    PMPI_Comm_call_errhandler(handle, code);
    return code;
}
