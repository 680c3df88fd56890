/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl.c - the control tree: open, leave, fail, and which function gets each frame.
 *
 * A group fails once.  The first rank that notices (by the end of a connection, a pidfd,
 * a deadline, an abort) floods the tree with the reason; each rank takes the first reason
 * that reaches it.  When an inner rank dies, the tree falls apart, but every part has a
 * neighbour of the dead rank, which sees its connection end.
 *
 * Leaving is an allgather of zero bytes.  When all ranks have entered it, the root sends
 * the release down.  No rank closes its links before the release has passed.  So a link
 * that ends after the release is in order, and one that ends before it means a death.
 */
#include "lib/boot/boot.h"
#include "lib/ctrl/ctrl_card.h"
#include "lib/ctrl/ctrl_int.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINGER_TIME 1.0 /* s, to wait for the neighbours to close too */
#define FLUSH_TIME 0.5  /* s, to send the queued frames of a failed group */

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
    if (&ctrl->tree.up != except)
        coll__link_send(&ctrl->tree.up, frame, body);
    for (int j = 0; j < ctrl->tree.n_children; j++)
        if (&ctrl->tree.down[j] != except)
            coll__link_send(&ctrl->tree.down[j], frame, body);
    coll__ctrl_flood_mended(ctrl, frame, body, except);
}

/* ---- failing ------------------------------------------------------------ */

/* Keep the reason, also as a sentence. */
static void note_failure(struct coll__ctrl *ctrl,
                         const struct ctrl_reason *reason)
{
    char name[COLL__TEXT_MAX];

    ctrl->failure.status = reason->status;
    ctrl->failure.subject = reason->subject;
    snprintf(ctrl->failure.words, sizeof(ctrl->failure.words), "%s",
             reason->words);
    if (reason->subject == NOBODY) {
        memcpy(ctrl->failure.text, ctrl->failure.words,
               sizeof(ctrl->failure.text));
        return;
    }
    coll__ctrl_name(ctrl, (int)reason->subject, name);
    snprintf(ctrl->failure.text, sizeof(ctrl->failure.text), "%.120s %.380s",
             name, ctrl->failure.words);
}

static struct coll__frame failure_frame(const struct coll__ctrl *ctrl)
{
    return coll__ctrl_frame(ctrl, CTRL_FAILED, ctrl->failure.subject,
                            (uint32_t)-ctrl->failure.status,
                            strlen(ctrl->failure.words) + 1);
}

void coll__ctrl_tell_failure(struct coll__ctrl *ctrl, struct coll__link *link)
{
    struct coll__frame frame = failure_frame(ctrl);

    if (ctrl->failure.status)
        coll__link_send(link, &frame, ctrl->failure.words);
}

/* The group's first failure. */
static void take_failure(struct coll__ctrl *ctrl,
                         const struct ctrl_reason *reason,
                         const struct coll__link *from, int is_notice)
{
    struct coll__frame frame;

    note_failure(ctrl, reason);
    frame = failure_frame(ctrl);
    coll__ctrl_flood(ctrl, &frame, ctrl->failure.words, from);
    coll__ctrl_fail_parts(ctrl, reason);
    pthread_cond_broadcast(&ctrl->changed);
    if (is_notice) {
        ctrl->failure.has_notice = 1;
        coll__reactor_defer(&ctrl->failure.task);
    }
}

void coll__ctrl_hear(struct coll__ctrl *ctrl, const struct ctrl_reason *reason,
                     const struct coll__link *from, int is_notice)
{
    if (ctrl->is_released)
        return;
    if (!ctrl->failure.status)
        take_failure(ctrl, reason, from, is_notice);
    if (reason->status == COLL_ERR_PEER && reason->subject != NOBODY)
        coll__ctrl_note_death(ctrl, (int)reason->subject);
}

void coll__ctrl_fail(struct coll__ctrl *ctrl, const struct ctrl_reason *reason,
                     int is_notice)
{
    coll__ctrl_tell_apart(ctrl, reason);
    coll__ctrl_hear(ctrl, reason, NULL, is_notice);
}

