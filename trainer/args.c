/* SPDX-License-Identifier: BSD-3-Clause */
/* args.c - the command line: flags over defaults, and what only all of them
 * together show. */
#include "trainer/args.h"
#include "trainer/config_file.h"
#include "trainer/error.h"
#include "trainer/flags.h"
#include "trainer/hints.h"
#include "trainer/optim.h"
#include "trainer/threads.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_SIZE 64

static int set_defaults(struct args *args)
{
    *args = (struct args){.data_dir = "",
                          .checkpoint = "",
                          .resume = "",
                          .json = "",
                          .config = "",
                          .timeline = "",
                          .profile = ""};
    for (size_t i = 0; i < flag_count; i++)
        if (flag_table[i].standard &&
            flag_set(args, &flag_table[i], flag_table[i].standard))
            return -1;
    return 0;
}

static int not_understood(const char *word)
{
    const char *instead = *word == '-' ? hint_for_flag(word + 1) : NULL;

    if (instead)
        return train_refuse("%s is no option of coll_train: %s", word, instead);
    return train_refuse("'%s' is not understood: every option begins with "
                        "--; see coll_train --help",
                        word);
}

/* Read argv[i]; returns how many words it took, or -1. */
static int parse_one(struct args *args, int left, char **argv)
{
    const struct flag *f;
    const char *value;

    if (!strcmp(argv[0], "-h")) {
        args->help = 1;
        return 1;
    }
    if (strncmp(argv[0], "--", 2) || !argv[0][2])
        return not_understood(argv[0]);
    f = flag_find(argv[0] + 2);
    if (!f)
        return -1;
    value = strchr(argv[0], '=');
    if (value && f->kind == SWITCH)
        return train_refuse("--%s takes no value", f->name);
    if (value)
        return flag_set(args, f, value + 1) ? -1 : 1;
    if (flag_stands_alone(f))
        return flag_set(args, f, "1") ? -1 : 1;
    if (left < 2)
        return train_refuse("--%s needs a value: %s", f->name, f->words);
    return flag_set(args, f, argv[1]) ? -1 : 2;
}

/* Return the dataset that the folder is called after, or NULL. */
static const char *dataset_of(const char *dir)
{
    const struct flag *f = flag_find("dataset");
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
    return flag_word(name, f->words) < 0 ? NULL : name;
}

/* A folder named mnist holds mnist, unless --dataset says something else. */
static void guess_dataset(struct args *args)
{
    const char *name = dataset_of(args->data_dir);

    if (name && args->dataset == flag_find("dataset")->standard)
        args->dataset = name;
}

/* --synthetic trains on what it makes up, and keeps nothing. */
static int judge_synthetic(struct args *args)
{
    if (*args->data_dir || (args->dataset != flag_find("dataset")->standard &&
                            strcmp(args->dataset, "synthetic")))
        return train_refuse("--synthetic makes its images up; leave --dataset "
                            "and --data-dir out");
    if (*args->checkpoint || *args->resume)
        return train_refuse("--synthetic measures and keeps nothing; leave "
                            "--checkpoint and --resume out");
    if (args->schedule.kind != SCHEDULE_CONST)
        return train_refuse("--synthetic has no epochs for a rate to follow; "
                            "leave --lr-schedule out");
    if (args->log_interval)
        return train_refuse("--synthetic prints rates, and no losses; leave "
                            "--log-interval out");
    if (args->target_acc > 0)
        return train_refuse(
            "--synthetic tests nothing; leave --target-acc out");
    args->dataset = "synthetic";
    return 0;
}

/* --eval-only is a run of no epochs from a checkpoint: it has no batches to share among
 * its ranks, however many they are, and no target. */
