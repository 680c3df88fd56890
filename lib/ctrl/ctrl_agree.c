/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_agree.c - the living ranks of a tree agree: agree.h over connections.
 *
 * Messages go over the links of the tree while both their ends live.  When a view changes,
 * a rank may have another parent.  It connects to it, at the place that all ranks know, and
 * opens a link.  A rank also tries to reach its new children: one that has died has nobody
 * else to notice it.  All of this is a task of the reactor, so it goes on when the calling
 * threads have left, and others need an answer still.
 */
#include "lib/ctrl/agree.h"
#include "lib/ctrl/ctrl_card.h"
#include "lib/ctrl/ctrl_int.h"
#include "lib/net/connector.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <endian.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_TIME                                                              \
    1e-3 /* s, between two looks at a connection that is being made */
#define RETRY_TIME                                                             \
    5e-3 /* s, before a parent that did not expect a link is asked again */
#define SILENT_TIME 0.1 /* s, before a neighbour without a link is called */

/* A link to a neighbour that is none in the tree of all ranks. */
struct ctrl_mend {
    struct coll__link link;
    struct ctrl_mend *next;
};

struct ctrl_agreement {
    struct coll__ctrl *ctrl;
    struct coll__agree *rule;
    uint32_t n_entered, n_decided;
    uint32_t n_returned; /* whose results the caller has got */
    uint64_t flags, *dead; /* the last result */
    uint64_t *told;        /* the dead of whom the parts know */
    struct ctrl_mend *mended;
    struct coll__task task; /* to connect to neighbours */
    struct coll__connector connector;
    struct coll__call *call; /* the connection that is being made, or NULL */
    int called;              /* to this rank */
    double
        call_at; /* when the next silent neighbour is called; 0: there is none */
};

/* As it travels, little-endian; two sets follow. */
struct agree_wire {
    uint32_t step, number;
    uint64_t flags;
};

/* ---- links ---------------------------------------------------------------- */

/* Return the link to a rank; NULL: there is none. */
static struct coll__link *link_to(struct coll__ctrl *ctrl, int rank)
{
    if (ctrl->rank && ctrl->tree.up.peer == rank)
        return &ctrl->tree.up;
    for (int j = 0; j < ctrl->tree.n_children; j++)
        if (ctrl->tree.down[j].peer == rank)
            return &ctrl->tree.down[j];
    for (struct ctrl_mend *m = ctrl->agreement->mended; m; m = m->next)
        if (m->link.peer == rank)
            return &m->link;
    return NULL;
}

static void answered(struct coll__link *link)
{
    struct coll__ctrl *ctrl = link->owner;

    if (coll__link_is_up(link))
        coll__agree_connected(ctrl->agreement->rule, link->peer);
    else
        coll__reactor_defer_until(&ctrl->agreement->task,
                                  coll__now() + RETRY_TIME);
}

/* Return the link to a rank, after having made one if there is none; NULL: no memory. */
static struct coll__link *have_link(struct coll__ctrl *ctrl, int rank)
{
    struct coll__link *link = link_to(ctrl, rank);
    struct ctrl_mend *mend;

    if (link)
        return link;
    mend = calloc(1, sizeof(*mend));
    if (!mend) {
        log_error("boot", "no memory for a connection to rank %d", rank);
        return NULL;
    }
    coll__ctrl_link_init(ctrl, &mend->link, rank);
    mend->link.answered = answered;
    mend->next = ctrl->agreement->mended;
    ctrl->agreement->mended = mend;
    return &mend->link;
}

/* ---- connecting ------------------------------------------------------------ */

static void call(struct coll__ctrl *ctrl, int rank)
{
    struct ctrl_agreement *a = ctrl->agreement;

    a->connector = (struct coll__connector){
        .addrs = ctrl->peers[rank].place.addrs,
        .n_addrs = ctrl->peers[rank].place.n_addrs,
        .n_ports = 1,
        .secret = ctrl->tree.gate.secret,
        .hello = {.kind = GATE_CTRL,
                  .from = (uint32_t)ctrl->rank,
                  .to = (uint32_t)rank,
                  .size = (uint32_t)ctrl->size},
    };
    a->called = rank;
    a->call = coll__connector_begin(&a->connector);
}

static void end_call(struct ctrl_agreement *a)
{
    if (a->call)
        coll__connector_end(a->call);
    a->call = NULL;
}

/* Go on with the connection that is being made; COLL_IN_PROGRESS, or it has ended.  A
 * silent neighbour has a wire: that it takes the call shows that it is still in the group.
 * If this process lacks descriptors for the call, that shows nothing. */
