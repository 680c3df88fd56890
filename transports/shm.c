/* SPDX-License-Identifier: BSD-3-Clause */
/* shm.c - ranks of one host, through one shared segment per communicator.
 *
 * The lowest rank of a host makes a memfd; the others open it by its path below
 * /proc, which is also the test that they can reach it, and it is closed again
 * before open() returns: there is no name that could be left behind, and the
 * size of /dev/shm does not matter.  Pages exist once they are touched.
 *
 * Each ordered pair of ranks has a channel: a ring of cells.  A cell is a
 * header line, whose `full` is its last word to be written, and a data area.  A
 * message takes as many cells as its bytes need; the first one carries the head
 * and, of a small message, the payload within the same cache line.
 *
 *   line[i]: full | head | len | inline bytes      data[i]: up to `cell` bytes
 *
 * Owners: the sender alone writes lines and data, the receiver alone writes
 * `tail`.  Cell n is published by full = n + 1 with release, and read after an
 * acquire load of it; it is given back by tail = n + 1 with release, and
 * written again after an acquire load of that.  Counters never wrap (64 bits).
 */
#include "transports/transport.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define TOKEN_BYTES 32
#define MAX_CELL ((size_t)16 << 20)
#define MAX_CELLS 1024
#define INLINE_BYTES (CACHE_LINE - sizeof(uint64_t) - 8 - 24)

struct line {
    _Atomic uint64_t full;
    uint64_t len; /* of the message, in its first cell */
    struct coll__head head;
    unsigned char bytes[INLINE_BYTES];
};

_Static_assert(sizeof(struct line) == CACHE_LINE, "a header is one line");

struct channel { /* in the segment; lines and then data follow */
    _Atomic uint64_t tail;
    unsigned char pad[CACHE_LINE - sizeof(uint64_t)];
    struct line lines[];
};

/* One direction of one pair, as this rank sees it. */
struct end {
    struct channel *channel;
    unsigned char *data;
    uint64_t next; /* the cell that this end uses next */
    struct coll__xfer *first, **last;
    int is_active;
};

struct shm {
    struct coll__tp base;
    int local_rank, local_size;
    struct coll__link link;
    size_t cell, n_cells; /* n_cells is a power of two */
    unsigned char *map;
    size_t map_len;
    int *local_of;          /* [size]: local rank, -1 where out of reach */
    struct end *out, *in;   /* [local_size] */
    struct end **active[2]; /* the ends with transfers: out, in */
    int n_active[2];
};

/* What the ranks tell each other while they open. */
struct offer {
    int32_t status, fd;
    uint64_t cell, n_cells;
    unsigned char token[TOKEN_BYTES];
};

enum { OUT, IN };

extern const struct coll__transport coll__transport_shm;

static size_t channel_len(const struct shm *shm)
{
    return sizeof(struct channel) +
           shm->n_cells * (sizeof(struct line) + shm->cell);
}

static size_t segment_len(const struct shm *shm)
{
    size_t n = (size_t)shm->local_size;

    return round_up(TOKEN_BYTES, 4096) +
           n * n * round_up(channel_len(shm), 4096);
}

static struct channel *channel_at(const struct shm *shm, int src, int dst)
{
    size_t index = (size_t)src * (size_t)shm->local_size + (size_t)dst;

    return (struct channel *)(shm->map + round_up(TOKEN_BYTES, 4096) +
                              index * round_up(channel_len(shm), 4096));
}

static int shm_usable(char *why, size_t len)
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

/* ---- moving cells ------------------------------------------------------- */

static void activate(struct shm *shm, int dir, struct end *end)
{
    if (end->is_active)
        return;
    end->is_active = 1;
    shm->active[dir][shm->n_active[dir]++] = end;
}

/* Write the next cell of xfer; 0 while the ring is full. */
static int push_cell(const struct shm *shm, struct end *end,
                     struct coll__xfer *xfer)
{
    uint64_t index = end->next & (shm->n_cells - 1);
    struct line *line = &end->channel->lines[index];
    const unsigned char *from = (const unsigned char *)xfer->buf + xfer->done;
    size_t n = min_size(xfer->len - xfer->done, shm->cell);

