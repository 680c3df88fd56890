/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_connect.c - build the tree: tell each other who and where we are, then
 * every rank connects to its parent and awaits its children. */
#include "lib/boot/ctrl_int.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_TIME 5.0 /* s, for one of several addresses */

/* Where a rank awaits its children. */
struct place {
    int32_t n_addrs; /* 0: a leaf; negative: it cannot listen */
    struct coll__addr addrs[COLL__MAX_ADDRS];
};

/* Return the inode of a namespace of this process, or 0. */
static unsigned long long inode(const char *path)
{
    struct stat st;

    return stat(path, &st) ? 0 : (unsigned long long)st.st_ino;
}

static void read_line(const char *path, char *text, size_t len)
{
    FILE *file = fopen(path, "re");

    text[0] = '\0';
    if (!file)
        return;
    if (!fgets(text, (int)len, file))
        text[0] = '\0';
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
}

/* Two ranks have the same host when both its kernel and its network are. */
static void describe_self(struct ctrl_peer *peer)
{
    char boot_id[64], key[128];

    memset(peer, 0, sizeof(*peer));
    if (gethostname(peer->host_name, sizeof(peer->host_name)))
        snprintf(peer->host_name, sizeof(peer->host_name), "unknown");
    peer->host_name[sizeof(peer->host_name) - 1] = '\0';
    read_line("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
    snprintf(key, sizeof(key), "%s %llu", *boot_id ? boot_id : peer->host_name,
             inode("/proc/self/ns/net"));
    coll__auth_from_text(key, peer->host);
    peer->pid = (uint64_t)getpid();
    peer->pid_ns = inode("/proc/self/ns/pid");
}

static int meet(struct coll__ctrl *ctrl, struct coll__boot *boot,
                enum coll__reach *reach)
{
    struct ctrl_peer self;
    int status;

    describe_self(&self);
    ctrl->peers[ctrl->rank] = self;
    status = coll__boot_allgather(boot, &self, sizeof(self), ctrl->peers);
    *reach = REACH_HOST;
    for (int r = 0; r < ctrl->size; r++) {
        ctrl->peers[r].host_name[sizeof(self.host_name) - 1] = '\0';
        if (memcmp(ctrl->peers[r].host, self.host, sizeof(self.host)))
            *reach = REACH_NET;
    }
    return status;
}

/* A child has come. */
static void arrived(struct coll__gate *gate, int fd,
                    const struct coll__hello *hello)
{
    struct coll__ctrl *ctrl =
        (struct coll__ctrl *)((char *)gate - offsetof(struct coll__ctrl, gate));

    for (int j = 0; j < ctrl->n_children; j++) {
        struct coll__link *link = &ctrl->down[j];

        if (hello->from != (uint32_t)link->peer || coll__link_is_up(link))
            continue;
        if (!coll__link_open(link, fd))
            ctrl->n_children_here++;
        pthread_cond_broadcast(&ctrl->changed);
        return;
    }
    log_warn("boot", "rank %u came to rank %d, which is not its parent",
             hello->from, ctrl->rank);
    close(fd);
}

static void open_gate(struct coll__ctrl *ctrl, const struct coll__boot *boot)
{
    memcpy(ctrl->gate.secret, boot->secret, COLL__SECRET_BYTES);
    ctrl->gate.kind = DOOR_CTRL;
    ctrl->gate.rank = (uint32_t)ctrl->rank;
    ctrl->gate.arrived = arrived;
    coll__reactor_lock();
    coll__gate_add(&ctrl->gate);
    ctrl->has_gate = 1;
    coll__reactor_unlock();
}

static int exchange_places(struct coll__ctrl *ctrl, struct coll__boot *boot,
                           enum coll__reach reach, struct place *places)
{
    struct place mine = {0};
    int status;

    open_gate(ctrl, boot);
    if (ctrl->n_children)
        mine.n_addrs = coll__door_open(reach, mine.addrs);
    status = coll__boot_allgather(boot, &mine, sizeof(mine), places);
    if (mine.n_addrs < 0)
        return mine.n_addrs;
    if (status)
        return status;
    for (int r = 0; r < ctrl->size; r++)
        if (places[r].n_addrs < 0 || places[r].n_addrs > COLL__MAX_ADDRS) {
            char name[COLL__TEXT_MAX];

            coll__ctrl_name(ctrl, r, name);
            log_error("boot",
                      "%s cannot listen for the other ranks; see its "
                      "own output",
                      name);
            return COLL_ERR_BOOTSTRAP;
        }
    return COLL_OK;
}

/* Try the parent's addresses once; the socket, or -errno (-EAGAIN to try
 * again). */
static int try_parent(struct coll__ctrl *ctrl, const struct place *place,
                      double deadline)
{
    struct coll__hello hello = {
        .kind = DOOR_CTRL,
        .from = (uint32_t)ctrl->rank,
        .to = (uint32_t)ctrl->up.peer,
        .size = (uint32_t)ctrl->size,
    };
    int fd = -ENETUNREACH;

    for (int i = 0; i < place->n_addrs; i++) {
        double limit = coll__now() + CONNECT_TIME;
        enum coll__knock knock;

        if (limit > deadline || i == place->n_addrs - 1)
            limit = deadline;
        fd = coll__net_connect(&place->addrs[i], limit);
        if (fd < 0)
            continue;
        knock = coll__door_knock(fd, ctrl->gate.secret, &hello, limit);
        if (knock == KNOCK_IN)
            return fd;
        close(fd);
        fd = knock == KNOCK_LOST ? -EAGAIN : -EPROTO;
        if (knock == KNOCK_SILENT)
            fd = -ETIMEDOUT;
    }
    return fd;
}

static int connect_up(struct coll__ctrl *ctrl, const struct place *place,
                      double deadline)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    char where[COLL__ADDR_TEXT];
    int fd, status;

    while ((fd = try_parent(ctrl, place, deadline)) == -EAGAIN &&
           coll__now() < deadline)
        nanosleep(&pause, NULL);
    if (fd < 0) {
        coll__net_text(&place->addrs[0], where);
        log_error("boot",
                  "rank %d cannot connect to rank %d at %s: %s; is it "
                  "alive, and no firewall between? (COLL_NET_INTERFACE and "
                  "COLL_NET_PORTS choose where it listens)",
                  ctrl->rank, ctrl->up.peer, where,
                  fd == -EPROTO ? "it was not let in" : strerror(-fd));
        return COLL_ERR_BOOTSTRAP;
    }
    coll__reactor_lock();
    status = coll__link_open(&ctrl->up, fd);
    coll__reactor_unlock();
    return status;
}

