/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_ask.c - a question about a call that takes long: to one rank here, to all
 * in ctrl_round.c.
 *
 * No rank waits for an answer.  The asking rank continues, and checks from time to time
 * whether the answer has arrived.  The asked rank answers on its reactor's thread, from
 * data that may be read at any time, whatever its own threads do.  The asked rank
 * compares the calls: it knows both, so it finds a disagreement and tells all ranks at
 * once.
 */
#include "lib/ctrl/ctrl_int.h"
#include "lib/util/util.h"

#include <endian.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MAX_QUEUED ((size_t)4 << 20) /* bytes waiting for a slow neighbour */
#define ANSWER_TIME 0.4              /* s, added to the time for the tree's depth */
#define CLAIM_TIME 1.0 /* s, in which the asking thread reads the answer */

struct answer { /* as it travels, little-endian; text ends with its NUL */
    uint32_t verdict;
    char text[COLL__WHERE_MAX];
};

/* ---- calls --------------------------------------------------------------- */

void coll__ctrl_pack_call(const struct ctrl_call *call,
                          struct ctrl_call_wire *wire)
{
    const struct coll__signature *sig = &call->of.sig;

    *wire = (struct ctrl_call_wire){
        .subject = htole32((uint32_t)call->subject),
        .rank = htole32((uint32_t)call->of.rank),
        .peer = htole32((uint32_t)call->of.peer),
        .is_blocked = htole32((uint32_t)call->of.is_blocked),
        .n_started = htole64(call->of.n_started),
        .seq = htole64(sig->seq),
        .count = htole64(sig->count),
        .root = htole32((uint32_t)sig->root),
        .collective = sig->collective,
        .type = sig->type,
        .op = sig->op,
        .series_algo_id = (uint8_t)(sig->series | sig->algo_id << 3),
    };
}

int coll__ctrl_take_call(const struct coll__ctrl *ctrl,
                         const struct coll__frame *frame,
                         const unsigned char *body, struct ctrl_call *call)
{
    struct ctrl_call_wire wire;

    if (frame->len != sizeof(wire))
        return -1;
    memcpy(&wire, body, sizeof(wire));
    *call =
        (struct ctrl_call){.subject = (enum ctrl_subject)le32toh(wire.subject),
                           .of = {
                               .rank = (int)le32toh(wire.rank),
                               .peer = (int)le32toh(wire.peer),
                               .is_blocked = le32toh(wire.is_blocked) != 0,
                               .n_started = le64toh(wire.n_started),
                               .sig = {.seq = le64toh(wire.seq),
                                       .collective = wire.collective,
                                       .type = wire.type,
                                       .op = wire.op,
                                       .series = wire.series_algo_id & 7,
                                       .algo_id = wire.series_algo_id >> 3,
                                       .root = (int32_t)le32toh(wire.root),
                                       .count = le64toh(wire.count)},
                           }};
    if (call->of.rank < 0 || call->of.rank >= ctrl->size ||
        call->of.peer < -1 || call->of.peer >= ctrl->size ||
        le32toh(wire.subject) > SUBJECT_GATHERING ||
        call->of.sig.series >= N_SERIES)
        return -1;
    return 0;
}

enum coll__verdict coll__ctrl_judge(struct coll__ctrl *ctrl,
                                    const struct ctrl_call *call,
                                    char text[COLL__TEXT_MAX])
{
    struct ctrl_reason reason = {COLL_ERR_MISMATCH, NOBODY, text};
    int is_gathering = ctrl->gather.is_entered && !ctrl->gather.is_done;
    enum coll__verdict verdict = VERDICT_LATE;

    snprintf(text, COLL__TEXT_MAX, "joining or leaving the group");
    if (call->subject == SUBJECT_GATHERING)
        return ctrl->n_gathers < call->of.sig.seq ? VERDICT_LATE : VERDICT_HERE;
    if (ctrl->is_open)
        verdict =
            ctrl->events.judge(ctrl->events.arg, &call->of, is_gathering, text);
    if (verdict == VERDICT_NEVER)
        coll__ctrl_fail(ctrl, &reason, 1);
    return verdict;
}