/* Call failed() without the lock; failed_text does not change any more. */
static void call_failed(struct coll__ctrl *ctrl)
{
    ctrl->failure.has_notice = 0;
    if (!ctrl->is_open)
        return;
    ctrl->failure.n_pins++;
    coll__reactor_unlock();
    ctrl->events.failed(ctrl->events.arg, ctrl->failure.status,
                        ctrl->failure.text);
    coll__reactor_lock();
    ctrl->failure.n_pins--;
    pthread_cond_broadcast(&ctrl->changed);
}

static void notify(struct coll__task *task)
{
    struct coll__ctrl *ctrl =
        (struct coll__ctrl *)((char *)task -
                              offsetof(struct coll__ctrl, failure.task));

    if (ctrl->failure.has_notice)
        call_failed(ctrl);
}

void coll__ctrl_died(struct coll__ctrl *ctrl, int rank,
                     const struct coll__link *from)
{
    struct ctrl_reason reason = {COLL_ERR_PEER, (uint32_t)rank, "died"};

    coll__ctrl_hear(ctrl, &reason, from, 1);
}

static void launcher_gone(struct coll__launcher_watch *watch, const char *why)
{
    struct coll__ctrl *ctrl =
        (struct coll__ctrl *)((char *)watch -
                              offsetof(struct coll__ctrl, watching.launcher));
    struct ctrl_reason reason = {COLL_ERR_ABORTED, NOBODY, why};

    coll__ctrl_fail(ctrl, &reason, 1);
}

static int got_failed(struct coll__ctrl *ctrl, struct coll__link *link,
                      const struct coll__frame *frame,
                      const unsigned char *body)
{
    struct ctrl_reason reason = {-(int)frame->id, frame->to,
                                 (const char *)body};

    if (!frame->len || frame->len > COLL__TEXT_MAX || body[frame->len - 1] ||
        !frame->id || frame->id > (uint32_t)-COLL_ERR_INTERNAL ||
        (frame->to >= (uint32_t)ctrl->size && frame->to != NOBODY))
        return -1;
    coll__ctrl_hear(ctrl, &reason, link, 1);
    return 0;
}

/* ---- links -------------------------------------------------------------- */

static int got(struct coll__link *link, const struct coll__frame *frame,
               unsigned char *body)
{
    struct coll__ctrl *ctrl = link->owner;
    int rc = -1;
    int is_for_one = frame->type == CTRL_ASK || frame->type == CTRL_ANSWER;

    if (frame->from >= (uint32_t)ctrl->size ||
        (is_for_one && frame->to >= (uint32_t)ctrl->size))
        rc = -1;
    else if (frame->type == CTRL_UP && link != &ctrl->tree.up)
        return coll__ctrl_got_up(ctrl, link, frame, body);
    else if (frame->type == CTRL_DOWN && link == &ctrl->tree.up)
        return coll__ctrl_got_down(ctrl, frame, body);
    else if (frame->type == CTRL_FAILED)
        rc = got_failed(ctrl, link, frame, body);
    else if (frame->type == CTRL_ASK)
        rc = coll__ctrl_got_ask(ctrl, frame, body);
    else if (frame->type == CTRL_ANSWER)
        rc = coll__ctrl_got_answer(ctrl, frame, body);
    else if (frame->type == CTRL_CALL)
        rc = coll__ctrl_got_call(ctrl, link, frame, body);
    else if (frame->type == CTRL_QUERY)
        rc = coll__ctrl_got_query(ctrl, link, frame, body);
    else if (frame->type == CTRL_ROLL)
        rc = coll__ctrl_got_roll(ctrl, link, frame, body);
    else if (frame->type == CTRL_RESULT)
        rc = coll__ctrl_got_result(ctrl, link, frame, body);
    else if (frame->type == CTRL_APART)
        rc = coll__ctrl_got_apart(ctrl, link, frame, body);
    else if (frame->type == CTRL_AGREE)
        rc = coll__ctrl_got_agree(ctrl, frame, body);
    free(body);
    return rc;
}

