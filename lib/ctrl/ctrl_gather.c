/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_gather.c - allgather over the tree: the blocks go up to the root, and all of them
 * come down.
 *
 * A rank receives its subtree's blocks and sends them up once; it receives all blocks and
 * sends them to at most two children.  So it moves at most five times the total length,
 * however many ranks there are.
 *
 * A rank sends up once it has entered the allgather and has every child's blocks; the
 * root sends everything down.  The reactor does the work as the blocks come; the caller
 * only waits.  A child can be at most one allgather ahead, since it ends one only when
 * the blocks come down.
 */
#include "lib/ctrl/ctrl_int.h"
#include "lib/trace/log.h"
#include "lib/util/text.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMED 8

static const char *purpose_name(enum ctrl_purpose purpose)
{
    return purpose == PURPOSE_LEAVE ? "leaves the group" : "stays in it";
}

static int child_span(const struct coll__ctrl *ctrl, int j)
{
    return coll__tree_span(ctrl->tree.down[j].peer, ctrl->size);
}

static void fail_with(struct coll__ctrl *ctrl, int status, const char *text,
                      int is_notice)
{
    struct ctrl_reason reason = {status, NOBODY, text};

    coll__ctrl_fail(ctrl, &reason, is_notice);
}

static void fail_nomem(struct coll__ctrl *ctrl)
{
    fail_with(ctrl, COLL_ERR_NOMEM, coll_last_error(), 1);
}

/* Take the blocks: the gathering is done. */
static void finish(struct coll__ctrl *ctrl, unsigned char *all)
{
    struct ctrl_gather *g = &ctrl->gather;
    struct coll__frame frame =
        coll__ctrl_frame(ctrl, CTRL_DOWN, g->purpose, ctrl->n_gathers,
                         g->len * (size_t)ctrl->size);

    for (int j = 0; j < ctrl->tree.n_children; j++)
        if (coll__link_send(&ctrl->tree.down[j], &frame, all)) {
            fail_nomem(ctrl);
            return;
        }
    g->all = all;
    g->is_done = 1;
    if (g->purpose == PURPOSE_LEAVE)
        ctrl->is_released = 1;
    pthread_cond_broadcast(&ctrl->changed);
}

/* Check that the child has sent blocks of the same allgather. */
static int is_alike(struct coll__ctrl *ctrl, int j)
{
    struct ctrl_gather *g = &ctrl->gather;
    int me = coll__ctrl_known_as(ctrl, ctrl->rank);
    int child = coll__ctrl_known_as(ctrl, ctrl->tree.down[j].peer);
    char text[COLL__TEXT_MAX];

    if (g->up[j].purpose == g->purpose &&
        g->up[j].len == g->len * (size_t)child_span(ctrl, j))
        return 1;
    if (g->up[j].purpose != g->purpose)
        snprintf(text, sizeof(text), "rank %d %s while rank %d %s", child,
                 purpose_name(g->up[j].purpose), me, purpose_name(g->purpose));
    else
        snprintf(
            text, sizeof(text),
            "rank %d exchanges %llu bytes while rank "
            "%d exchanges %zu; do all ranks run the same program with the "
            "same libcoll?",
            child,
            (unsigned long long)(g->up[j].len / (uint64_t)child_span(ctrl, j)),
            me, g->len);
    fail_with(ctrl, COLL_ERR_MISMATCH, text, 1);
    return 0;
}

/* Put the children's blocks behind this rank's own. */
static int collect(struct coll__ctrl *ctrl)
{
    struct ctrl_gather *g = &ctrl->gather;

    for (int j = 0; j < ctrl->tree.n_children; j++) {
        if (!is_alike(ctrl, j))
            return -1;
        if (g->up[j].len)
            memcpy(g->mine +
                       g->len * (size_t)(ctrl->tree.down[j].peer - ctrl->rank),
                   g->up[j].body, g->up[j].len);
        free(g->up[j].body);
        g->up[j].body = NULL;
        g->up[j].is_here = 0;
    }
    return 0;
}

