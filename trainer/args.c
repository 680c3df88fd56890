/* SPDX-License-Identifier: BSD-3-Clause */
/* args.c - one table of flags: reading, checking and --help follow from it. */
#include "trainer/args.h"
#include "trainer/error.h"
#include "trainer/hints.h"
#include "trainer/threads.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FLAG 64
#define NEAR 3 /* letters that a name may be wrong in, for a hint */

enum kind {
    TEXT,
    WHOLE,    /* uint64_t, from 1 */
    WHOLE_0,  /* uint64_t, from 0 */
    POSITIVE, /* double above 0 */
    SHARE,    /* double in [0, 1) */
    CHOICE,   /* int, the index of the word */
    WORD,     /* const char *, one of the words */
    SWITCH    /* int, 1 when given */
};

struct flag {
    const char *name;
    enum kind kind;
    size_t at;            /* offset of its field */
    const char *standard; /* as the user would write it; NULL: none */
    const char *words;    /* what the value may be, or its name */
    const char *help;
};

#define AT(field) offsetof(struct args, field)

static const struct flag flags[] = {
    {"dataset", WORD, AT(dataset), "fashion-mnist",
     "fashion-mnist|mnist|cifar10|synthetic", "what to learn"},
    {"data-dir", TEXT, AT(data_dir), NULL, "DIR",
     "where its files lie, plain or .gz; else COLL_DATA, then "
     "/usr/share/datasets"},
    {"limit-train", WHOLE_0, AT(limit_train), "0", "N",
     "train on the first N images only; 0: all"},
    {"limit-test", WHOLE_0, AT(limit_test), "0", "N",
     "test on the first N images only; 0: all"},
    {"limit-steps", WHOLE_0, AT(limit_steps), "0", "N",
     "make the first N steps of an epoch only; 0: all"},
    {"shard", CHOICE, AT(shard), "sampler", "sampler|stride|random",
     "a rank's images: its part of each epoch's order; every ranks-th image "
     "of the data; or any, drawn by itself"},
    {"drop-last", CHOICE, AT(drop_last_off), "on", "on|off",
     "leave out what does not fill a step; off: repeat some images so that the "
     "ranks come out even, and end with a shorter step"},
    {"normalize", CHOICE, AT(normalize_meanstd), "unit", "unit|meanstd",
     "pixels in [0, 1], or with mean 0 and deviation 1"},
    {"augment", CHOICE, AT(augment), "none", "none|flip-crop",
     "flip-crop: cut each training image, at a random place, from itself with "
     "a "
     "border of 4 black pixels, and mirror half of them"},
    {"prefetch", CHOICE, AT(prefetch), "off", "off|auto|on",
     "gather the next images in a thread; auto: where a core is idle"},
    {"model", WORD, AT(model), "cnn",
     "cnn|net|alexnet|resnet18|resnet18-cifar|resnet50", "the network"},
    {"init", CHOICE, AT(init), "glorot", "glorot|torch",
     "how parameters begin: as in Keras or as in PyTorch"},
    {"dropout", CHOICE, AT(dropout_off), "on", "on|off", "drop values"},
    {"epochs", WHOLE, AT(epochs), "3", "N",
     "passes over the training images, resumed ones included"},
    {"batch-size", WHOLE, AT(batch_size), "64", "N",
     "images of a rank in a step"},
    {"test-batch-size", WHOLE, AT(test_batch_size), "64", "N",
     "images tested at a time"},
    {"accum", WHOLE, AT(accum), "1", "N",
     "batches of a rank whose gradients are summed before a step"},
    {"opt", CHOICE, AT(opt), "adam", "sgd|adam|adagrad",
     "optimizer, by PyTorch's rules"},
    {"lr", POSITIVE, AT(lr), NULL, "X",
     "learning rate of one rank; 0.001 for adam, else 0.01"},
    {"lr-scale", CHOICE, AT(lr_scale), "linear", "linear|sqrt|none",
     "multiply it by the ranks, their square root, or not"},
    {"warmup-epochs", WHOLE_0, AT(warmup_epochs), "0", "N",
     "come to that scale step by step, as Horovod does, in N epochs"},
    {"warmup-steps", WHOLE_0, AT(warmup_steps), "0", "N", "or in N steps"},
    {"momentum", SHARE, AT(momentum), "0.9", "X",
     "of sgd: v = momentum v + slope, and the step is lr v"},
    {"beta1", SHARE, AT(beta1), "0.9", "X", "of adam's mean"},
    {"beta2", SHARE, AT(beta2), "0.999", "X", "of adam's mean of squares"},
    {"eps", POSITIVE, AT(epsilon), NULL, "X",
     "added to the root; 1e-7 for adam as in Keras, 1e-10 for adagrad"},
    {"weight-decay", SHARE, AT(weight_decay), "0", "X",
     "add X times the parameter to its slope"},
    {"clip-norm", POSITIVE, AT(clip_norm), NULL, "X",
     "shorten the gradients of a step to the length X"},
    {"seed", WHOLE_0, AT(seed), "42", "N",
     "the same seed and ranks give the same bits"},
    {"seed-per-rank", SWITCH, AT(seed_per_rank), NULL, NULL,
     "each rank draws other first parameters, of which rank 0's are taken"},
    {"bucket-mb", POSITIVE, AT(bucket_mb), "25", "X",
     "gradients averaged at once, MiB"},
    {"first-bucket-mb", POSITIVE, AT(first_bucket_mb), "1", "X",
     "those that are ready first"},
    {"overlap", CHOICE, AT(overlap_off), "on", "on|off",
     "average a bucket beside the rest of the backward pass"},
    {"fp16-allreduce", SWITCH, AT(fp16_allreduce), NULL, NULL,
     "send gradients in 16 bits, IEEE half precision; sums are of 32"},
    {"bf16-allreduce", SWITCH, AT(bf16_allreduce), NULL, NULL,
     "the same in bfloat16, which has the range of 32 bits"},
    {"zero", CHOICE, AT(zero), "0", "0|1",
     "1: each rank holds the optimizer's state of its share of the "
     "parameters, and moves that (ZeRO stage 1)"},
    {"deterministic", SWITCH, AT(deterministic), NULL, NULL,
     "the same bits for any bucket size, algorithm and transport, and for 1, "
     "2, 4 or 8 ranks of the same images a step and rate"},
    {"threads", WHOLE, AT(threads), NULL, "N",
     "threads of a rank, for oneDNN's kernels; else OMP_NUM_THREADS, "
     "SLURM_CPUS_PER_TASK, or 1"},
    {"synthetic", SWITCH, AT(synthetic), NULL, NULL,
     "train on one made-up batch over and over, and print Horovod's lines"},
    {"num-warmup-batches", WHOLE_0, AT(num_warmup_batches), "10", "N",
     "its steps before it measures"},
    {"num-batches-per-iter", WHOLE, AT(num_batches_per_iter), "10", "N",
     "its steps for a rate"},
    {"num-iters", WHOLE, AT(num_iters), "10", "N", "its rates"},
    {"checkpoint", TEXT, AT(checkpoint), NULL, "DIR", "save the state there"},
    {"checkpoint-every", WHOLE, AT(checkpoint_every), "1", "N",
     "epochs between two checkpoints"},
    {"keep", WHOLE_0, AT(keep), "5", "N",
     "checkpoints kept, the newest; 0: all"},
    {"resume", TEXT, AT(resume), NULL, "PATH|auto",
     "go on from this checkpoint, or from the newest in --checkpoint"},
    {"json", TEXT, AT(json), NULL, "FILE|-",
     "write the results as one JSON object"},
    {"progress", CHOICE, AT(progress), "auto", "auto|bar|plain|off",
     "auto: a bar on a terminal, a line an epoch elsewhere"},
    {"breakdown", SWITCH, AT(breakdown), NULL, NULL,
     "after each epoch, where rank 0's time went"},
    {"metrics-per-rank", SWITCH, AT(metrics_per_rank), NULL, NULL,
     "after each epoch, each rank's own loss and accuracy"},
    {"verbose", SWITCH, AT(verbose), NULL, NULL,
     "say which kernels are used, and each rank its epochs"},
    {"dry-run", SWITCH, AT(dry_run), NULL, NULL,
     "check everything, print the plan, train nothing"},
    {"check-build", SWITCH, AT(check_build), NULL, NULL,
     "print what this build can do"},
    {"help", SWITCH, AT(help), NULL, NULL, "print this"},
    {"version", SWITCH, AT(version), NULL, NULL, "print the version"},
};

