/* SPDX-License-Identifier: BSD-3-Clause */
/* args.h - the command line, read into one struct. */
#ifndef COLL_TRAINER_ARGS_H
#define COLL_TRAINER_ARGS_H

#include <stddef.h>
#include <stdint.h>

enum lr_scale { LR_LINEAR, LR_SQRT, LR_NONE };
enum prefetch { PREFETCH_OFF, PREFETCH_AUTO, PREFETCH_ON };
enum graph { GRAPH_AUTO, GRAPH_ON, GRAPH_OFF };
enum progress { PROGRESS_AUTO, PROGRESS_BAR, PROGRESS_PLAIN, PROGRESS_OFF };

enum schedule_kind { SCHEDULE_CONST, SCHEDULE_STEP, SCHEDULE_COSINE };

/* How the learning rate changes after the warm-up. */
struct schedule {
    enum schedule_kind kind;
    uint64_t every;   /* epochs, of SCHEDULE_STEP */
    double factor;    /* the rate is multiplied by it after that many epochs */
    const char *text; /* as the user wrote it */
};

/* The values of all options.  An option with a fixed choice of words is the index of
 * the word. */
struct args {
    const char *config; /* "" when not given */
    char *config_text;  /* the text of that file; args_fini() frees it */
    uint32_t config_crc;            /* its CRC-32 before it was parsed; 0: no
                                     * file */
    const char *dataset, *data_dir; /* data_dir "" when not given */
    uint64_t limit_train, limit_test, limit_steps; /* 0: all */
    int shard;                                     /* enum shard */
    int drop_last_off;
    int normalize_meanstd;
    int augment; /* enum augment */
    const char *model;
    int init;       /* enum model_init_kind */
    int dropout_off;
    uint64_t epochs;
    uint64_t test_batch_size;   /* 0: a training pass's */
    uint64_t batch_size;        /* of a rank, */
    uint64_t global_batch_size; /* or of all, for args_share_batch(); 0: not
                                 * given */
    int opt;   /* enum optim_kind */
    double lr; /* 0: the optimizer's own */
    int lr_scale;
    uint64_t warmup_epochs, warmup_steps; /* 0: none */
    struct schedule schedule;
    double momentum, beta1, beta2;
    int nesterov;
    double epsilon;      /* 0: the optimizer's own */
    double weight_decay; /* 0: none */
    double label_smoothing; /* 0: none */
    double clip_norm;    /* 0: none */
    uint64_t accum;      /* batches of a rank in a step */
    double target_acc;   /* test accuracy at which training ends; 0: none */
    uint64_t seed;
    double bucket_mb;
    int overlap_off;
    int prefetch; /* enum prefetch */
    int fp16_allreduce, bf16_allreduce;
    int zero; /* the stage of ZeRO: 1, or 0 for none */
    int deterministic;
    int elastic;        /* go on without ranks that die */
    const char *device; /* as --device has it; main() replaces auto */
    int precision;      /* enum precision */
    int graph;          /* enum graph */
    uint64_t threads;
    int synthetic;
    uint64_t num_warmup_batches, num_batches_per_iter, num_iters;
    const char *checkpoint, *resume, *json; /* "" when not given */
    int eval_only;                          /* then epochs is 0 */
    uint64_t checkpoint_every, keep;
    int progress;
    uint64_t log_interval; /* steps; 0: no lines */
    const char *timeline, *profile; /* "" when not given */
    int breakdown, verbose, dry_run, check_build;
};

/* Read the command line over the defaults.
 *
 * Shapes:    argv as main() gets it; '_' in a flag's name counts as '-';
 *            --flag=value and --flag value are the same.  Flags of --config's
 *            file go over the defaults, and those of argv over them.
 * Result:    0; -1 with train_error() set, one sentence; above 0 when --help or
 *            --version has been answered: 1 + the exit status.
 * Ownership: texts stay argv's; end *args by args_fini(), unless this failed.
 */
int args_parse(struct args *args, int argc, char **argv);
void args_fini(struct args *args);

/* Return 1 if the user has named the data set, by --dataset or by a folder of its name. */
int args_names_dataset(const struct args *args);

/* Divide --global-batch-size, if it is given, by the number of ranks and the
 * parts of --accum.
 *
 * Result:    0, or -1 with train_error() set: it cannot be divided evenly.
 */
int args_share_batch(struct args *args, int n_ranks);

#endif
