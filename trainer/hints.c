/* SPDX-License-Identifier: BSD-3-Clause */
/* hints.c - options and variables of the tutorials, and what to use instead. */
#include "trainer/hints.h"

#include <stdlib.h>
#include <string.h>

const struct program_hint hint_flags[] = {
    {"no-cuda", "coll_train computes on processors unless told otherwise; "
                "leave it out"},
    {"cuda", "this coll_train computes on processors; leave it out"},
    {"backend", "transports are chosen by what is there; COLL_TRANSPORTS "
                "forces one"},
    {"dist-backend", "transports are chosen by what is there; "
                     "COLL_TRANSPORTS forces one"},
    {"use-adasum", "gradients are averaged; leave it out"},
    {"use-mixed-precision", "numbers are 32-bit floats; leave it out"},
    {"gradient-predivide-factor", "the average divides once, at the end; "
                                  "leave it out"},
    {"batches-per-allreduce", "each step averages its gradients; raise "
                              "--batch-size"},
    {"val-batch-size", "give --test-batch-size"},
    {"compression", "give --fp16-allreduce or --bf16-allreduce"},
    {"np", "the launcher says how many ranks there are: collrun -n"},
    {"n", "the launcher says how many ranks there are: collrun -n"},
    {"num-proc", "the launcher says how many ranks there are: collrun -n"},
    {"nnodes", "that is the launcher's: collrun --nnodes"},
    {"nproc-per-node", "that is the launcher's: collrun --nproc-per-node"},
    {"node-rank", "that is the launcher's: collrun --node-rank"},
    {"rdzv-id", "that is the launcher's: collrun --rdzv-id"},
    {"rdzv-backend", "ranks meet by the launcher; leave it out"},
    {"rdzv-endpoint", "that is the launcher's: collrun --rdzv-endpoint"},
    {"master-addr", "that is the launcher's: collrun --master-addr"},
    {"master-port", "that is the launcher's: collrun --master-port"},
    {"max-restarts", "that is the launcher's: collrun --max-restarts"},
    {"hostfile", "that is the launcher's: collrun --hostfile"},
    {"H", "that is the launcher's: collrun -H"},
    {"bind", "that is the launcher's: collrun --bind"},
    {"scaling", "that is the launcher's: collrun --scaling 1,2 -- coll_train"},
    {"local-rank", "ranks learn their numbers from the launcher; leave it "
                   "out"},
    {"world-size", "the launcher says how many ranks there are: collrun -n"},
    {"workers", "images lie in memory, no worker loads them; leave it out"},
    {"num-workers", "images lie in memory, no worker loads them; leave it "
                    "out"},
    {"num-threads", "give --threads"},
    {"dist-url", "ranks meet by the launcher; leave it out"},
    {"deepspeed", "give the values of its file as flags, or by --config FILE"},
    {"deepspeed-config",
     "that file is of other names; give its values as flags, or by "
     "--config FILE"},
    {"amp", "numbers are 32-bit floats; leave it out"},
    {"fp16", "numbers are 32-bit floats; --fp16-allreduce sends half the "
             "bytes"},
    {"loss-scale", "numbers are 32-bit floats; leave it out"},
    {"zero-stage", "give --zero 1"},
    {"gradient-accumulation-steps", "give --accum"},
    {"train-batch-size", "give --global-batch-size"},
    {"gradient-clipping", "give --clip-norm"},
    {"wall-clock-breakdown", "give --breakdown"},
    {"steps-per-print", "give --log-interval"},
    {"fusion-threshold-mb", "give --bucket-mb"},
    {"save-model", "name a folder by --checkpoint DIR"},
    {"checkpoint-format", "name the folder by --checkpoint DIR"},
    {"checkpoint-dir", "name the folder by --checkpoint DIR"},
    {"base-lr", "give --lr"},
    {"learning-rate", "give --lr"},
    {"wd", "give --weight-decay, where --help lists it"},
    {"log-dir", "redirect the output, or give --json FILE"},
    {"train-dir", "give --data-dir DIR"},
    {"val-dir", "give --data-dir DIR"},
    {"data", "give --data-dir DIR"},
    {"timeline-filename", "give --timeline FILE"},
    {"timeline-mark-cycles", "there is no cycle to be marked; leave it out"},
    {"algo", "set COLL_ALGO, as allreduce:ring"},
    {"op", "gradients are averaged; leave it out"},
    {"predivide", "the average divides once, at the end; leave it out"},
    {"sync-bn-stats", "rank 0's statistics are taken, in tests and "
                      "checkpoints; leave it out"},
    {"chunk", "a pass has 64 images at most; leave it out"},
    {"kernels", "--verbose says which are used; leave it out"},
    {"fail-on-nan", "training stops at any; leave it out"},
    {"optimizer", "give --opt"},
    {"arch", "give --model"},
    {"print-freq", "give --log-interval"},
    {"evaluate", "give --eval-only --resume PATH"},
    {"gamma", "give --lr-schedule step:E,F"},
    {"first-bucket-mb", "the first bucket has 1 MiB; leave it out"},
    {"seed-per-rank", "every rank begins with rank 0's parameters; leave it "
                      "out"},
    {"metrics-per-rank", "give --verbose"},
    {NULL, NULL},
};