static void answered(struct coll__link *link)
{
    struct coll__ctrl *ctrl = link->owner;

    if (coll__link_is_up(link)) {
        ctrl->tree.n_children_here += link != &ctrl->tree.up;
        coll__ctrl_tell_failure(ctrl, link);
    }
    pthread_cond_broadcast(&ctrl->changed);
}

/* The host at the link's other end is off or unreachable: the group fails. */
static void fell_silent(struct coll__ctrl *ctrl, const struct coll__link *link)
{
    struct ctrl_reason reason = {COLL_ERR_PEER, (uint32_t)link->peer,
                                 COLL__SILENT_TEXT};

    coll__ctrl_hear(ctrl, &reason, link, 1);
}

static void broken(struct coll__link *link)
{
    struct coll__ctrl *ctrl = link->owner;

    pthread_cond_broadcast(&ctrl->changed);
    if (ctrl->is_released)
        return;
    if (link->is_silent)
        fell_silent(ctrl, link);
    else
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
        .self = ctrl->rank,
        .peer = peer,
        .secret = ctrl->tree.gate.secret,
        .owner = ctrl,
        .got = got,
        .answered = answered,
        .broken = broken,
        .drained = drained,
    };
}

void coll__ctrl_secret(const struct coll__ctrl *ctrl, const char *use,
                       unsigned char secret[COLL__SECRET_BYTES])
{
    coll__auth_mac(ctrl->tree.gate.secret, use, NULL, 0, secret);
}

/* ---- open and close ----------------------------------------------------- */

/* Is this the process that opened ctrl, and not a forked child of it? */
static int is_ours(const struct coll__ctrl *ctrl)
{
    return !coll__is_inherited(ctrl->generation);
}

static void destroy(struct coll__ctrl *ctrl, int has_reactor)
{
    coll__reactor_lock();
    coll__ctrl_leave_whole(ctrl);
    coll__ctrl_forget_news(ctrl);
    if (ctrl->tree.has_gate)
        coll__gate_remove(&ctrl->tree.gate);
    coll__ctrl_unwatch(ctrl);
    coll__launcher_unwatch(&ctrl->watching.launcher);
    coll__link_close(&ctrl->tree.up);
    for (int j = 0; j < ctrl->tree.n_children; j++)
        coll__link_close(&ctrl->tree.down[j]);
    coll__reactor_cancel(
        &ctrl->failure.task); /* no callback can schedule them any more */
    coll__reactor_cancel(&ctrl->round.give_up);
    coll__ctrl_agreement_free(ctrl->agreement);
    coll__reactor_unlock();
    coll__ctrl_gather_free(ctrl);
    coll__auth_wipe(ctrl->tree.gate.secret, COLL__SECRET_BYTES);
    if (is_ours(ctrl)) /* a child has copies of waiters that do not exist there */
        pthread_cond_destroy(&ctrl->changed);
    free(ctrl->watching.watches);
    free(ctrl->peers);
    free(ctrl->known_as);
    free(ctrl);
    if (has_reactor)
        coll__reactor_put();
}

