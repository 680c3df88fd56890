/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_segment.c - making, finding and leaving the shared segment.
 *
 * The lowest rank of a host makes the segment and offers it to the others (segment.h);
 * each of them says whether it could map the segment.
 */
#include "transports/shm.h"
#include "transports/list.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/util/lock.h"
#include "lib/util/limit.h"
#include "lib/util/param.h"
#include "transports/cma.h"
#include "transports/segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define MAX_CELL ((size_t)16 << 20)
#define MAX_SLOT ((size_t)64 << 10)
#define SLOT ((size_t)4 << 10)
#define SLOT_OF_TWO ((size_t)32 << 10) /* no third rank gets the same bytes */
#define MANY_RANKS 16 /* ranks of a host; with more, the fifos are shorter */

/* What the ranks exchange in open(). */
struct offer {
    struct coll__segment_offer file;
    int32_t status;
    uint64_t n_lines, slot, cell, n_cells;
    struct coll__cma_token cma;
};

/* A rank's findings in open(), as bits. */
enum found {
    FOUND_SEGMENT = 1, /* and mapped it */
    FOUND_MEMORY = 2,  /* it can fetch from all other ranks */
    FOUND_FILES = 4,   /* of all others, which it can open */
    FOUND_FENCE = 8    /* its process takes part in the others' fences */
};

/* ---- where things are ----------------------------------------------------- */

static size_t bells_len(const struct shm *shm)
{
    return round_up((size_t)shm->local_size * sizeof(struct shm_bell), PAGE);
}

static struct shm_bell *bell_of(const struct shm *shm, int local_rank)
{
    return (struct shm_bell *)shm->map + local_rank;
}

static size_t fifo_len(const struct shm *shm)
{
    return round_up(sizeof(struct shm_fifo) +
                        shm->n_lines * sizeof(struct shm_line),
                    PAGE) +
           shm->n_lines * shm->slot;
}

/* The fifos of the first channel come first. */
static size_t fifo_at(const struct shm *shm, int channel, int src, int dst)
{
    size_t n = (size_t)shm->local_size;
    size_t index = ((size_t)channel * n + (size_t)src) * n + (size_t)dst;

    return bells_len(shm) + index * fifo_len(shm);
}

static size_t cells_at(const struct shm *shm, int local_rank)
{
    return fifo_at(shm, COLL__CHANNELS, 0, 0) +
           (size_t)local_rank * shm->cells.n * shm->cells.len;
}

static unsigned char *cells_of(const struct shm *shm, int local_rank)
{
    return shm->map + cells_at(shm, local_rank);
}

static size_t segment_len(const struct shm *shm)
{
    return cells_at(shm, shm->local_size);
}

static unsigned char *slots_of(const struct shm *shm,
                               struct shm_fifo *fifo)
{
    return (unsigned char *)fifo + fifo_len(shm) -
           shm->n_lines * shm->slot;
}

/* ---- the segment ---------------------------------------------------------- */

int shm__usable(char *why, size_t len)
{
    int fd = memfd_create("coll", MFD_CLOEXEC);

    if (fd < 0) {
        snprintf(why, len, "memfd_create: %s; a kernel of 3.17 or later is "
                 "needed, or COLL_TRANSPORTS=self,ucx", strerror(errno));
        return COLL_ERR_UNSUPPORTED;
    }
    close(fd);
    return COLL_OK;
}

/* Fail at once: no other transport needs fewer descriptors. */
static int lack_files(int rank, int err)
{
    log_error(
        "shm",
        "rank %d (pid %d) cannot share memory with the ranks of its host: "
        "%s",
        rank, (int)getpid(), coll__files_error(err));
    return COLL_ERR_SYSTEM;
}

/* Other ranks open this file to test whether they can open this process's files. */
static int make_file(const struct shm *shm, struct offer *offer)
{
    int err = coll__segment_offer(&offer->file);

    return coll__files_lack(err) ? lack_files(shm->base.rank, err) : COLL_OK;
}

/* On the host's lowest rank: give the file the segment's length, and offer it. */
static void make_segment(const struct shm *shm, struct offer *offer)
{
    size_t len = segment_len(shm);

    offer->status = COLL_ERR_SYSTEM;
    offer->n_lines = shm->n_lines;
    offer->slot = shm->slot;
    offer->cell = shm->cells.len;
    offer->n_cells = shm->cells.n;
    if (offer->file.fd >= 0 && !coll__set_file_len(offer->file.fd, len))
        offer->status = COLL_OK;
    else
        log_warn("shm", "cannot make a shared segment of %zu bytes: %s; the "
                 "ranks of this host will use the next transport%s", len,
                 strerror(errno), errno == EFBIG ? " (see ulimit -f)" : "");
}

