/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_gather.c - allgather over the tree: blocks go up, all of them come down.
 *
 * A rank sends up once it has entered and every child's blocks are there; the
 * root sends everything down.  The reactor does all of it, whichever comes
 * last; the caller only waits.  A child can be one gathering ahead, no more,
 * since it needs what comes down to end the one before.
 */
#include "lib/boot/ctrl_int.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_TIME 0.5 /* s, to find out who is late */
#define MAX_NAMED 8

static const char *purpose_name(enum ctrl_purpose purpose)
{
    return purpose == PURPOSE_LEAVE ? "leaves the group" : "stays in it";
}

static int child_span(const struct coll__ctrl *ctrl, int j)
{
    return coll__tree_span(ctrl->rank + (1 << j), ctrl->size);
}

/* The caller's result is there. */
static void finish(struct coll__ctrl *ctrl, unsigned char *all)
{
    struct ctrl_gather *g = &ctrl->gather;
    struct coll__frame frame =
        coll__ctrl_frame(ctrl, CTRL_DOWN, g->purpose, ctrl->n_gathers,
                         g->len * (size_t)ctrl->size);

    for (int j = 0; j < ctrl->n_children; j++)
        if (coll__link_send(&ctrl->down[j], &frame, all)) {
            coll__ctrl_fail(ctrl, COLL_ERR_NOMEM, coll_last_error(), NULL, 1);
            return;
        }
    g->all = all;
    g->is_done = 1;
    if (g->purpose == PURPOSE_LEAVE)
        ctrl->is_released = 1;
    pthread_cond_broadcast(&ctrl->changed);
}

/* Check that the child takes part in the same gathering. */
static int is_alike(struct coll__ctrl *ctrl, int j)
{
    struct ctrl_gather *g = &ctrl->gather;
    int child = ctrl->rank + (1 << j);
    char text[COLL__TEXT_MAX];

    if (g->up[j].purpose == g->purpose &&
        g->up[j].len == g->len * (size_t)child_span(ctrl, j))
        return 1;
    if (g->up[j].purpose != g->purpose)
        snprintf(text, sizeof(text), "rank %d %s while rank %d %s", child,
                 purpose_name(g->up[j].purpose), ctrl->rank,
                 purpose_name(g->purpose));
    else
        snprintf(
            text, sizeof(text),
            "rank %d exchanges %llu bytes while rank "
            "%d exchanges %zu; do all ranks run the same program with the "
            "same libcoll?",
            child,
            (unsigned long long)(g->up[j].len / (uint64_t)child_span(ctrl, j)),
            ctrl->rank, g->len);
    coll__ctrl_fail(ctrl, COLL_ERR_MISMATCH, text, NULL, 1);
    return 0;
}

/* Put the children's blocks behind this rank's own. */
static int collect(struct coll__ctrl *ctrl)
{
    struct ctrl_gather *g = &ctrl->gather;

    for (int j = 0; j < ctrl->n_children; j++) {
        if (!is_alike(ctrl, j))
            return -1;
        if (g->up[j].len)
            memcpy(g->mine + (g->len << j), g->up[j].body, g->up[j].len);
        free(g->up[j].body);
        g->up[j].body = NULL;
        g->up[j].is_here = 0;
    }
    return 0;
}

/* Go on, if everything is there that it takes. */
static void advance(struct coll__ctrl *ctrl)
{
    struct ctrl_gather *g = &ctrl->gather;
    struct coll__frame frame;
    size_t span = (size_t)coll__tree_span(ctrl->rank, ctrl->size);

    if (!g->is_entered || g->is_sent || ctrl->failed_status)
        return;
    for (int j = 0; j < ctrl->n_children; j++)
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
    if (coll__link_send(&ctrl->up, &frame, g->mine))
        coll__ctrl_fail(ctrl, COLL_ERR_NOMEM, coll_last_error(), NULL, 1);
}