static int await_children(struct coll__ctrl *ctrl, double deadline,
                          double timeout)
{
    int status = COLL_OK, j = 0;

    coll__reactor_lock();
    while (ctrl->n_children_here < ctrl->n_children && !ctrl->failed_status)
        if (coll__reactor_wait(&ctrl->changed, deadline))
            break;
    if (ctrl->failed_status) {
        log_error("boot", "%s", ctrl->failed_text);
        status = ctrl->failed_status;
    } else if (ctrl->n_children_here < ctrl->n_children) {
        char name[COLL__TEXT_MAX];

        while (coll__link_is_up(&ctrl->down[j]))
            j++;
        coll__ctrl_name(ctrl, ctrl->down[j].peer, name);
        log_error("boot",
                  "%s did not connect to rank %d within %.3g s; can "
                  "it reach this host?",
                  name, ctrl->rank, timeout);
        status = COLL_ERR_BOOTSTRAP;
    } else {
        coll__ctrl_watch(ctrl);
    }
    coll__reactor_unlock();
    return status;
}

/* Let nobody go on before all are connected. */
static int finish(struct coll__ctrl *ctrl, double timeout)
{
    int status;

    coll__reactor_lock();
    status = coll__ctrl_gather(ctrl, PURPOSE_GATHER, NULL, 0, NULL, timeout);
    if (!status && ctrl->failed_status) {
        log_error("boot", "%s", ctrl->failed_text);
        status = ctrl->failed_status;
    }
    ctrl->is_open = !status;
    coll__reactor_unlock();
    return status;
}

int coll__ctrl_connect(struct coll__ctrl *ctrl, struct coll__boot *boot)
{
    struct place *places = calloc((size_t)ctrl->size, sizeof(*places));
    double deadline;
    enum coll__reach reach;
    int status;

    if (!places) {
        log_error("boot", "no memory for the addresses of %d ranks",
                  ctrl->size);
        return COLL_ERR_NOMEM;
    }
    status = meet(ctrl, boot, &reach);
    if (!status)
        status = exchange_places(ctrl, boot, reach, places);
    deadline = coll__now() + boot->timeout;
    if (!status && ctrl->rank)
        status = connect_up(ctrl, &places[ctrl->up.peer], deadline);
    free(places);
    if (!status)
        status = await_children(ctrl, deadline, boot->timeout);
    if (!status)
        status = finish(ctrl, boot->timeout);
    return status;
}
