/* SPDX-License-Identifier: BSD-3-Clause */
/* flags.c - the table of options: reading, checking and --help follow from it. */
#include "trainer/flags.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/hints.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct args, field)
#define HEADING(text)                                                          \
    {                                                                          \
        .name = "", .help = text                                               \
    }
#define MOST_SEED 9e18 /* JSON holds 63 bits */

/* "step:30,0.1": a kind of schedule and its numbers. */
static int take_schedule(const struct program *p, const char *text, void *into)
{
    struct schedule s = {.text = text};
    char every[10] = "";
    int n = 0;

    if (!strcmp(text, "cosine")) {
        s.kind = SCHEDULE_COSINE;
    } else if (strcmp(text, "const")) {
        s.kind = SCHEDULE_STEP;
        sscanf(text, "step:%9[0-9],%lf%n", every, &s.factor, &n);
        s.every = strtoull(every, NULL, 10);
        if (n == 0 || text[n] || s.every == 0 ||
            !(s.factor > 0 && s.factor < (double)FLT_MAX))
            return program_refuse_value(
                p, "lr-schedule", text,
                "const, cosine, or step:E,F with a whole number of epochs and "
                "a factor above 0, as step:30,0.1");
    }
    ((struct args *)into)->schedule = s;
    return 0;
}

static int take_device(const struct program *p, const char *text, void *into)
{
    if (!device_is_word(text))
        return program_refuse_value(p, "device", text,
                                    "auto, cpu, cuda, or cuda:N with the "
                                    "number of a GPU, as cuda:0");
    ((struct args *)into)->device = text;
    return 0;
}

static int take_profile(const struct program *p, const char *text, void *into)
{
    if (text && !*text)
        return program_refuse_value(p, "profile", text, "PREFIX");
    ((struct args *)into)->profile = text ? text : "1";
    return 0;
}

