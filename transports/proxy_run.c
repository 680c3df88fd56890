/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy_run.c - runs: planned once, announced by their streams each time they begin.
 *
 * The announcing word is a flag of two words, as those of slots are (stream.h).  Its state
 * is FREE, or a run's number that the host has not taken yet.  Begins of the communicator
 * follow each other, but the next one may come before the host has taken the last one, so
 * it waits until the word is free.
 */
#include "lib/device/cuda.h"
#include "lib/device/cuda_stream.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"
#include "transports/proxy.h"

#include <stdlib.h>
#include <string.h>

#define FREE (UINT32_C(1) << 31)
#define IS_FREE (FREE | COLL__SLOT_RELEASED)

/* What the stream writes: the run's id, and whether a graph has begun it, in which the
 * begin counts as no user. */
static uint32_t number_of(const struct coll__carried *run, int is_captured)
{
    return (uint32_t)run->id << 1 | (uint32_t)is_captured;
}

static struct coll__slot_flag *word_of(const struct coll__stage *words)
{
    return (struct coll__slot_flag *)coll__stage_word(words, STAGE_BEGUN);
}

/* ---- ids ----------------------------------------------------------------------- */

static _Atomic(struct coll__carried *) *entry(struct proxy *p, int id)
{
    return &p->runs[id / PROXY_BLOCK][id % PROXY_BLOCK];
}

/* Make space for one id more, and for its being free.  A block is made before the first
 * of its ids is announced, and stays. */
static int more_ids(struct proxy *p)
{
    int block = p->n_ids / PROXY_BLOCK;
    size_t n = (size_t)p->n_ids + PROXY_BLOCK;
    int *ids;

    if (p->n_ids % PROXY_BLOCK)
        return COLL_OK;
    if (block == PROXY_BLOCKS) {
        log_error("cuda",
                  "there are %d operations in graphs already; destroy "
                  "graphs that are not launched any more",
                  p->n_ids);
        return COLL_ERR_UNSUPPORTED;
    }
    ids = realloc(p->free_ids, n * sizeof(*ids));
    if (ids)
        p->free_ids = ids;
    p->runs[block] = calloc(PROXY_BLOCK, sizeof(*p->runs[block]));
    if (ids && p->runs[block])
        return COLL_OK;
    log_error("cuda", "no memory for an operation of a stream");
    return COLL_ERR_NOMEM;
}

static int take_id(struct proxy *p, struct coll__carried *run)
{
    int status = COLL_OK;

    pthread_mutex_lock(&p->lock);
    if (p->n_free) {
        run->id = p->free_ids[--p->n_free];
    } else {
        status = more_ids(p);
        if (status == COLL_OK)
            run->id = p->n_ids++;
    }
    pthread_mutex_unlock(&p->lock);
    if (status == COLL_OK)
        atomic_store_explicit(entry(p, run->id), run, memory_order_release);
    return status;
}

static void give_id(struct proxy *p, int id)
{
    atomic_store(entry(p, id), NULL);
    pthread_mutex_lock(&p->lock);
    p->free_ids[p->n_free++] = id;
    pthread_mutex_unlock(&p->lock);
}

/* ---- users --------------------------------------------------------------------- */

static void run_free(struct coll__carried *run)
{
    free(run->lists);
    free(run->pieces);
    free(run->sigs);
    free(run->works);
    free(run);
}

/* Any thread; a thread of the driver, too. */
static void drop_users(struct coll__carried *run, int n)
{
    struct proxy *p = run->tp;

    if (atomic_fetch_sub(&run->n_users, n) != n)
        return;
    give_id(p, run->id);
    run_free(run);
    proxy__drop(p);
}

void proxy__run_drop(struct coll__carried *run) { drop_users(run, 1); }

/* A graph is gone, but the owner may not have taken what its last launch announced: so
 * the owner drops it, while there is one. */
