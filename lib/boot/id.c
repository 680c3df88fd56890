/* SPDX-License-Identifier: BSD-3-Clause */
/* id.c - unique ids: rank 0's addresses and a secret in 128 bytes.
 *
 * The process that makes an id listens from then on.  Connections wait in the socket's
 * queue, unread, until rank 0 joins in this process (or in a child that it forks).
 */
#include "lib/boot/id.h"
#include "lib/net/reactor.h"
#include "lib/boot/rendezvous.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ID_MAGIC "COLLid01"

/* An id of this process that awaits its rank 0; under the reactor's lock. */
struct pending {
    unsigned char secret[COLL__SECRET_BYTES];
    pid_t pid; /* the process that made it; a forked child has a copy */
    int fd;
    struct pending *next;
};

static struct pending *pending;

static int remember(const struct coll__id *id, int fd)
{
    struct pending *p = malloc(sizeof(*p));

    if (!p) {
        log_error("boot", "no memory for a unique id");
        return COLL_ERR_NOMEM;
    }
    memcpy(p->secret, id->secret, sizeof(p->secret));
    p->fd = fd;
    p->pid = getpid();
    coll__reactor_lock();
    p->next = pending;
    pending = p;
    coll__reactor_unlock();
    return COLL_OK;
}

/* Take the socket on which this id awaits its rank 0, or -1.  A rank other than 0
 * closes a copy that it inherited. */
static int take_socket(const struct coll__id *id, int rank)
{
    struct pending **at = &pending, *p;
    int fd = -1;

    coll__reactor_lock();
    while (*at && !coll__auth_equal((*at)->secret, id->secret))
        at = &(*at)->next;
    p = *at;
    if (p && (!rank || p->pid != getpid())) {
        *at = p->next;
        fd = p->fd;
        coll__auth_wipe(p->secret, sizeof(p->secret));
        free(p);
    }
    coll__reactor_unlock();
    if (rank && fd >= 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int make_id(struct coll_unique_id *out)
{
    struct coll__id id = {.magic = ""};
    int fd, status;

    if (!out) {
        log_error("boot", "coll_get_unique_id: id is NULL");
        return COLL_ERR_INVALID;
    }
    coll__files_fill_standard();
    status = coll__net_listen(REACH_NET, &fd);
    if (status)
        return status;
    memcpy(id.magic, ID_MAGIC, sizeof(id.magic));
    id.n_addrs = (uint8_t)coll__net_own_addrs(fd, id.addrs);
    coll__auth_random(id.secret, sizeof(id.secret));
    status = remember(&id, fd);
    if (status) {
        close(fd);
        return status;
    }
    memset(out, 0, sizeof(*out));
    memcpy(out, &id, sizeof(id));
    coll__auth_wipe(&id, sizeof(id));
    return COLL_OK;
}

int coll_get_unique_id(struct coll_unique_id *out)
{
    return coll__log_done(make_id(out));
}

static const struct coll__boot_ops id_ops = {
    .name = "id",
    .what = "a unique id",
    .places = coll__rendezvous_places,
    .tell = coll__rendezvous_tell,
    .close = coll__rendezvous_close,
};

int coll__id_read(const void *bytes, const char *magic, struct coll__id *id)
{
    memcpy(id, bytes, sizeof(*id));
    return !memcmp(id->magic, magic, sizeof(id->magic)) && id->n_addrs &&
           id->n_addrs <= COLL__MAX_ADDRS;
}

static int read_id(const struct coll_unique_id *in, struct coll__id *id)
{
    if (coll__id_read(in, ID_MAGIC, id))
        return COLL_OK;
    log_error("boot",
              "this is no unique id of this libcoll; rank 0 makes "
              "one by coll_get_unique_id() and hands all of its %d bytes "
              "to the others",
              COLL_UNIQUE_ID_BYTES);
    return COLL_ERR_INVALID;
}

static int check_place(int nranks, int rank)
{
    if (nranks >= 1 && rank >= 0 && rank < nranks)
        return COLL_OK;
    log_error("boot", "rank %d of %d: a rank must be 0 to size - 1", rank,
              nranks);
    return COLL_ERR_INVALID;
}

void coll__boot_free_id(const struct coll_unique_id *unique)
{
    struct coll__id id;
    int fd;

    memcpy(&id, unique, sizeof(id));
    fd = take_socket(&id, 0);
    if (fd >= 0)
        close(fd);
    coll__auth_wipe(&id, sizeof(id));
}

static int free_id(const struct coll_unique_id *unique)
{
    struct coll__id id;
    int status;

    if (!unique) {
        log_error("boot", "coll_unique_id_free: id is NULL");
        return COLL_ERR_INVALID;
    }
    status = read_id(unique, &id);
    coll__auth_wipe(&id, sizeof(id));
    if (!status)
        coll__boot_free_id(unique);
    return status;
}

int coll_unique_id_free(const struct coll_unique_id *id)
{
    return coll__log_done(free_id(id));
}

int coll__boot_open_id(struct coll__boot *boot,
                       const struct coll_unique_id *unique, int nranks,
                       int rank)
{
    struct coll__rendezvous_spec spec = {
        .rank = rank, .size = nranks, .n_ports = 1};
    struct coll__id id;
    int status = read_id(unique, &id);

    if (!status)
        status = check_place(nranks, rank);
    if (status)
        return status;
    spec.listen_fd = take_socket(&id, rank);
    spec.is_brief = 1;
    if (!rank && spec.listen_fd < 0) {
        log_error("boot",
                  "rank 0 must be in the process that called "
                  "coll_get_unique_id(), and an id serves for one group only; "
                  "make a new one there");
        return COLL_ERR_INVALID;
    }
    spec.n_addrs = id.n_addrs;
    spec.remedy = "does every rank have the same unique id?";
    memcpy(spec.addrs, id.addrs, sizeof(id.addrs));
    memcpy(spec.secret, id.secret, sizeof(id.secret));
    boot->ops = &id_ops;
    status = coll__rendezvous_open(boot, &spec);
    coll__auth_wipe(&id, sizeof(id));
    coll__auth_wipe(spec.secret, sizeof(spec.secret));
    return status;
}
