/* SPDX-License-Identifier: BSD-3-Clause */
/* args.c - read the command line over the defaults, and check options that depend on
 * each other. */
#include "trainer/args.h"
#include "trainer/config_file.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/flags.h"
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
    return program_defaults(&coll_train, args);
}

/* The default's text is the option's own, and no other text is. */
int args_names_dataset(const struct args *args)
{
    return args->dataset != flag_named("dataset")->standard;
}

/* Return the data set that the folder is named after, or NULL. */
static const char *dataset_of(const char *dir)
{
    size_t len = strlen(dir), from;
    static char name[32];

    while (len && dir[len - 1] == '/')
        len--;
    for (from = len; from && dir[from - 1] != '/';)
        from--;
    if (len - from >= sizeof(name))
        return NULL;
    memcpy(name, dir + from, len - from);
    name[len - from] = '\0';
    return program_word(name, flag_named("dataset")->value) < 0 ? NULL : name;
}

/* A folder named mnist holds mnist, unless --dataset says something else. */
static void guess_dataset(struct args *args)
{
    const char *name = dataset_of(args->data_dir);

    if (name && !args_names_dataset(args))
        args->dataset = name;
}

/* --synthetic trains on made-up images and keeps nothing. */
static int judge_synthetic(struct args *args)
{
    if (*args->data_dir ||
        (args_names_dataset(args) && strcmp(args->dataset, "synthetic")))
        return train_refuse("--synthetic makes its images up; leave --dataset "
                            "and --data-dir out");
    if (*args->checkpoint || *args->resume)
        return train_refuse("--synthetic measures and keeps nothing; leave "
                            "--checkpoint and --resume out");
    if (args->schedule.kind != SCHEDULE_CONST)
        return train_refuse(
            "--synthetic has no epochs, which a schedule needs; "
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

/* --eval-only is a run without epochs: it needs no batch that the ranks can
 * share evenly, and it has no target. */
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

/* Survivors divide one order of images. */
static int judge_elastic(const struct args *args)
{
    if (args->synthetic || args->eval_only)
        return train_refuse("--elastic belongs to a training; leave it out, or "
                            "leave --synthetic and --eval-only out");
    if (args->shard)
        return train_refuse("--elastic divides one order of images among the "
                            "ranks; leave --shard out");
    return 0;
}

/* Check what only several options together show. */
static int judge(struct args *args)
{
    int number;

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
        return train_refuse("--nesterov belongs to sgd; give --opt sgd or "
                            "leave --nesterov out");
    if (args->nesterov && !(args->momentum > 0))
        return train_refuse("--nesterov needs a momentum; give --momentum "
                            "above 0 or leave --nesterov out");
    if (args->target_acc > 1)
        return train_refuse("--target-acc %g is not valid: it must be a "
                            "share of 1, such as 0.99",
                            args->target_acc);
    if (args->graph == GRAPH_ON && args->elastic && args->zero)
        return train_refuse("--graph on is not possible with --elastic and "
                            "--zero; leave one of them out");
    if (args->elastic && judge_elastic(args))
        return -1;
    if (strcmp(args->device, "auto") && !device_find(args->device, &number))
        return -1;
    if (args->batch_size && args->global_batch_size)
        return train_refuse("--batch-size and --global-batch-size say the same "
                            "thing, of one rank and of all; give one of them");
    if (!args->batch_size && !args->global_batch_size)
        args->batch_size = BATCH_SIZE;
    if (!strcmp(args->resume, "auto") && !*args->checkpoint)
        return train_refuse(
            "--resume auto needs the folder of the checkpoints; "
            "name it with --checkpoint DIR");
    return args->eval_only ? judge_eval(args) : 0;
}

/* Read the file of --config over the defaults, and the command line again over
 * that. */
static int parse_over_file(struct args *args, int argc, char **argv)
{
    const char *path = args->config;
    int status;

    if (set_defaults(args) || config_read(args, path))
        return -1;
    return program_read(&coll_train, argc, argv, args, &status) < 0 ? -1 : 0;
}

int args_parse(struct args *args, int argc, char **argv)
{
    int status, st = set_defaults(args);

    if (!st && program_read(&coll_train, argc, argv, args, &status) < 0)
        return status == PROGRAM_USAGE ? -1 : 1 + status;
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