static void drop_graph(void *arg)
{
    struct coll__carried *run = arg;
    struct proxy *p = run->tp;
    int is_closed;

    pthread_mutex_lock(&p->lock);
    is_closed = p->is_closed;
    if (!is_closed && !run->n_gone++) {
        run->next_gone = p->gone;
        p->gone = run;
    }
    pthread_mutex_unlock(&p->lock);
    if (is_closed)
        drop_users(run, 1);
}

/* Take the runs of graphs that are gone. */
static struct coll__carried *take_gone(struct proxy *p)
{
    struct coll__carried *gone;

    pthread_mutex_lock(&p->lock);
    gone = p->gone;
    p->gone = NULL;
    pthread_mutex_unlock(&p->lock);
    return gone;
}

/* A run that is listed again meanwhile waits for the next round. */
static void drop_gone(struct proxy *p, struct coll__carried *gone)
{
    while (gone) {
        struct coll__carried *run = gone;
        int n;

        gone = run->next_gone;
        pthread_mutex_lock(&p->lock);
        n = run->n_gone;
        run->n_gone = 0;
        pthread_mutex_unlock(&p->lock);
        atomic_fetch_sub(&p->n_graphs, n);
        drop_users(run, n);
    }
}

void proxy__forget(struct coll__carried *run)
{
    if (!coll__is_inherited(run->tp->base.generation))
        drop_users(run, 1);
}

/* ---- planning ------------------------------------------------------------------- */

static int need_words(struct proxy *p)
{
    struct coll__stage *words = atomic_load(&p->words);
    int status;

    if (words)
        return COLL_OK;
    status = coll__cuda_home_of(NULL, &p->home);
    if (status == COLL_OK)
        status = coll__stage_take(p->home.ctx, 0, &words);
    if (status)
        return status;
    atomic_store(&word_of(words)->state, FREE);
    atomic_store(&word_of(words)->released, 0);
    atomic_store(&p->words, words);
    if (atomic_load(&p->failure))
        proxy__runs_release(p);
    return COLL_OK;
}

void proxy__words_put(struct proxy *p)
{
    struct coll__stage *words = atomic_load(&p->words);

    if (!words)
        return;
    atomic_store(&word_of(words)->state, 0);
    atomic_store(&word_of(words)->released, 0);
    coll__stage_put(words);
}

/* Is it the host's, to carry or to do? */
static int is_hosts(const struct proxy *p, const struct coll__planned *m)
{
    return m->is_work || p->base.is_carried[m->of.peer];
}

/* Make the lane of what is the host's.  The first is announced by the words. */
static int need_lane(struct proxy *p, const struct coll__planned *m)
{
    struct coll__message own = proxy__own(p);

    return m->is_work ? proxy__lane_need(p, &own, 1)
                      : proxy__lane_need(p, &m->of, m->is_send);
}

static struct proxy_lane *lane_of(const struct proxy *p,
                                  const struct coll__planned *m)
{
    struct coll__message own = proxy__own(p);

    return m->is_work ? proxy__lane_of(p, &own, 1)
                      : proxy__lane_of(p, &m->of, m->is_send);
}

static int need_lanes(struct proxy *p, const struct coll__planned *messages,
                      int n)
{
    int status = COLL_OK, is_any = p->base.n_carried > 0;

    for (int i = 0; i < n && status == COLL_OK; i++)
        is_any |= is_hosts(p, &messages[i]);
    if (is_any)
        status = need_words(p);
    for (int i = 0; i < n && status == COLL_OK; i++)
        if (is_hosts(p, &messages[i]))
            status = need_lane(p, &messages[i]);
    return status;
}

/* Return how many pieces it goes in: a step may exceed a slot. */
static int count_pieces(const struct proxy *p, const struct coll__planned *m)
{
    return m->is_work ? (int)((m->len + p->base.slot - 1) / p->base.slot) : 1;
}