static const struct program_option options[] = {
    HEADING("Data"),
    {"dataset", 0, OPTION_WORD, AT(dataset),
     "fashion-mnist|mnist|cifar10|synthetic", "fashion-mnist",
     .help = "the images to learn"},
    {"data-dir", 0, OPTION_TEXT, AT(data_dir), "DIR", NULL,
     .help =
         "the folder of its files, plain or .gz, or the folder above one that "
         "has the set's name (default /usr/share/datasets)"},
    {"limit-train", 0, OPTION_U64, AT(limit_train), "N", "0",
     .help = "train on the first N images only; 0: all"},
    {"limit-test", 0, OPTION_U64, AT(limit_test), "N", "0",
     .help = "test on the first N images only; 0: all"},
    {"limit-steps", 0, OPTION_U64, AT(limit_steps), "N", "0",
     .help = "end each epoch after N steps; 0: go through all images"},
    {"shard", 0, OPTION_CHOICE, AT(shard), "sampler|stride|random", "sampler",
     .help = "which images a rank gets.  sampler: its part of an order that is "
             "shuffled anew for each epoch, as PyTorch's DistributedSampler "
             "does; stride: every n-th image of the data set, n being the "
             "number of ranks; random: each rank draws from all images"},
    {"drop-last", 0, OPTION_CHOICE, AT(drop_last_off), "on|off", "on",
     .help = "on: leave out the images that do not fill a step on every rank; "
             "off: end with a smaller step, and repeat a few images so that "
             "each rank has equally many"},
    {"normalize", 0, OPTION_CHOICE, AT(normalize_meanstd), "unit|meanstd",
     "unit",
     .help = "unit: pixels from 0 to 1; meanstd: pixels of mean 0 and standard "
             "deviation 1"},
    {"augment", 0, OPTION_CHOICE, AT(augment), "none|flip-crop", "none",
     .help = "flip-crop: give each training image a border of 4 black pixels, "
             "cut an image of the old size out of it at a random place, and "
             "mirror half of them"},
    {"prefetch", 0, OPTION_CHOICE, AT(prefetch), "off|auto|on", "off",
     .help = "prepare the images of the next step in a thread; auto: if a core "
             "is idle"},
    HEADING("Model"),
    {"model", 0, OPTION_WORD, AT(model),
     "cnn|net|alexnet|resnet18|resnet18-cifar|resnet50", "cnn",
     .help = "the network"},
    {"init", 0, OPTION_CHOICE, AT(init), "glorot|torch", "glorot",
     .help = "draw the first parameters as Keras does, or as PyTorch does"},
    {"dropout", 0, OPTION_CHOICE, AT(dropout_off), "on|off", "on",
     .help = "train with the model's dropout layers"},
    HEADING("Training"),
    {"epochs", 0, OPTION_U64, AT(epochs), "N", "3",
     .help = "passes over the training images; a resumed run counts those that "
             "it had",
     .least = 1},
    {"batch-size", 0, OPTION_U64, AT(batch_size), "N", NULL,
     .help = "images of a rank in a step; with --accum, in a part of a step "
             "(default 64)",
     .least = 1},
    {"global-batch-size", 0, OPTION_U64, AT(global_batch_size), "N", NULL,
     .help = "instead of --batch-size: images of all ranks in a step, the "
             "parts of --accum taken together",
     .least = 1},
    {"test-batch-size", 0, OPTION_U64, AT(test_batch_size), "N", NULL,
     .help =
         "images of a rank that are tested at once (default: as in training)",
     .least = 1},
    {"accum", 0, OPTION_U64, AT(accum), "N", "1",
     .help = "batches whose gradients are summed before the ranks average them",
     .least = 1},
    {"label-smoothing", 0, OPTION_SHARE, AT(label_smoothing), "X", "0",
     .help = "spread X of each label's weight evenly over all classes"},
    {"opt", 0, OPTION_CHOICE, AT(opt), "sgd|adam|adagrad", "adam",
     .help = "the optimizer, by PyTorch's rules"},
    {"lr", 0, OPTION_POSITIVE, AT(lr), "X", NULL,
     .help =
         "the learning rate of one rank (default 0.001 for adam, else 0.01)"},
    {"lr-scale", 0, OPTION_CHOICE, AT(lr_scale), "linear|sqrt|none", "linear",
     .help = "multiply the learning rate by the number of ranks, by its square "
             "root, or not at all"},
    {"warmup-epochs", 0, OPTION_U64, AT(warmup_epochs), "N", "0",
     .help = "raise the learning rate from that of one rank to the scaled one "
             "in N epochs, a little at each step, as Horovod does"},
    {"warmup-steps", 0, OPTION_U64, AT(warmup_steps), "N", "0",
     .help = "the same in N steps"},
    {"lr-schedule", 0, OPTION_CALL, 0, "const|step:E,F|cosine", "const",
     .help = "the learning rate after the warm-up.  const: it stays; step:E,F: "
             "multiply it by F after every E epochs of the run; cosine: lower "
             "it to 0 until the end of the run, a little at each step",
     .take = take_schedule},
    {"momentum", 0, OPTION_SHARE, AT(momentum), "X", "0.9",
     .help =
         "of sgd: each step adds the gradient to X times the last direction"},
    {"nesterov", 0, OPTION_SWITCH, AT(nesterov), NULL, NULL,
     .help = "of sgd: use Nesterov's momentum"},
    {"beta1", 0, OPTION_SHARE, AT(beta1), "X", "0.9",
     .help = "of adam: the decay of the gradients' mean"},
    {"beta2", 0, OPTION_SHARE, AT(beta2), "X", "0.999",
     .help = "of adam: the decay of their squares' mean"},
    {"eps", 0, OPTION_POSITIVE, AT(epsilon), "X", NULL,
     .help = "of adam and adagrad: added to the divisor (default 1e-7 for "
             "adam, as in Keras, and 1e-10 for adagrad)"},
    {"weight-decay", 0, OPTION_SHARE, AT(weight_decay), "X", "0",
     .help = "add X times each parameter to its gradient"},
    {"clip-norm", 0, OPTION_POSITIVE, AT(clip_norm), "X", NULL,
     .help =
         "scale the gradients of a step down so that their norm is X at most"},
    {"target-acc", 0, OPTION_POSITIVE, AT(target_acc), "X", NULL,
     .help = "stop after the first epoch whose test accuracy is X, such as "
             "0.99, and print the time until then"},
    {"seed", 0, OPTION_U64, AT(seed), "N", "42",
     .help = "the seed of all random numbers: runs of the same seed and number "
             "of ranks end with the same parameters, bit for bit",
     .most = MOST_SEED},
    HEADING("Ranks"),
    {"bucket-mb", 0, OPTION_POSITIVE, AT(bucket_mb), "X", "25",
     .help = "average gradients in buckets of X MiB; the first one has 1 MiB, "
             "so that it can start early"},
    {"overlap", 0, OPTION_CHOICE, AT(overlap_off), "on|off", "on",
     .help = "average a bucket while the backward pass goes on"},
    {"fp16-allreduce", 0, OPTION_SWITCH, AT(fp16_allreduce), NULL, NULL,
     .help = "send gradients as 16-bit floats (IEEE half precision); sums have "
             "32 bits"},
    {"bf16-allreduce", 0, OPTION_SWITCH, AT(bf16_allreduce), NULL, NULL,
     .help =
         "send gradients as bfloat16, whose range is that of 32-bit floats"},
    {"zero", 0, OPTION_CHOICE, AT(zero), "0|1", "0",
     .help = "1: split the optimizer's state between the ranks (ZeRO stage 1)"},
    {"deterministic", 0, OPTION_SWITCH, AT(deterministic), NULL, NULL,
     .help = "give the same bits for any bucket size, algorithm and transport, "
             "and for 1, 2, 4 or 8 ranks if the images of a step and the "
             "learning rate are the same"},
    {"elastic", 0, OPTION_SWITCH, AT(elastic), NULL, NULL,
     .help = "go on without ranks that die, and with newcomers of collrun "
             "--min-np --max-restarts: those that are there divide the images "
             "that the epoch has left; --global-batch-size stays, and "
             "--batch-size stays that of a rank"},
    HEADING("Device"),
    {"device", 0, OPTION_CALL, 0, "auto|cpu|cuda|cuda:N", "auto",
     .help = "what computes.  cuda: a GPU, the ranks of a host taking turns "
             "among those that are visible; cuda:N: GPU N of them, counted "
             "from 0; auto: a GPU if every rank finds one and what it needs, "
             "else the processors",
     .take = take_device},
    {"precision", 0, OPTION_CHOICE, AT(precision), "f32|tf32|bf16", "f32",
     .help = "what a GPU multiplies.  f32: 32-bit floats; tf32: these with 10 "
             "bits of mantissa; bf16: bfloat16, in which it also keeps "
             "activations.  Sums, parameters and the optimizer have 32 bits; "
             "processors have f32 only"},
    {"graph", 0, OPTION_CHOICE, AT(graph), "auto|on|off", "auto",
     .help = "record the work of a step on a GPU once, with its exchange, and "
             "launch it as one graph for each step; auto: where that is "
             "possible: not with --elastic and --zero"},
    {"threads", 0, OPTION_U64, AT(threads), "N", NULL,
     .help = "threads of a rank, on processors (default OMP_NUM_THREADS, else "
             "SLURM_CPUS_PER_TASK, else 1)",
     .least = 1},
    HEADING("Checkpoints"),
    {"checkpoint", 0, OPTION_TEXT, AT(checkpoint), "DIR", NULL,
     .help = "save the state of the run to this folder"},
    {"checkpoint-every", 0, OPTION_U64, AT(checkpoint_every), "N", "1",
     .help = "save it after every N epochs", .least = 1},
    {"keep", 0, OPTION_U64, AT(keep), "N", "5",
     .help = "keep the newest N checkpoints; 0: all"},
    {"resume", 0, OPTION_TEXT, AT(resume), "PATH|auto", NULL,
     .help = "go on from this checkpoint; auto: from the newest one in "
             "--checkpoint, if there is one"},
    {"eval-only", 0, OPTION_SWITCH, AT(eval_only), NULL, NULL,
     .help = "test the checkpoint of --resume, and train and write nothing"},
    HEADING("Output"),
    {"json", 0, OPTION_TEXT, AT(json), "FILE|-", NULL,
     .help = "write the results to a file as one JSON object; -: to standard "
             "output"},
    {"progress", 0, OPTION_CHOICE, AT(progress), "auto|bar|plain|off", "auto",
     .help = "bar: a bar that moves; plain: a line for each epoch; auto: a bar "
             "on a terminal, else plain"},
    {"log-interval", 0, OPTION_U64, AT(log_interval), "N", "0",
     .help = "print a line with rank 0's loss every N steps; 0: none"},
    {"breakdown", 0, OPTION_SWITCH, AT(breakdown), NULL, NULL,
     .help = "print after each epoch how rank 0's time was spent, and put it "
             "into --json"},
    {"verbose", 0, OPTION_SWITCH, AT(verbose), NULL, NULL,
     .help = "print the kernels in use and, from each rank, its epochs with "
             "its own loss and accuracy"},
    {"timeline", 0, OPTION_TEXT, AT(timeline), "FILE", NULL,
     .help = "write rank 0's operations for Perfetto or chrome://tracing, as "
             "COLL_TIMELINE does; with %r in its name, a file for each rank"},
    {"profile", 0, OPTION_CALL, 0, "[=PREFIX]", NULL,
     .help = "write a table of each rank's collectives to PREFIX.RANK, as "
             "COLL_PROFILE does (default prefix coll_profile)",
     .take = take_profile},
    HEADING("Benchmark"),
    {"synthetic", 0, OPTION_SWITCH, AT(synthetic), NULL, NULL,
     .help = "train on one made-up batch over and over, and print the lines of "
             "Horovod's benchmarks"},
    {"num-warmup-batches", 0, OPTION_U64, AT(num_warmup_batches), "N", "10",
     .help = "steps before it measures"},
    {"num-batches-per-iter", 0, OPTION_U64, AT(num_batches_per_iter), "N", "10",
     .help = "steps of one measurement", .least = 1},
    {"num-iters", 0, OPTION_U64, AT(num_iters), "N", "10",
     .help = "number of measurements", .least = 1},
    HEADING("Other"),
    {"config", 0, OPTION_TEXT, AT(config), "FILE", NULL,
     .help = "read options from FILE, one `NAME = VALUE` a line; options of "
             "the command line win"},
    {"dry-run", 0, OPTION_SWITCH, AT(dry_run), NULL, NULL,
     .help = "check everything, print what would be done, and train nothing"},
    {"check-build", 0, OPTION_SWITCH, AT(check_build), NULL, NULL,
     .help = "print what this build can do"},
    {.name = NULL},
};

static void refuse(const char *sentence) { train_refuse("%s", sentence); }

const struct program coll_train = {
    .name = "coll_train",
    .usage = "[OPTION]...",
    .about = "Train a convolutional network on small images, data-parallel "
             "over the ranks of\nits launcher: collrun -n 2 coll_train, "
             "mpirun, srun, torchrun, or none.",
    .notes = "Training stops when a loss is not finite, and saves nothing of "
             "that epoch.\n\n"
             "Exit status: 0 when all is done; 1 for a failure such as a full "
             "disk; 2 for wrong\noptions, variables, data or checkpoints; 3 "
             "when a collective failed because a\nrank died or did not come; 4 "
             "when a loss is not finite; 128 + N after signal N,\nbut 0 after "
             "USR1, which saves a checkpoint first.\n",
    .options = options,
    .hints = hint_flags,
    .refuse = refuse,
};

const struct program_option *flag_named(const char *name)
{
    const struct program_option *o = options;

    while (strcmp(o->name, name))
        o++;
    return o;
}