/* Map the segment that the host's lowest rank offers, if the token matches and the file
 * can be opened. */
static int map_segment(struct shm *shm, int pid, const struct offer *offer)
{
    size_t len;

    shm->n_lines = offer->n_lines;
    shm->slot = offer->slot;
    shm->cells.len = offer->cell;
    shm->cells.n = offer->n_cells;
    len = segment_len(shm);
    shm->segment = coll__segment_map(pid, &offer->file, len);
    shm->base.shared = shm->segment ? len : 0;
    if (shm->segment)
        shm->map = coll__segment_at(shm->segment);
    else if (coll__files_lack(errno))
        return lack_files(shm->base.rank, errno);
    else if (errno == ENOMEM)
        log_warn("shm",
                 "cannot map the %zu bytes that the ranks of this host "
                 "share: %s; raise ulimit -v, or lower the limit shm_cell "
                 "in the tuning file",
                 len, strerror(errno));
    else
        log_info("shm", "cannot reach the segment of process %d: %s", pid,
                 strerror(errno));
    return COLL_OK;
}

/* ---- the ends of the fifos --------------------------------------------- */

static struct shm_fifo *fifo_of(const struct shm *shm, int channel, int src,
                                int dst)
{
    return (struct shm_fifo *)(shm->map + fifo_at(shm, channel, src, dst));
}

static void init_out(struct shm *shm, int channel, int local)
{
    int lane = coll__lane(channel, local, shm->local_size);
    struct shm_out *out = &shm->out[lane];

    out->fifo = fifo_of(shm, channel, shm->local_rank, local);
    out->slots = slots_of(shm, out->fifo);
    out->bell = bell_of(shm, local);
    out->cell_of = shm->cells.of_line + (size_t)lane * shm->n_lines;
    out->last = &out->first;
    out->there_last = &out->there;
}

static void init_in(struct shm *shm, int channel, int local, int pid)
{
    struct shm_in *in = &shm->in[coll__lane(channel, local, shm->local_size)];

    in->fifo = fifo_of(shm, channel, local, shm->local_rank);
    in->slots = slots_of(shm, in->fifo);
    in->cells = cells_of(shm, local);
    in->bell = bell_of(shm, local);
    in->last = &in->first;
    in->pid = pid;
}

/* Allocate the lists of active ends of all channels, in one allocation. */
static int make_active(struct shm *shm)
{
    size_t n = (size_t)shm->local_size;
    char *lists = calloc(2 * (size_t)shm->n_lanes, sizeof(void *));

    for (int c = 0; lists && c < COLL__CHANNELS; c++) {
        shm->active[c].out = (struct shm_out **)lists;
        shm->active[c].in = (struct shm_in **)(lists + n * sizeof(void *));
        lists += 2 * n * sizeof(void *);
    }
    return lists ? COLL_OK : COLL_ERR_NOMEM;
}

static int make_ends(struct shm *shm, const struct coll__tp_env *env)
{
    size_t n = (size_t)shm->n_lanes;

    shm->out = calloc(n, sizeof(*shm->out));
    shm->in = calloc(n, sizeof(*shm->in));
    shm->cells.of_line = malloc(n * shm->n_lines * sizeof(*shm->cells.of_line));
    shm->cells.state = calloc(shm->cells.n, sizeof(*shm->cells.state));
    shm->base.published =
        calloc((size_t)env->size, sizeof(*shm->base.published));
    if (!shm->out || !shm->in || !shm->cells.of_line || !shm->cells.state ||
        !shm->base.published || make_active(shm))
        return COLL_ERR_NOMEM;
    if (!shm->map)
        return COLL_OK;
    for (size_t i = 0; i < n * shm->n_lines; i++)
        shm->cells.of_line[i] = -1;
    for (int r = 0; r < env->size; r++) {
        if (shm->local_of[r] < 0)
            continue;
        shm->base.published[r] = &bell_of(shm, shm->local_of[r])->published;
        for (int c = 0; c < COLL__CHANNELS; c++) {
            init_out(shm, c, shm->local_of[r]);
            init_in(shm, c, shm->local_of[r], env->peers[r].pid);
        }
    }
    shm->cells.at = cells_of(shm, shm->local_rank);
    shm->bell = bell_of(shm, shm->local_rank);
    shm->cells.freed.last = &shm->cells.freed.first;
    shm->cells.kept.last = &shm->cells.kept.first;
    shm->cells.n_free = (int)shm->cells.n;
    shm->cells.n_without = COLL__CHANNELS * (shm->local_size - 1);
    shm->base.eager = shm->slot;
    shm->base.ahead = (int)shm->n_lines / 2; /* of one operation and the next */
    return COLL_OK;
}

