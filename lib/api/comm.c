/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.c - the life of a communicator.
 *
 * Making one: bootstrap (who is there), control connections (the bootstrap is
 * then done with), one exchange of what each rank is and how it is set,
 * transports.  A rank that fails on the way aborts, so the others do not wait
 * for it.  Ending one: all ranks meet once more, then let go.
 */
#include "lib/api/comm.h"
#include "lib/plan/select.h"
#include "lib/topo/topo.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS 200 /* for a message, where it is worth it: about a microsecond */

/* What each rank tells the others when it joins. */
struct card {
    struct coll__peer peer;
    struct coll__settings settings;
};

static void on_failed(void *arg, int status, const char *text)
{
    coll__comm_set_failure(arg, status, text);
}

static void on_where(void *arg, uint64_t *n_started, char text[COLL__TEXT_MAX])
{
    struct coll_comm *comm = arg;

    *n_started = atomic_load_explicit(&comm->history.n_started,
                                      memory_order_acquire);
    coll__history_where(&comm->history, text, COLL__TEXT_MAX);
}

static int read_settings(struct coll__settings *settings)
{
    const char *algo = coll__param_text(PARAM_ALGO);
    const char *transports = coll__param_text(PARAM_TRANSPORTS);
    int rc = coll__params_check();

    if (rc == COLL_OK)
        rc = coll__algo_check(algo);
    if (rc)
        return rc;
    if (strlen(algo) >= SETTING_BYTES || strlen(transports) >= SETTING_BYTES) {
        log_error("comm", "COLL_ALGO and COLL_TRANSPORTS may be %d characters "
                  "long at most", SETTING_BYTES - 1);
        return COLL_ERR_INVALID;
    }
    snprintf(settings->version, sizeof(settings->version), "%s",
             coll_version());
    snprintf(settings->algo, sizeof(settings->algo), "%s", algo);
    snprintf(settings->transports, sizeof(settings->transports), "%s",
             transports);
    settings->chunk = coll__param_bytes(PARAM_CHUNK);
    settings->fuse = coll__param_bytes(PARAM_FUSE);
    settings->is_reproducible = coll__param_int(PARAM_REPRODUCIBLE) != 0;
    return COLL_OK;
}

/* Read the tuning file, if the environment names one. */
static int read_tune(struct coll_comm *comm)
{
    int rc = COLL_OK;

    if (coll__param_is_set(PARAM_TUNE_FILE))
        rc = coll__tune_load(coll__param_text(PARAM_TUNE_FILE), &comm->tune);
    comm->settings.tune = coll__tune_hash(comm->tune);
    return rc;
}

/* Like the communicator that this one is made from, or as the environment
 * says. */
static int take_settings(struct coll_comm *comm,
                         const struct coll__options *options)
{
    int rc;

    if (options->settings) {
        comm->settings = *options->settings;
        comm->tune = coll__tune_share(options->tune);
        return COLL_OK;
    }
    rc = read_settings(&comm->settings);
    return rc ? rc : read_tune(comm);
}

static int differ(int rank, const char *name, const char *first,
                  const char *other)
{
    log_error("comm", "%s is '%s' on rank 0 and '%s' on rank %d; set it alike "
              "on all ranks", name, first, other, rank);
    return COLL_ERR_MISMATCH;
}

static int differ_bytes(int rank, const char *name, uint64_t first,
                        uint64_t other)
{
    char x[24], y[24];

    snprintf(x, sizeof(x), "%llu", (unsigned long long)first);
    snprintf(y, sizeof(y), "%llu", (unsigned long long)other);
    return differ(rank, name, x, y);
}

/* By the files' hashes: their names may differ. */
static int differ_files(int rank, uint64_t first, uint64_t other)
{
    char x[24] = "no file", y[24] = "no file";

    if (first)
        snprintf(x, sizeof(x), "%016llx", (unsigned long long)first);
    if (other)
        snprintf(y, sizeof(y), "%016llx", (unsigned long long)other);
    return differ(rank, "the content of COLL_TUNE_FILE", x, y);
}

