/* SPDX-License-Identifier: BSD-3-Clause */
/* create.c - how a communicator is made.
 *
 * The steps: bootstrap (who is there?), control connections, after which the bootstrap
 * is closed, one exchange of each rank's place and settings, transports.  A rank that
 * fails on the way aborts, so that the others do not wait for it.  At the end the ranks
 * agree that all have come so far: so either all get the communicator or none does,
 * whoever dies.  Parts of a communicator do without that (shrink.c has an agreement of its
 * own).  destroy.c has the end.
 */
#include "lib/comm/create.h"
#include "lib/boot/boot.h"
#include "lib/comm/check_params.h"
#include "lib/comm/comm.h"
#include "lib/comm/attachment.h"
#include "lib/comm/destroy.h"
#include "lib/comm/diagnose.h"
#include "lib/comm/fail.h"
#include "lib/comm/links.h"
#include "lib/comm/members.h"
#include "lib/comm/records.h"
#include "lib/comm/stall.h"
#include "lib/price/select.h"
#include "lib/proof/plan_set.h"
#include "lib/topo/topo.h"
#include "lib/trace/log.h"
#include "lib/trace/trace.h"
#include "lib/util/files.h"
#include "lib/util/limit.h"
#include "lib/util/param.h"
#include "lib/util/util.h"
#include "lib/ctrl/ctrl.h"
#include "lib/price/tune.h"
#include "transports/ucx_price.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What each rank tells the others when it joins. */
struct card {
    struct coll__peer peer;
    struct coll__settings settings;
};

static void on_failed(void *arg, int status, const char *text)
{
    coll__comm_set_failure(arg, status, text);
}

static enum coll__verdict on_call(void *arg, const struct coll__ctrl_call *call,
                                  int is_gathering, char text[COLL__TEXT_MAX])
{
    return coll__stall_judge(arg, call, is_gathering, text);
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
        log_error("comm",
                  "COLL_ALGO and COLL_TRANSPORTS may be %d characters "
                  "long at most",
                  SETTING_BYTES - 1);
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
    settings->is_checked = coll__param_int(PARAM_CHECK) != 0;
    settings->is_diagnosed = coll__param_int(PARAM_DIAGNOSE) != 0;
    return COLL_OK;
}

/* Read the tuning file, if the environment names one, and what depends on its limits. */
static int read_tune(struct coll_comm *comm)
{
    int rc = coll__tune_open(&comm->tune);

    comm->settings.tune = coll__tune_hash(comm->tune);
    comm->settings.overtake = coll__limit(LIMIT_OVERTAKE);
    return rc;
}

/* Take the settings of the parent, or those of the environment. */
static int take_settings(struct coll_comm *comm,
                         const struct coll__options *options)
{
    int rc;

    if (options->parent) {
        comm->settings = options->parent->settings;
        comm->tune = coll__tune_share(options->parent->tune);
        return COLL_OK;
    }
    rc = read_settings(&comm->settings);
    return rc ? rc : read_tune(comm);
}

static int differ(int rank, const char *name, const char *first,
                  const char *other)
{
    log_error("comm",
              "%s is '%s' on rank 0 and '%s' on rank %d; set it to the same "
              "value on all ranks",
              name, first, other, rank);
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

/* Compare files by their hashes: their names may differ. */
static int differ_files(int rank, uint64_t first, uint64_t other)
{
    char x[24] = "no file", y[24] = "no file";

    if (first)
        snprintf(x, sizeof(x), "%016llx", (unsigned long long)first);
    if (other)
        snprintf(y, sizeof(y), "%016llx", (unsigned long long)other);
    return differ(rank, "the content of COLL_TUNE_FILE", x, y);
}

/* Compare all ranks' settings.  Every rank has the same cards, so every rank finds the
 * same fault. */
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
        if (a->is_checked != b->is_checked)
            return differ_bytes(r, "COLL_CHECK", (uint64_t)a->is_checked,
                                (uint64_t)b->is_checked);
        if (a->is_diagnosed != b->is_diagnosed)
            return differ_bytes(r, "COLL_DIAGNOSE", (uint64_t)a->is_diagnosed,
                                (uint64_t)b->is_diagnosed);
        if (a->plans != b->plans)
            return differ_bytes(r, "the hash of what is in COLL_PLAN_FILE",
                                a->plans, b->plans);
    }
    return COLL_OK;
}

/* Make clones of one host count as different hosts and machines: write the clone's
 * number before the slash in "BOOT/NAMESPACE". */