static int step_call(struct coll__ctrl *ctrl)
{
    struct ctrl_agreement *a = ctrl->agreement;
    const unsigned char *process = ctrl->peers[a->called].process;
    int fd = -1, rc = coll__connector_step(a->call, &fd);
    int has_wire = coll__wire_find(process) != NULL;

    if (rc == COLL_IN_PROGRESS)
        return rc;
    end_call(a);
    if (rc == COLL_OK && has_wire)
        close(fd);
    else if (rc == COLL_OK)
        coll__wire_new(fd, process,
                       a->connector.is_sealed ? a->connector.session : NULL,
                       "connector");
    else if (!has_wire || !a->connector.is_want)
        coll__ctrl_died(ctrl, a->called, NULL);
    return COLL_OK;
}

/* Open the link to the parent, if there is a wire to its process. */
static void ask_parent(struct coll__ctrl *ctrl, struct coll__link *up)
{
    struct coll__wire *wire = coll__wire_find(ctrl->peers[up->peer].process);

    if (!wire)
        call(ctrl, up->peer);
    else if (coll__link_ask(up, wire))
        log_warn("boot", "%s", coll_last_error());
}

static int is_neighbour(const struct coll__ctrl *ctrl, int rank)
{
    const struct coll__agree *rule = ctrl->agreement->rule;

    return rank == coll__agree_parent(rule) || coll__agree_is_child(rule, rank);
}

static int is_linked(struct coll__ctrl *ctrl, int rank)
{
    const struct coll__link *link = link_to(ctrl, rank);

    return link && coll__link_is_up(link);
}

/* Return a child that is to be reached: no connection shows whether it lives. */
static int find_child(struct coll__ctrl *ctrl)
{
    for (int r = 0; r < ctrl->size; r++)
        if (coll__agree_is_child(ctrl->agreement->rule, r) &&
            !is_linked(ctrl, r) && !coll__wire_find(ctrl->peers[r].process))
            return r;
    return -1;
}

/* Return a neighbour whose process has a wire for other groups, and no link for this one:
 * it may have left the group without a word to this rank. */
static int find_silent(struct coll__ctrl *ctrl)
{
    for (int r = 0; r < ctrl->size; r++)
        if (is_neighbour(ctrl, r) && !is_linked(ctrl, r) &&
            coll__wire_find(ctrl->peers[r].process))
            return r;
    return -1;
}

/* Call a neighbour that has been silent for a while, and then again and again. */
static void call_silent(struct coll__ctrl *ctrl)
{
    struct ctrl_agreement *a = ctrl->agreement;
    int silent = find_silent(ctrl);
    double now = coll__now();

    if (silent < 0) {
        a->call_at = 0;
        return;
    }
    if (a->call_at > 0 && now >= a->call_at) {
        call(ctrl, silent);
        a->call_at = 0;
    }
    if (!(a->call_at > 0))
        a->call_at = now + SILENT_TIME;
}

static void expect_children(struct coll__ctrl *ctrl)
{
    for (int r = 0; r < ctrl->size; r++) {
        struct coll__link *link;

        if (!coll__agree_is_child(ctrl->agreement->rule, r) || link_to(ctrl, r))
            continue;
        link = have_link(ctrl, r);
        if (link)
            coll__link_expect(link);
    }
}

/* Connect to the neighbours of the view, one after another. */
static void mend(struct coll__task *task)
{
    struct ctrl_agreement *a =
        (struct ctrl_agreement *)((char *)task -
                                  offsetof(struct ctrl_agreement, task));
    struct coll__ctrl *ctrl = a->ctrl;
    int parent, child;
    struct coll__link *up;

    expect_children(ctrl);
    if (!a->n_entered || coll__agree_is_expelled(a->rule))
        return;
    if (a->call && !is_neighbour(ctrl, a->called))
        end_call(a); /* it may be stopped, and never answer */
    if (a->call && step_call(ctrl) == COLL_IN_PROGRESS) {
        coll__reactor_defer_until(task, coll__now() + STEP_TIME);
        return;
    }
    parent = coll__agree_parent(a->rule);
    up = parent >= 0 ? have_link(ctrl, parent) : NULL;
    if (up && (up->state == LINK_DOWN || up->state == LINK_REFUSED))
        ask_parent(ctrl, up);
    child = find_child(ctrl);
    if (!a->call && child >= 0)
        call(ctrl, child);
    if (!a->call)
        call_silent(ctrl);
    if (a->call) /* within a host the first step is done at once */
        coll__reactor_defer(task);
    else if (child >= 0)
        coll__reactor_defer_until(task, coll__now() + STEP_TIME);
    else if (a->call_at > 0)
        coll__reactor_defer_until(task, a->call_at);
}