/* Every rank sees the same cards, so every rank finds the same fault. */
static int compare_settings(const struct card *cards, int size)
{
    const struct coll__settings *a = &cards[0].settings;

    for (int r = 1; r < size; r++) {
        const struct coll__settings *b = &cards[r].settings;

        if (strcmp(a->version, b->version))
            return differ(r, "libcoll's version", a->version, b->version);
        if (strcmp(a->algo, b->algo))
            return differ(r, "COLL_ALGO", a->algo, b->algo);
        if (strcmp(a->transports, b->transports))
            return differ(r, "COLL_TRANSPORTS", a->transports, b->transports);
        if (a->chunk != b->chunk)
            return differ_bytes(r, "COLL_CHUNK", a->chunk, b->chunk);
        if (a->fuse != b->fuse)
            return differ_bytes(r, "COLL_FUSE", a->fuse, b->fuse);
        if (a->tune != b->tune)
            return differ_files(r, a->tune, b->tune);
        if (a->is_reproducible != b->is_reproducible)
            return differ(r, "reproducible (COLL_REPRODUCIBLE)",
                          a->is_reproducible ? "1" : "0",
                          b->is_reproducible ? "1" : "0");
        if (a->plans != b->plans)
            return differ_bytes(r, "the hash of what is in COLL_PLAN_FILE",
                                a->plans, b->plans);
    }
    return COLL_OK;
}

/* Exchange cards; afterwards every rank knows all peers. */
static int meet(struct coll_comm *comm)
{
    struct card mine = {.settings = comm->settings}, *cards;
    size_t n = (size_t)comm->size;
    int rc;

    cards = calloc(n, sizeof(*cards));
    comm->peers = calloc(n, sizeof(*comm->peers));
    if (!cards || !comm->peers) {
        log_error("comm", "no memory for %d ranks", comm->size);
        free(cards);
        return COLL_ERR_NOMEM;
    }
    coll__topo_self(&mine.peer);
    rc = coll__ctrl_allgather(comm->ctrl, &mine, sizeof(mine), cards,
                              comm->timeout);
    if (rc == COLL_OK)
        rc = compare_settings(cards, comm->size);
    for (size_t r = 0; r < n; r++)
        comm->peers[r] = cards[r].peer;
    if (rc == COLL_OK)
        comm->n_hosts = coll__topo_group(comm->peers, comm->size);
    free(cards);
    return comm->n_hosts < 0 ? comm->n_hosts : rc;
}

static void comm_free(struct coll_comm *comm)
{
    coll__cache_forget(comm);
    coll__comm_forget_own(comm);
    coll__comm_links_close(comm, 0);
    coll__view_fini(&comm->view);
    coll__tune_free(comm->tune);
    coll__book_close(&comm->book);
    free(comm->routes.to);
    free(comm->peers);
    free(comm->n_sent);
    free(comm->n_received);
    free(comm->packed);
    free(comm->stage);
    pthread_mutex_destroy(&comm->failure.lock);
    free(comm);
}

static struct coll_comm *comm_new(const struct coll__boot *boot)
{
    struct coll_comm *comm = calloc(1, sizeof(*comm));

    if (!comm) {
        log_error("comm", "no memory for a communicator");
        return NULL;
    }
    comm->rank = boot->rank;
    comm->size = boot->size;
    comm->timeout = boot->timeout;
    comm->last = &comm->running;
    pthread_mutex_init(&comm->failure.lock, NULL);
    coll__log_set_rank(comm->rank, comm->size);
    return comm;
}

static int make_arrays(struct coll_comm *comm)
{
    size_t n = (size_t)comm->size;

    comm->n_sent = calloc(n, sizeof(*comm->n_sent));
    comm->n_received = calloc(n, sizeof(*comm->n_received));
    comm->packed = calloc(2 * n, sizeof(*comm->packed));
    if (comm->n_sent && comm->n_received && comm->packed)
        return COLL_OK;
    log_error("comm", "no memory for %d ranks", comm->size);
    return COLL_ERR_NOMEM;
}