int coll__ctrl_got_up(struct coll__ctrl *ctrl, struct coll__link *link,
                      const struct coll__frame *frame, unsigned char *body)
{
    struct ctrl_gather *g = &ctrl->gather;
    uint32_t due = ctrl->n_gathers + !(g->is_entered && !g->is_sent);
    int j = (int)(link - ctrl->down);

    if (ctrl->failed_status) { /* this rank may have given it up */
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
        /* An answer to a gathering that this rank has given up. */
        return ctrl->failed_status ? 0 : -1;
    }
    finish(ctrl, body);
    if (!g->is_done)
        free(body);
    return 0;
}

/* ---- the caller's side -------------------------------------------------- */

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
    if (!g->mine) {
        log_error("boot", "no memory to exchange %zu bytes per rank", len);
        return COLL_ERR_NOMEM;
    }
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
    for (int j = 0; j < ctrl->n_children; j++)
        free(ctrl->gather.up[j].body);
}

/* Write which ranks have not come: "rank 3", "ranks 3, 5". */
static int name_late(const struct coll__ctrl *ctrl, const uint64_t *n_gathers,
                     char *text, size_t len)
{
    char list[128];
    size_t at = 0;
    int n = 0;

    for (int r = 0; r < ctrl->size; r++) {
        if (r == ctrl->rank || n_gathers[r] >= ctrl->n_gathers)
            continue;
        if (n++ < MAX_NAMED)
            at += (size_t)snprintf(list + at, sizeof(list) - at, "%s %d",
                                   n > 1 ? "," : "", r);
    }
    if (n > MAX_NAMED)
        snprintf(text, len, "ranks%s, ... (%d in all)", list, n);
    else if (n)
        snprintf(text, len, n > 1 ? "ranks%s" : "rank%s", list);
    else
        snprintf(text, len, "the network");
    return n;
}

/* The deadline passed: ask who is where and fail the group for it. */
static void time_out(struct coll__ctrl *ctrl, double timeout)
{
    size_t size = (size_t)ctrl->size;
    struct coll__ctrl_answer *answers = calloc(size, sizeof(*answers));
    uint64_t *n_gathers = calloc(size, sizeof(*n_gathers));
    char late[160] = "a rank", text[COLL__TEXT_MAX];

    if (answers && n_gathers) {
        coll__ctrl_question(ctrl, ASK_TIME, answers, n_gathers);
        name_late(ctrl, n_gathers, late, sizeof(late));
    }
    free(answers);
    free(n_gathers);
    if (ctrl->gather.is_done)
        return;
    snprintf(text, sizeof(text),
             "%s did not %s within %.3g s (rank %d waited);"
             " see what it does, or raise the timeout (COLL_TIMEOUT)",
             late,
             ctrl->gather.purpose == PURPOSE_LEAVE ? "leave the group"
                                                   : "join the exchange",
             timeout, ctrl->rank);
    coll__ctrl_fail(ctrl, COLL_ERR_TIMEOUT, text, NULL, 0);
}

int coll__ctrl_gather(struct coll__ctrl *ctrl, enum ctrl_purpose purpose,
                      const void *in, size_t len, void *out, double timeout)
{
    double deadline = coll__now() + timeout;
    struct ctrl_gather *g = &ctrl->gather;
    int status = COLL_OK;

    if (!ctrl->failed_status) {
        status = enter(ctrl, purpose, in, len);
        if (status)
            return status;
    }
    while (!g->is_done && !ctrl->failed_status)
        if (coll__reactor_wait(&ctrl->changed, deadline))
            break;
    if (!g->is_done && !ctrl->failed_status)
        time_out(ctrl, timeout);
    if (g->is_done && len)
        memcpy(out, g->all, len * (size_t)ctrl->size);
    if (!g->is_done) {
        status = ctrl->failed_status;
        log_error("boot", "%s", ctrl->failed_text);
    }
    leave(g);
    return status;
}