    if (end->next - atomic_load_explicit(&end->channel->tail,
                                         memory_order_acquire) == shm->n_cells)
        return 0;
    if (xfer->done == 0) {
        line->head = xfer->head;
        line->len = xfer->len;
    }
    if (xfer->len <= INLINE_BYTES && xfer->len)
        memcpy(line->bytes, from, xfer->len);
    else if (n)
        memcpy(end->data + index * shm->cell, from, n);
    atomic_store_explicit(&line->full, ++end->next, memory_order_release);
    xfer->done += n;
    return 1;
}

/* Take the next cell into xfer; 0 while none has come. */
static int pull_cell(const struct shm *shm, struct end *end,
                     struct coll__xfer *xfer)
{
    uint64_t index = end->next & (shm->n_cells - 1);
    struct line *line = &end->channel->lines[index];
    unsigned char *to = (unsigned char *)xfer->buf + xfer->done;
    size_t n = min_size(xfer->len - xfer->done, shm->cell);
    const unsigned char *from;

    if (atomic_load_explicit(&line->full, memory_order_acquire) !=
        end->next + 1)
        return 0;
    if (xfer->done == 0 && !coll__xfer_fits(xfer, &line->head, line->len)) {
        xfer->status = COLL_ERR_MISMATCH;
        return 1;
    }
    from = xfer->len <= INLINE_BYTES ? line->bytes
                                     : end->data + index * shm->cell;
    if (xfer->reduce && n)
        xfer->reduce(to, (const unsigned char *)xfer->with + xfer->done, from,
                     n);
    else if (n)
        memcpy(to, from, n);
    atomic_store_explicit(&end->channel->tail, ++end->next,
                          memory_order_release);
    xfer->done += n;
    return 1;
}

/* Move the transfers of one end on; the number of cells moved. */
static int advance(const struct shm *shm, int dir, struct end *end)
{
    struct coll__xfer *xfer;
    int moved = 0;

    while ((xfer = end->first)) {
        if (!(dir == OUT ? push_cell : pull_cell)(shm, end, xfer))
            break;
        moved++;
        if (xfer->status == COLL_IN_PROGRESS && xfer->done < xfer->len)
            continue;
        end->first = xfer->next;
        if (!end->first)
            end->last = &end->first;
        if (xfer->status == COLL_IN_PROGRESS)
            xfer->status = COLL_OK;
    }
    return moved;
}

static void post(struct shm *shm, int dir, struct end *end,
                 struct coll__xfer *xfer)
{
    xfer->status = COLL_IN_PROGRESS;
    xfer->done = 0;
    xfer->next = NULL;
    *end->last = xfer;
    end->last = &xfer->next;
    if (end->first == xfer)
        advance(shm, dir, end);
    if (end->first)
        activate(shm, dir, end);
}

static void shm_send(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct shm *shm = (struct shm *)tp;

    post(shm, OUT, &shm->out[shm->local_of[xfer->peer]], xfer);
}

static void shm_recv(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct shm *shm = (struct shm *)tp;

    post(shm, IN, &shm->in[shm->local_of[xfer->peer]], xfer);
}

static int shm_poll(struct coll__tp *tp)
{
    struct shm *shm = (struct shm *)tp;
    int moved = 0;

    for (int dir = OUT; dir <= IN; dir++)
        for (int i = 0; i < shm->n_active[dir]; i++) {
            struct end *end = shm->active[dir][i];

            moved += advance(shm, dir, end);
            if (!end->first) {
                end->is_active = 0;
                shm->active[dir][i--] =
                    shm->active[dir][--shm->n_active[dir]];
            }
        }
    return moved;
}