/* With the control connections up: meet and open the transports. */
static int join(struct coll_comm *comm, const struct coll__options *options)
{
    const struct coll__peer *me;
    int rc = take_settings(comm, options);

    comm->settings.is_reproducible |= options->is_reproducible;
    if (rc == COLL_OK)
        rc = make_arrays(comm);
    if (rc == COLL_OK)
        rc = coll__book_open(&comm->book, coll__param_text(PARAM_PLAN_FILE));
    comm->settings.plans = comm->book.hash;
    if (rc == COLL_OK)
        rc = meet(comm);
    if (rc == COLL_OK)
        rc = coll__comm_links_open(comm);
    if (rc)
        return rc;
    me = &comm->peers[comm->rank];
    coll__wait_init(&comm->wait, me->local_size > me->local_cores);
    comm->routes.n_local = me->local_size;
    comm->routes.looks = me->local_size > me->local_cores ? 0 : LOOKS;
    log_info("comm", "%d ranks on %d hosts by %s", comm->size, comm->n_hosts,
             comm->transports);
    for (int l = 0; l < comm->view.n_levels; l++)
        log_info("comm", "%s: alpha %.2g us, beta %.2g ns/B",
                 comm->view.levels[l].name, comm->view.levels[l].alpha * 1e6,
                 comm->view.levels[l].beta * 1e9);
    return COLL_OK;
}

int coll__comm_open(struct coll__boot *boot,
                    const struct coll__options *options,
                    struct coll_comm **out)
{
    struct coll_comm *comm = comm_new(boot);
    struct coll__ctrl_events events = {on_failed, on_where, comm};
    int rc = comm ? COLL_OK : COLL_ERR_NOMEM;

    if (rc == COLL_OK)
        rc = coll__ctrl_open(boot, &events, &comm->ctrl);
    coll__boot_close(boot);
    if (rc)
        goto fail;
    rc = join(comm, options);
    if (rc)
        goto fail_ctrl;
    *out = comm;
    return COLL_OK;

fail_ctrl:
    coll__ctrl_abort(comm->ctrl, rc, coll_last_error());
    coll__ctrl_close(comm->ctrl, 0, comm->timeout);
fail:
    if (comm)
        comm_free(comm);
    return rc;
}

/* Take the caller's options, or the defaults. */
static int take_config(const struct coll_config *config,
                       struct coll__options *options)
{
    struct coll_config ours = {0};
    int rc = COLL_OK;

    if (config)
        rc = coll__struct_take(config, &ours, sizeof(ours), "config");
    if (rc)
        return rc;
    if (!(ours.timeout >= 0 && ours.timeout <= 1e9)) {
        log_error("api", "config.timeout must be 0 to 1e9 seconds");
        return COLL_ERR_INVALID;
    }
    if (ours.reproducible != 0 && ours.reproducible != 1) {
        log_error("api", "config.reproducible must be 0 or 1");
        return COLL_ERR_INVALID;
    }
    *options = (struct coll__options){
        .timeout = ours.timeout ? ours.timeout
                                : coll__param_seconds(PARAM_TIMEOUT),
        .is_reproducible = ours.reproducible,
    };
    return COLL_OK;
}

int coll_comm_create_env(struct coll_comm **comm,
                         const struct coll_config *config)
{
    struct coll__boot boot;
    struct coll__options options;
    int rc;

    if (!comm) {
        log_error("api", "coll_comm_create_env: comm is NULL");
        return COLL_ERR_INVALID;
    }
    rc = take_config(config, &options);
    if (rc == COLL_OK)
        rc = coll__boot_open_env(&boot, options.timeout);
    return rc ? rc : coll__comm_open(&boot, &options, comm);
}

int coll_comm_create(struct coll_comm **comm, int nranks,
                     const struct coll_unique_id *id, int rank,
                     const struct coll_config *config)
{
    struct coll__boot boot;
    struct coll__options options;
    int rc;

    if (!comm || !id || nranks < 1 || rank < 0 || rank >= nranks) {
        log_error("api", "coll_comm_create: %s",
                  !comm        ? "comm is NULL"
                  : !id        ? "id is NULL"
                  : nranks < 1 ? "nranks must be 1 or more"
                               : "rank must be within 0 to nranks - 1");
        return COLL_ERR_INVALID;
    }
    rc = take_config(config, &options);
    if (rc == COLL_OK)
        rc = coll__boot_open_id(&boot, id, nranks, rank, options.timeout);
    return rc ? rc : coll__comm_open(&boot, &options, comm);
}