static int judge_eval(struct args *args)
{
    if (!*args->resume)
        return train_refuse("--eval-only tests a checkpoint; name it with "
                            "--resume PATH, or --resume auto --checkpoint DIR");
    args->epochs = args->global_batch_size = 0;
    args->batch_size = 1;
    if (!args->test_batch_size)
        args->test_batch_size = BATCH_SIZE;
    args->drop_last_off = 1;
    args->target_acc = 0;
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
        return train_refuse(
            "--fp16-allreduce and --bf16-allreduce exclude each "
            "other; give one of them");
    if (args->warmup_epochs && args->warmup_steps)
        return train_refuse("--warmup-epochs and --warmup-steps say the same "
                            "thing; give one of them");
    if (args->nesterov && args->opt != OPTIM_SGD)
        return train_refuse(
            "--nesterov is a momentum of sgd; give --opt sgd or "
            "leave it out");
    if (args->nesterov && !(args->momentum > 0))
        return train_refuse("--nesterov looks ahead by the momentum; give "
                            "--momentum above 0 or leave it out");
    if (args->target_acc > 1)
        return train_refuse(
            "--target-acc %g is not valid: it must be a part of "
            "1, as 0.99",
            args->target_acc);
    if (args->batch_size && args->global_batch_size)
        return train_refuse("--batch-size and --global-batch-size say the same "
                            "thing, of one rank and of all; give one of them");
    if (!args->batch_size && !args->global_batch_size)
        args->batch_size = BATCH_SIZE;
    if (!strcmp(args->resume, "auto") && !*args->checkpoint)
        return train_refuse("--resume auto looks in the folder of checkpoints; "
                            "name it with --checkpoint DIR");
    return args->eval_only ? judge_eval(args) : 0;
}

static int parse_all(struct args *args, int argc, char **argv)
{
    for (int i = 1; i < argc;) {
        int n = parse_one(args, argc - i, argv + i);

        if (n < 0)
            return -1;
        i += n;
    }
    return 0;
}

/* Begin again, with the file that the command line has named. */
static int parse_over_file(struct args *args, int argc, char **argv)
{
    const char *path = args->config;

    if (set_defaults(args) || config_read(args, path))
        return -1;
    return parse_all(args, argc, argv);
}

int args_parse(struct args *args, int argc, char **argv)
{
    int st = set_defaults(args);

    if (!st)
        st = parse_all(args, argc, argv);
    if (!st && *args->config)
        st = parse_over_file(args, argc, argv);
    if (!st)
        st = judge(args);
    if (st)
        args_fini(args);
    return st;
}

void args_fini(struct args *args)
{
    free(args->config_text);
    args->config_text = NULL;
}

int args_share_batch(struct args *args, int n_ranks)
{
    uint64_t parts = (uint64_t)n_ranks * args->accum;
    unsigned long long all = args->global_batch_size;

    if (all == 0)
        return 0;
    if (all % parts)
        return train_refuse("--global-batch-size %llu does not divide by %d "
                            "rank%s x --accum %llu; give a multiple of %llu",
                            all, n_ranks, n_ranks > 1 ? "s" : "",
                            (unsigned long long)args->accum,
                            (unsigned long long)parts);
    args->batch_size = all / parts;
    return 0;
}

void args_help(FILE *out)
{
    fputs("usage: coll_train [OPTIONS]\n"
          "Train a convolutional network on small images, data-parallel over "
          "the ranks\nof its launcher: collrun -n 2 coll_train, mpirun, srun, "
          "torchrun, or none.\n\n",
          out);
    for (size_t i = 0; i < flag_count; i++) {
        char left[MAX_FLAG + 64];

        snprintf(left, sizeof(left),
                 flag_table[i].kind == OPTIONAL ? "--%s[=%s]" : "--%s %s",
                 flag_table[i].name,
                 flag_table[i].words ? flag_table[i].words : "");
        fprintf(out, "  %-41s %s", left, flag_table[i].help);
        if (flag_table[i].standard)
            fprintf(out, " (%s)", flag_table[i].standard);
        fputc('\n', out);
    }
    fputs(
        "\nTraining stops when a loss is not finite, and saves nothing of it.\n"
        "Exit status: 0 done; 2 wrong flags, variables, data or checkpoint; "
        "3 a\ncollective failed (a rank died, or did not come); 4 a loss is "
        "not finite;\n1 any other failure (a disk, memory); 128 + the signal "
        "that ended it, but 0\nafter USR1.\n",
        out);
}