static void close_file(struct shm *shm)
{
    if (shm->file >= 0)
        close(shm->file);
    shm->file = -1;
}

void shm__close(struct coll__tp *tp, int is_orderly)
{
    struct shm *shm = (struct shm *)tp;

    /* sent bytes stay in the segment until all ranks unmap it */
    if (!is_orderly && !coll__is_inherited(tp->generation))
        for (int i = 0; shm->out && i < shm->n_lanes; i++)
            shm__withdraw(shm, &shm->out[i]);
    shm__drop_regions(shm);
    close_file(shm);
    if (shm->segment)
        coll__segment_unmap(shm->segment);
    free(shm->out);
    free(shm->in);
    free(shm->active[0].out); /* and all that follow */
    free(shm->cells.of_line);
    free(shm->cells.state);
    free(shm->base.published);
    free(shm->scratch);
    free(shm->local_of);
    free(shm);
}

/* ---- opening --------------------------------------------------------------- */

/* Return the lowest rank of this host. */
static int leader_of(const struct coll__tp_env *env, int rank)
{
    for (int r = 0; r < env->size; r++)
        if (env->peers[r].host == env->peers[rank].host)
            return r;
    return rank;
}

/* Set the sizes from the limits; all ranks use those of the segment's maker. */
static void choose_sizes(struct shm *shm)
{
    size_t n_peers = (size_t)shm->local_size - 1;
    size_t n_fifos = COLL__CHANNELS * n_peers;
    size_t cell = coll__limit(LIMIT_SHM_CELL);
    size_t slot = coll__limit(LIMIT_SHM_SLOT);
    size_t cells = coll__limit(LIMIT_SHM_CELLS);

    if (!slot)
        slot = shm->local_size > 2 ? SLOT : SLOT_OF_TWO;
    shm->slot = round_up(min_size(max_size(slot, CACHE_LINE), MAX_SLOT),
                         CACHE_LINE);
    shm->cells.len =
        round_up(min_size(max_size(cell, CACHE_LINE), MAX_CELL), CACHE_LINE);
    if (!cells) /* one for each fifo, and as many as a busy channel uses */
        cells = n_fifos + max_size(8, n_peers);
    shm->cells.n = min_size(max_size(cells, n_fifos + 1), INT16_MAX);
    shm->n_lines = shm->local_size > MANY_RANKS ? 8 : 32; /* powers of two */
}

static struct shm *new_shm(const struct coll__tp_env *env)
{
    const struct coll__peer *me = &env->peers[env->rank];
    struct shm *shm = calloc(1, sizeof(*shm));
    double crowd = me->local_cores ? (double)me->local_size / me->local_cores
                                   : 1;

    if (!shm)
        return NULL;
    shm->base = (struct coll__tp){.ops = &coll__transport_shm,
                                  .rank = env->rank,
                                  .size = env->size,
                                  .generation = coll__generation_now()};
    shm->file = -1;
    shm->local_rank = me->local_rank;
    shm->local_size = me->local_size;
    shm->n_lanes = COLL__CHANNELS * me->local_size;
    /* alpha: a line handed from core to core, or a time slice of each rank if they share
     * cores; beta: two copies of each byte, the first of which serves all receivers */
    shm->link = (struct coll__link){.alpha = crowd > 1 ? 1.2e-6 * crowd : 0.2e-6,
                                    .beta = 0.2e-9 * (crowd > 1 ? crowd : 1),
                                    .gap = 50e-9,
                                    .once = 0.1e-9 * (crowd > 1 ? crowd : 1)};
    shm->fetch_min = shm->region_min = SIZE_MAX;
    shm->stream_min = coll__limit(LIMIT_STREAM_MIN);
    choose_sizes(shm);
    shm->local_of = malloc((size_t)env->size * sizeof(int));
    if (!shm->local_of) {
        free(shm);
        return NULL;
    }
    return shm;
}

/* Can this rank open the files of all other ranks of its host?  Returns a status,
 * logged. */
static int can_open(const struct coll__tp_env *env, const struct offer *offers,
                    int *is_able)
{
    int host = env->peers[env->rank].host;

    *is_able = 1;
    for (int r = 0; r < env->size; r++)
        if (r != env->rank && env->peers[r].host == host) {
            int fd = coll__segment_open(env->peers[r].pid, &offers[r].file);

            if (fd >= 0) {
                close(fd);
                continue;
            }
            if (coll__files_lack(errno))
                return lack_files(env->rank, errno);
            log_info("shm",
                     "messages are not read in place: cannot open a file of "
                     "process %d",
                     env->peers[r].pid);
            *is_able = 0;
            break;
        }
    return COLL_OK;
}

