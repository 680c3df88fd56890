/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl.c - the control tree: open, leave, fail, and which frame goes where.
 *
 * A group fails once: the first rank that knows (by the end of a connection, a
 * pidfd, a deadline, an abort) floods the tree with the reason; each rank takes
 * the first reason that reaches it.  When an inner rank dies, the tree falls
 * apart, but every part has a neighbour of the dead one, which sees its end.
 *
 * Leaving is a gathering of nothing.  What goes down when all have come is the
 * release: a link that ends after it is in order, one that ends before it
 * means a death, since nobody closes before the release has passed.
 */
#include "lib/boot/ctrl_int.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINGER_TIME 1.0 /* s, until the neighbours have closed too */
#define FLUSH_TIME 0.5  /* s, for the last words of a group that failed */

struct coll__frame coll__ctrl_frame(const struct coll__ctrl *ctrl,
                                    enum ctrl_frame type, uint32_t to,
                                    uint32_t id, size_t len)
{
    return (struct coll__frame){.type = (uint32_t)type,
                                .from = (uint32_t)ctrl->rank,
                                .to = to,
                                .id = id,
                                .len = len};
}

void coll__ctrl_flood(struct coll__ctrl *ctrl, const struct coll__frame *frame,
                      const void *body, const struct coll__link *except)
{
    if (&ctrl->up != except)
        coll__link_send(&ctrl->up, frame, body);
    for (int j = 0; j < ctrl->n_children; j++)
        if (&ctrl->down[j] != except)
            coll__link_send(&ctrl->down[j], frame, body);
}

void coll__ctrl_name(const struct coll__ctrl *ctrl, int rank,
                     char text[COLL__TEXT_MAX])
{
    const struct ctrl_peer *peer = &ctrl->peers[rank];

    snprintf(text, COLL__TEXT_MAX, "rank %d (pid %llu on %.*s)", rank,
             (unsigned long long)peer->pid, (int)sizeof(peer->host_name) - 1,
             peer->host_name);
}

/* ---- failing ------------------------------------------------------------ */

void coll__ctrl_fail(struct coll__ctrl *ctrl, int status, const char *text,
                     const struct coll__link *from, int is_notice)
{
    struct coll__frame frame;

    if (ctrl->failed_status || ctrl->is_released)
        return;
    ctrl->failed_status = status;
    snprintf(ctrl->failed_text, sizeof(ctrl->failed_text), "%s", text);
    frame = coll__ctrl_frame(ctrl, CTRL_FAILED, 0, (uint32_t)-status,
                             strlen(ctrl->failed_text) + 1);
    coll__ctrl_flood(ctrl, &frame, ctrl->failed_text, from);
    pthread_cond_broadcast(&ctrl->changed);
    if (is_notice) {
        ctrl->has_notice = 1;
        coll__reactor_defer(&ctrl->task);
    }
}

void coll__ctrl_died(struct coll__ctrl *ctrl, int rank,
                     const struct coll__link *from)
{
    char name[COLL__TEXT_MAX], text[COLL__TEXT_MAX + 8];

    coll__ctrl_name(ctrl, rank, name);
    snprintf(text, sizeof(text), "%s died", name);
    coll__ctrl_fail(ctrl, COLL_ERR_PEER, text, from, 1);
}

static int got_failed(struct coll__ctrl *ctrl, struct coll__link *link,
                      const struct coll__frame *frame,
                      const unsigned char *body)
{
    char text[COLL__TEXT_MAX];

    if (!frame->len || frame->len > sizeof(text) || body[frame->len - 1] ||
        !frame->id || frame->id > (uint32_t)-COLL_ERR_INTERNAL)
        return -1;
    memcpy(text, body, frame->len);
    coll__ctrl_fail(ctrl, -(int)frame->id, text, link, 1);
    return 0;
}

/* ---- links -------------------------------------------------------------- */

static int got(struct coll__link *link, const struct coll__frame *frame,
               unsigned char *body)
{
    struct coll__ctrl *ctrl = link->owner;
    int rc = -1;

    if (frame->from >= (uint32_t)ctrl->size ||
        (frame->type == CTRL_ANSWER && frame->to >= (uint32_t)ctrl->size))
        rc = -1;
    else if (frame->type == CTRL_UP && link != &ctrl->up)
        return coll__ctrl_got_up(ctrl, link, frame, body);
    else if (frame->type == CTRL_DOWN && link == &ctrl->up)
        return coll__ctrl_got_down(ctrl, frame, body);
    else if (frame->type == CTRL_FAILED)
        rc = got_failed(ctrl, link, frame, body);
    else if (frame->type == CTRL_ASK)
        rc = coll__ctrl_got_ask(ctrl, link, frame);
    else if (frame->type == CTRL_ANSWER)
        rc = coll__ctrl_got_answer(ctrl, frame, body);
    free(body);
    return rc;
}

