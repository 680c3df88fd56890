/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.c - COLL_METRICS: the counters, and the file.
 *
 * A counter's time goes from the start of an operation to its end on this rank.  A
 * barrier, an allreduce and the like end on all ranks at about the same time, so the rank
 * whose time is least is the last one to come.  Nothing has to be sent for that:
 * whoever reads the files of all ranks sees it.  When a communicator is destroyed, the ranks'
 * final checks carry these times, so each rank's file has its own lateness then.
 */
#include "lib/trace/metrics.h"
#include "lib/trace/rank_file.h"
#include "lib/trace/trace.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

#define MOST 32 /* communicators with counters of their own */

struct counters {
    unsigned long long calls, bytes;
    double seconds, waited;
};

/* One communicator. */
struct counted {
    char id[17];
    int size;
    int has_ended;   /* and `lateness` is known */
    double lateness; /* s */
    struct counters routines[COLL_N_COLLECTIVES];
};

struct coll__metrics {
    struct coll__rank_file file;
    int rank, n;                 /* n: communicators in all */
    unsigned long long n_copies; /* made so far */
    struct counted comms[MOST + 1];
};

static struct coll__metrics metrics = {.comms[0].id = "other"};

/* The file is written under it, since one may wait long for a disk. */
static struct coll__lock file_lock = COLL__LOCK(NULL);
static unsigned long long written; /* under it: which copy is in the file */

/* ---- counting ------------------------------------------------------------------ */

int coll__metrics_open(int rank)
{
    metrics.rank = rank;
    return coll__rank_file_open(PARAM_METRICS, rank, &metrics.file);
}

int coll__metrics_number(const char *id, int size)
{
    int number = metrics.n < MOST ? ++metrics.n : 0;
    struct counted *comm = &metrics.comms[number];

    if (number) {
        memcpy(comm->id, id, sizeof(comm->id));
        comm->size = size;
    }
    return number;
}

void coll__metrics_note(const struct coll__traced *op)
{
    struct counters *c = &metrics.comms[op->metrics].routines[op->collective];

    c->calls++;
    c->bytes += op->bytes;
    c->seconds += op->ended - op->called;
}

void coll__metrics_waited(int number, enum coll_collective collective,
                          double seconds)
{
    metrics.comms[number].routines[collective].waited += seconds;
}

void coll__metrics_late(int number, double seconds)
{
    metrics.comms[number].has_ended = number > 0;
    metrics.comms[number].lateness = seconds;
}

struct coll__metrics *coll__metrics_copy(void)
{
    struct coll__metrics *copy = malloc(sizeof(*copy));

    metrics.n_copies++;
    if (copy)
        memcpy(copy, &metrics, sizeof(*copy));
    return copy;
}

/* ---- the file -------------------------------------------------------------------- */

/* The metrics of each routine. */
enum family { CALLS, BYTES, SECONDS, WAITED, N_FAMILIES };

static const struct {
    const char *name, *help;
} families[N_FAMILIES] = {
    [CALLS] = {"coll_calls_total", "Operations that have ended."},
    [BYTES] = {"coll_bytes_total",
               "Bytes of these operations, as their callers gave them."},
    [SECONDS] = {"coll_seconds_total",
                 "Seconds from the start of each of them to its end."},
    [WAITED] = {"coll_wait_seconds_total",
                "Seconds in which callers of the routine waited for its end."},
};

static void put_value(FILE *to, enum family family, const struct counters *c)
{
    switch (family) {
    case CALLS:
        fprintf(to, "%llu\n", c->calls);
        break;
    case BYTES:
        fprintf(to, "%llu\n", c->bytes);
        break;
    case SECONDS:
        fprintf(to, "%.9f\n", c->seconds);
        break;
    default:
        fprintf(to, "%.9f\n", c->waited);
    }
}

static void put_comm(FILE *to, const struct coll__metrics *m, int number,
                     enum family family)
{
    const struct counted *comm = &m->comms[number];

    for (int c = 0; c < COLL_N_COLLECTIVES; c++) {
        if (!comm->routines[c].calls && comm->routines[c].waited <= 0)
            continue;
        fprintf(to, "%s{routine=\"%s\",rank=\"%d\",communicator=\"%s\"} ",
                families[family].name,
                coll_collective_name((enum coll_collective)c), m->rank,
                comm->id);
        put_value(to, family, &comm->routines[c]);
    }
}

static void put_head(FILE *to, const char *name, const char *help,
                     const char *type)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_lateness(FILE *to, const struct coll__metrics *m)
{
    static const char name[] = "coll_lateness_seconds";

    put_head(to, name,
             "Seconds after the median rank at which this rank began a call "
             "that needs all ranks, on the average; known when the "
             "communicator is destroyed.",
             "gauge");
    for (int number = 1; number <= m->n; number++)
        if (m->comms[number].has_ended)
            fprintf(to, "%s{rank=\"%d\",communicator=\"%s\"} %.9f\n", name,
                    m->rank, m->comms[number].id, m->comms[number].lateness);
}

static void put_all(FILE *to, const void *arg)
{
    static const char size[] = "coll_communicator_size";
    const struct coll__metrics *m = arg;

    put_head(to, size, "Ranks of the communicator.", "gauge");
    for (int number = 1; number <= m->n; number++)
        fprintf(to, "%s{rank=\"%d\",communicator=\"%s\"} %d\n", size, m->rank,
                m->comms[number].id, m->comms[number].size);
    put_lateness(to, m);
    for (int f = 0; f < N_FAMILIES; f++) {
        put_head(to, families[f].name, families[f].help, "counter");
        for (int number = 0; number <= m->n; number++)
            put_comm(to, m, number, (enum family)f);
    }
}

int coll__metrics_put(struct coll__metrics *copy)
{
    int is_good = 1;

    coll__lock(&file_lock);
    if (copy->n_copies > written) {
        is_good = coll__rank_file_write(&copy->file, put_all, copy);
        written = copy->n_copies;
    }
    coll__unlock(&file_lock);
    free(copy);
    return is_good;
}