/* Can this rank read the memory of all other ranks of its host? */
static int can_fetch(const struct coll__tp_env *env, const struct offer *offers)
{
    int host = env->peers[env->rank].host;

    if (strcmp(coll__param_text(PARAM_CMA), "off") == 0)
        return 0;
    for (int r = 0; r < env->size; r++)
        if (r != env->rank && env->peers[r].host == host &&
            coll__cma_probe(&offers[r].cma))
            return 0;
    return 1;
}

/* Test this rank's files and memory access; a rank alone on its host has nothing to test.
 * Returns a status, logged, if this rank lacks something. */
static int look(struct shm *shm, const struct coll__tp_env *env,
                const struct offer *offers)
{
    int lead = leader_of(env, env->rank), is_able, rc;

    shm->base.found = FOUND_SEGMENT | FOUND_MEMORY | FOUND_FILES | FOUND_FENCE;
    if (shm->local_size == 1)
        return COLL_OK;
    shm->base.found = 0;
    if (offers[lead].status)
        return COLL_OK;
    rc = map_segment(shm, env->peers[lead].pid, &offers[lead]);
    if (rc || !shm->map)
        return rc;
    shm->base.found = FOUND_SEGMENT;
    if (!coll__fence_join())
        shm->base.found |= FOUND_FENCE;
    if (can_fetch(env, offers))
        shm->base.found |= FOUND_MEMORY;
    rc = can_open(env, offers, &is_able);
    if (rc == COLL_OK && is_able)
        shm->base.found |= FOUND_FILES;
    return rc;
}

/* Exchange offers, once on each rank.  A rank that cannot make its file returns its error
 * before the exchange. */
static int join(struct shm *shm, const struct coll__tp_env *env,
                struct offer *offers)
{
    struct offer mine = {.file = {.fd = -1}, .status = COLL_ERR_PEER};
    int rc = shm->local_size > 1 ? make_file(shm, &mine) : COLL_OK;

    if (rc)
        return rc;
    if (shm->local_size > 1 && leader_of(env, env->rank) == env->rank)
        make_segment(shm, &mine);
    shm->file = mine.file.fd;
    coll__cma_offer(&mine.cma);
    rc = env->allgather(env->arg, &mine, sizeof(mine), offers);
    if (rc == COLL_OK)
        rc = look(shm, env, offers);
    for (int r = 0; r < env->size; r++)
        shm->local_of[r] =
            shm->map && env->peers[r].host == env->peers[env->rank].host
                ? env->peers[r].local_rank
                : -1;
    return rc;
}

/* Set the least length of messages that are fetched from now on. */
static int allow_fetching(struct shm *shm)
{
    shm->scratch = malloc(shm->cells.len);
    if (!shm->scratch) {
        log_error("shm", "no memory for %zu bytes that are fetched",
                  shm->cells.len);
        return COLL_ERR_NOMEM;
    }
    shm->fetch_min = coll__limit(LIMIT_CMA_MIN);
    shm->fetch_max = coll__limit(LIMIT_CMA_MAX);
    return COLL_OK;
}

int shm__settle(struct coll__tp *tp, const uint32_t *found)
{
    struct shm *shm = (struct shm *)tp;
    uint32_t by_all = shm->map ? UINT32_MAX : 0;

    close_file(shm);
    if (shm->bell) /* the token was there; it is not needed any more */
        atomic_store_explicit(&shm->bell->published, 0, memory_order_relaxed);
    for (int r = 0; r < tp->size; r++) {
        if (shm->local_of[r] < 0)
            continue;
        by_all &= found[r];
        if (found[r] & FOUND_SEGMENT)
            continue;
        shm->local_of[r] = -1;
        tp->published[r] = NULL;
    }
    if (by_all & FOUND_FILES)
        shm->region_min = coll__limit(LIMIT_MEM_MIN);
    shm->rings_surely = (by_all & FOUND_FENCE) != 0;
    return by_all & FOUND_MEMORY ? allow_fetching(shm) : COLL_OK;
}

int shm__open(const struct coll__tp_env *env, struct coll__tp **tp)
{
    size_t n = (size_t)env->size;
    struct offer *offers = calloc(n, sizeof(*offers));
    struct shm *shm = new_shm(env);
    int rc = COLL_ERR_NOMEM;

    if (offers && shm)
        rc = join(shm, env, offers);
    if (rc == COLL_OK)
        rc = make_ends(shm, env);
    free(offers);
    if (rc == COLL_ERR_NOMEM)
        log_error("shm", "no memory for the shm transport of %zu ranks", n);
    if (rc == COLL_OK)
        *tp = &shm->base;
    else if (shm)
        shm__close(&shm->base, 0);
    return rc;
}