/* Send up, or down from the root, once all blocks are there. */
static void advance(struct coll__ctrl *ctrl)
{
    struct ctrl_gather *g = &ctrl->gather;
    struct coll__frame frame;
    size_t span = (size_t)coll__tree_span(ctrl->rank, ctrl->size);

    if (!g->is_entered || g->is_sent || ctrl->failure.status)
        return;
    for (int j = 0; j < ctrl->tree.n_children; j++)
        if (!g->up[j].is_here)
            return;
    if (collect(ctrl))
        return;
    g->is_sent = 1;
    if (!ctrl->rank) {
        finish(ctrl, g->mine);
        return;
    }
    frame = coll__ctrl_frame(ctrl, CTRL_UP, g->purpose, ctrl->n_gathers,
                             g->len * span);
    if (coll__link_send(&ctrl->tree.up, &frame, g->mine))
        fail_nomem(ctrl);
}

int coll__ctrl_got_up(struct coll__ctrl *ctrl, struct coll__link *link,
                      const struct coll__frame *frame, unsigned char *body)
{
    struct ctrl_gather *g = &ctrl->gather;
    uint32_t due = ctrl->n_gathers + !(g->is_entered && !g->is_sent);
    int j = (int)(link - ctrl->tree.down);

    if (ctrl->failure.status) { /* this rank may have given it up */
        free(body);
        return 0;
    }
    if (g->up[j].is_here || frame->id != due || frame->to > PURPOSE_LEAVE) {
        free(body);
        return -1;
    }
    g->up[j].is_here = 1;
    g->up[j].purpose = (enum ctrl_purpose)frame->to;
    g->up[j].len = frame->len;
    g->up[j].body = body;
    advance(ctrl);
    return 0;
}

int coll__ctrl_got_down(struct coll__ctrl *ctrl,
                        const struct coll__frame *frame, unsigned char *body)
{
    struct ctrl_gather *g = &ctrl->gather;

    if (!g->is_sent || g->is_done || frame->id != ctrl->n_gathers ||
        frame->to != (uint32_t)g->purpose ||
        frame->len != g->len * (size_t)ctrl->size) {
        free(body);
        /* If the group has failed, this rank may have given that allgather up. */
        return ctrl->failure.status ? 0 : -1;
    }
    finish(ctrl, body);
    if (!g->is_done)
        free(body);
    return 0;
}

/* ---- the caller's side -------------------------------------------------- */

/* Fail the group: the other ranks would wait for this one. */
static int cannot_enter(struct coll__ctrl *ctrl, size_t len)
{
    char words[COLL__TEXT_MAX];
    struct ctrl_reason reason = {COLL_ERR_NOMEM, (uint32_t)ctrl->rank, words};

    snprintf(words, sizeof(words),
             "has no memory to exchange %zu bytes with each rank", len);
    coll__ctrl_fail(ctrl, &reason, 1);
    log_error("boot", "%s", ctrl->failure.text);
    return ctrl->failure.status;
}

static int enter(struct coll__ctrl *ctrl, enum ctrl_purpose purpose,
                 const void *in, size_t len)
{
    struct ctrl_gather *g = &ctrl->gather;
    size_t span = (size_t)coll__tree_span(ctrl->rank, ctrl->size);

    if (len > COLL__FRAME_MAX / (size_t)ctrl->size) {
        log_error("boot",
                  "cannot exchange %zu bytes per rank among %d ranks: "
                  "%zu bytes in all is the most",
                  len, ctrl->size, COLL__FRAME_MAX);
        return COLL_ERR_INVALID;
    }
    g->mine = malloc(len * span + 1);
    if (!g->mine)
        return cannot_enter(ctrl, len);
    if (len)
        memcpy(g->mine, in, len);
    g->purpose = purpose;
    g->len = len;
    g->is_entered = 1;
    ctrl->n_gathers++;
    advance(ctrl);
    return COLL_OK;
}

static void leave(struct ctrl_gather *g)
{
    if (g->all != g->mine)
        free(g->all);
    free(g->mine);
    g->all = g->mine = NULL;
    g->is_entered = g->is_sent = g->is_done = 0;
}

void coll__ctrl_gather_free(struct coll__ctrl *ctrl)
{
    leave(&ctrl->gather);
    for (int j = 0; j < ctrl->tree.n_children; j++)
        free(ctrl->gather.up[j].body);
}

/* Append the next number. */
static size_t name_one(const struct coll__ctrl *ctrl, int rank, char *list,
                       size_t len, size_t at)
{
    return at + (size_t)snprintf(list + at, len - at, "%s %d", at ? "," : "",
                                 coll__ctrl_known_as(ctrl, rank));
}

