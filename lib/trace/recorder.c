/* SPDX-License-Identifier: BSD-3-Clause */
/* recorder.c - COLL_HISTORY: the last calls as a file.
 *
 * Any thread may read a history at any time.  So the thread that finds that a
 * communicator has failed writes the file, whatever the caller is doing; after a SIGUSR2
 * the reactor's thread does (lib/comm/records.c).  A program may exit as soon as
 * it sees the failure: a failure that is not in the file yet is written at the exit.
 */
#include "lib/trace/recorder.h"
#include "lib/trace/log.h"
#include "lib/trace/rank_file.h"
#include "lib/trace/trace.h"
#include "lib/util/lock.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void forget(void);

static struct coll__lock lock = COLL__LOCK(forget);

/* Under it. */
static struct {
    struct coll__recorder *first;
    struct coll__rank_file file; /* no path: nothing is to be written */
    int rank, size;              /* that name it */
} recorder;

/* ---- the file ---------------------------------------------------------------- */

static void put_text(FILE *file, const char *name, const char *text)
{
    fprintf(file, "\"%s\": \"", name);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
            fputc('?', file);
        else
            fputc(*text, file);
    fputc('"', file);
}

static void put_call(FILE *file, const struct coll__recorder *r,
                     const struct coll__signature *sig, uint64_t user_tag)
{
    size_t at = (sig->seq - 1) % COLL__HISTORY;
    const struct coll__times *times =
        sig->series == SERIES_HOST || sig->series == SERIES_COMPARED ? r->times
                                                                     : NULL;
    char what[COLL__SIGNATURE_TEXT];

    coll__signature_describe(sig, what, sizeof(what));
    fprintf(file, "      {\"seq\": %llu, ", (unsigned long long)sig->seq);
    put_text(file, "what", what);
    fprintf(file,
            ", \"collective\": \"%s\", \"count\": %llu, \"root\": %d, "
            "\"way\": %d",
            coll_collective_name((enum coll_collective)sig->collective),
            (unsigned long long)coll__signature_count(sig), (int)sig->root,
            sig->algo_id);
    if (user_tag)
        fprintf(file, ", \"user_tag\": %llu", (unsigned long long)user_tag);
    if (times)
        fprintf(file, ", \"called\": %.6f, \"ended\": %.6f",
                atomic_load_explicit(&times->called[at], memory_order_relaxed),
                atomic_load_explicit(&times->ended[at], memory_order_relaxed));
    fputc('}', file);
}

/* Write a series; an entry that is overwritten meanwhile is left out. */
static void put_series(FILE *file, struct coll__recorder *r, int series)
{
    static const char *const names[] = {[SERIES_HOST] = "host",
                                        [SERIES_STREAM] = "stream",
                                        [SERIES_ANY_ORDER] = "any order"};
    struct coll__history *h = &r->what.history[series];
    uint64_t n = atomic_load_explicit(&h->n_started, memory_order_acquire);
    uint64_t done = atomic_load_explicit(&h->n_done, memory_order_relaxed);
    const char *before = "\n";
    struct coll__signature sig;

    fprintf(file,
            "    {\"series\": \"%s\", \"started\": %llu, "
            "\"ended\": %llu, \"last\": [",
            names[series], (unsigned long long)n, (unsigned long long)done);
    for (uint64_t seq = n > COLL__HISTORY ? n - COLL__HISTORY + 1 : 1; seq <= n;
         seq++)
        if (coll__history_get(h, seq, &sig)) {
            fputs(before, file);
            put_call(file, r, &sig, coll__history_user_tag(h, &sig));
            before = ",\n";
        }
    fputs("]}", file);
}

/* Write the communicator's ranks, as numbers in the first communicator. */
static void put_ranks(FILE *file, const struct coll__recorded *what)
{
    fprintf(file, ", \"ranks\": [");
    for (int i = 0; i < what->size; i++)
        fprintf(file, "%s%d", i ? ", " : "", what->ranks ? what->ranks[i] : i);
    fputc(']', file);
}

static int failure_of(const struct coll__recorder *r)
{
    return atomic_load_explicit(r->what.status, memory_order_acquire);
}

static void put_comm(FILE *file, struct coll__recorder *r)
{
    const struct coll__recorded *what = &r->what;
    int status = failure_of(r);
    char where[COLL__WHERE_MAX];

    r->is_told = status != COLL_OK;
    coll__history_where(&what->history[SERIES_HOST], where, sizeof(where));
    fprintf(file, "  {\"id\": \"%s\", \"rank\": %d, \"size\": %d", what->id,
            what->rank, what->size);
    put_ranks(file, what);
    fprintf(file, ",\n   ");
    put_text(file, "where", where);
    fprintf(file, ",\n   ");
    put_text(file, "failure", status ? what->failure : "");
    fprintf(file, ",\n   \"calls\": [\n");
    for (int s = 0, n = 0; s < N_HISTORIES; s++)
        if (s == SERIES_HOST ||
            atomic_load_explicit(&what->history[s].n_started,
                                 memory_order_relaxed)) {
            fputs(n++ ? ",\n" : "", file);
            put_series(file, r, s);
        }
    fprintf(file, "]}");
}

