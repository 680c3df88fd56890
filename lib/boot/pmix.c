/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix.c - ranks that a PMIx launcher started: Open MPI's mpirun, srun
 * --mpi=pmix.  libpmix is loaded at run time, never linked.
 *
 * Each rank puts its block under a key of its own; a fence that collects the data spreads
 * the blocks; then each rank gets all of them.  (To ask the other ranks directly is not
 * reliable if several daemons share a host.)
 *
 * The process stays a client until it exits.  It must not finalize after each group: the
 * server removes a rank that leaves from every fence under way, and other ranks may have
 * begun the next group's fence.
 */
#include "lib/boot/ancestor.h"
#include "lib/boot/boot.h"
#include "lib/boot/launcher.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <pmix.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PAUSE 1.0 /* s, from a fence's start to the first question */
#define LAST_PAUSE 16.0 /* s, between two questions; each doubles until then */
#define ANSWER_TIME 5.0 /* s, for the server's answer */

/* X(field, symbol): the functions of libpmix that are used. */
#define PMIX_MAP(X)                                                            \
    X(init, PMIx_Init)                                                         \
    X(finalize, PMIx_Finalize)                                                 \
    X(put, PMIx_Put)                                                           \
    X(commit, PMIx_Commit)                                                     \
    X(fence_nb, PMIx_Fence_nb)                                                 \
    X(query, PMIx_Query_info_nb)                                               \
    X(get, PMIx_Get)                                                           \
    X(listen, PMIx_Register_event_handler)                                     \
    X(text, PMIx_Error_string)

static struct {
    void *handle; /* never closed: libpmix has threads of its own */
#define X(field, symbol) __typeof__(symbol) *field;
    PMIX_MAP(X)
#undef X
    char fault[256]; /* why it could not be loaded; "" if it was */
} lib;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_once_t stay_once = PTHREAD_ONCE_INIT;

/* How many blocks this process has gathered; the same on every rank. */
static atomic_uint n_gathered;

/* A call under way; shared by the caller and libpmix's thread; the last one of them frees
 * it. */
struct pending {
    pthread_mutex_t lock;
    pthread_cond_t done;
    int is_done, n_users;
    pmix_status_t status;
};

/* The question to the server which ranks have ended. */
struct question {
    struct pending pending; /* first */
    pmix_proc_t self;
    pmix_query_t query;
    pmix_info_t job; /* the query's: which job */
    int ended;       /* the answer: the first rank that has ended, or -1 */
};

/* Open MPI 5 from PyPI brings its own libpmix, in a folder where the loader does not
 * look; PMIX_PREFIX names it.  An older libpmix of this machine would work, but the
 * server complains about each rank that uses one. */
