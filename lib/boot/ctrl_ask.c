/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_ask.c - questions to all ranks, and the calls to the communicator.
 *
 * A question floods the tree; each answer finds its way back through it.  A
 * rank answers on its reactor's thread, whatever its own threads do; each rank
 * has one question open at most, so nothing here grows.
 */
#include "lib/boot/ctrl_int.h"
#include "lib/util/util.h"

#include <endian.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAX_QUEUED ((size_t)4 << 20) /* bytes waiting for a slow neighbour */

struct answer { /* as it travels, little-endian; text ends with its NUL */
    uint64_t n_started, n_gathers;
    char text[COLL__TEXT_MAX];
};

static void record(struct coll__ctrl *ctrl, int rank, uint32_t id,
                   const struct answer *answer)
{
    struct ctrl_question *q = &ctrl->question;
    struct coll__ctrl_answer *to;

    if (!q->answers || id != q->id || q->answers[rank].has_answered)
        return; /* too late */
    to = &q->answers[rank];
    to->has_answered = 1;
    to->n_started = le64toh(answer->n_started);
    memcpy(to->text, answer->text, sizeof(to->text));
    if (q->n_gathers)
        q->n_gathers[rank] = le64toh(answer->n_gathers);
    if (!--q->n_missing)
        pthread_cond_broadcast(&ctrl->changed);
}

static struct coll__link *route(struct coll__ctrl *ctrl, uint32_t to)
{
    int j = coll__tree_route(ctrl->rank, ctrl->size, (int)to);

    return j < 0 ? &ctrl->up : &ctrl->down[j];
}

/* Send on, unless the neighbour has stopped to read. */
static void pass(struct coll__link *link, const struct coll__frame *frame,
                 const void *body)
{
    if (link->n_queued < MAX_QUEUED)
        coll__link_send(link, frame, body);
}

int coll__ctrl_got_ask(struct coll__ctrl *ctrl, struct coll__link *link,
                       const struct coll__frame *frame)
{
    if (frame->len || frame->from == (uint32_t)ctrl->rank)
        return -1;
    if (&ctrl->up != link)
        pass(&ctrl->up, frame, NULL);
    for (int j = 0; j < ctrl->n_children; j++)
        if (&ctrl->down[j] != link)
            pass(&ctrl->down[j], frame, NULL);
    ctrl->is_asked[frame->from] = 1;
    ctrl->ask_ids[frame->from] = frame->id;
    coll__reactor_defer(&ctrl->task);
    return 0;
}

int coll__ctrl_got_answer(struct coll__ctrl *ctrl,
                          const struct coll__frame *frame,
                          const unsigned char *body)
{
    struct answer answer = {0};

    if (frame->len <= offsetof(struct answer, text) ||
        frame->len > sizeof(answer) || body[frame->len - 1])
        return -1;
    if (frame->to != (uint32_t)ctrl->rank) {
        pass(route(ctrl, frame->to), frame, body);
        return 0;
    }
    memcpy(&answer, body, frame->len);
    record(ctrl, (int)frame->from, frame->id, &answer);
    return 0;
}

/* Answer the rank that asked; gives the lock up to call where(). */
static void answer_to(struct coll__ctrl *ctrl, int rank)
{
    uint32_t id = ctrl->ask_ids[rank];
    struct answer answer = {.text = "joining or leaving the group"};
    struct coll__frame frame;
    uint64_t n_started = 0;

    if (ctrl->is_open) {
        coll__reactor_unlock();
        ctrl->events.where(ctrl->events.arg, &n_started, answer.text);
        coll__reactor_lock();
    }
    answer.text[sizeof(answer.text) - 1] = '\0';
    answer.n_started = htole64(n_started);
    answer.n_gathers = htole64(ctrl->n_gathers);
    if (rank == ctrl->rank) {
        record(ctrl, rank, id, &answer);
        return;
    }
    frame = coll__ctrl_frame(ctrl, CTRL_ANSWER, (uint32_t)rank, id,
                             offsetof(struct answer, text) +
                                 strlen(answer.text) + 1);
    pass(route(ctrl, (uint32_t)rank), &frame, &answer);
}

/* Call failed(), lock given up meanwhile; nothing writes the text any more. */
static void notify(struct coll__ctrl *ctrl)
{
    ctrl->has_notice = 0;
    if (!ctrl->is_open)
        return;
    coll__reactor_unlock();
    ctrl->events.failed(ctrl->events.arg, ctrl->failed_status,
                        ctrl->failed_text);
    coll__reactor_lock();
}

void coll__ctrl_run_task(struct coll__task *task)
{
    struct coll__ctrl *ctrl =
        (struct coll__ctrl *)((char *)task - offsetof(struct coll__ctrl, task));

    ctrl->n_pins++;
    if (ctrl->has_notice)
        notify(ctrl);
    for (int r = 0; r < ctrl->size; r++)
        if (ctrl->is_asked[r]) {
            ctrl->is_asked[r] = 0;
            answer_to(ctrl, r);
        }
    ctrl->n_pins--;
    pthread_cond_broadcast(&ctrl->changed);
}

void coll__ctrl_question(struct coll__ctrl *ctrl, double timeout,
                         struct coll__ctrl_answer *answers, uint64_t *n_gathers)
{
    double deadline = coll__now() + timeout;
    struct ctrl_question *q = &ctrl->question;
    struct coll__frame frame;

    while (q->answers) /* another thread asks: one after the other */
        if (coll__reactor_wait(&ctrl->changed, deadline))
            return;
    q->id++;
    q->answers = answers;
    q->n_gathers = n_gathers;
    q->n_missing = ctrl->size;
    ctrl->is_asked[ctrl->rank] = 1;
    ctrl->ask_ids[ctrl->rank] = q->id;
    coll__reactor_defer(&ctrl->task);
    frame = coll__ctrl_frame(ctrl, CTRL_ASK, 0, q->id, 0);
    coll__ctrl_flood(ctrl, &frame, NULL, NULL);
    while (q->n_missing)
        if (coll__reactor_wait(&ctrl->changed, deadline))
            break;
    q->answers = NULL;
    pthread_cond_broadcast(&ctrl->changed);
}
