/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_round.c - a question to all ranks about a call that takes long.
 *
 * If one rank waits long for all ranks, all of them do, so not every rank may ask.  A
 * call is sent up towards the root, and meets other ranks' calls on the way.  A rank
 * forwards the first one, and after that only a call of an earlier operation, until a
 * result comes.  The root asks about one call at a time:
 *
 *      CALL up     QUERY down    ROLL up      RESULT down
 *        0            0             0            0
 *       / \          / \           / \          / \          p - 1 messages
 *      1   2        1   2         1   2        1   2         at most each,
 *          |            |             |            |         six a rank sends
 *          3            3             3            3
 *
 * So a round costs at most 4 (p - 1) messages, however many ranks ask.  Its result comes
 * to all ranks, so none that waited when it began asks again soon.
 *
 * A stopped rank answers nothing and forwards nothing.  Each rank gives its children up
 * after a time that grows with its height above the leaves, so that the others' answers
 * still get through.  It gives up on its parent after a time that grows with its depth;
 * then it leads a round of the ranks below it, which learn that the parent is silent.
 */
#include "lib/ctrl/ctrl_int.h"
#include "lib/util/util.h"

#include <endian.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LEVEL_TIME 0.1 /* s, for each level of the tree */

struct roll { /* as it travels, little-endian; text ends with its NUL */
    uint32_t n_late, n_silent, late[COLL__NAMED], silent[COLL__NAMED];
    char text[COLL__WHERE_MAX];
};

/* ---- calls --------------------------------------------------------------- */

/* Is `a` to be asked about first?  A rank that waits in a later operation may wait
 * because of an earlier one. */
static int is_before(const struct ctrl_call *a, const struct ctrl_call *b)
{
    if (a->subject != b->subject)
        return a->subject < b->subject;
    return a->of.sig.seq != b->of.sig.seq
               ? a->of.sig.seq < b->of.sig.seq
               : coll__numbered_in(&a->of.sig) < coll__numbered_in(&b->of.sig);
}

/* Are they the same question?  Their signatures may differ: then the asked rank finds the
 * disagreement. */
static int is_about(const struct ctrl_call *a, const struct ctrl_call *b)
{
    return !is_before(a, b) && !is_before(b, a);
}

/* ---- rolls --------------------------------------------------------------- */

static int n_named(int n) { return n < COLL__NAMED ? n : COLL__NAMED; }

/* Merge n_more rank numbers into n others, and keep the lowest ones. */
static void merge(int *names, int n, const int *more, int n_more)
{
    int merged[COLL__NAMED], at = 0, at_more = 0;

    n = n_named(n);
    n_more = n_named(n_more);
    for (int i = 0; i < n_named(n + n_more); i++)
        merged[i] = at_more == n_more || (at < n && names[at] < more[at_more])
                        ? names[at++]
                        : more[at_more++];
    memcpy(names, merged, (size_t)n_named(n + n_more) * sizeof(*names));
}

static void add(struct coll__ctrl_roll *roll,
                const struct coll__ctrl_roll *more)
{
    if (more->n_late && (!roll->n_late || more->late[0] < roll->late[0]))
        memcpy(roll->text, more->text, sizeof(roll->text));
    merge(roll->late, roll->n_late, more->late, more->n_late);
    merge(roll->silent, roll->n_silent, more->silent, more->n_silent);
    roll->n_late += more->n_late;
    roll->n_silent += more->n_silent;
}

/* Count n ranks from `first` on as silent. */
static void add_silent(struct coll__ctrl_roll *roll, int first, int n)
{
    struct coll__ctrl_roll more = {.n_silent = n};

    for (int i = 0; i < n_named(n); i++)
        more.silent[i] = first + i;
    add(roll, &more);
}

static size_t pack_roll(const struct coll__ctrl_roll *roll, struct roll *wire)
{
    *wire = (struct roll){.n_late = htole32((uint32_t)roll->n_late),
                          .n_silent = htole32((uint32_t)roll->n_silent)};
    for (int i = 0; i < COLL__NAMED; i++) {
        wire->late[i] = htole32((uint32_t)roll->late[i]);
        wire->silent[i] = htole32((uint32_t)roll->silent[i]);
    }
    snprintf(wire->text, sizeof(wire->text), "%s", roll->text);
    return offsetof(struct roll, text) + strlen(wire->text) + 1;
}

static int take_roll(const struct coll__ctrl *ctrl,
                     const struct coll__frame *frame, const unsigned char *body,
                     struct coll__ctrl_roll *roll)
{
    struct roll wire = {0};
    uint32_t size = (uint32_t)ctrl->size;