/* ---- messages ------------------------------------------------------------ */

void coll__ctrl_pass(struct coll__ctrl *ctrl, struct coll__link *link,
                     const struct coll__frame *frame, const void *body)
{
    if (!coll__link_is_up(link) || coll__link_n_queued(link) >= MAX_QUEUED)
        return;
    ctrl->n_questions++;
    coll__link_send(link, frame, body);
}

static struct coll__link *route(struct coll__ctrl *ctrl, uint32_t to)
{
    int j = coll__tree_route(ctrl->rank, ctrl->size, (int)to);

    return j < 0 ? &ctrl->tree.up : &ctrl->tree.down[j];
}

int coll__ctrl_got_ask(struct coll__ctrl *ctrl, const struct coll__frame *frame,
                       const unsigned char *body)
{
    struct ctrl_call call;
    struct answer answer = {0};
    struct coll__frame back;
    char text[COLL__TEXT_MAX];

    if (coll__ctrl_take_call(ctrl, frame, body, &call) ||
        frame->from == (uint32_t)ctrl->rank || call.of.rank != (int)frame->from)
        return -1;
    if (frame->to != (uint32_t)ctrl->rank) {
        coll__ctrl_pass(ctrl, route(ctrl, frame->to), frame, body);
        return 0;
    }
    answer.verdict = htole32((uint32_t)coll__ctrl_judge(ctrl, &call, text));
    snprintf(answer.text, sizeof(answer.text), "%.*s",
             (int)sizeof(answer.text) - 1, text);
    back = coll__ctrl_frame(ctrl, CTRL_ANSWER, frame->from, frame->id,
                            offsetof(struct answer, text) +
                                strlen(answer.text) + 1);
    coll__ctrl_pass(ctrl, route(ctrl, frame->from), &back, &answer);
    return 0;
}

/* Turn one rank's answer into a roll. */
static void note(struct ctrl_question *q, enum coll__verdict verdict,
                 const char *text)
{
    q->answered = coll__now();
    q->roll = (struct coll__ctrl_roll){.n_late = verdict != VERDICT_HERE,
                                       .late = {q->call.peer}};
    snprintf(q->roll.text, sizeof(q->roll.text), "%.*s",
             (int)sizeof(q->roll.text) - 1, text);
}

int coll__ctrl_got_answer(struct coll__ctrl *ctrl,
                          const struct coll__frame *frame,
                          const unsigned char *body)
{
    struct ctrl_question *q = &ctrl->question;
    struct answer answer = {0};

    if (frame->len <= offsetof(struct answer, text) ||
        frame->len > sizeof(answer) || body[frame->len - 1])
        return -1;
    if (frame->to != (uint32_t)ctrl->rank) {
        coll__ctrl_pass(ctrl, route(ctrl, frame->to), frame, body);
        return 0;
    }
    memcpy(&answer, body, frame->len);
    if (le32toh(answer.verdict) >= N_VERDICTS)
        return -1;
    if (frame->id == q->id && !q->answered) /* else it is too late */
        note(q, (enum coll__verdict)le32toh(answer.verdict), answer.text);
    return 0;
}

/* ---- the caller's side --------------------------------------------------- */

static int is_alone(const struct coll__ctrl *ctrl,
                    const struct coll__ctrl_call *call)
{
    return ctrl->size == 1 || call->peer == ctrl->rank;
}

static int is_same(const struct coll__ctrl_call *a,
                   const struct coll__ctrl_call *b)
{
    return a->peer == b->peer && !memcmp(&a->sig, &b->sig, sizeof(a->sig));
}