struct coll__ctrl *coll__ctrl_new(int rank, int size,
                                  const struct coll__ctrl_events *events)
{
    struct coll__ctrl *ctrl = calloc(1, sizeof(*ctrl));
    size_t n = (size_t)size;

    if (!ctrl) {
        log_error("boot", "no memory for the control connections of %d ranks",
                  size);
        return NULL;
    }
    ctrl->rank = rank;
    ctrl->size = size;
    ctrl->tree.n_children = coll__tree_n_children(rank, size);
    ctrl->generation = coll__generation_now();
    ctrl->events = *events;
    ctrl->failure.task.run = notify;
    ctrl->watching.launcher.gone = launcher_gone;
    coll__ctrl_round_init(ctrl);
    coll__reactor_cond_init(&ctrl->changed);
    coll__ctrl_link_init(ctrl, &ctrl->tree.up, coll__tree_parent(rank, size));
    for (int j = 0; j < ctrl->tree.n_children; j++)
        coll__ctrl_link_init(ctrl, &ctrl->tree.down[j],
                             coll__tree_child(rank, size, j));
    ctrl->peers = calloc(n, sizeof(*ctrl->peers));
    ctrl->watching.watches = calloc(n, sizeof(*ctrl->watching.watches));
    ctrl->agreement = coll__ctrl_agreement_new(ctrl);
    if (ctrl->peers && ctrl->watching.watches && ctrl->agreement)
        return ctrl;
    log_error("boot", "no memory for the control connections of %d ranks",
              size);
    destroy(ctrl, 0);
    return NULL;
}

int coll__ctrl_begin(struct coll__ctrl *ctrl)
{
    int status = ctrl->size > 1 ? coll__reactor_get() : COLL_OK;

    if (status || ctrl->size == 1)
        return status;
    ctrl->has_reactor = 1;
    coll__reactor_lock();
    coll__launcher_watch(&ctrl->watching.launcher);
    coll__reactor_unlock();
    return COLL_OK;
}

void coll__ctrl_cannot_join(char words[COLL__TEXT_MAX])
{
    snprintf(words, COLL__TEXT_MAX, "could not join: %.380s",
             coll_last_error());
}

void coll__ctrl_give_up(struct coll__ctrl *ctrl, int status)
{
    char words[COLL__TEXT_MAX];
    struct ctrl_reason reason = {
        status == COLL_ERR_PEER ? status : COLL_ERR_BOOTSTRAP,
        (uint32_t)ctrl->rank, words};

    coll__ctrl_cannot_join(words);
    coll__reactor_lock();
    coll__ctrl_fail(ctrl, &reason, 0);
    coll__reactor_unlock();
    coll__ctrl_close(ctrl, 0, 0);
}

int coll__ctrl_open(struct coll__boot *boot,
                    const struct coll__ctrl_events *events,
                    struct coll__ctrl **out)
{
    struct coll__ctrl *ctrl = coll__ctrl_new(boot->rank, boot->size, events);
    int status;

    if (!ctrl)
        return COLL_ERR_NOMEM;
    status = coll__ctrl_begin(ctrl);
    if (status) {
        coll__ctrl_excuse(ctrl, boot, status);
        destroy(ctrl, 0);
        return status;
    }
    if (boot->size > 1)
        status = coll__ctrl_meet(ctrl, boot);
    if (status)
        coll__ctrl_give_up(ctrl, status);
    else
        *out = ctrl;
    return status;
}

int coll__ctrl_settle(struct coll__ctrl *ctrl)
{
    int status = COLL_OK;

    coll__reactor_lock();
    if (ctrl->failure.status && ctrl->known_as) {
        status = ctrl->failure.status;
        log_error("boot", "%s", ctrl->failure.text);
    } else {
        coll__ctrl_leave_whole(ctrl);
        free(ctrl->known_as);
        ctrl->known_as = NULL;
    }
    coll__reactor_unlock();
    return status;
}

int coll__ctrl_status(struct coll__ctrl *ctrl)
{
    int status;

    coll__reactor_lock();
    status = ctrl->failure.status;
    coll__reactor_unlock();
    return status;
}

static int is_any_up(const struct coll__ctrl *ctrl)
{
    for (int j = 0; j < ctrl->tree.n_children; j++)
        if (coll__link_is_up(&ctrl->tree.down[j]))
            return 1;
    return coll__link_is_up(&ctrl->tree.up);
}

static size_t n_queued(const struct coll__ctrl *ctrl)
{
    size_t n = coll__link_n_queued(&ctrl->tree.up);

    for (int j = 0; j < ctrl->tree.n_children; j++)
        n += coll__link_n_queued(&ctrl->tree.down[j]);
    return n;
}