    if (frame->len <= offsetof(struct roll, text) ||
        frame->len > sizeof(wire) || body[frame->len - 1])
        return -1;
    memcpy(&wire, body, frame->len);
    if (le32toh(wire.n_late) > size || le32toh(wire.n_silent) > size)
        return -1;
    *roll = (struct coll__ctrl_roll){.n_late = (int)le32toh(wire.n_late),
                                     .n_silent = (int)le32toh(wire.n_silent)};
    for (int i = 0; i < COLL__NAMED; i++) {
        if (le32toh(wire.late[i]) >= size || le32toh(wire.silent[i]) >= size)
            return -1;
        roll->late[i] = (int)le32toh(wire.late[i]);
        roll->silent[i] = (int)le32toh(wire.silent[i]);
    }
    memcpy(roll->text, wire.text, sizeof(roll->text));
    return 0;
}

/* ---- a round ------------------------------------------------------------- */

/* Give up on the parent if no question and no result come within the time of a round,
 * plus the time in which ranks nearer to the root give up on theirs. */
static void await_parent(struct coll__ctrl *ctrl)
{
    int n = coll__tree_height(0, ctrl->size) + 1 +
            coll__tree_depth(ctrl->rank, ctrl->size);

    coll__reactor_defer_until(&ctrl->round.give_up,
                              coll__now() + n * ctrl->round.level_time);
}

static void begin(struct coll__ctrl *ctrl, const struct ctrl_call *call,
                  uint32_t id, int is_head);

/* Lead a round about the call that was sent up. */
static void begin_raised(struct coll__ctrl *ctrl)
{
    struct ctrl_round *round = &ctrl->round;
    struct ctrl_call call = round->raised;

    round->is_raised = 0;
    begin(ctrl, &call, round->id + 1, 1);
}

static void send_down(struct coll__ctrl *ctrl, const struct coll__frame *frame,
                      const void *body)
{
    for (int j = 0; j < ctrl->tree.n_children; j++)
        coll__ctrl_pass(ctrl, &ctrl->tree.down[j], frame, body);
}

/* Keep a result in place of an older one about the same call, or of the oldest. */
static void keep(struct ctrl_round *round, const struct coll__ctrl_roll *roll)
{
    struct ctrl_result *at = &round->results[0];

    for (int i = 0; i < CTRL_RESULTS; i++) {
        struct ctrl_result *other = &round->results[i];

        if (is_about(&other->call, &round->call)) {
            at = other;
            break;
        }
        if (other->ended < at->ended)
            at = other;
    }
    *at = (struct ctrl_result){round->call, *roll, round->ended};
}

/* The result is here. */
static void end(struct coll__ctrl *ctrl, const struct coll__ctrl_roll *result)
{
    struct ctrl_round *round = &ctrl->round;
    struct roll wire;
    struct coll__frame frame = coll__ctrl_frame(
        ctrl, CTRL_RESULT, NOBODY, round->id, pack_roll(result, &wire));

    coll__reactor_cancel(&round->give_up);
    round->is_open = 0;
    round->ended = coll__now();
    keep(round, result);
    send_down(ctrl, &frame, &wire);
    pthread_cond_broadcast(&ctrl->changed);
    if (ctrl->rank)
        round->is_raised = 0; /* a rank that still waits sends its call again */
    else if (round->is_raised && !ctrl->failure.status)
        begin_raised(ctrl);
}

/* Pass the answers up, or end the round if this rank leads it. */
static void hand_in(struct coll__ctrl *ctrl)
{
    struct ctrl_round *round = &ctrl->round;
    struct roll wire;
    struct coll__frame frame;

    if (round->is_head) {
        end(ctrl, &round->roll);
        return;
    }
    frame = coll__ctrl_frame(ctrl, CTRL_ROLL, NOBODY, round->id,
                             pack_roll(&round->roll, &wire));
    coll__ctrl_pass(ctrl, &ctrl->tree.up, &frame, &wire);
    await_parent(ctrl);
}

static void give_children_up(struct coll__ctrl *ctrl)
{
    struct ctrl_round *round = &ctrl->round;

    for (int j = 0; j < ctrl->tree.n_children; j++)
        if (round->missing >> j & 1)
            add_silent(&round->roll, ctrl->tree.down[j].peer,
                       coll__tree_span(ctrl->tree.down[j].peer, ctrl->size));
    round->missing = 0;
    hand_in(ctrl);
}

static void give_up(struct coll__task *task)
{
    struct coll__ctrl *ctrl =
        (struct coll__ctrl *)((char *)task -
                              offsetof(struct coll__ctrl, round.give_up));
    struct ctrl_round *round = &ctrl->round;

    if (ctrl->failure.status)
        return;
    if (round->missing)
        give_children_up(ctrl);
    else if (round->is_open)
        begin(ctrl, &round->call, round->id + 1, 1);
    else if (round->is_raised)
        begin_raised(ctrl);
}

/* Return this rank's own answer. */
static struct coll__ctrl_roll judge(struct coll__ctrl *ctrl,
                                    const struct ctrl_call *call)
{
    struct coll__ctrl_roll roll = {.late = {ctrl->rank}};
    char text[COLL__TEXT_MAX];

    roll.n_late = coll__ctrl_judge(ctrl, call, text) != VERDICT_HERE;
    snprintf(roll.text, sizeof(roll.text), "%.*s", (int)sizeof(roll.text) - 1,
             text);
    return roll;
}