static void broken(struct coll__link *link)
{
    struct coll__ctrl *ctrl = link->owner;

    pthread_cond_broadcast(&ctrl->changed);
    if (!ctrl->is_released)
        coll__ctrl_died(ctrl, link->peer, link);
}

static void drained(struct coll__link *link)
{
    struct coll__ctrl *ctrl = link->owner;

    pthread_cond_broadcast(&ctrl->changed);
}

void coll__ctrl_link_init(struct coll__ctrl *ctrl, struct coll__link *link,
                          int peer)
{
    *link = (struct coll__link){
        .source.fd = -1,
        .peer = peer,
        .owner = ctrl,
        .got = got,
        .broken = broken,
        .drained = drained,
    };
}

/* ---- open and close ----------------------------------------------------- */

static void destroy(struct coll__ctrl *ctrl, int has_reactor)
{
    coll__reactor_lock();
    if (ctrl->has_gate)
        coll__gate_remove(&ctrl->gate);
    coll__ctrl_unwatch(ctrl);
    coll__link_close(&ctrl->up);
    for (int j = 0; j < ctrl->n_children; j++)
        coll__link_close(&ctrl->down[j]);
    coll__reactor_cancel(&ctrl->task); /* nothing can put it there any more */
    coll__reactor_unlock();
    coll__ctrl_gather_free(ctrl);
    coll__auth_wipe(ctrl->gate.secret, COLL__SECRET_BYTES);
    pthread_cond_destroy(&ctrl->changed);
    free(ctrl->watches);
    free(ctrl->ask_ids);
    free(ctrl->is_asked);
    free(ctrl->peers);
    free(ctrl);
    if (has_reactor)
        coll__reactor_put();
}

static struct coll__ctrl *create(const struct coll__boot *boot,
                                 const struct coll__ctrl_events *events)
{
    struct coll__ctrl *ctrl = calloc(1, sizeof(*ctrl));
    size_t size = (size_t)boot->size;

    if (!ctrl)
        return NULL;
    ctrl->rank = boot->rank;
    ctrl->size = boot->size;
    ctrl->n_children = coll__tree_n_children(boot->rank, boot->size);
    ctrl->events = *events;
    ctrl->task.run = coll__ctrl_run_task;
    coll__reactor_cond_init(&ctrl->changed);
    coll__ctrl_link_init(ctrl, &ctrl->up, coll__tree_parent(boot->rank));
    for (int j = 0; j < ctrl->n_children; j++)
        coll__ctrl_link_init(ctrl, &ctrl->down[j], boot->rank + (1 << j));
    ctrl->peers = calloc(size, sizeof(*ctrl->peers));
    ctrl->watches = calloc(size, sizeof(*ctrl->watches));
    ctrl->ask_ids = calloc(size, sizeof(*ctrl->ask_ids));
    ctrl->is_asked = calloc(size, sizeof(*ctrl->is_asked));
    if (ctrl->peers && ctrl->watches && ctrl->ask_ids && ctrl->is_asked)
        return ctrl;
    destroy(ctrl, 0);
    return NULL;
}

/* The first rank that cannot join tells those that it has reached. */
static void give_up(struct coll__ctrl *ctrl)
{
    char name[COLL__TEXT_MAX], text[COLL__TEXT_MAX];

    coll__ctrl_name(ctrl, ctrl->rank, name);
    snprintf(text, sizeof(text), "%.100s could not join: %.380s", name,
             coll_last_error());
    coll__reactor_lock();
    coll__ctrl_fail(ctrl, COLL_ERR_BOOTSTRAP, text, NULL, 0);
    coll__reactor_unlock();
    coll__ctrl_close(ctrl, 0, 0);
}

int coll__ctrl_open(struct coll__boot *boot,
                    const struct coll__ctrl_events *events,
                    struct coll__ctrl **out)
{
    struct coll__ctrl *ctrl = create(boot, events);
    int status;

    if (!ctrl) {
        log_error("boot", "no memory for the control connections of %d ranks",
                  boot->size);
        return COLL_ERR_NOMEM;
    }
    if (boot->size == 1) {
        *out = ctrl;
        return COLL_OK;
    }
    status = coll__reactor_get();
    if (status) {
        destroy(ctrl, 0);
        return status;
    }
    coll__reactor_lock();
    ctrl->epoch = coll__reactor_epoch();
    coll__reactor_unlock();
    status = coll__ctrl_connect(ctrl, boot);
    if (status) {
        give_up(ctrl);
        return status;
    }
    *out = ctrl;
    return COLL_OK;
}

