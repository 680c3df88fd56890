/* SPDX-License-Identifier: BSD-3-Clause */
/* handle.c - handles: the address of a process, at which any number of communicators meet.
 *
 * A process has one handle.  Its listening socket and its gate, the home, stay from then
 * on.  A group meets at the home of its rank 0, under the handle's secret and with the
 * uuid as the rendezvous' number.  Ranks that come before rank 0 has begun that rendezvous
 * are told by the home to try again.
 */
#include "lib/boot/id.h"
#include "lib/boot/rendezvous.h"
#include "lib/net/listener.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/util/lock.h"

#include <string.h>
#include <unistd.h>

#define HANDLE_MAGIC "COLLhd01"

static void forget_parents(void);

/* Under the lock.  Whoever makes the home has seen that there is NONE, and the others
 * wait. */
static struct coll__lock lock = COLL__LOCK(forget_parents);
static enum { NONE, MAKING, THERE } state;
static struct coll__id own;

static struct coll__gate home = {.kind = GATE_HOME};

/* A child is another process, at another address. */
static void forget_parents(void) { state = NONE; }

/* Nobody is to be received at home itself. */
static void turn_away(struct coll__gate *gate, int fd,
                      const struct coll__hello *hello,
                      const unsigned char *session)
{
    (void)gate;
    (void)hello;
    (void)session;
    close(fd);
}

static int settle(struct coll__id *id)
{
    int n, status = coll__reactor_get();

    if (status)
        return status;
    coll__auth_random(home.secret, sizeof(home.secret));
    home.arrived = turn_away;
    coll__reactor_lock();
    coll__gate_add(&home);
    coll__reactor_unlock();
    n = coll__listener_open(REACH_NET, id->addrs);
    if (n < 0) {
        coll__reactor_lock();
        coll__gate_remove(&home);
        coll__reactor_unlock();
        coll__reactor_put();
        return n;
    }
    id->n_addrs = (uint8_t)n;
    memcpy(id->secret, home.secret, sizeof(id->secret));
    memcpy(id->magic, HANDLE_MAGIC, sizeof(id->magic));
    return COLL_OK;
}

/* Return the state, after having changed it from NONE to MAKING. */
static int begin_making(void)
{
    int was;

    coll__lock(&lock);
    was = state;
    if (was == NONE)
        state = MAKING;
    coll__unlock(&lock);
    return was;
}

static int have_home(void)
{
    struct coll__id id = {.magic = ""};
    int was, status;

    while ((was = begin_making()) == MAKING)
        usleep(1000);
    if (was == THERE)
        return COLL_OK;
    status = settle(&id);
    coll__lock(&lock);
    own = id;
    state = status ? NONE : THERE;
    coll__unlock(&lock);
    return status;
}

static int make_handle(struct coll_handle *handle)
{
    int status;

    if (!handle) {
        log_error("boot", "coll_comm_handle: handle is NULL");
        return COLL_ERR_INVALID;
    }
    coll__files_fill_standard();
    status = have_home();
    if (status)
        return status;
    memset(handle, 0, sizeof(*handle));
    coll__lock(&lock);
    memcpy(handle, &own, sizeof(own));
    coll__unlock(&lock);
    return COLL_OK;
}

int coll_comm_handle(struct coll_handle *handle)
{
    return coll__log_done(make_handle(handle));
}

static const struct coll__boot_ops handle_ops = {
    .name = "handle",
    .what = "the handles of processes",
    .places = coll__rendezvous_places,
    .tell = coll__rendezvous_tell,
    .close = coll__rendezvous_close,
};

static int is_own(const struct coll__id *id)
{
    int is;

    coll__lock(&lock);
    is = state == THERE && coll__auth_equal(id->secret, own.secret);
    coll__unlock(&lock);
    return is;
}

/* Check all, and read rank 0's. */
static int read_handles(const struct coll_handle handles[], int n, int rank,
                        struct coll__id *first)
{
    struct coll__id id;

    for (int r = n - 1; r >= 0; r--) {
        if (!coll__id_read(&handles[r], HANDLE_MAGIC, &id)) {
            log_error("boot",
                      "handle %d of %d is none of this libcoll: each process "
                      "makes its own by coll_comm_handle()",
                      r, n);
            return COLL_ERR_INVALID;
        }
        if (r == rank && !is_own(&id)) {
            log_error("boot",
                      "handle %d of %d is another process's: pass as rank the "
                      "place of this process's own",
                      r, n);
            return COLL_ERR_INVALID;
        }
    }
    *first = id;
    return COLL_OK;
}

/* Mix the uuid to the number of a rendezvous. */
static uint32_t number_of(uint64_t uuid)
{
    uuid = (uuid ^ uuid >> 31) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(uuid >> 32);
}

int coll__boot_open_handles(struct coll__boot *boot,
                            const struct coll_handle handles[], int nranks,
                            int rank, uint64_t uuid)
{
    struct coll__rendezvous_spec spec = {
        .rank = rank,
        .size = nranks,
        .generation = number_of(uuid),
        .n_ports = 1,
        .listen_fd = -1,
        .is_home = 1,
        .remedy = "does every rank pass the same handles and uuid?"};
    struct coll__id first;
    int status = read_handles(handles, nranks, rank, &first);

    if (status)
        return status;
    spec.n_addrs = first.n_addrs;
    memcpy(spec.addrs, first.addrs, sizeof(first.addrs));
    memcpy(spec.secret, first.secret, sizeof(first.secret));
    boot->ops = &handle_ops;
    status = coll__rendezvous_open(boot, &spec);
    coll__auth_wipe(&first, sizeof(first));
    coll__auth_wipe(spec.secret, sizeof(spec.secret));
    return status;
}
