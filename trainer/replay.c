/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c - steps as one graph of the device: the work of a step is recorded once, with
 * its collectives, and launched for each step.
 *
 * Only steps of all images are: of these each has the same work.  The first one is put as
 * it is, so that all memory is there and all kernels are loaded.  All ranks record at the
 * same step, and launch at the same steps.
 *
 * A graph updates the parameters also if its exchange fails, because a rank dies.  The host
 * learns of it when the step is over; so a run that can go on then keeps what was before
 * (trainer__begin_rescue()).  The stream itself could not tell: results of a collective
 * that has failed may be anything.
 */
#include "trainer/ddp.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/train.h"
#include "trainer/train_state.h"

#include <stdio.h>

int trainer__make_replay(struct trainer *t)
{
    const struct args *a = t->args;

    if (a->graph == GRAPH_ON && !t->device->order.graphs)
        return train_refuse("--graph on: --device %s has no graphs; leave "
                            "--graph out, or give --device cuda",
                            t->device->name);
    /* With --elastic and --zero the host makes copies. */
    t->step.replay.can = t->device->order.graphs && a->graph != GRAPH_OFF &&
                         !(a->elastic && a->zero);
    t->step.replay.is_wanted = t->step.replay.can;
    return 0;
}

void trainer__drop_replay(struct trainer *t)
{
    if (t->step.replay.graph)
        t->device->order.graphs->drop(t->step.replay.graph);
    t->step.replay.graph = NULL;
    phase_drop(&t->step.replay.spans);
}

void trainer__renew_replay(struct trainer *t)
{
    trainer__drop_replay(t);
    t->step.replay.is_warm = 0;
    t->step.replay.is_wanted = t->step.replay.can;
}

/* Put the step while the device records.  Returns 0 if t->step.replay.graph is there. */
static int record(struct trainer *t, size_t step,
                  int (*put)(struct trainer *t, size_t step))
{
    struct replay *r = &t->step.replay;
    uint64_t bytes = t->ddp->bytes;
    size_t n_spans = t->phases.open.n;
    int st;

    if (t->device->order.graphs->begin())
        return -1;
    ddp_record(t->ddp, 1);
    st = put(t, step);
    r->graph = t->device->order.graphs->end();
    ddp_record(t->ddp, 0);
    trainer__params_changed(t);
    phase_take(&t->phases, n_spans, &r->spans);
    r->bytes = t->ddp->bytes - bytes;
    t->ddp->bytes = bytes;
    return st || !r->graph ? -1 : 0;
}

/* Make the graph, on all ranks or on none: 0, or -1 with train_error() set if they cannot
 * even go on without. */
static int make_graph(struct trainer *t, size_t step,
                      int (*put)(struct trainer *t, size_t step))
{
    int failed, st;

    /* a collective that still runs cannot be started again, not even to be recorded */
    if (ddp_await_all(t->ddp) || t->device->order.wait())
        return -1;
    st = record(t, step, put);
    if (t->ddp->has_failed || t->device->order.well() ||
        ddp_agree(t->ddp, st, &failed))
        return -1;
    if (failed < 0)
        return 0;
    if (failed == t->ddp->rank)
        fprintf(stderr,
                "coll_train: rank %d cannot record a step in a graph, so all "
                "go on without: %s\n",
                failed, train_error());
    trainer__drop_replay(t);
    t->step.replay.is_wanted = 0;
    return 0;
}

static int launch(struct trainer *t)
{
    if (ddp_await_all(t->ddp))
        return -1;
    t->ddp->bytes += t->step.replay.bytes;
    phase_launch(&t->phases, &t->step.replay.spans);
    return t->device->order.graphs->launch(t->step.replay.graph);
}

int trainer__replay(struct trainer *t, size_t step,
                    int (*put)(struct trainer *t, size_t step))
{
    struct replay *r = &t->step.replay;
    int is_full = t->step.all == trainer__global_batch(t);

    if (is_full && r->is_wanted && r->is_warm && !r->graph &&
        make_graph(t, step, put))
        return -1;
    r->is_warm |= is_full;
    return is_full && r->graph ? launch(t) : put(t, step);
}