static const struct program_hint variables[] = {
    {"COLL_DATA", "give --data-dir DIR, or write it to the file of --config"},
    {"HOROVOD_FUSION_THRESHOLD", "give --bucket-mb"},
    {"HOROVOD_CYCLE_TIME", "there is no cycle: nothing waits for one"},
    {"HOROVOD_CACHE_CAPACITY", "nothing is negotiated, so nothing is cached"},
    {"HOROVOD_AUTOTUNE", "run coll_tune once and set COLL_TUNE_FILE"},
    {"HOROVOD_AUTOTUNE_LOG", "run coll_tune once and set COLL_TUNE_FILE"},
    {"HOROVOD_HIERARCHICAL_ALLREDUCE", "set COLL_ALGO=allreduce:hierarchical"},
    {"HOROVOD_TIMELINE_MARK_CYCLES", "there is no cycle to be marked"},
    {"HOROVOD_STALL_CHECK_TIME_SECONDS", "set COLL_STALL_WARN"},
    {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "set COLL_TIMEOUT"},
    {"HOROVOD_STALL_CHECK_DISABLE", "set COLL_STALL_WARN=0"},
    {"TORCH_NCCL_DUMP_ON_TIMEOUT", "set COLL_HISTORY=FILE"},
    {"TORCH_NCCL_TRACE_BUFFER_SIZE", "set COLL_HISTORY=FILE"},
    {"TORCH_FR_BUFFER_SIZE", "set COLL_HISTORY=FILE"},
    {"TORCH_FR_DUMP_TEMP_FILE", "set COLL_HISTORY=FILE"},
    {"HOROVOD_LOG_LEVEL", "set COLL_LOG"},
    {"HOROVOD_THREAD_AFFINITY", "start it by collrun --bind core"},
    {"HOROVOD_GPU_ALLREDUCE", "transports are chosen by what is there"},
    {"HOROVOD_CPU_OPERATIONS", "transports are chosen by what is there"},
    {"NCCL_DEBUG", "set COLL_LOG"},
    {"NCCL_ALGO", "set COLL_ALGO"},
    {"NCCL_SOCKET_IFNAME", "set COLL_NET_INTERFACE"},
    {"GLOO_SOCKET_IFNAME", "set COLL_NET_INTERFACE"},
    {"TORCH_DISTRIBUTED_DEBUG", "set COLL_LOG"},
};

#define N_VARIABLES (sizeof(variables) / sizeof(variables[0]))

/* horovodrun sets these itself, together with HOROVOD_GLOO_IFACE. */
static int is_horovodruns(const char *name)
{
    return getenv("HOROVOD_GLOO_IFACE") &&
           (!strcmp(name, "HOROVOD_CPU_OPERATIONS") ||
            !strcmp(name, "NCCL_SOCKET_IFNAME"));
}

void hint_environment(FILE *to)
{
    for (size_t i = 0; i < N_VARIABLES; i++) {
        const char *value = getenv(variables[i].name);

        if (value && *value && !is_horovodruns(variables[i].name))
            fprintf(to, "coll_train: %s has no effect here: %s\n",
                    variables[i].name, variables[i].instead);
    }
}