/* Write which ranks have not come: "rank 3", "ranks 3, 5".  Silent ranks count as not
 * come. */
static void name_late(const struct coll__ctrl *ctrl,
                      const struct coll__ctrl_roll *roll, char *text,
                      size_t len)
{
    int n = roll->n_late + roll->n_silent;
    int l = 0, s = 0, n_late = roll->n_late, n_silent = roll->n_silent;
    char list[128];
    size_t at = 0;

    for (int i = 0; i < n && i < MAX_NAMED; i++)
        at = name_one(ctrl,
                      s == n_silent ||
                              (l < n_late && roll->late[l] < roll->silent[s])
                          ? roll->late[l++]
                          : roll->silent[s++],
                      list, sizeof(list), at);
    if (n > MAX_NAMED)
        snprintf(text, len, "ranks%s, ... (%d in all)", list, n);
    else if (n)
        snprintf(text, len, n > 1 ? "ranks%s" : "rank%s", list);
    else
        snprintf(text, len, "the network");
}

/* Ask all ranks which of them have not come; returns whether there was an answer. */
static int ask_who(struct coll__ctrl *ctrl, char *late, size_t len)
{
    struct ctrl_call call = {
        SUBJECT_GATHERING,
        {.rank = ctrl->rank, .peer = -1, .sig.seq = ctrl->n_gathers}};
    double since = coll__now(), until = since + coll__ctrl_answer_time(ctrl);
    const struct coll__ctrl_roll *roll = NULL;

    while (!roll && !ctrl->gather.is_done && !ctrl->failure.status) {
        coll__ctrl_raise(ctrl, &call); /* others may have to be first */
        if (coll__now() >= until || coll__reactor_wait(&ctrl->changed, until))
            break;
        roll = coll__ctrl_result(ctrl, &call, since);
    }
    if (roll)
        name_late(ctrl, roll, late, len);
    return roll != NULL;
}

/* The deadline has passed: find out which ranks are late, and fail the group. */
static void time_out(struct coll__ctrl *ctrl, double timeout)
{
    char late[160], text[COLL__TEXT_MAX];

    if (!ask_who(ctrl, late, sizeof(late)))
        snprintf(late, sizeof(late), "a rank");
    if (ctrl->gather.is_done)
        return;
    coll__print(text, sizeof(text),
                "%s did not %s within %.3g s (rank %d waited);"
                " see what it does, or raise the timeout (COLL_TIMEOUT)",
                late,
                ctrl->gather.purpose == PURPOSE_LEAVE ? "leave the group"
                                                      : "join the exchange",
                timeout, coll__ctrl_known_as(ctrl, ctrl->rank));
    fail_with(ctrl, COLL_ERR_TIMEOUT, text, 0);
}

int coll__ctrl_gather_start(struct coll__ctrl *ctrl, enum ctrl_purpose purpose,
                            const void *in, size_t len)
{
    return ctrl->failure.status ? COLL_OK : enter(ctrl, purpose, in, len);
}

int coll__ctrl_gather_end(struct coll__ctrl *ctrl, void *out, double until,
                          double timeout)
{
    struct ctrl_gather *g = &ctrl->gather;
    int status = COLL_OK;

    while (!g->is_done && !ctrl->failure.status)
        if (coll__now() >= until ||
            coll__reactor_wait(&ctrl->changed, until))
            break;
    if (!g->is_done && !ctrl->failure.status && timeout < 0)
        return COLL_IN_PROGRESS;
    if (!g->is_done && !ctrl->failure.status)
        time_out(ctrl, timeout);
    if (g->is_done && g->len)
        memcpy(out, g->all, g->len * (size_t)ctrl->size);
    if (!g->is_done) {
        status = ctrl->failure.status;
        log_error("boot", "%s", ctrl->failure.text);
    }
    leave(g);
    return status;
}

int coll__ctrl_gather(struct coll__ctrl *ctrl, const void *in, size_t len,
                      void *out, double timeout)
{
    int status = coll__ctrl_gather_start(ctrl, PURPOSE_GATHER, in, len);

    return status ? status
                  : coll__ctrl_gather_end(ctrl, out, coll__now() + timeout,
                                          timeout);
}
