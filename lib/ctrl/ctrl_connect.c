/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_connect.c - build the tree: the ranks exchange who and where they are, then each
 * rank connects to its parent and awaits its children. */
#include "lib/boot/boot.h"
#include "lib/ctrl/ctrl_card.h"
#include "lib/ctrl/ctrl_int.h"
#include "lib/net/connector.h"
#include "lib/net/presence.h"
#include "lib/net/this_host.h"
#include "lib/net/fd_limit.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEWS_TIME 1.0 /* s, to hear the real reason of a failed connection */

static void describe_self(struct ctrl_peer *peer)
{
    memset(peer, 0, sizeof(*peer));
    if (gethostname(peer->host_name, sizeof(peer->host_name)))
        snprintf(peer->host_name, sizeof(peer->host_name), "unknown");
    peer->host_name[sizeof(peer->host_name) - 1] = '\0';
    coll__host_id(peer->host);
    peer->pid = (uint64_t)getpid();
    peer->pid_ns = coll__host_inode("/proc/self/ns/pid");
    coll__reactor_lock();
    coll__wire_self(peer->process);
    coll__reactor_unlock();
}

void coll__ctrl_name(const struct coll__ctrl *ctrl, int rank,
                     char text[COLL__TEXT_MAX])
{
    const struct ctrl_peer *peer = &ctrl->peers[rank];

    if (!peer->pid) /* not known yet */
        snprintf(text, COLL__TEXT_MAX, "rank %d",
                 coll__ctrl_known_as(ctrl, rank));
    else
        snprintf(text, COLL__TEXT_MAX, "rank %d (pid %llu on %.*s)",
             coll__ctrl_known_as(ctrl, rank), (unsigned long long)peer->pid,
             (int)sizeof(peer->host_name) - 1, peer->host_name);
}

const char *coll__ctrl_host(const struct coll__ctrl *ctrl, int rank)
{
    return ctrl->peers[rank].host_name;
}

/* Is this rank, whose host has the same id as ours, on a clone of our host? */
static int is_on_clone(const struct coll__ctrl *ctrl, int rank)
{
    return rank != ctrl->rank &&
           coll__presence_is_missing(ctrl->peers[rank].presence);
}

/* Change the host id of ranks that are on a clone of this rank's host, so that no code
 * looks for their processes or their memory here; lock held. */
static void tell_clones_apart(struct coll__ctrl *ctrl)
{
    unsigned char host[sizeof(ctrl->peers->host)];
    int lead = -1, first = -1;

    memcpy(host, ctrl->peers[ctrl->rank].host, sizeof(host));
    for (int r = 0; r < ctrl->size; r++) {
        if (memcmp(ctrl->peers[r].host, host, sizeof(host)) != 0)
            continue;
        if (first < 0)
            first = r;
        if (is_on_clone(ctrl, r))
            ctrl->peers[r].host[0] ^= 1;
        else if (lead < 0)
            lead = r;
    }
    ctrl->watching.clone = lead == first ? 0 : lead + 1;
}

int coll__ctrl_clone(const struct coll__ctrl *ctrl)
{
    return ctrl->watching.clone;
}

/* A child has connected; it opens its link next. */
static void arrived(struct coll__gate *gate, int fd,
                    const struct coll__hello *hello,
                    const unsigned char *session)
{
    (void)gate, (void)hello;
    coll__wire_new(fd, NULL, session, "listener");
}

/* If all ranks are on this host, no other host need be able to connect. */
static enum coll__reach reach_of(const struct coll__ctrl *ctrl)
{
    for (int r = 1; r < ctrl->size; r++)
        if (memcmp(ctrl->peers[r].host, ctrl->peers[0].host,
                   sizeof(ctrl->peers[0].host)))
            return REACH_NET;
    return REACH_HOST;
}

static void expect_children(struct coll__ctrl *ctrl)
{
    for (int j = 0; j < ctrl->tree.n_children; j++)
        coll__link_expect(&ctrl->tree.down[j]);
}

void coll__ctrl_offer(struct coll__ctrl *ctrl)
{
    struct ctrl_place *place = &ctrl->peers[ctrl->rank].place;
    int n_files = coll__fds_in_tree(ctrl->rank, ctrl->size);

    ctrl->tree.gate.kind = GATE_CTRL;
    ctrl->tree.gate.rank = (uint32_t)ctrl->rank;
    ctrl->tree.gate.arrived = arrived;
    coll__reactor_lock();
    coll__gate_add(&ctrl->tree.gate);
    ctrl->tree.has_gate = 1;
    expect_children(ctrl);
    coll__reactor_unlock();
    if (!place->n_addrs) /* a part's is that of the whole */
        place->n_addrs = coll__listener_open(reach_of(ctrl), place->addrs);
    if (place->n_addrs < 0) /* not even for that, maybe */
        place->n_lacking = n_files + 1 - coll__files_left(n_files + 1);
    else
        place->n_lacking =
            coll__fds_lack(coll__ctrl_known_as(ctrl, ctrl->rank), n_files);
    if (place->n_lacking)
        place->n_addrs = COLL_ERR_SYSTEM;
}