static int shm_peek(struct coll__tp *tp, int peer, struct coll__head *head)
{
    struct shm *shm = (struct shm *)tp;
    struct line *line;
    struct end *end;

    if (shm->local_of[peer] < 0)
        return 0;
    end = &shm->in[shm->local_of[peer]];
    line = &end->channel->lines[end->next & (shm->n_cells - 1)];
    if (end->first || atomic_load_explicit(&line->full, memory_order_acquire) !=
                          end->next + 1)
        return 0;
    *head = line->head;
    return 1;
}

static int shm_reaches(struct coll__tp *tp, int peer, struct coll__link *link)
{
    const struct shm *shm = (const struct shm *)tp;

    if (peer == tp->rank || shm->local_of[peer] < 0)
        return COLL_ERR_PEER;
    *link = shm->link;
    return COLL_OK;
}

/* ---- opening and closing ------------------------------------------------ */

/* The lowest rank of the host: make the segment, and offer it. */
static void make_segment(const struct shm *shm, struct offer *offer)
{
    size_t len = segment_len(shm);
    int fd = memfd_create("coll", MFD_CLOEXEC);

    offer->status = COLL_ERR_SYSTEM;
    offer->fd = fd;
    offer->cell = shm->cell;
    offer->n_cells = shm->n_cells;
    if (fd >= 0 &&
        getrandom(offer->token, TOKEN_BYTES, 0) == TOKEN_BYTES &&
        !ftruncate(fd, (off_t)len) &&
        pwrite(fd, offer->token, TOKEN_BYTES, 0) == TOKEN_BYTES)
        offer->status = COLL_OK;
    else
        log_warn("shm", "cannot make a shared segment of %zu bytes: %s; the "
                 "ranks of this host will use the next transport", len,
                 strerror(errno));
}

/* Map the segment that the host's lowest rank offers, if it is the one. */
static int map_segment(struct shm *shm, int pid, const struct offer *offer)
{
    unsigned char token[TOKEN_BYTES];
    size_t len;
    char path[64];
    void *map;
    int fd;

    shm->cell = offer->cell;
    shm->n_cells = offer->n_cells;
    len = segment_len(shm);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, offer->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        goto fail;
    if (pread(fd, token, TOKEN_BYTES, 0) != TOKEN_BYTES ||
        memcmp(token, offer->token, TOKEN_BYTES))
        goto fail_close;
    map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        goto fail_close;
    close(fd); /* the mapping keeps the segment alive */
    shm->map = map;
    shm->map_len = len;
    return COLL_OK;

fail_close:
    close(fd);
fail:
    log_info("shm", "cannot reach the segment of process %d: %s", pid,
             strerror(errno));
    return COLL_ERR_SYSTEM;
}

static int make_ends(struct shm *shm)
{
    size_t n = (size_t)shm->local_size;

    shm->out = calloc(n, sizeof(*shm->out));
    shm->in = calloc(n, sizeof(*shm->in));
    shm->active[OUT] = calloc(n, sizeof(struct end *));
    shm->active[IN] = calloc(n, sizeof(struct end *));
    if (!shm->out || !shm->in || !shm->active[OUT] || !shm->active[IN])
        return COLL_ERR_NOMEM;
    for (int i = 0; shm->map && i < shm->local_size; i++) {
        shm->out[i].channel = channel_at(shm, shm->local_rank, i);
        shm->in[i].channel = channel_at(shm, i, shm->local_rank);
        shm->out[i].data =
            (unsigned char *)&shm->out[i].channel->lines[shm->n_cells];
        shm->in[i].data =
            (unsigned char *)&shm->in[i].channel->lines[shm->n_cells];
        shm->out[i].last = &shm->out[i].first;
        shm->in[i].last = &shm->in[i].first;
    }
    return COLL_OK;
}

static void shm_close(struct coll__tp *tp, int is_orderly)
{
    struct shm *shm = (struct shm *)tp;

    (void)is_orderly; /* what was sent stays in the segment until all unmap */
    if (shm->map)
        munmap(shm->map, shm->map_len);
    free(shm->out);
    free(shm->in);
    free(shm->active[OUT]);
    free(shm->active[IN]);
    free(shm->local_of);
    free(shm);
}