/* Shut the links and let the neighbours read the last frames.  After a release, wait
 * until they have closed too, so that no reset overtakes a frame. */
static void linger(struct coll__ctrl *ctrl)
{
    double now = coll__now();

    coll__link_shut(&ctrl->tree.up);
    for (int j = 0; j < ctrl->tree.n_children; j++)
        coll__link_shut(&ctrl->tree.down[j]);
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
    struct ctrl_reason reason = {COLL_ERR_PEER, (uint32_t)ctrl->rank,
                                 "left the group before the others"};

    coll__ctrl_fail(ctrl, &reason, 0);
}

/* Stop the callbacks to ctrl's owner; lock held. */
static void be_silent(struct coll__ctrl *ctrl)
{
    ctrl->is_open = 0;
    coll__reactor_cancel(&ctrl->failure.task);
    while (ctrl->failure.n_pins)
        coll__reactor_wait(&ctrl->changed, coll__now() + 3600);
    coll__reactor_cancel(&ctrl->failure.task);
}

int coll__ctrl_close_start(struct coll__ctrl *ctrl)
{
    int status = COLL_OK;

    coll__reactor_lock();
    if (ctrl->has_reactor) {
        ctrl->is_leaving = 1;
        status = coll__ctrl_gather_start(ctrl, PURPOSE_LEAVE, NULL, 0);
    }
    coll__reactor_unlock();
    return status;
}

int coll__ctrl_close_end(struct coll__ctrl *ctrl, double until, double timeout,
                         int lingers)
{
    int status = COLL_OK, has_reactor = ctrl->has_reactor;

    coll__reactor_lock();
    if (has_reactor) {
        status = coll__ctrl_gather_end(ctrl, NULL, until, timeout);
        if (status != COLL_IN_PROGRESS && lingers)
            linger(ctrl);
        if (status != COLL_IN_PROGRESS)
            be_silent(ctrl);
    }
    coll__reactor_unlock();
    if (status != COLL_IN_PROGRESS)
        destroy(ctrl, has_reactor);
    return status;
}

int coll__ctrl_close(struct coll__ctrl *ctrl, int is_orderly, double timeout)
{
    int has_reactor = ctrl->has_reactor && is_ours(ctrl), status = COLL_OK;

    if (has_reactor && is_orderly) {
        status = coll__ctrl_close_start(ctrl);
        if (!status)
            return coll__ctrl_close_end(ctrl, coll__now() + timeout, timeout,
                                        1);
    }
    coll__reactor_lock();
    if (has_reactor) {
        quit(ctrl);
        linger(ctrl);
        be_silent(ctrl);
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
        status = coll__ctrl_gather(ctrl, in, len, out, timeout);
    } else {
        log_error("boot", "this communicator belongs to the parent process; "
                          "make a new one after fork()");
        status = COLL_ERR_INVALID;
    }
    coll__reactor_unlock();
    return status;
}

int coll__ctrl_exchange_start(struct coll__ctrl *ctrl, const void *in,
                              size_t len)
{
    int status;

    coll__reactor_lock();
    status = coll__ctrl_gather_start(ctrl, PURPOSE_GATHER, in, len);
    coll__reactor_unlock();
    return status;
}

int coll__ctrl_exchange_end(struct coll__ctrl *ctrl, void *out, double until,
                            double timeout)
{
    int status;

    coll__reactor_lock();
    status = coll__ctrl_gather_end(ctrl, out, until, timeout);
    coll__reactor_unlock();
    return status;
}

void coll__ctrl_abort(struct coll__ctrl *ctrl, int status, const char *text)
{
    struct ctrl_reason reason = {status, NOBODY, text};

    if (ctrl->size == 1)
        return;
    coll__reactor_lock();
    if (is_ours(ctrl))
        coll__ctrl_fail(ctrl, &reason, 0);
    coll__reactor_unlock();
}