#define N_FLAGS (sizeof(flags) / sizeof(flags[0]))

/* Return the index of the word in "a|b|c", or -1. */
static int word_index(const char *word, const char *words)
{
    size_t len = strlen(word);

    for (int i = 0;; i++) {
        size_t n = strcspn(words, "|");

        if (n == len && !memcmp(word, words, n))
            return i;
        if (!words[n])
            return -1;
        words += n + 1;
    }
}

static int bad_value(const struct flag *f, const char *text, const char *wants)
{
    return train_fail("--%s %s is not valid: it must be %s", f->name, text,
                      wants);
}

static int read_whole(const struct flag *f, const char *text, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno ||
        (f->kind == WHOLE && *value == 0) ||
        *value > (f->at == AT(seed) ? INT64_MAX : INT32_MAX))
        return bad_value(f, text, f->kind == WHOLE
                                      ? "a whole number, 1 or more"
                                      : "a whole number, 0 or more");
    return 0;
}

/* A positive number is refused where a float would make it 0 or infinite. */
static int read_real(const struct flag *f, const char *text, double *value)
{
    double least = f->kind == SHARE ? 0 : (double)FLT_MIN;
    double most = f->kind == SHARE ? 1 : (double)FLT_MAX;
    char *end;

    *value = strtod(text, &end);
    if (end == text || *end || !(*value >= least && *value < most))
        return bad_value(f, text,
                         f->kind == SHARE
                             ? "a number from 0 to below 1"
                             : "a number above 0 and below 3.4e38");
    return 0;
}