/* Return the rank of this host's lowest rank. */
static int leader_of(const struct coll__tp_env *env, int rank)
{
    for (int r = 0; r < env->size; r++)
        if (env->peers[r].host == env->peers[rank].host)
            return r;
    return rank;
}

static struct shm *new_shm(const struct coll__tp_env *env)
{
    const struct coll__peer *me = &env->peers[env->rank];
    struct shm *shm = calloc(1, sizeof(*shm));
    double crowd = me->local_cores ? (double)me->local_size / me->local_cores
                                   : 1;

    if (!shm)
        return NULL;
    shm->base = (struct coll__tp){&coll__transport_shm, env->rank, env->size};
    shm->local_rank = me->local_rank;
    shm->local_size = me->local_size;
    /* a line handed from core to core; a yield where ranks share a core; two
     * copies of each byte */
    shm->link = (struct coll__link){crowd > 1 ? 5e-6 * crowd : 0.3e-6, 0.2e-9};
    shm->cell = coll__param_bytes(PARAM_SHM_CELL);
    shm->cell = round_up(min_size(max_size(shm->cell, 64), MAX_CELL), 64);
    shm->n_cells = 1;
    while (shm->n_cells < MAX_CELLS &&
           shm->n_cells < (size_t)coll__param_int(PARAM_SHM_CELLS))
        shm->n_cells *= 2;
    shm->local_of = malloc((size_t)env->size * sizeof(int));
    if (!shm->local_of) {
        free(shm);
        return NULL;
    }
    return shm;
}

/* Offer, map, and learn who else could: two exchanges on every rank. */
static int join(struct shm *shm, const struct coll__tp_env *env,
                struct offer *offers, int32_t *mapped)
{
    struct offer mine = {.status = COLL_ERR_PEER, .fd = -1};
    int lead = leader_of(env, env->rank);
    int32_t status = COLL_ERR_PEER;
    int rc;

    if (shm->local_size > 1 && lead == env->rank)
        make_segment(shm, &mine);
    rc = env->allgather(env->arg, &mine, sizeof(mine), offers);
    if (rc == COLL_OK && offers[lead].status == COLL_OK)
        status = map_segment(shm, env->peers[lead].pid, &offers[lead]);
    if (rc == COLL_OK)
        rc = env->allgather(env->arg, &status, sizeof(status), mapped);
    if (mine.fd >= 0)
        close(mine.fd);
    for (int r = 0; r < env->size; r++)
        shm->local_of[r] =
            rc == COLL_OK && status == COLL_OK && mapped[r] == COLL_OK &&
                    env->peers[r].host == env->peers[env->rank].host
                ? env->peers[r].local_rank
                : -1;
    return rc;
}

static int shm_open_ranks(const struct coll__tp_env *env, struct coll__tp **tp)
{
    size_t n = (size_t)env->size;
    struct offer *offers = calloc(n, sizeof(*offers));
    int32_t *mapped = calloc(n, sizeof(*mapped));
    struct shm *shm = new_shm(env);
    int rc = COLL_ERR_NOMEM;

    if (offers && mapped && shm)
        rc = join(shm, env, offers, mapped);
    if (rc == COLL_OK)
        rc = make_ends(shm);
    free(offers);
    free(mapped);
    if (rc == COLL_ERR_NOMEM)
        log_error("shm", "no memory for the shm transport of %zu ranks", n);
    if (rc == COLL_OK)
        *tp = &shm->base;
    else if (shm)
        shm_close(&shm->base, 0);
    return rc;
}

const struct coll__transport coll__transport_shm = {
    .name = "shm",
    .what = "shared memory between the ranks of a host",
    .usable = shm_usable,
    .open = shm_open_ranks,
    .close = shm_close,
    .reaches = shm_reaches,
    .send = shm_send,
    .recv = shm_recv,
    .poll = shm_poll,
    .peek = shm_peek,
};