static struct coll__carried *
run_new(const struct proxy *p, const struct coll__planned *messages, int n)
{
    struct coll__carried *run = calloc(1, sizeof(*run));
    size_t most = 1, n_pieces = 1;

    if (!run)
        return NULL;
    for (int i = 0; i < n; i++)
        if (is_hosts(p, &messages[i])) {
            most++;
            n_pieces += (size_t)count_pieces(p, &messages[i]);
        }
    run->lists = calloc(most, sizeof(*run->lists));
    run->pieces = calloc(n_pieces, sizeof(*run->pieces));
    run->sigs = calloc(most, sizeof(*run->sigs));
    run->works = calloc(most, sizeof(*run->works));
    if (run->lists && run->pieces && run->sigs && run->works)
        return run;
    run_free(run);
    return NULL;
}

/* Return the number of the signature; most messages of a run have the same. */
static int add_signature(struct coll__carried *run,
                         const struct coll__signature *sig)
{
    if (!run->n_sigs ||
        memcmp(&run->sigs[run->n_sigs - 1], sig, sizeof(*sig)) != 0)
        run->sigs[run->n_sigs++] = *sig;
    return run->n_sigs - 1;
}

static void add_message(struct coll__carried *run, struct proxy_list *list,
                        const struct proxy *p, const struct coll__planned *m)
{
    run->pieces[list->first + list->n++] =
        (struct proxy_piece){.len = m->len,
                             .slot = proxy__slot_number(p, &m->of),
                             .what = add_signature(run, &m->sig),
                             .is_first = m->is_first};
}

static void add_work(struct coll__carried *run, struct proxy_list *list,
                     const struct proxy *p, const struct coll__planned *m)
{
    run->works[run->n_works] = m->work;
    for (size_t at = 0; at < m->len; at += p->base.slot, list->n++)
        run->pieces[list->first + list->n] = (struct proxy_piece){
            .len = min_size(p->base.slot, m->len - at), .what = run->n_works};
    run->n_works++;
}

/* Count the pieces of each lane. */
static void count_lists(struct coll__carried *run, const struct proxy *p,
                        const struct coll__planned *messages, int n)
{
    for (int i = 0; i < n; i++) {
        struct proxy_lane *lane;

        if (!is_hosts(p, &messages[i]))
            continue;
        lane = lane_of(p, &messages[i]);
        if (!lane->list) {
            run->lists[run->n_lists].lane = lane;
            lane->list = ++run->n_lists;
        }
        run->lists[lane->list - 1].n += count_pieces(p, &messages[i]);
    }
}

/* Sort the messages by lanes. */
static void add_lists(struct coll__carried *run, const struct proxy *p,
                      const struct coll__planned *messages, int n)
{
    int first = 0;

    count_lists(run, p, messages, n);
    for (int l = 0; l < run->n_lists; l++) {
        run->lists[l].first = first;
        first += run->lists[l].n;
        run->lists[l].n = 0;
    }
    for (int i = 0; i < n; i++) {
        const struct coll__planned *m = &messages[i];

        if (is_hosts(p, m))
            (m->is_work ? add_work : add_message)(
                run, &run->lists[lane_of(p, m)->list - 1], p, m);
    }
    for (int l = 0; l < run->n_lists; l++)
        run->lists[l].lane->list = 0;
}

int proxy__plan(struct coll__stream_tp *tp,
                const struct coll__planned *messages, int n,
                struct coll__carried **out)
{
    struct proxy *p = (struct proxy *)tp;
    struct coll__carried *run;
    int status = need_lanes(p, messages, n);

    if (status)
        return status;
    run = run_new(p, messages, n);
    if (!run) {
        log_error("cuda", "no memory for the %d messages of an operation", n);
        return COLL_ERR_NOMEM;
    }
    add_lists(run, p, messages, n);
    run->tp = p;
    run->is_aside = n && messages[0].of.n >= COLL__ASIDE;
    atomic_init(&run->n_users, 1);
    status = take_id(p, run);
    if (status) {
        run_free(run);
        return status;
    }
    atomic_fetch_add(&p->n_users, 1);
    *out = run;
    return COLL_OK;
}

/* A begin has been announced, or will not be. */
static void has_begun(struct coll__carried *run)
{
    atomic_fetch_sub(&run->n_begun, 1);
    atomic_fetch_sub(&run->tp->n_begun, 1);
    proxy__run_drop(run);
}