/* Wait for a notice that the group has failed; returns its status, logged, or COLL_OK. */
static int await_news(struct coll__ctrl *ctrl, double seconds)
{
    double until = coll__now() + seconds;
    int status;

    coll__reactor_lock();
    while (!ctrl->failure.status)
        if (coll__reactor_wait(&ctrl->changed, until))
            break;
    status = ctrl->failure.status;
    if (status)
        log_error("boot", "%s", ctrl->failure.text);
    coll__reactor_unlock();
    return status;
}

#define REMEDY                                                                 \
    "; is it alive, and no firewall between? (COLL_NET_INTERFACE and "         \
    "COLL_NET_PORTS choose where it listens)"

/* Wait a moment for the real reason (a death, for example) before blaming the network. */
static int not_connected(struct coll__ctrl *ctrl, const char *why,
                         const char *remedy)
{
    int status = await_news(ctrl, NEWS_TIME);

    if (status)
        return status;
    log_error("boot", "rank %d cannot connect to rank %d (%s)%s",
              coll__ctrl_known_as(ctrl, ctrl->rank),
              coll__ctrl_known_as(ctrl, ctrl->tree.up.peer), why, remedy);
    return COLL_ERR_BOOTSTRAP;
}

/* The parent's host has fallen silent since the parent gave its address. */
static int no_answer(struct coll__ctrl *ctrl, const char *why)
{
    int status = await_news(ctrl, 0);
    char name[COLL__TEXT_MAX];

    if (status)
        return status;
    coll__ctrl_name(ctrl, ctrl->tree.up.peer, name);
    log_error("boot", "%s " COLL__SILENT_TEXT " (%s)", name, why);
    return COLL_ERR_PEER;
}

/* This process lacks file descriptors. */
static int lack_files(const struct coll__ctrl *ctrl, const char *why)
{
    log_error("boot", "rank %d cannot connect to rank %d (%s)",
              coll__ctrl_known_as(ctrl, ctrl->rank),
              coll__ctrl_known_as(ctrl, ctrl->tree.up.peer), why);
    return COLL_ERR_SYSTEM;
}

static int has_failed(void *arg) { return coll__ctrl_status(arg) != COLL_OK; }

/* Make a wire to the parent's process; COLL_OK, or a status. */
static int call_parent(struct coll__ctrl *ctrl, const struct coll__ctrl *whole,
                       double deadline)
{
    const struct ctrl_peer *parent = &ctrl->peers[ctrl->tree.up.peer];
    const struct coll__ctrl *at = whole ? whole : ctrl;
    struct coll__connector connector = {
        .addrs = parent->place.addrs,
        .n_addrs = parent->place.n_addrs,
        .n_ports = 1,
        .secret = at->tree.gate.secret,
        .hello = {.kind = GATE_CTRL,
                  .from = (uint32_t)at->rank,
                  .to = (uint32_t)coll__ctrl_known_as(ctrl, ctrl->tree.up.peer),
                  .size = (uint32_t)at->size},
        .is_over = has_failed,
        .arg = ctrl,
    };
    int fd, status = COLL_ERR_NOMEM;

    fd = coll__connector(&connector, deadline);
    if (fd < 0 && connector.is_silent)
        return no_answer(ctrl, connector.why);
    if (fd < 0)
        return connector.is_want
                   ? lack_files(ctrl, connector.why)
                   : not_connected(ctrl, connector.why,
                                   connector.is_otherwise ? "" : REMEDY);
    coll__reactor_lock();
    if (coll__wire_new(fd, parent->process,
                       connector.is_sealed ? connector.session : NULL,
                       "connector"))
        status = COLL_OK;
    coll__reactor_unlock();
    return status;
}

/* Open the link to the parent over an existing wire, if there is one (*has_wire).  Lock
 * held. */
static int ask_parent(struct coll__ctrl *ctrl, int *has_wire, double deadline)
{
    const unsigned char *process = ctrl->peers[ctrl->tree.up.peer].process;
    struct coll__wire *wire = coll__wire_find(process);
    int status = COLL_OK;

    *has_wire = wire != NULL;
    if (wire && !ctrl->failure.status) /* else it would look like a death */
        status = coll__link_ask(&ctrl->tree.up, wire);
    while (ctrl->tree.up.state == LINK_ASKING && !ctrl->failure.status)
        if (coll__reactor_wait(&ctrl->changed, deadline))
            break;
    return status;
}