int coll_comm_create_oob(struct coll_comm **comm, const struct coll_oob *theirs,
                         const struct coll_config *config)
{
    struct coll__boot boot;
    struct coll_oob oob;
    struct coll__options options;
    int rc;

    if (!comm || !theirs) {
        log_error("api", "coll_comm_create_oob: %s is NULL",
                  comm ? "oob" : "comm");
        return COLL_ERR_INVALID;
    }
    rc = coll__struct_take(theirs, &oob, sizeof(oob), "oob");
    if (rc == COLL_OK && (oob.nranks < 1 || oob.rank < 0 ||
                          oob.rank >= oob.nranks || !oob.allgather)) {
        log_error("api", "coll_comm_create_oob: it needs 0 <= rank < nranks "
                  "and an allgather function");
        rc = COLL_ERR_INVALID;
    }
    if (rc == COLL_OK)
        rc = take_config(config, &options);
    if (rc == COLL_OK)
        rc = coll__boot_open_oob(&boot, &oob, options.timeout);
    return rc ? rc : coll__comm_open(&boot, &options, comm);
}

/* ---- leaving ------------------------------------------------------------- */

/* What ranks compare when they part: did all call the same operations, and has
 * every message between two ranks been received? */
struct farewell {
    uint64_t n_started, hash, n_sent, n_received;
};

static int compare_farewells(const struct farewell *all, int size)
{
    uint64_t n_sent = 0, n_received = 0;

    for (int r = 0; r < size; r++) {
        n_sent += all[r].n_sent;
        n_received += all[r].n_received;
        if (all[r].n_started == all[0].n_started && all[r].hash == all[0].hash)
            continue;
        log_error("comm", "the ranks disagree: the %llu operations of rank %d "
                  "were not the %llu of rank 0, so results may be wrong; all "
                  "ranks must call the same operations with the same root, "
                  "counts and type", (unsigned long long)all[r].n_started, r,
                  (unsigned long long)all[0].n_started);
        return COLL_ERR_MISMATCH;
    }
    if (n_sent == n_received)
        return COLL_OK;
    log_error("comm", "the ranks disagree: they sent %llu messages and "
              "received %llu; each coll_send() needs its coll_recv()",
              (unsigned long long)n_sent, (unsigned long long)n_received);
    return COLL_ERR_MISMATCH;
}

static int part(struct coll_comm *comm)
{
    struct farewell mine = {.n_started = atomic_load(&comm->history.n_started),
                            .hash = comm->history.hash};
    struct farewell *all = calloc((size_t)comm->size, sizeof(*all));
    int rc;

    if (!all) {
        log_error("comm", "no memory for %d ranks", comm->size);
        return COLL_ERR_NOMEM;
    }
    for (int r = 0; r < comm->size; r++) {
        mine.n_sent += comm->n_sent[r];
        mine.n_received += comm->n_received[r];
    }
    rc = coll__ctrl_allgather(comm->ctrl, &mine, sizeof(mine), all,
                              comm->timeout);
    if (rc == COLL_OK)
        rc = compare_farewells(all, comm->size);
    free(all);
    return rc;
}

int coll_comm_destroy(struct coll_comm *comm)
{
    int rc, is_orderly, ended, forgot;

    if (!comm)
        return COLL_OK;
    forgot = coll__group_forget(comm);
    rc = coll__comm_status(comm);
    if (rc == COLL_OK && comm->running) {
        rc = COLL_ERR_INVALID;
        coll__comm_fail(comm, COLL_ERR_ABORTED, "rank %d destroyed the "
                        "communicator while a request was running",
                        comm->rank);
    }
    if (rc == COLL_OK)
        rc = part(comm);
    is_orderly = rc == COLL_OK || rc == COLL_ERR_MISMATCH;
    if (rc == COLL_OK && comm->own) {
        log_error("api", "the communicator still has requests; destroy them "
                  "first");
        rc = COLL_ERR_INVALID;
    }
    coll__comm_links_close(comm, is_orderly);
    ended = coll__ctrl_close(comm->ctrl, is_orderly, comm->timeout);
    comm_free(comm);
    return rc ? rc : ended ? ended : forgot;
}

/* ---- questions ----------------------------------------------------------- */

int coll_comm_rank(const struct coll_comm *comm) { return comm->rank; }

int coll_comm_size(const struct coll_comm *comm) { return comm->size; }

int coll_comm_local_rank(const struct coll_comm *comm)
{
    return comm->peers[comm->rank].local_rank;
}

int coll_comm_local_size(const struct coll_comm *comm)
{
    return comm->peers[comm->rank].local_size;
}

int coll_comm_host(const struct coll_comm *comm)
{
    return comm->peers[comm->rank].host;
}

int coll_comm_n_hosts(const struct coll_comm *comm) { return comm->n_hosts; }

const char *coll_comm_transports(const struct coll_comm *comm)
{
    return comm->transports;
}
