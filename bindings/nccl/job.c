/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - work that waits for other ranks: done here, or by threads. */
#include "bindings/nccl/comm.h"
#include "bindings/nccl/driver.h"
#include "bindings/nccl/result.h"

#include <stdio.h>
#include <stdlib.h>

ncclResult_t nccl__job_new(const char *who, struct ncclComm *owner,
                           struct nccl__job **out)
{
    struct nccl__job *job = calloc(1, sizeof(*job));

    if (!job)
        return nccl__wrong(ncclSystemError, "%s: no memory", who);
    job->owner = owner;
    *out = job;
    return ncclSuccess;
}

void nccl__job_free(struct nccl__job *job)
{
    free(job->excluded);
    free(job);
}

/* ---- one job --------------------------------------------------------------------- */

/* The communicator whose program waits for the job: the new one, if there is one. */
static struct ncclComm *waiting(const struct nccl__job *job)
{
    return job->made ? job->made : job->owner;
}

/* Run a job on its GPU; keep its result and sentence.  The job that ends the communicator
 * waits for all that are counted. */
static void run(struct nccl__job *job)
{
    struct ncclComm *comm = job->owner;
    void *context = comm->context;
    int is_counted = comm->coll && !comm->is_finalized;

    atomic_fetch_add(&comm->n_calls, is_counted);
    job->result = nccl__driver_push(context);
    if (!job->result) {
        job->result = job->run(job);
        nccl__driver_pop(context);
    }
    atomic_fetch_sub(&comm->n_calls, is_counted);
    if (job->result)
        snprintf(job->why, sizeof(job->why), "%s", nccl__why());
}

/* Is it an error? */
static int is_wrong(ncclResult_t result)
{
    return result && result != ncclInProgress;
}

/* The job of a program that waits has ended.  Where it failed there is no communicator.
 * Returns the result of `before`, the jobs before it, if they failed. */
static ncclResult_t end_waited(struct nccl__job *job, ncclResult_t before)
{
    ncclResult_t result = before;

    if (job->result && !is_wrong(before))
        result = nccl__wrong(job->result, "%s", job->why);
    if (job->made && !job->made->coll) {
        if (job->out)
            *job->out = NULL;
        nccl__comm_free(job->made);
    }
    nccl__job_free(job);
    return result;
}

/* ---- jobs that nobody waits for ----------------------------------------------------- */

static void begin(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->n_jobs++;
    pthread_mutex_unlock(&comm->lock);
}

/* A thread has done a job for comm: keep what came of it.  If the program has dropped
 * comm meanwhile, end it here. */
static void end(struct ncclComm *comm, const struct nccl__job *job)
{
    int is_orphan;

    pthread_mutex_lock(&comm->lock);
    if (job->result && !comm->result) {
        comm->result = job->result;
        snprintf(comm->why, sizeof(comm->why), "%s", job->why);
    }
    is_orphan = !--comm->n_jobs && comm->is_orphan;
    pthread_cond_broadcast(&comm->idle);
    pthread_mutex_unlock(&comm->lock);
    if (is_orphan)
        nccl__comm_drop(comm);
}

static void *run_detached(void *arg)
{
    struct nccl__job *jobs = arg;

    while (jobs) {
        struct nccl__job *job = jobs;

        jobs = job->next;
        run(job);
        if (job->made)
            end(job->made, job);
        end(job->owner, job);
        nccl__job_free(job);
    }
    return NULL;
}

static ncclResult_t start(struct nccl__job *jobs)
{
    pthread_t thread;

    for (struct nccl__job *job = jobs; job; job = job->next) {
        begin(job->owner);
        if (job->made)
            begin(job->made);
    }
    if (pthread_create(&thread, NULL, run_detached, jobs))
        run_detached(jobs);
    else
        pthread_detach(thread);
    return ncclInProgress;
}

/* ---- one at a time -------------------------------------------------------------------- */

ncclResult_t nccl__job_do(struct nccl__job *job)
{
    if (nccl__group_is_open()) {
        nccl__group_add(job);
        return ncclSuccess;
    }
    if (!waiting(job)->is_blocking)
        return start(job);
    run(job);
    return end_waited(job, ncclSuccess);
}

/* ---- the jobs of a group ---------------------------------------------------------------- */

/* The jobs of one owner. */
struct chain {
    struct nccl__job *first, **end;
    pthread_t thread;
    int is_threads;
};

static void *run_chain(void *arg)
{
    for (struct nccl__job *job = arg; job; job = job->next)
        run(job);
    return NULL;
}

/* Sort jobs by their owners; returns how many there are. */
static int sort(struct nccl__job *jobs, struct chain *chains)
{
    int n = 0;

    while (jobs) {
        struct nccl__job *job = jobs;
        int i = 0;

        jobs = job->next;
        job->next = NULL;
        while (i < n && chains[i].first->owner != job->owner)
            i++;
        if (i == n)
            chains[n++] = (struct chain){.end = &chains[i].first};
        *chains[i].end = job;
        chains[i].end = &job->next;
    }
    return n;
}

/* Run all that block, each in a thread; the last one in this thread. */
static void run_chains(struct chain *chains, int n)
{
    for (int i = 0; i < n; i++)
        if (waiting(chains[i].first)->is_blocking)
            chains[i].is_threads =
                i < n - 1 && !pthread_create(&chains[i].thread, NULL, run_chain,
                                             chains[i].first);
    for (int i = 0; i < n; i++)
        if (waiting(chains[i].first)->is_blocking && !chains[i].is_threads)
            run_chain(chains[i].first);
}

static ncclResult_t end_chain(struct chain *chain, ncclResult_t result)
{
    if (chain->is_threads)
        pthread_join(chain->thread, NULL);
    for (struct nccl__job *job = chain->first, *next; job; job = next) {
        next = job->next;
        result = end_waited(job, result);
    }
    return result;
}

static int count(const struct nccl__job *job)
{
    int n = 0;

    for (; job; job = job->next)
        n++;
    return n;
}

ncclResult_t nccl__jobs_do(struct nccl__job *jobs)
{
    int n = count(jobs);
    struct chain *chains = calloc((size_t)n + 1, sizeof(*chains));
    ncclResult_t result = ncclSuccess;

    if (!chains)
        return nccl__wrong(ncclSystemError, "ncclGroupEnd: no memory");
    n = sort(jobs, chains);
    run_chains(chains, n);
    for (int i = 0; i < n; i++) {
        if (waiting(chains[i].first)->is_blocking)
            result = end_chain(&chains[i], result);
        else if (start(chains[i].first) && !is_wrong(result))
            result = ncclInProgress;
    }
    free(chains);
    return result;
}