/* Tell the parts that are being made of who has died since. */
static void tell_parts(struct coll__ctrl *ctrl)
{
    const uint64_t *view = coll__agree_view(ctrl->agreement->rule);

    for (int r = 0; r < ctrl->size; r++) {
        struct ctrl_reason reason = {COLL_ERR_PEER, (uint32_t)r, "died"};

        if (coll__set_has(view, r) && !coll__set_has(ctrl->agreement->told, r))
            coll__ctrl_fail_parts(ctrl, &reason);
    }
    memcpy(ctrl->agreement->told, view,
           (size_t)coll__set_words(ctrl->size) * sizeof(*view));
}

static void changed(void *arg)
{
    struct coll__ctrl *ctrl = arg;

    tell_parts(ctrl);
    coll__reactor_defer(&ctrl->agreement->task);
}

/* ---- messages -------------------------------------------------------------- */

static void send(void *arg, int to, const struct coll__agree_message *message,
                 const uint64_t *view, const uint64_t *dead)
{
    struct coll__ctrl *ctrl = arg;
    struct coll__link *link = link_to(ctrl, to);
    int n = coll__set_words(ctrl->size);
    size_t len = sizeof(struct agree_wire) + 2 * (size_t)n * sizeof(uint64_t);
    struct agree_wire *wire;
    struct coll__frame frame;
    uint64_t *sets;

    if (!link || !coll__link_is_up(link))
        return;
    wire = malloc(len);
    if (!wire) {
        log_error("boot", "no memory for a message of %zu bytes", len);
        return;
    }
    *wire =
        (struct agree_wire){htole32(message->step), htole32(message->number),
                            htole64(message->flags)};
    sets = (uint64_t *)(wire + 1);
    for (int i = 0; i < n; i++) {
        sets[i] = htole64(view[i]);
        sets[n + i] = htole64(dead[i]);
    }
    frame = coll__ctrl_frame(ctrl, CTRL_AGREE, (uint32_t)to, 0, len);
    coll__link_send(link, &frame, wire);
    free(wire);
}

int coll__ctrl_got_agree(struct coll__ctrl *ctrl,
                         const struct coll__frame *frame, unsigned char *body)
{
    int n = coll__set_words(ctrl->size);
    struct agree_wire *wire = (struct agree_wire *)body;
    uint64_t *sets = (uint64_t *)(wire + 1);
    struct coll__agree_message message;

    if (frame->len != sizeof(*wire) + 2 * (size_t)n * sizeof(*sets))
        return -1;
    for (int i = 0; i < 2 * n; i++)
        sets[i] = le64toh(sets[i]);
    if (ctrl->size % 64 && (sets[n - 1] | sets[2 * n - 1]) >> ctrl->size % 64)
        return -1;
    message = (struct coll__agree_message){.step = le32toh(wire->step),
                                           .number = le32toh(wire->number),
                                           .flags = le64toh(wire->flags)};
    return coll__agree_got(ctrl->agreement->rule, (int)frame->from, &message,
                           sets, sets + n);
}

static void decided(void *arg, uint32_t number, uint64_t flags,
                    const uint64_t *dead)
{
    struct coll__ctrl *ctrl = arg;
    struct ctrl_agreement *a = ctrl->agreement;

    a->n_decided = number;
    a->flags = flags;
    memcpy(a->dead, dead, (size_t)coll__set_words(ctrl->size) * sizeof(*dead));
    pthread_cond_broadcast(&ctrl->changed);
}

/* ---- making, and the callers ----------------------------------------------- */

struct ctrl_agreement *coll__ctrl_agreement_new(struct coll__ctrl *ctrl)
{
    struct coll__agree_ops ops = {send, changed, decided, ctrl};
    struct ctrl_agreement *a = calloc(1, sizeof(*a));
    size_t n = (size_t)coll__set_words(ctrl->size);

    if (!a)
        return NULL;
    a->ctrl = ctrl;
    a->task.run = mend;
    a->dead = calloc(2 * n, sizeof(*a->dead));
    a->rule = coll__agree_new(ctrl->rank, ctrl->size, &ops);
    if (a->dead && a->rule) {
        a->told = a->dead + n;
        return a;
    }
    coll__ctrl_agreement_free(a);
    return NULL;
}

void coll__ctrl_agreement_free(struct ctrl_agreement *a)
{
    if (!a)
        return;
    coll__reactor_cancel(&a->task);
    end_call(a);
    while (a->mended) {
        struct ctrl_mend *mend = a->mended;

        a->mended = mend->next;
        coll__link_close(&mend->link);
        free(mend);
    }
    coll__agree_free(a->rule);
    free(a->dead);
    free(a);
}