static void *open_own(void)
{
    const char *prefix = secure_getenv("PMIX_PREFIX");
    char path[512];

    if (!prefix || *prefix != '/' ||
        (size_t)snprintf(path, sizeof(path), "%s/lib/openmpi/libpmix.so.2",
                         prefix) >= sizeof(path))
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void load(void)
{
    lib.handle = open_own();
    if (!lib.handle)
        lib.handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!lib.handle) {
        snprintf(lib.fault, sizeof(lib.fault), "%s", dlerror());
        return;
    }
#define X(field, symbol)                                                       \
    lib.field = (__typeof__(symbol) *)dlsym(lib.handle, #symbol);              \
    if (!lib.field)                                                            \
        snprintf(lib.fault, sizeof(lib.fault), "it has no " #symbol);
    PMIX_MAP(X)
#undef X
}

/* Log a failed call; COLL_OK for PMIX_SUCCESS. */
static int pmix_status(pmix_status_t rc, const char *call)
{
    if (rc == PMIX_SUCCESS)
        return COLL_OK;
    log_error("boot", "%s failed: %s; is the launcher's PMIx server alive?",
              call, lib.text(rc));
    return COLL_ERR_BOOTSTRAP;
}

static int detect(void)
{
    const char *text = getenv("PMIX_NAMESPACE");

    return text && *text;
}

/* ---- calls under way ---------------------------------------------------- */

static void pending_init(struct pending *pending)
{
    pthread_mutex_init(&pending->lock, NULL);
    coll__reactor_cond_init(&pending->done);
    pending->n_users = 2;
}

static void pending_put(struct pending *pending)
{
    int n_left;

    pthread_mutex_lock(&pending->lock);
    n_left = --pending->n_users;
    pthread_mutex_unlock(&pending->lock);
    if (n_left)
        return;
    pthread_cond_destroy(&pending->done);
    pthread_mutex_destroy(&pending->lock);
    free(pending);
}

/* On libpmix's thread. */
static void pending_done(pmix_status_t status, void *arg)
{
    struct pending *pending = arg;

    pthread_mutex_lock(&pending->lock);
    pending->is_done = 1;
    pending->status = status;
    pthread_cond_signal(&pending->done);
    pthread_mutex_unlock(&pending->lock);
    pending_put(pending);
}

static pmix_status_t pending_wait(struct pending *pending, double timeout)
{
    double end = coll__now() + timeout;
    struct timespec until = {.tv_sec = (time_t)end};
    pmix_status_t status;
    int rc = 0;

    until.tv_nsec = (long)((end - (double)until.tv_sec) * 1e9);
    pthread_mutex_lock(&pending->lock);
    while (!pending->is_done && !rc)
        rc = pthread_cond_timedwait(&pending->done, &pending->lock, &until);
    status = pending->is_done ? pending->status : PMIX_ERR_TIMEOUT;
    pthread_mutex_unlock(&pending->lock);
    return status;
}

/* ---- ranks that have ended ---------------------------------------------- */

/* The server's table of the ranks is an array of pmix_proc_info_t, or for Open MPI 4 an
 * array of pmix_info_t that hold them.  Return entry i. */
static const pmix_proc_info_t *entry(const pmix_data_array_t *table, size_t i)
{
    const pmix_info_t *infos = table->array;

    if (table->type == PMIX_PROC_INFO)
        return (const pmix_proc_info_t *)table->array + i;
    return table->type == PMIX_INFO && infos[i].value.type == PMIX_PROC_INFO
               ? infos[i].value.data.pinfo
               : NULL;
}

/* Has the rank ended?  Open MPI 4 has no word for a rank that ended in order before it
 * connected, or that has closed its output: then look for the rank's processes, if it is
 * on this host, and this host's processes are visible. */
static int has_ended(const pmix_proc_info_t *rank, const pmix_proc_info_t *mine)
{
    char item[32];

    if (rank->state != PMIX_PROC_STATE_UNDEF)
        return rank->state == PMIX_PROC_STATE_TERMINATED ||
               rank->state > PMIX_PROC_STATE_ERROR;
    snprintf(item, sizeof(item), "PMIX_RANK=%u", rank->proc.rank);
    return rank->pid > 0 && mine && mine->hostname && rank->hostname &&
           !strcmp(rank->hostname, mine->hostname) &&
           coll__is_ancestor(mine->pid) && !coll__any_began_with(item);
}

/* Return the first rank of the table that has ended, or -1. */
static int first_ended(const pmix_data_array_t *table, const pmix_proc_t *self)
{
    const pmix_proc_info_t *mine = NULL, *rank;

    for (size_t i = 0; i < table->size && !mine; i++) {
        rank = entry(table, i);
        if (rank && rank->proc.rank == self->rank)
            mine = rank;
    }
    for (size_t i = 0; i < table->size; i++) {
        rank = entry(table, i);
        if (rank && !strcmp(rank->proc.nspace, self->nspace) &&
            has_ended(rank, mine))
            return (int)rank->proc.rank;
    }
    return -1;
}

/* On libpmix's thread. */
static void answered(pmix_status_t status, pmix_info_t *info, size_t n,
                     void *arg, pmix_release_cbfunc_t release,
                     void *release_arg)
{
    struct question *question = arg;

    if (status == PMIX_SUCCESS && n && info->value.type == PMIX_DATA_ARRAY &&
        info->value.data.darray)
        question->ended = first_ended(info->value.data.darray, &question->self);
    if (release)
        release(release_arg);
    pending_done(status, &question->pending);
}

/* Ask the server which ranks have ended; *ended: the first, or -1.  Not PMIX_SUCCESS: it
 * does not answer. */
static pmix_status_t ask_for_ended(const pmix_proc_t *self, int *ended)
{
    static char *keys[] = {PMIX_QUERY_PROC_TABLE, NULL};
    struct question *question = calloc(1, sizeof(*question));
    pmix_query_t *query;
    pmix_status_t rc;

    *ended = -1;
    if (!question)
        return PMIX_ERR_NOMEM;
    pending_init(&question->pending);
    query = &question->query;
    question->self = *self;
    question->ended = -1;
    question->job.value.type = PMIX_STRING;
    question->job.value.data.string = question->self.nspace;
    snprintf(question->job.key, sizeof(question->job.key), "%s", PMIX_NSPACE);
    query->qualifiers = &question->job;
    query->nqual = 1;
    query->keys = keys;
    rc = lib.query(query, 1, answered, question);
    if (rc == PMIX_SUCCESS)
        rc = pending_wait(&question->pending, ANSWER_TIME);
    else /* there will be no callback */
        pending_put(&question->pending);
    if (rc == PMIX_SUCCESS)
        *ended = question->ended;
    pending_put(&question->pending);
    return rc;
}

/* ---- fences ------------------------------------------------------------- */

/* Wait for the fence, at most `timeout` seconds, and less if a rank has ended: *ended, or
 * -1.  A rank must have ended by two answers, as the first may be of a rank that is being
 * started. */
static pmix_status_t await_fence(struct pending *fence, const pmix_proc_t *self,
                                 double timeout, int *ended)
{
    double deadline = coll__now() + timeout, pause = FIRST_PAUSE;
    int before, can_ask = 1;

    for (*ended = -1;; pause = pause < LAST_PAUSE ? 2 * pause : pause) {
        double left = deadline - coll__now();
        int is_last = !can_ask || left <= pause;
        pmix_status_t rc = pending_wait(fence, is_last ? left : pause);

        if (rc != PMIX_ERR_TIMEOUT)
            *ended = -1;
        if (rc != PMIX_ERR_TIMEOUT || is_last)
            return rc;
        before = *ended;
        can_ask = ask_for_ended(self, ended) == PMIX_SUCCESS;
        if (*ended >= 0 && *ended == before)
            return pending_wait(fence, 0); /* it may just have come */
    }
}

/* Wait for all ranks, and spread the values that they have put. */
static int fence_all(const struct coll__boot *boot)
{
    const pmix_proc_t *self = boot->state;
    pmix_proc_t all = *self;
    pmix_info_t info = {.value = {.type = PMIX_BOOL, .data.flag = true}};
    struct pending *fence = calloc(1, sizeof(*fence));
    pmix_status_t rc;
    int ended = -1;

    if (!fence) {
        log_error("boot", "no memory to wait for the other ranks");
        return COLL_ERR_NOMEM;
    }
    pending_init(fence);
    all.rank = PMIX_RANK_WILDCARD;
    snprintf(info.key, sizeof(info.key), "%s", PMIX_COLLECT_DATA);
    rc = lib.fence_nb(&all, 1, &info, 1, pending_done, fence);
    if (rc == PMIX_SUCCESS)
        rc = await_fence(fence, self, boot->timeout, &ended);
    else /* there will be no callback */
        pending_put(fence);
    pending_put(fence);
    if (rc == PMIX_ERR_TIMEOUT && ended >= 0) {
        log_error("boot",
                  "rank %d ended before it joined; does every rank call "
                  "coll_comm_create_env()?",
                  ended);
        return COLL_ERR_BOOTSTRAP;
    }
    if (rc == PMIX_ERR_TIMEOUT) {
        log_error("boot",
                  "not every rank came to PMIx_Fence within %.3g s; "
                  "did one end early, or never call coll_comm_create_env()?",
                  boot->timeout);
        return COLL_ERR_BOOTSTRAP;
    }
    return rc == PMIX_OPERATION_SUCCEEDED ? COLL_OK
                                          : pmix_status(rc, "PMIx_Fence");
}

/* ---- blocks ------------------------------------------------------------- */

static int put_block(const char *key, const void *bytes, size_t len)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    int status;

    value.data.bo.bytes = (char *)bytes; /* only read, and copied */
    value.data.bo.size = len;
    status = pmix_status(lib.put(PMIX_GLOBAL, key, &value), "PMIx_Put");
    return status ? status : pmix_status(lib.commit(), "PMIx_Commit");
}

static int get_block(const pmix_proc_t *from, const char *key, void *bytes,
                     size_t len)
{
    pmix_value_t *value = NULL;
    int is_right,
        status = pmix_status(lib.get(from, key, NULL, 0, &value), "PMIx_Get");

    if (status)
        return status;
    is_right = value->type == PMIX_BYTE_OBJECT && value->data.bo.size == len;
    if (is_right)
        memcpy(bytes, value->data.bo.bytes, len);
    if (value->type == PMIX_BYTE_OBJECT)
        free(value->data.bo.bytes);
    free(value);
    if (is_right)
        return COLL_OK;
    log_error("boot",
              "rank %u gave a block of another size than %zu bytes; do "
              "all ranks run the same program with the same libcoll?",
              from->rank, len);
    return COLL_ERR_BOOTSTRAP;
}

static int allgather(struct coll__boot *boot, const void *in, size_t len,
                     void *out)
{
    unsigned n =
        atomic_fetch_add_explicit(&n_gathered, 1, memory_order_relaxed);
    pmix_proc_t from = *(pmix_proc_t *)boot->state;
    char key[32];
    int status;

    memmove((char *)out + len * (size_t)boot->rank, in, len);
    if (!len)
        return fence_all(boot);
    snprintf(key, sizeof(key), "coll.%u", n);
    status = put_block(key, (char *)out + len * (size_t)boot->rank, len);
    if (!status)
        status = fence_all(boot);
    for (int r = 0; r < boot->size && !status; r++) {
        from.rank = (pmix_rank_t)r;
        if (r != boot->rank)
            status = get_block(&from, key, (char *)out + len * (size_t)r, len);
    }
    return status;
}

/* ---- open and close ----------------------------------------------------- */

static int job_size(const pmix_proc_t *self, int *size)
{
    pmix_proc_t all = *self;
    pmix_value_t *value = NULL;
    int status;

    all.rank = PMIX_RANK_WILDCARD;
    status = pmix_status(lib.get(&all, PMIX_JOB_SIZE, NULL, 0, &value),
                         "PMIx_Get of the job's size");
    if (status)
        return status;
    *size = value->type == PMIX_UINT32 ? (int)value->data.uint32 : 0;
    free(value);
    if (*size > 0 && self->rank < (pmix_rank_t)*size)
        return COLL_OK;
    log_error("boot",
              "the PMIx server says that this process is rank %u of %d, which "
              "cannot be; start the ranks anew",
              self->rank, *size);
    return COLL_ERR_BOOTSTRAP;
}

/* On libpmix's thread. */
static void lost(size_t id, pmix_status_t status, const pmix_proc_t *source,
                 pmix_info_t info[], size_t n_info, pmix_info_t *results,
                 size_t n_results, pmix_event_notification_cbfunc_fn_t done,
                 void *arg)
{
    (void)id, (void)status, (void)source, (void)info, (void)n_info;
    (void)results, (void)n_results;
    coll__launcher_gone("the launcher has gone (its PMIx server on this host "
                        "has closed the connection): nobody is left to end "
                        "this job");
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

/* Register for the server's end, by the event names of all PMIx releases. */
static void watch_server(void)
{
    pmix_status_t ends[] = {PMIX_ERR_LOST_CONNECTION,
                            PMIX_ERR_LOST_CONNECTION_TO_SERVER};
    pmix_status_t rc =
        lib.listen(ends, ARRAY_LEN(ends), NULL, 0, lost, NULL, NULL);

    if (rc < 0)
        log_debug("boot", "PMIx does not tell of its server's end: %s",
                  lib.text(rc));
}

static unsigned stays_in; /* the generation of the process that is the client */

/* A forked child must not finalize: the connection to the server is its parent's. */
static void leave(void)
{
    if (!coll__is_inherited(stays_in))
        lib.finalize(NULL, 0);
}

/* libpmix counts its inits: this one keeps it open until exit(). */
static void stay(void)
{
    pmix_proc_t self;

    stays_in = coll__generation_now();
    if (lib.init(&self, NULL, 0) != PMIX_SUCCESS)
        return;
    atexit(leave);
    watch_server();
}

static int start(struct coll__boot *boot)
{
    pmix_proc_t *self = calloc(1, sizeof(*self));
    pmix_status_t rc;

    if (!self) {
        log_error("boot", "no memory to start PMIx");
        return COLL_ERR_NOMEM;
    }
    rc = lib.init(self, NULL, 0);
    if (rc != PMIX_SUCCESS) {
        log_error("boot",
                  "PMIX_NAMESPACE is set, but PMIx_Init failed: %s; "
                  "start the ranks by mpirun or srun --mpi=pmix, or unset "
                  "PMIX_NAMESPACE",
                  lib.text(rc));
        free(self);
        return COLL_ERR_BOOTSTRAP;
    }
    pthread_once(&stay_once, stay);
    boot->state = self;
    return COLL_OK;
}

static void stop(struct coll__boot *boot)
{
    lib.finalize(NULL, 0);
    free(boot->state);
    boot->state = NULL;
}

static int open_pmix(struct coll__boot *boot)
{
    int status;

    pthread_once(&once, load);
    if (lib.fault[0]) {
        log_error("boot",
                  "a PMIx launcher started this rank, but libpmix "
                  "cannot be loaded: %s; install it (Debian: apt-get install "
                  "libpmix2)",
                  lib.fault);
        return COLL_ERR_BOOTSTRAP;
    }
    status = start(boot);
    if (status)
        return status;
    boot->rank = (int)((pmix_proc_t *)boot->state)->rank;
    status = job_size(boot->state, &boot->size);
    if (!status)
        status = coll__boot_share(boot, allgather);
    if (status)
        stop(boot);
    return status;
}

static void close_pmix(struct coll__boot *boot)
{
    coll__auth_wipe(boot->secret, sizeof(boot->secret));
    stop(boot);
}

const struct coll__boot_ops coll__boot_pmix = {
    .name = "pmix",
    .what = "PMIX_NAMESPACE, as mpirun and srun --mpi=pmix set it",
    .identity = {"PMIX_RANK", "PMIX_NAMESPACE", NULL},
    .detect = detect,
    .open = open_pmix,
    .places = allgather,
    .tell = coll__boot_tell_nobody,
    .close = close_pmix,
};