static void put_all(FILE *file, const void *arg)
{
    char host[64] = "";
    struct timespec t;

    (void)arg;
    gethostname(host, sizeof(host) - 1);
    clock_gettime(CLOCK_REALTIME, &t);
    fprintf(file,
            "{\"libcoll_history\": 1, \"rank\": %d, \"size\": %d, "
            "\"pid\": %d,\n ",
            recorder.rank, recorder.size, (int)getpid());
    put_text(file, "host", host);
    fprintf(file, ", \"time\": %.3f, \"clock\": %.6f,\n \"communicators\": [\n",
            (double)t.tv_sec + (double)t.tv_nsec * 1e-9, coll__now());
    for (struct coll__recorder *r = recorder.first; r; r = r->next) {
        put_comm(file, r);
        fputs(r->next ? ",\n" : "\n", file);
    }
    fprintf(file, "]}\n");
}

/* Locked. */
static void write_locked(void)
{
    if (*recorder.file.path && recorder.first &&
        coll__rank_file_write(&recorder.file, put_all, NULL))
        log_info("trace", "the last calls are in %s; see coll_history",
                 recorder.file.path);
}

void coll__recorder_write(struct coll__recorder *r)
{
    if (!r->times || coll__is_inherited(r->what.generation))
        return;
    coll__lock(&lock);
    if (!r->is_told)
        write_locked();
    coll__unlock(&lock);
}

void coll__recorder_write_all(void)
{
    coll__lock(&lock);
    write_locked();
    coll__unlock(&lock);
}

/* Has a communicator failed whose failure is not in the file?  Locked. */
static int is_untold(void)
{
    const struct coll__recorder *r = recorder.first;

    while (r && (r->is_told || failure_of(r) == COLL_OK))
        r = r->next;
    return r != NULL;
}

/* Taking the lock also waits for a thread that is writing the file. */
static void write_at_exit(void)
{
    coll__lock(&lock);
    if (is_untold())
        write_locked();
    coll__unlock(&lock);
}

static void have_exit(void) { atexit(write_at_exit); }

/* A child has none of its parent's communicators, and leaves its file alone. */
static void forget(void)
{
    recorder.first = NULL;
    recorder.file.path[0] = '\0';
}

/* ---- which communicators ------------------------------------------------------- */

/* Remove the file of an earlier job.  But if the launcher restarted the ranks, the file
 * tells why the last run failed: keep it, as run0.FILE.RANK after the first run. */
static void clear(const char *path)
{
    const char *count = getenv("TORCHELASTIC_RESTART_COUNT");
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash + 1 - path) : 0, run = count ? atoi(count) : 0;
    char kept[PATH_MAX];

    if (run > 0) {
        snprintf(kept, sizeof(kept), "%.*srun%d.%s", n, path, run - 1,
                 path + n);
        unlink(kept);
        if (!rename(path, kept) || errno == ENOENT)
            return;
        log_warn("trace", "cannot keep %s as %s: %s", path, kept,
                 strerror(errno));
    }
    unlink(path);
}

int coll__recorder_open(int rank, int size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct coll__rank_file file;
    int rc;

    if (!coll__param_is_set(PARAM_HISTORY) || coll__recorder_is_on())
        return COLL_OK;
    rc = coll__rank_file_open(PARAM_HISTORY, rank, &file);
    if (rc)
        return rc;
    clear(file.path);
    coll__lock(&lock);
    recorder.file = file;
    recorder.rank = rank;
    recorder.size = size;
    coll__unlock(&lock);
    pthread_once(&once, have_exit);
    coll__trace_times();
    return COLL_OK;
}

int coll__recorder_is_on(void) { return *recorder.file.path != '\0'; }

void coll__recorder_add(struct coll__recorder *r,
                        const struct coll__recorded *what)
{
    r->times = calloc(1, sizeof(*r->times));
    if (!r->times) {
        log_warn("trace", "no memory for COLL_HISTORY");
        return;
    }
    r->what = *what;
    coll__lock(&lock);
    r->next = recorder.first;
    r->at = &recorder.first;
    if (recorder.first)
        recorder.first->at = &r->next;
    recorder.first = r;
    coll__unlock(&lock);
}

void coll__recorder_remove(struct coll__recorder *r)
{
    if (r->times && !coll__is_inherited(r->what.generation)) {
        coll__lock(&lock);
        *r->at = r->next;
        if (r->next)
            r->next->at = r->at;
        coll__unlock(&lock);
    }
    free(r->times);
    *r = (struct coll__recorder){0};
}

/* ---- times ---------------------------------------------------------------------- */

static struct coll__times *times_of(struct coll__recorder *r,
                                    const struct coll__signature *sig)
{
    return coll__is_p2p((enum coll_collective)sig->collective) ||
                   (sig->series != SERIES_HOST &&
                    sig->series != SERIES_COMPARED)
               ? NULL
               : r->times;
}

void coll__recorder_called(struct coll__recorder *r,
                           const struct coll__signature *sig, double when)
{
    struct coll__times *times = times_of(r, sig);
    size_t at = (sig->seq - 1) % COLL__HISTORY;

    if (!times)
        return;
    atomic_store_explicit(&times->ended[at], 0, memory_order_relaxed);
    atomic_store_explicit(&times->called[at], when, memory_order_relaxed);
}

void coll__recorder_ended(struct coll__recorder *r,
                          const struct coll__signature *sig, double when)
{
    struct coll__times *times = times_of(r, sig);

    if (times)
        atomic_store_explicit(&times->ended[(sig->seq - 1) % COLL__HISTORY],
                              when, memory_order_relaxed);
}