/* Connect to the parent.  A wire may end just when it is used: then make another one. */
static int connect_up(struct coll__ctrl *ctrl, const struct coll__ctrl *whole,
                      double deadline)
{
    enum coll__link_state state;
    int has_wire, status;

    do {
        coll__reactor_lock();
        status = ask_parent(ctrl, &has_wire, deadline);
        state = ctrl->tree.up.state;
        coll__reactor_unlock();
        if (!status)
            status = await_news(ctrl, 0);
        if (!status && !has_wire)
            status = call_parent(ctrl, whole, deadline);
    } while (!status && state == LINK_DOWN && coll__now() < deadline);
    if (status || state == LINK_UP)
        return status;
    return not_connected(ctrl,
                         state == LINK_REFUSED
                             ? "it knows no such group"
                             : "it takes the connection and says "
                               "nothing",
                         REMEDY);
}

static int await_children(struct coll__ctrl *ctrl, double deadline,
                          double timeout)
{
    int status = COLL_OK, j = 0;

    coll__reactor_lock();
    while (ctrl->tree.n_children_here < ctrl->tree.n_children &&
           !ctrl->failure.status)
        if (coll__reactor_wait(&ctrl->changed, deadline))
            break;
    if (ctrl->failure.status) {
        log_error("boot", "%s", ctrl->failure.text);
        status = ctrl->failure.status;
    } else if (ctrl->tree.n_children_here < ctrl->tree.n_children) {
        char name[COLL__TEXT_MAX];

        while (coll__link_is_up(&ctrl->tree.down[j]))
            j++;
        coll__ctrl_name(ctrl, ctrl->tree.down[j].peer, name);
        log_error("boot",
                  "%s did not connect to rank %d within %.3g s; can "
                  "it reach this host?",
                  name, coll__ctrl_known_as(ctrl, ctrl->rank), timeout);
        status = COLL_ERR_BOOTSTRAP;
    }
    coll__reactor_unlock();
    return status;
}

/* Exchange who each rank is.  This is also a barrier: after it, all are connected.  Lock
 * held. */
static int introduce(struct coll__ctrl *ctrl, double timeout)
{
    struct ctrl_peer self = ctrl->peers[ctrl->rank];
    int status =
        coll__ctrl_gather(ctrl, &self, sizeof(self), ctrl->peers, timeout);

    for (int r = 0; r < ctrl->size; r++)
        ctrl->peers[r].host_name[sizeof(self.host_name) - 1] = '\0';
    if (status)
        return status;
    tell_clones_apart(ctrl);
    coll__ctrl_watch(ctrl);
    return COLL_OK;
}

/* Finish the tree.  A part that is being made skips the exchange: the whole knows its
 * ranks already, and the part's first exchange shows whether all are connected. */
static int finish(struct coll__ctrl *ctrl, double timeout)
{
    int status = COLL_OK;

    coll__reactor_lock();
    if (!ctrl->parts.whole)
        status = introduce(ctrl, timeout);
    if (!status && ctrl->failure.status) {
        log_error("boot", "%s", ctrl->failure.text);
        status = ctrl->failure.status;
    }
    ctrl->is_open = !status;
    coll__reactor_unlock();
    return status;
}

int coll__ctrl_connect(struct coll__ctrl *ctrl, const struct coll__ctrl *whole,
                       double timeout)
{
    double deadline = coll__now() + timeout;
    int status = COLL_OK;

    coll__reactor_lock();
    if (!ctrl->parts.whole) /* else they are told apart */
        tell_clones_apart(ctrl);
    coll__ctrl_watch(ctrl); /* who dies now would be waited for */
    coll__reactor_unlock();
    if (ctrl->rank)
        status = connect_up(ctrl, whole, deadline);
    if (!status)
        status = await_children(ctrl, deadline, timeout);
    if (!status)
        status = finish(ctrl, timeout);
    return status;
}

/* ---- by a bootstrap ----------------------------------------------------- */

/* The bootstrap has heard that a rank has died or cannot join; lock held. */
static void boot_failed(void *arg, int status, const char *text)
{
    struct ctrl_reason reason = {status, NOBODY, text};

    coll__ctrl_fail(arg, &reason, 0);
}

static void listen_to(struct coll__boot *boot,
                      void (*failed)(void *, int, const char *), void *arg)
{
    coll__reactor_lock();
    boot->news = (struct coll__boot_news){failed, arg};
    coll__reactor_unlock();
}

/* Describe this rank.  If the bootstrap knows that all ranks are on one host, each rank
 * can fill in the others' host. */