void coll__ctrl_note_death(struct coll__ctrl *ctrl, int rank)
{
    coll__agree_died(ctrl->agreement->rule, rank);
}

void coll__ctrl_flood_mended(struct coll__ctrl *ctrl,
                             const struct coll__frame *frame, const void *body,
                             const struct coll__link *except)
{
    for (struct ctrl_mend *m = ctrl->agreement->mended; m; m = m->next)
        if (&m->link != except)
            coll__link_send(&m->link, frame, body);
}

/* This rank is alone. */
static int agree_alone(uint64_t *dead)
{
    if (dead)
        *dead = 0;
    return COLL_OK;
}

static int fail_expelled(const struct coll__ctrl *ctrl)
{
    log_error("boot",
              "rank %d cannot agree with the others: they have taken it for "
              "dead",
              ctrl->rank);
    return COLL_ERR_PEER;
}

/* Take part in an agreement, whose result is kept then.  COLL_ERR_TIMEOUT: it is late;
 * COLL_ERR_PEER: this rank is taken for dead, logged. */
static int take_part(struct coll__ctrl *ctrl, uint64_t flags, double timeout)
{
    struct ctrl_agreement *a = ctrl->agreement;
    double deadline = coll__now() + timeout;
    int status = COLL_OK;

    coll__reactor_lock();
    if (a->n_entered == a->n_returned) {
        a->n_entered++;
        coll__agree_enter(a->rule, flags);
        coll__reactor_defer(&a->task);
    }
    while (a->n_decided < a->n_entered && !coll__agree_is_expelled(a->rule) &&
           !status)
        status = coll__reactor_wait(&ctrl->changed, deadline);
    if (a->n_decided == a->n_entered) {
        status = COLL_OK;
        a->n_returned = a->n_entered;
    } else if (!status) {
        status = fail_expelled(ctrl);
    }
    coll__reactor_unlock();
    return status;
}

int coll__ctrl_agree(struct coll__ctrl *ctrl, uint64_t *flags, uint64_t *dead,
                     double timeout)
{
    const struct ctrl_agreement *a = ctrl->agreement;
    int status;

    if (ctrl->size == 1)
        return agree_alone(dead);
    status = take_part(ctrl, *flags, timeout);
    if (status == COLL_OK) {
        *flags = a->flags;
        memcpy(dead, a->dead,
               (size_t)coll__set_words(ctrl->size) * sizeof(*dead));
    } else if (status == COLL_ERR_TIMEOUT) {
        log_error("boot",
                  "an agreement did not end within %g s on rank %d: all living "
                  "ranks must call it",
                  timeout, ctrl->rank);
    }
    return status;
}

/* A rank has died or left, so the group is of no use: say why. */
static int fail_incomplete(struct coll__ctrl *ctrl)
{
    int status;

    coll__reactor_lock();
    status = ctrl->failure.status ? ctrl->failure.status : COLL_ERR_PEER;
    log_error("boot", "%s",
              ctrl->failure.status ? ctrl->failure.text
                                   : "a rank died while the group was formed");
    coll__reactor_unlock();
    return status;
}

static int is_empty(const uint64_t *set, int size)
{
    uint64_t any = 0;

    for (int i = 0; i < coll__set_words(size); i++)
        any |= set[i];
    return !any;
}

int coll__ctrl_confirm(struct coll__ctrl *ctrl, double timeout)
{
    int status;

    if (ctrl->size == 1)
        return COLL_OK;
    if (coll__ctrl_status(ctrl))
        return fail_incomplete(ctrl);
    status = take_part(ctrl, 0, timeout);
    if (status == COLL_ERR_TIMEOUT)
        log_error("boot",
                  "rank %d has joined, but not all others within %g s; is one "
                  "of them stopped?",
                  ctrl->rank, timeout);
    if (status == COLL_OK && !is_empty(ctrl->agreement->dead, ctrl->size))
        status = fail_incomplete(ctrl);
    return status;
}

void coll__ctrl_dead(struct coll__ctrl *ctrl, uint64_t *dead)
{
    coll__reactor_lock();
    memcpy(dead, coll__agree_view(ctrl->agreement->rule),
           (size_t)coll__set_words(ctrl->size) * sizeof(*dead));
    coll__reactor_unlock();
}

uint32_t coll__ctrl_agreed(struct coll__ctrl *ctrl)
{
    uint32_t n;

    coll__reactor_lock();
    n = ctrl->agreement->n_decided;
    coll__reactor_unlock();
    return n;
}

void coll__ctrl_exclude(struct coll__ctrl *ctrl, int rank)
{
    coll__reactor_lock();
    coll__ctrl_note_death(ctrl, rank);
    coll__reactor_unlock();
}
