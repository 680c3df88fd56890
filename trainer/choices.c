/* SPDX-License-Identifier: BSD-3-Clause */
/* choices.c - the options that decide a run's results, and their values as
 * text. */
#include "trainer/choices.h"
#include "trainer/flags.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int is_in_head;
} deciding[] = {
    {"limit-train", 1},
    {"limit-test", 1},
    {"limit-steps", 0},
    {"shard", 0},
    {"drop-last", 0},
    {"normalize", 1},
    {"augment", 1},
    {"init", 1},
    {"dropout", 1},
    {"label-smoothing", 0},
    {"accum", 0},
    {"opt", 1},
    {"lr", 1},
    {"lr-scale", 1},
    {"warmup-epochs", 0},
    {"warmup-steps", 0},
    {"lr-schedule", 1},
    {"momentum", 0},
    {"nesterov", 1},
    {"beta1", 0},
    {"beta2", 0},
    {"eps", 0},
    {"weight-decay", 0},
    {"clip-norm", 0},
    {"target-acc", 0},
    {"bucket-mb", 1},
    {"fp16-allreduce", 0},
    {"bf16-allreduce", 0},
    {"deterministic", 1},
    {"elastic", 0},
};

/* Write word number `index` of "a|b|c". */
static void write_word(char *text, const char *words, int index)
{
    for (; index > 0; index--)
        words += strcspn(words, "|") + 1;
    snprintf(text, CHOICE_TEXT, "%.*s", (int)strcspn(words, "|"), words);
}

/* An option without a default is 0 when it is not given. */
static void write_number(char *text, const struct program_option *f, double value)
{
    if (f->standard || value > 0)
        snprintf(text, CHOICE_TEXT, "%.9g", value);
    else
        *text = '\0';
}

static void write_value(char *text, const struct args *args,
                        const struct program_option *f)
{
    const void *field = (const char *)args + f->at;

    switch (f->kind) {
    case OPTION_U64:
        write_number(text, f, (double)*(const uint64_t *)field);
        break;
    case OPTION_POSITIVE:
    case OPTION_SHARE:
        write_number(text, f, *(const double *)field);
        break;
    case OPTION_CHOICE:
        write_word(text, f->value, *(const int *)field);
        break;
    case OPTION_CALL: /* --lr-schedule is the only one that decides */
        snprintf(text, CHOICE_TEXT, "%s", args->schedule.text);
        break;
    default:
        snprintf(text, CHOICE_TEXT, "%s", *(const int *)field ? "on" : "off");
        break;
    }
}

int choice_at(struct choice *choice, const struct args *args, size_t i)
{
    const struct program_option *f;

    if (i >= sizeof(deciding) / sizeof(deciding[0]))
        return 0;
    f = flag_named(deciding[i].name);
    *choice = (struct choice){.name = f->name,
                              .is_switch = f->kind == OPTION_SWITCH,
                              .is_in_head = deciding[i].is_in_head};
    write_value(choice->text, args, f);
    choice->is_standard = !strcmp(choice->text, f->standard ? f->standard
                                                : choice->is_switch ? "off"
                                                                    : "");
    return 1;
}