static void make_card(struct coll__ctrl *ctrl, const struct coll__boot *boot)
{
    struct ctrl_peer *mine = &ctrl->peers[ctrl->rank];

    describe_self(mine);
    coll__reactor_lock();
    coll__presence_self(mine->presence);
    coll__reactor_unlock();
    for (int r = 0; r < ctrl->size && boot->is_one_host; r++)
        memmove(ctrl->peers[r].host, mine->host, sizeof(mine->host));
    memcpy(ctrl->tree.gate.secret, boot->secret, COLL__SECRET_BYTES);
    coll__ctrl_offer(ctrl);
}

int coll__ctrl_place_status(const struct ctrl_place *place)
{
    int n = place->n_addrs;

    if (n >= 0 && n <= COLL__MAX_ADDRS)
        return COLL_OK;
    return n < COLL_ERR_INTERNAL || n > 0 ? COLL_ERR_INTERNAL : n;
}

void coll__ctrl_judge_place(const char *name, const struct ctrl_place *place)
{
    if (place->n_lacking > 0)
        log_error("boot",
                  "%s lacks %d file descriptors to join; raise `ulimit -n` "
                  "there",
                  name, place->n_lacking);
    else
        log_error("boot", "%s cannot join: %s; see its own output", name,
                  coll_strerror(coll__ctrl_place_status(place)));
}

/* Read the other ranks' cards. */
static int read_cards(struct coll__ctrl *ctrl, const struct ctrl_peer *cards)
{
    char name[COLL__TEXT_MAX];

    for (int r = 0; r < ctrl->size; r++) {
        if (!cards[r].pid)
            continue;
        ctrl->peers[r] = cards[r];
        ctrl->peers[r].host_name[sizeof(cards->host_name) - 1] = '\0';
    }
    for (int r = 0; r < ctrl->size; r++) {
        if (coll__ctrl_place_status(&cards[r].place) == COLL_OK)
            continue;
        coll__ctrl_name(ctrl, r, name);
        coll__ctrl_judge_place(name, &cards[r].place);
        return COLL_ERR_BOOTSTRAP;
    }
    return COLL_OK;
}

static int exchange_cards(struct coll__ctrl *ctrl, struct coll__boot *boot,
                          struct ctrl_peer *cards)
{
    char why[COLL__TEXT_MAX];
    const struct ctrl_peer *mine = &ctrl->peers[ctrl->rank];
    int status;

    make_card(ctrl, boot);
    snprintf(why, sizeof(why), "%s", coll_last_error());
    listen_to(boot, boot_failed, ctrl);
    status = coll__boot_places(boot, mine, sizeof(*mine), cards);
    if (mine->place.n_addrs <
        0) { /* the error is now another rank's; report our own */
        log_error("boot", "%s", why);
        return mine->place.n_addrs;
    }
    return status ? status : read_cards(ctrl, cards);
}

/* Hand in a card with only the status: the other ranks wait for this rank's card too. */
void coll__ctrl_excuse(struct coll__ctrl *ctrl, struct coll__boot *boot,
                       int status)
{
    struct ctrl_peer mine, *cards = calloc((size_t)ctrl->size, sizeof(*cards));

    describe_self(&mine);
    mine.place.n_addrs = status;
    mine.place.n_lacking =
        COLL__REACTOR_FILES - coll__files_left(COLL__REACTOR_FILES);
    if (cards)
        coll__boot_places(boot, &mine, sizeof(mine), cards);
    free(cards);
}

/* Tell the others why this rank cannot join; if the group has failed, its reason. */
static void tell_why(struct coll__ctrl *ctrl, struct coll__boot *boot,
                     int status)
{
    char text[COLL__TEXT_MAX];

    coll__reactor_lock();
    if (ctrl->failure.status)
        snprintf(text, sizeof(text), "%s", ctrl->failure.text);
    else
        snprintf(text, sizeof(text), "rank %d could not join: %.380s",
                 ctrl->rank, coll_last_error());
    coll__reactor_unlock();
    coll__boot_tell(boot, status, text);
}

int coll__ctrl_meet(struct coll__ctrl *ctrl, struct coll__boot *boot)
{
    struct ctrl_peer *cards = calloc((size_t)ctrl->size, sizeof(*cards));
    int status;

    if (!cards) {
        log_error("boot", "no memory for the addresses of %d ranks",
                  ctrl->size);
        return COLL_ERR_NOMEM;
    }
    status = exchange_cards(ctrl, boot, cards);
    if (!status)
        status = coll__ctrl_connect(ctrl, NULL, boot->timeout);
    listen_to(boot, NULL, NULL);
    if (status)
        tell_why(ctrl, boot, status);
    free(cards);
    return status;
}