static void name_clone(struct coll__peer *peer, int clone)
{
    char id[sizeof(peer->host_id)], *slash;

    if (!clone)
        return;
    memcpy(id, peer->host_id, sizeof(id));
    slash = strchr(id, '/');
    snprintf(peer->host_id, sizeof(peer->host_id), "%.*s+%d%s",
             (int)(slash - id), id, clone, slash);
}

/* Exchange cards; afterwards every rank knows all peers. */
static int meet(struct coll_comm *comm)
{
    struct card mine, *cards;
    size_t n = (size_t)comm->size;
    int rc;

    memset(&mine, 0, sizeof(mine)); /* it travels, with its padding */
    mine.settings = comm->settings;
    cards = calloc(n, sizeof(*cards));
    comm->peers = calloc(n, sizeof(*comm->peers));
    if (!cards || !comm->peers) {
        log_error("comm", "no memory for %d ranks", comm->size);
        free(cards);
        return COLL_ERR_NOMEM;
    }
    rc = coll__topo_self(&mine.peer);
    name_clone(&mine.peer, coll__ctrl_clone(comm->ctrl));
    coll__ucx_fabrics(mine.peer.within[WITHIN_NUMA], mine.peer.fabrics);
    if (rc == COLL_OK)
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

/* Take the peers over from the parent, whose ranks have met. */
static int know_peers(struct coll_comm *comm, const struct coll_comm *whole,
                      const int *ranks)
{
    comm->peers = malloc((size_t)comm->size * sizeof(*comm->peers));
    if (!comm->peers) {
        log_error("comm", "no memory for %d ranks", comm->size);
        return COLL_ERR_NOMEM;
    }
    for (int r = 0; r < comm->size; r++)
        comm->peers[r] = whole->peers[ranks[r]];
    return coll__members_init(comm, whole, ranks);
}

/* The parent's ranks have compared their settings; only files may have changed. */
static int take_over(struct coll_comm *comm,
                     const struct coll__options *options)
{
    if (comm->settings.plans != options->parent->settings.plans) {
        log_error("comm", "the files of COLL_PLAN_FILE have changed since the "
                          "communicator was made that is being split; do not "
                          "change them while the job runs");
        return COLL_ERR_INVALID;
    }
    comm->n_hosts = coll__topo_group(comm->peers, comm->size);
    return comm->n_hosts < 0 ? comm->n_hosts : COLL_OK;
}

int coll__comm_inherited(const char *who)
{
    log_error("api",
              "%s: this communicator is the parent's: a child made by "
              "fork() may only free it; make a new one here "
              "(coll_comm_create)",
              who);
    return COLL_ERR_INVALID;
}

int coll__comm_check(const struct coll_comm *comm, const char *who)
{
    if (!comm) {
        log_error("api", "%s: comm is NULL", who);
        return COLL_ERR_INVALID;
    }
    return coll__comm_is_inherited(comm) ? coll__comm_inherited(who) : COLL_OK;
}

void coll__comm_free(struct coll_comm *comm)
{
    int is_inherited = coll__comm_is_inherited(comm);

    if (!is_inherited) {
        coll__attachments_step(LIFE_END, comm);
        coll__trace_write();
    }
    coll__deferred_count(comm, -1);
    coll__records_remove(comm);
    coll__attachments_step(LIFE_FREE, comm);
    coll__comm_links_close(comm, 0);
    free(comm->links.trial);
    free(comm->links.routes.to);
    coll__view_fini(&comm->view);
    coll__tune_free(comm->tune);
    if (comm->plan_set)
        coll__plan_set_close(comm->plan_set);
    free(comm->plan_set);
    free(comm->peers);
    free(comm->calls.n_sent);
    free(comm->calls.n_received);
    free(comm->ending.all);
    coll__members_fini(comm);
    if (!is_inherited) /* it may be held by who is gone */
        pthread_mutex_destroy(&comm->failure.lock);
    free(comm);
}

void coll__comm_bytes(const struct coll_comm *comm,
                      struct coll_mem_stats *stats)
{
    for (int t = 0; t < comm->links.routes.n_all; t++)
        stats->shared += comm->links.tps[t]->shared;
    coll__attachments_bytes(comm, stats);
}

static struct coll_comm *comm_new(int rank, int size, double timeout)
{
    struct coll_comm *comm = calloc(1, sizeof(*comm));
    size_t n = (size_t)size;

    if (!comm) {
        log_error("comm", "no memory for a communicator");
        return NULL;
    }
    comm->generation = coll__generation_now();
    comm->rank = rank;
    comm->size = size;
    comm->timeout = timeout;
    comm->stall_warn = coll__param_int(PARAM_STALL_WARN);
    pthread_mutex_init(&comm->failure.lock, NULL);
    coll__deferred_count(comm, 1);
    coll__log_set_rank(comm->rank, comm->size);
    comm->calls.n_sent = calloc(N_SERIES * n, sizeof(*comm->calls.n_sent));
    comm->calls.n_received =
        calloc(N_SERIES * n, sizeof(*comm->calls.n_received));
    comm->plan_set = calloc(1, sizeof(*comm->plan_set));
    if (comm->calls.n_sent && comm->calls.n_received && comm->plan_set &&
        coll__attachments_step(LIFE_OPEN, comm) == COLL_OK)
        return comm;
    log_error("comm", "no memory for a communicator of %d ranks", size);
    coll__comm_free(comm);
    return NULL;
}

/* The control connections are up: meet, and open the transports. */
static int join(struct coll_comm *comm, const struct coll__options *options)
{
    int rc = take_settings(comm, options);

    comm->settings.is_reproducible |= options->is_reproducible;
    comm->is_deferred = options->is_deferred;
    comm->idle = options->idle;
    if (rc == COLL_OK && !options->parent)
        rc = coll__trace_open(comm->rank, comm->size);
    if (rc == COLL_OK && !options->parent)
        rc = coll__recorder_open(comm->rank, comm->size);
    if (rc == COLL_OK)
        rc = coll__plan_set_open(comm->plan_set,
                                 coll__param_text(PARAM_PLAN_FILE));
    comm->settings.plans = comm->plan_set->hash;
    if (rc == COLL_OK)
        rc = comm->peers ? take_over(comm, options) : meet(comm);
    if (rc == COLL_OK)
        rc = coll__comm_links_open(comm, options);
    if (rc == COLL_OK && !options->parent && comm->settings.is_diagnosed)
        rc = coll__comm_diagnose(comm);
    if (rc)
        return rc;
    log_info("comm", "%d rank%s on %d host%s by %s", comm->size,
             comm->size == 1 ? "" : "s", comm->n_hosts,
             comm->n_hosts == 1 ? "" : "s", comm->links.names);
    for (int l = 0; l < comm->view.n_levels; l++)
        log_info("comm", "%s: alpha %.2g us, beta %.2g ns/B, %s",
                 comm->view.levels[l].name, comm->view.levels[l].alpha * 1e6,
                 comm->view.levels[l].beta * 1e9, comm->links.sources[l]);
    return COLL_OK;
}

/* rc: COLL_OK if the control connections are up, else the error that prevented them. */
static int finish(struct coll_comm *comm, int rc,
                  const struct coll__options *options, struct coll_comm **out)
{
    if (rc)
        goto fail;
    rc = join(comm, options);
    if (rc == COLL_OK)
        rc = coll__ctrl_settle(comm->ctrl);
    if (rc == COLL_OK)
        rc = coll__attachments_step(LIFE_SETTLE, comm);
    if (rc == COLL_OK && !options->parent)
        rc = coll__ctrl_confirm(comm->ctrl, comm->timeout);
    if (rc)
        goto fail_ctrl;
    coll__records_add(comm);
    *out = comm;
    return COLL_OK;

fail_ctrl:
    coll__ctrl_abort(comm->ctrl, rc, coll_last_error());
    coll__ctrl_close(comm->ctrl, 0, comm->timeout);
fail:
    if (comm)
        coll__comm_free(comm);
    return rc;
}

int coll__comm_open(struct coll__boot *boot,
                    const struct coll__options *options, struct coll_comm **out)
{
    struct coll_comm *comm = comm_new(boot->rank, boot->size, boot->timeout);
    struct coll__ctrl_events events = {on_failed, on_call, comm};
    int rc = comm ? COLL_OK : COLL_ERR_NOMEM;

    if (rc == COLL_OK)
        rc = coll__ctrl_open(boot, &events, &comm->ctrl);
    coll__boot_close(boot);
    return finish(comm, rc, options, out);
}

int coll__comm_divide(struct coll_comm *whole,
                      const struct coll__ctrl_part *part,
                      struct coll_comm **out)
{
    struct coll__options options = {.timeout = whole->timeout,
                                    .is_deferred = whole->is_deferred,
                                    .idle = whole->idle,
                                    .parent = whole};
    struct coll_comm *comm = comm_new(part->rank, part->size, whole->timeout);
    struct coll__ctrl_events events = {on_failed, on_call, comm};
    struct coll__ctrl_part mine = *part;
    struct coll__ctrl *ctrl = NULL;
    int rc;

    mine.status = comm ? know_peers(comm, whole, part->ranks) : COLL_ERR_NOMEM;
    mine.events = &events;
    rc = coll__ctrl_divide(whole->ctrl, &mine, whole->timeout, &ctrl);
    if (comm)
        comm->ctrl = ctrl;
    return finish(comm, rc, &options, out);
}
