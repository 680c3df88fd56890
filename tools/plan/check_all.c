/* SPDX-License-Identifier: BSD-3-Clause */
/* check_all.c - prove every algorithm for every shape over a range of ranks.
 *
 * The work is cut by ranks, algorithm and collective; threads take the next
 * piece from a counter, the largest ranks first, so that they end together.
 */
#include "tools/plan/tool.h"
#include "lib/util/util.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define MAX_THREADS 64
#define MAX_SHOWN 20 /* failures that are printed */

struct proof {
    const struct job *job;
    int n_algos;
    atomic_long next, n_problems, n_plans, n_failed;
    pthread_mutex_t lock; /* of stderr */
};

static void tell(struct proof *proof, const struct coll__algo *algo,
                 const struct coll__trial *t, const char *why)
{
    long n = atomic_fetch_add(&proof->n_failed, 1);

    if (n >= MAX_SHOWN)
        return;
    pthread_mutex_lock(&proof->lock);
    say(1, "%s %s p %d count %zu root %d order %d chunk %zu seed %u: %s",
        coll_collective_name(t->collective), algo->name, t->nranks, t->count,
        t->root, (int)t->order, t->chunk, t->seed, why);
    pthread_mutex_unlock(&proof->lock);
}

static void prove(struct proof *proof, const struct coll__algo *algo,
                  enum coll_collective collective, int p,
                  const struct coll__view *views)
{
    struct coll__trial t;
    char why[256] = "";

    for (int i = 0; coll__trial_at(i, collective, p, views, &t); i++) {
        int rc = coll__prove(algo, &t, why, sizeof(why));

        if (rc == COLL_ERR_UNSUPPORTED)
            continue;
        if (rc) {
            tell(proof, algo, &t, why);
            continue;
        }
        atomic_fetch_add(&proof->n_problems, 1);
        atomic_fetch_add(&proof->n_plans, p);
    }
}

static void prove_ranks(struct proof *proof, const struct coll__algo *algo,
                        int p)
{
    struct coll__view views[COLL__N_VIEWS];

    if (coll__views_init(views, p)) {
        atomic_fetch_add(&proof->n_failed, 1);
        return;
    }
    for (int k = 0; k < COLL_N_COLLECTIVES; k++)
        if (algo->serves & 1u << k)
            prove(proof, algo, (enum coll_collective)k, p, views);
    coll__views_fini(views);
}

static void *prover(void *arg)
{
    struct proof *proof = arg;
    int n_ranks = proof->job->ranks_to - proof->job->ranks + 1;
    long i;

    while ((i = atomic_fetch_add(&proof->next, 1)) <
           (long)n_ranks * proof->n_algos)
        prove_ranks(proof, coll__algos[i % proof->n_algos],
                    proof->job->ranks_to - (int)(i / proof->n_algos));
    return NULL;
}

/* Run one thread for each core, this thread included. */
static void run(struct proof *proof)
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads[MAX_THREADS];
    int n = 0;

    while (n + 1 < n_cores && n < MAX_THREADS &&
           !pthread_create(&threads[n], NULL, prover, proof))
        n++;
    prover(proof);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

int check_all(const struct job *job)
{
    struct proof proof = {.job = job, .lock = PTHREAD_MUTEX_INITIALIZER};
    double begin = coll__now(), seconds;

    while (coll__algos[proof.n_algos])
        proof.n_algos++;
    run(&proof);
    seconds = coll__now() - begin;
    if (job->json)
        json_check_all(proof.n_problems, proof.n_plans, proof.n_failed,
                       seconds);
    else
        printf("%d algorithms over %d to %d ranks: %ld plans proven in %ld "
               "problems, %ld failures, %.1f s\n", proof.n_algos, job->ranks,
               job->ranks_to, proof.n_plans, proof.n_problems, proof.n_failed,
               seconds);
    return proof.n_failed != 0;
}