/* ---- beginning --------------------------------------------------------------- */

int proxy__begin(struct coll__stream_tp *tp, struct coll__carried *run,
                 void *stream)
{
    struct proxy *p = (struct proxy *)tp;
    struct coll__stage *words = atomic_load(&p->words);
    int status = coll__stream_state(tp), is_captured;

    if (status || (!run->n_lists && !p->base.n_carried))
        return status;
    is_captured = coll__cuda_streams.is_captured(stream);
    atomic_fetch_add(&run->n_users, 1);
    if (is_captured) {
        atomic_fetch_add(&p->n_graphs, 1);
        status = coll__cuda_hold(stream, drop_graph, run);
        if (status)
            return status;
    } else {
        atomic_fetch_add(&run->n_begun, 1);
        atomic_fetch_add(&p->n_begun, 1);
    }
    status = coll__cuda_wait_write(stream, coll__stage_flag(words, STAGE_BEGUN),
                                   IS_FREE, number_of(run, is_captured));
    if (status && !is_captured)
        has_begun(run);
    return status;
}

/* ---- announced ------------------------------------------------------------------ */

/* Append the run's messages to its lanes. */
static int expect(struct proxy *p, struct coll__carried *run)
{
    uint64_t seq = run->is_aside ? 0 : ++p->n_runs;

    for (int i = 0; i < run->n_lists; i++) {
        struct proxy_todo todo = {.run = run, .list = i, .seq = seq};
        int status;

        atomic_fetch_add(&run->n_users, 1);
        status = proxy__lane_add(run->lists[i].lane, &todo);
        if (status) {
            proxy__run_drop(run);
            return status;
        }
    }
    return COLL_OK;
}

/* Take the run that a stream has announced, if any.  The word is freed last: until then
 * the stream cannot announce another run. */
static int take_announced(struct proxy *p, struct coll__stage *words,
                          int *is_any)
{
    uint32_t number =
        atomic_load_explicit(&word_of(words)->state, memory_order_acquire);
    struct coll__carried *run;
    int status;

    if (number & FREE)
        return COLL_OK;
    run = atomic_load_explicit(entry(p, (int)(number >> 1)),
                               memory_order_acquire);
    status = expect(p, run);
    if (!(number & 1))
        has_begun(run);
    atomic_store_explicit(&word_of(words)->state, FREE, memory_order_release);
    *is_any = 1;
    return status;
}

/* A graph that is gone by now has announced all its launches, and the last one at most is
 * still in the word. */
int proxy__take(struct proxy *p, int *is_any)
{
    struct coll__stage *words = atomic_load(&p->words);
    struct coll__carried *gone;
    int status;

    if (!words)
        return COLL_OK;
    gone = atomic_load(&p->n_graphs) ? take_gone(p) : NULL;
    status = take_announced(p, words, is_any);
    drop_gone(p, gone);
    return status;
}

/* ---- the end --------------------------------------------------------------------- */

void proxy__runs_release(const struct proxy *p)
{
    struct coll__stage *words = atomic_load(&p->words);

    if (words)
        atomic_store(&word_of(words)->released, 1);
}

/* Another thread that drops a run's last user takes the lock before it frees the run. */
static void empty(struct proxy *p, int id)
{
    struct coll__carried *run;
    int n_begun = 0;

    pthread_mutex_lock(&p->lock);
    run = atomic_load(entry(p, id));
    if (run)
        n_begun = atomic_exchange(&run->n_begun, 0);
    pthread_mutex_unlock(&p->lock);
    if (n_begun)
        drop_users(run, n_begun);
}

void proxy__runs_empty(struct proxy *p)
{
    int n = p->n_ids;

    pthread_mutex_lock(&p->lock);
    p->is_closed = 1;
    pthread_mutex_unlock(&p->lock);
    drop_gone(p, take_gone(p));
    for (int id = 0; id < n; id++)
        empty(p, id);
}
