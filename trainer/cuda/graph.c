/* SPDX-License-Identifier: BSD-3-Clause */
/* graph.c - work that is captured from the GPU's streams, and launched as one graph. */
#include "trainer/cuda/gpu.h"

/* What was captured has not run, so its error need not be the GPU's: forget it.  One that
 * is comes again.  Returns as gpu_well() before. */
static int forget(void)
{
    int st = gpu_well();

    gpu.has_failed = 0;
    if (st)
        gpu_wait();
    return st;
}

static int graph_begin(void)
{
    if (gpu_well())
        return -1;
    gpu.recorded.is_recording =
        !gpu_note(gpu.cu.cuStreamBeginCapture(
                      gpu.compute, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                  "cuStreamBeginCapture");
    return forget();
}

/* The exchange's stream is captured as well, by the events that order the two. */
static void *graph_end(void)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;

    gpu.recorded.is_recording = 0;
    gpu_note(gpu.cu.cuStreamEndCapture(gpu.compute, &graph),
             "cuStreamEndCapture");
    if (!gpu.has_failed)
        gpu_note(gpu.cu.cuGraphInstantiateWithFlags(&exec, graph, 0),
                 "cuGraphInstantiateWithFlags");
    if (graph)
        gpu.cu.cuGraphDestroy(graph);
    if (forget())
        return NULL;
    gpu.recorded.has_graphs = 1;
    gpu_keep_stamps();
    return exec;
}

static int graph_launch(void *graph)
{
    return gpu.has_failed
               ? gpu_well()
               : gpu_note(gpu.cu.cuGraphLaunch(graph, gpu.compute),
                          "cuGraphLaunch");
}

static void graph_drop(void *graph)
{
    if (graph)
        gpu.cu.cuGraphExecDestroy(graph);
}

const struct device_graphs gpu_graphs = {
    .begin = graph_begin,
    .end = graph_end,
    .launch = graph_launch,
    .drop = graph_drop,
};
