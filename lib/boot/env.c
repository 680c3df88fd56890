/* SPDX-License-Identifier: BSD-3-Clause */
/* env.c - "collrun": COLL_RANK, COLL_SIZE, COLL_ROOT and COLL_JOB_SECRET.  collrun sets
 * them, or a user who starts the ranks by hand.
 *
 * collrun also hands rank 0 a socket that listens at COLL_ROOT already, so that no other
 * program can take the port meanwhile.  COLL_ROOT_FD is its number: between collrun and
 * this file alone, and no parameter.
 */
#include "lib/net/auth.h"
#include "lib/boot/rendezvous.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How many groups this process has joined this way; the same on every rank. */
static atomic_uint n_opened;

static int detect(void)
{
    static const enum coll__param needed[] = {PARAM_RANK, PARAM_SIZE,
                                              PARAM_ROOT, PARAM_JOB_SECRET};
    const char *set = NULL, *missing = NULL;

    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (!coll__param_is_set(needed[i]))
            missing = coll__param_name(needed[i]);
        else if (needed[i] != PARAM_JOB_SECRET) /* torchrun may use it too */
            set = coll__param_name(needed[i]);
    if (!set)
        return 0;
    if (!missing)
        return 1;
    log_error("boot",
              "%s is set but %s is not; a rank needs COLL_RANK, "
              "COLL_SIZE, COLL_ROOT and COLL_JOB_SECRET: start it by collrun",
              set, missing);
    return COLL_ERR_BOOTSTRAP;
}

/* Return a copy of the listening socket that collrun gave, or -1.  The
 * original stays open, so that a second group can meet there. */
static int inherited_socket(uint16_t port)
{
    const char *text = getenv("COLL_ROOT_FD");
    int is_listening = 0, fd = text ? atoi(text) : -1, copy;
    socklen_t len = sizeof(is_listening);
    struct coll__addr addrs[COLL__MAX_ADDRS];

    if (fd < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) ||
        !is_listening || coll__net_own_addrs(fd, addrs) < 1 ||
        coll__net_port(&addrs[0]) != port)
        return -1; /* a program in between has closed it: listen anew */
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy >= 0 && coll__net_adopt(copy)) {
        close(copy);
        return -1;
    }
    return copy;
}

static int read_spec(struct coll__rendezvous_spec *spec)
{
    const char *root = coll__param_text(PARAM_ROOT);
    long rank = coll__param_int(PARAM_RANK), size = coll__param_int(PARAM_SIZE);
    char host[256];
    uint16_t port;

    if (size < 1 || size > INT_MAX / 2 || rank < 0 || rank >= size) {
        log_error("boot",
                  "COLL_RANK=%s of COLL_SIZE=%s: a rank must be 0 to "
                  "size - 1",
                  coll__param_text(PARAM_RANK), coll__param_text(PARAM_SIZE));
        return COLL_ERR_BOOTSTRAP;
    }
    if (coll__net_split(root, host, sizeof(host), &port)) {
        log_error("boot",
                  "COLL_ROOT=%s is not valid: it must be HOST:PORT, such as "
                  "h1:3000 or [fd00::1]:3000",
                  root);
        return COLL_ERR_BOOTSTRAP;
    }
    spec->rank = (int)rank;
    spec->size = (int)size;
    spec->n_ports = 1;
    spec->knows_ended = 1; /* if collrun has started the ranks */
    spec->remedy = "COLL_JOB_SECRET must be the same on every rank";
    coll__auth_from_text(coll__param_text(PARAM_JOB_SECRET), spec->secret);
    if (!rank)
        spec->listen_fd = inherited_socket(port);
    return coll__rendezvous_resolve(spec, host, port);
}

static int open_env(struct coll__boot *boot)
{
    struct coll__rendezvous_spec spec = {.listen_fd = -1};
    int status = read_spec(&spec);

    if (status) {
        if (spec.listen_fd >= 0)
            close(spec.listen_fd);
        return status;
    }
    return coll__rendezvous_meet_again(boot, &spec, &n_opened);
}

const struct coll__boot_ops coll__boot_collrun = {
    .name = "collrun",
    .what = "COLL_RANK, COLL_SIZE, COLL_ROOT and COLL_JOB_SECRET",
    .identity = {"COLL_RANK", "COLL_SIZE", "COLL_ROOT", NULL},
    .detect = detect,
    .open = open_env,
    .places = coll__rendezvous_places,
    .tell = coll__rendezvous_tell,
    .close = coll__rendezvous_close,
};