/* Say whether this is the process that opened ctrl, not a forked child of it;
 * lock held. */
static int is_ours(const struct coll__ctrl *ctrl)
{
    return ctrl->epoch == coll__reactor_epoch();
}

static int is_any_up(const struct coll__ctrl *ctrl)
{
    for (int j = 0; j < ctrl->n_children; j++)
        if (coll__link_is_up(&ctrl->down[j]))
            return 1;
    return coll__link_is_up(&ctrl->up);
}

static size_t n_queued(const struct coll__ctrl *ctrl)
{
    size_t n = ctrl->up.n_queued;

    for (int j = 0; j < ctrl->n_children; j++)
        n += ctrl->down[j].n_queued;
    return n;
}

/* Say that no more comes, and let the neighbours read what did: after a
 * release until they have closed too (so that no reset overtakes a frame). */
static void linger(struct coll__ctrl *ctrl)
{
    double now = coll__now();

    coll__link_shut(&ctrl->up);
    for (int j = 0; j < ctrl->n_children; j++)
        coll__link_shut(&ctrl->down[j]);
    if (ctrl->is_released)
        while (is_any_up(ctrl) &&
               !coll__reactor_wait(&ctrl->changed, now + LINGER_TIME))
            ;
    else
        while (n_queued(ctrl) &&
               !coll__reactor_wait(&ctrl->changed, now + FLUSH_TIME))
            ;
}

static void quit(struct coll__ctrl *ctrl)
{
    char name[COLL__TEXT_MAX], text[COLL__TEXT_MAX + 64];

    coll__ctrl_name(ctrl, ctrl->rank, name);
    snprintf(text, sizeof(text), "%s left the group before the others", name);
    coll__ctrl_fail(ctrl, COLL_ERR_PEER, text, NULL, 0);
}

int coll__ctrl_close(struct coll__ctrl *ctrl, int is_orderly, double timeout)
{
    int status = COLL_OK, has_reactor = 0;

    coll__reactor_lock();
    if (ctrl->size > 1 && is_ours(ctrl)) {
        has_reactor = 1;
        if (is_orderly) {
            ctrl->is_leaving = 1;
            status =
                coll__ctrl_gather(ctrl, PURPOSE_LEAVE, NULL, 0, NULL, timeout);
        } else {
            quit(ctrl);
        }
        linger(ctrl);
        ctrl->is_open = 0;
        coll__reactor_cancel(&ctrl->task);
        while (ctrl->n_pins)
            coll__reactor_wait(&ctrl->changed, coll__now() + 3600);
        coll__reactor_cancel(&ctrl->task);
    }
    coll__reactor_unlock();
    destroy(ctrl, has_reactor);
    return status;
}

/* ---- what callers ask for ----------------------------------------------- */

int coll__ctrl_allgather(struct coll__ctrl *ctrl, const void *in, size_t len,
                         void *out, double timeout)
{
    int status;

    if (ctrl->size == 1) {
        if (len)
            memmove(out, in, len);
        return COLL_OK;
    }
    coll__reactor_lock();
    if (is_ours(ctrl)) {
        status = coll__ctrl_gather(ctrl, PURPOSE_GATHER, in, len, out, timeout);
    } else {
        log_error("boot", "this communicator belongs to the parent process; "
                          "make a new one after fork()");
        status = COLL_ERR_INVALID;
    }
    coll__reactor_unlock();
    return status;
}

void coll__ctrl_abort(struct coll__ctrl *ctrl, int status, const char *text)
{
    if (ctrl->size == 1)
        return;
    coll__reactor_lock();
    if (is_ours(ctrl))
        coll__ctrl_fail(ctrl, status, text, NULL, 0);
    coll__reactor_unlock();
}

void coll__ctrl_ask(struct coll__ctrl *ctrl, double timeout,
                    struct coll__ctrl_answer *answers)
{
    memset(answers, 0, (size_t)ctrl->size * sizeof(*answers));
    if (ctrl->size == 1) {
        answers->has_answered = 1;
        ctrl->events.where(ctrl->events.arg, &answers->n_started,
                           answers->text);
        return;
    }
    coll__reactor_lock();
    if (is_ours(ctrl))
        coll__ctrl_question(ctrl, timeout, answers, NULL);
    coll__reactor_unlock();
}