/* Does another call still wait for the last question's answer, or has not read it? */
static int is_claimed(const struct coll__ctrl *ctrl,
                      const struct ctrl_question *q,
                      const struct coll__ctrl_call *call)
{
    double patience = q->answered ? CLAIM_TIME : coll__ctrl_answer_time(ctrl);

    return q->asked > 0 && !q->is_heard && !is_same(&q->call, call) &&
           coll__now() < q->asked + patience;
}

/* Ask the peer, unless the same question was asked after `since`.  Returns 1 and *asked,
 * its time; 0 if another question is still open. */
static int ask_peer(struct coll__ctrl *ctrl, const struct ctrl_call *call,
                    double since, double *asked)
{
    struct ctrl_question *q = &ctrl->question;
    struct ctrl_call_wire wire;
    struct coll__frame frame;

    *asked = q->asked;
    if (q->asked > since && is_same(&q->call, &call->of))
        return 1;
    if (is_claimed(ctrl, q, &call->of))
        return 0;
    *asked = coll__now();
    *q = (struct ctrl_question){
        .id = q->id + 1, .call = call->of, .asked = *asked};
    coll__ctrl_pack_call(call, &wire);
    frame = coll__ctrl_frame(ctrl, CTRL_ASK, (uint32_t)call->of.peer, q->id,
                             sizeof(wire));
    coll__ctrl_pass(ctrl, route(ctrl, frame.to), &frame, &wire);
    return 1;
}

int coll__ctrl_ask(struct coll__ctrl *ctrl, const struct coll__ctrl_call *call,
                   double since, double *asked)
{
    struct ctrl_call about = {SUBJECT_OPERATION, *call};
    int is_asked = 1;

    *asked = since;
    if (is_alone(ctrl, call))
        return 1;
    if (!coll__reactor_lock_try())
        return 0;
    if (!ctrl->failure.status && call->peer >= 0)
        is_asked = ask_peer(ctrl, &about, since, asked);
    else if (!coll__ctrl_result(ctrl, &about, since))
        coll__ctrl_raise(ctrl, &about);
    coll__reactor_unlock();
    return is_asked;
}

/* This rank is the only one to ask: answer at once. */
static int hear_self(struct coll__ctrl *ctrl,
                     const struct coll__ctrl_call *call,
                     struct coll__ctrl_roll *roll)
{
    char text[COLL__TEXT_MAX] = "";

    *roll = (struct coll__ctrl_roll){0};
    if (call->peer < 0)
        return 1;
    ctrl->events.judge(ctrl->events.arg, call, 0, text);
    snprintf(roll->text, sizeof(roll->text), "%.*s",
             (int)sizeof(roll->text) - 1, text);
    return 1;
}

int coll__ctrl_heard(struct coll__ctrl *ctrl,
                     const struct coll__ctrl_call *call, double since,
                     struct coll__ctrl_roll *roll)
{
    struct ctrl_call about = {SUBJECT_OPERATION, *call};
    struct ctrl_question *q = &ctrl->question;
    const struct coll__ctrl_roll *heard = NULL;

    if (is_alone(ctrl, call))
        return hear_self(ctrl, call, roll);
    if (!coll__reactor_lock_try())
        return 0;
    if (call->peer < 0)
        heard = coll__ctrl_result(ctrl, &about, since);
    else if (q->answered > since && is_same(&q->call, call))
        heard = &q->roll;
    q->is_heard |= heard == &q->roll;
    if (heard)
        *roll = *heard;
    coll__reactor_unlock();
    return heard != NULL;
}

/* Three ways through the tree (up, down and up), each rank as late as is allowed. */
double coll__ctrl_answer_time(const struct coll__ctrl *ctrl)
{
    return ANSWER_TIME +
           3 * ctrl->round.level_time * coll__tree_height(0, ctrl->size);
}

uint64_t coll__ctrl_n_questions(struct coll__ctrl *ctrl)
{
    uint64_t n;

    coll__reactor_lock();
    n = ctrl->n_questions;
    coll__reactor_unlock();
    return n;
}