static int read_value(struct args *args, const struct flag *f,
                      const char *text)
{
    void *field = (char *)args + f->at;
    int index;

    switch (f->kind) {
    case WHOLE:
    case WHOLE_0:
        return read_whole(f, text, field);
    case POSITIVE:
    case SHARE:
        return read_real(f, text, field);
    case CHOICE:
    case WORD:
        index = word_index(text, f->words);
        if (index < 0)
            return bad_value(f, text, f->words);
        if (f->kind == CHOICE)
            *(int *)field = index;
        else
            *(const char **)field = text;
        return 0;
    case TEXT:
        if (!*text)
            return bad_value(f, "''", f->words);
        *(const char **)field = text;
        return 0;
    case SWITCH:
        break;
    }
    *(int *)field = 1;
    return 0;
}

/* ---- flags by name ---- */

/* Levenshtein's distance, of words shorter than MAX_FLAG. */
static size_t distance(const char *a, const char *b)
{
    size_t row[MAX_FLAG], n = strlen(b);

    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (; *a; a++) {
        size_t diagonal = row[0];

        row[0]++;
        for (size_t j = 1; j <= n; j++) {
            size_t best = diagonal + (*a != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

/* Return the flag whose name this one is meant to be, or NULL. */
static const struct flag *nearest(const char *name)
{
    const struct flag *best = NULL;
    size_t least = NEAR;

    for (size_t i = 0; i < N_FLAGS; i++) {
        size_t d = distance(name, flags[i].name);

        if (d < least && 2 * d < strlen(name)) {
            least = d;
            best = &flags[i];
        }
    }
    return best;
}

static const struct flag *find(const char *name)
{
    const char *instead = hint_for_flag(name);
    const struct flag *near;

    for (size_t i = 0; i < N_FLAGS; i++)
        if (!strcmp(flags[i].name, name))
            return &flags[i];
    near = nearest(name);
    if (instead)
        train_fail("--%s is no option of coll_train: %s", name, instead);
    else if (near)
        train_fail("--%s is no option; did you mean --%s? see coll_train "
                   "--help",
                   name, near->name);
    else
        train_fail("--%s is no option; see coll_train --help", name);
    return NULL;
}

/* Copy the name in "--some_name=value" as "some-name". */
static int read_name(char *name, const char *text)
{
    size_t n = strcspn(text, "=");

    if (n >= MAX_FLAG)
        return train_fail("--%.40s... is no option; see coll_train --help",
                          text);
    for (size_t i = 0; i < n; i++)
        name[i] = text[i] == '_' ? '-' : text[i];
    name[n] = '\0';
    return 0;
}

static int set_defaults(struct args *args)
{
    *args = (struct args){.data_dir = "", .checkpoint = "", .resume = "",
                          .json = ""};
    for (size_t i = 0; i < N_FLAGS; i++)
        if (flags[i].standard && read_value(args, &flags[i], flags[i].standard))
            return -1;
    return 0;
}

/* Read argv[i]; returns how many words it took, or -1. */
static int parse_one(struct args *args, int left, char **argv)
{
    const struct flag *f;
    const char *value;
    char name[MAX_FLAG];

    if (!strcmp(argv[0], "-h")) {
        args->help = 1;
        return 1;
    }
    if (strncmp(argv[0], "--", 2) || !argv[0][2])
        return train_fail("'%s' is not understood: every option begins with "
                          "--; see coll_train --help", argv[0]);
    if (read_name(name, argv[0] + 2))
        return -1;
    f = find(name);
    if (!f)
        return -1;
    value = strchr(argv[0], '=');
    if (f->kind == SWITCH)
        return value ? train_fail("--%s takes no value", f->name)
                     : read_value(args, f, "") + 1;
    if (value)
        return read_value(args, f, value + 1) ? -1 : 1;
    if (left < 2)
        return train_fail("--%s needs a value: %s", f->name, f->words);
    return read_value(args, f, argv[1]) ? -1 : 2;
}

/* Return the dataset that the folder is called after, or NULL. */
static const char *dataset_of(const char *dir)
{
    const struct flag *f = find("dataset");
    size_t len = strlen(dir), from;
    static char name[MAX_FLAG];

    while (len && dir[len - 1] == '/')
        len--;
    for (from = len; from && dir[from - 1] != '/';)
        from--;
    if (len - from >= MAX_FLAG)
        return NULL;
    memcpy(name, dir + from, len - from);
    name[len - from] = '\0';
    return word_index(name, f->words) < 0 ? NULL : name;
}

/* A folder named mnist holds mnist, unless --dataset says something else. */
static void guess_dataset(struct args *args)
{
    const char *name = dataset_of(args->data_dir);

    if (name && args->dataset == find("dataset")->standard)
        args->dataset = name;
}

/* --synthetic trains on what it makes up, and keeps nothing. */
static int judge_synthetic(struct args *args)
{
    if (*args->data_dir || (args->dataset != find("dataset")->standard &&
                            strcmp(args->dataset, "synthetic")))
        return train_fail("--synthetic makes its images up; leave --dataset "
                          "and --data-dir out");
    if (*args->checkpoint || *args->resume)
        return train_fail("--synthetic measures and keeps nothing; leave "
                          "--checkpoint and --resume out");
    args->dataset = "synthetic";
    return 0;
}

/* What a flag cannot see by itself. */
static int judge(struct args *args)
{
    guess_dataset(args);
    if (args->synthetic && judge_synthetic(args))
        return -1;
    if (!args->threads)
        args->threads = threads_by_environment();
    if (args->fp16_allreduce && args->bf16_allreduce)
        return train_fail("--fp16-allreduce and --bf16-allreduce exclude each "
                          "other; give one of them");
    if (args->warmup_epochs && args->warmup_steps)
        return train_fail("--warmup-epochs and --warmup-steps say the same "
                          "thing; give one of them");
    if (!strcmp(args->resume, "auto") && !*args->checkpoint)
        return train_fail("--resume auto looks in the folder of checkpoints; "
                          "name it with --checkpoint DIR");
    return 0;
}

int args_parse(struct args *args, int argc, char **argv)
{
    if (set_defaults(args))
        return -1;
    for (int i = 1; i < argc;) {
        int n = parse_one(args, argc - i, argv + i);

        if (n < 0)
            return -1;
        i += n;
    }
    return judge(args);
}

void args_help(FILE *out)
{
    fputs("usage: coll_train [OPTIONS]\n"
          "Train a convolutional network on small images, data-parallel over "
          "the ranks\nof its launcher: collrun -n 2 coll_train, mpirun, srun, "
          "torchrun, or none.\n\n",
          out);
    for (size_t i = 0; i < N_FLAGS; i++) {
        char left[MAX_FLAG + 64];

        snprintf(left, sizeof(left), "--%s %s", flags[i].name,
                 flags[i].words ? flags[i].words : "");
        fprintf(out, "  %-41s %s", left, flags[i].help);
        if (flags[i].standard)
            fprintf(out, " (%s)", flags[i].standard);
        fputc('\n', out);
    }
    fputs(
        "\nTraining stops when a loss is not finite, and saves nothing of it.\n"
        "Exit status: 0 done, 2 bad usage, 1 any other failure.\n",
        out);
}