/* Begin a round: ask the ranks below and this one.  A round under way is given up.
 * is_head: this rank leads the round, because it is the root or its parent is silent. */
static void begin(struct coll__ctrl *ctrl, const struct ctrl_call *about,
                  uint32_t id, int is_head)
{
    struct ctrl_round *round = &ctrl->round;
    struct ctrl_call_wire wire;
    struct coll__frame frame =
        coll__ctrl_frame(ctrl, CTRL_QUERY, NOBODY, id, sizeof(wire));

    round->id = id;
    round->is_open = 1;
    round->is_head = is_head;
    round->call = *about;
    round->missing = (uint32_t)((1ull << ctrl->tree.n_children) - 1);
    coll__ctrl_pack_call(&round->call, &wire);
    send_down(ctrl, &frame, &wire);
    round->roll = judge(ctrl, &round->call);
    if (is_head && ctrl->rank)
        add_silent(&round->roll, ctrl->tree.up.peer, 1);
    coll__reactor_defer_until(
        &round->give_up,
        coll__now() +
            round->level_time * coll__tree_height(ctrl->rank, ctrl->size));
    if (!round->missing)
        hand_in(ctrl);
}

void coll__ctrl_round_init(struct coll__ctrl *ctrl)
{
    ctrl->round.level_time = LEVEL_TIME;
    ctrl->round.give_up.run = give_up;
}

void coll__ctrl_answer_within(struct coll__ctrl *ctrl, double level_time)
{
    coll__reactor_lock();
    ctrl->round.level_time = level_time;
    coll__reactor_unlock();
}

void coll__ctrl_raise(struct coll__ctrl *ctrl, const struct ctrl_call *call)
{
    struct ctrl_round *round = &ctrl->round;
    struct ctrl_call_wire wire;
    struct coll__frame frame =
        coll__ctrl_frame(ctrl, CTRL_CALL, NOBODY, 0, sizeof(wire));

    if (ctrl->failure.status || ctrl->is_released ||
        (round->is_open && is_about(&round->call, call)) ||
        (round->is_raised && !is_before(call, &round->raised)))
        return;
    round->raised = *call;
    round->is_raised = 1;
    coll__ctrl_pack_call(call, &wire);
    if (ctrl->rank)
        coll__ctrl_pass(ctrl, &ctrl->tree.up, &frame, &wire);
    if (!round->is_open && ctrl->rank)
        await_parent(ctrl);
    else if (!round->is_open)
        begin_raised(ctrl);
}

const struct coll__ctrl_roll *coll__ctrl_result(const struct coll__ctrl *ctrl,
                                                const struct ctrl_call *call,
                                                double since)
{
    const struct ctrl_round *round = &ctrl->round;

    for (int i = 0; i < CTRL_RESULTS; i++)
        if (round->results[i].ended > since &&
            is_about(&round->results[i].call, call))
            return &round->results[i].roll;
    return NULL;
}

/* ---- what comes ---------------------------------------------------------- */

int coll__ctrl_got_call(struct coll__ctrl *ctrl, struct coll__link *link,
                        const struct coll__frame *frame,
                        const unsigned char *body)
{
    struct ctrl_call call;

    if (link == &ctrl->tree.up ||
        coll__ctrl_take_call(ctrl, frame, body, &call))
        return -1;
    coll__ctrl_raise(ctrl, &call);
    return 0;
}

int coll__ctrl_got_query(struct coll__ctrl *ctrl, struct coll__link *link,
                         const struct coll__frame *frame,
                         const unsigned char *body)
{
    struct ctrl_call call;

    if (link != &ctrl->tree.up ||
        coll__ctrl_take_call(ctrl, frame, body, &call))
        return -1;
    begin(ctrl, &call, frame->id, 0);
    return 0;
}

int coll__ctrl_got_roll(struct coll__ctrl *ctrl, struct coll__link *link,
                        const struct coll__frame *frame,
                        const unsigned char *body)
{
    struct ctrl_round *round = &ctrl->round;
    struct coll__ctrl_roll roll;
    uint32_t bit;

    if (link == &ctrl->tree.up || take_roll(ctrl, frame, body, &roll))
        return -1;
    bit = 1u << (link - ctrl->tree.down);
    if (frame->id != round->id || !(round->missing & bit))
        return 0; /* it was given up */
    add(&round->roll, &roll);
    round->missing &= ~bit;
    if (!round->missing)
        hand_in(ctrl);
    return 0;
}

int coll__ctrl_got_result(struct coll__ctrl *ctrl, struct coll__link *link,
                          const struct coll__frame *frame,
                          const unsigned char *body)
{
    struct coll__ctrl_roll roll;

    if (link != &ctrl->tree.up || take_roll(ctrl, frame, body, &roll))
        return -1;
    if (frame->id == ctrl->round.id && ctrl->round.is_open)
        end(ctrl, &roll);
    return 0;
}
