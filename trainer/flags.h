/* SPDX-License-Identifier: BSD-3-Clause */
/* flags.h - what can be asked for: a flag's name, its kind of value, its field. */
#ifndef COLL_TRAINER_FLAGS_H
#define COLL_TRAINER_FLAGS_H

#include "trainer/args.h"

#define MAX_FLAG 64 /* bytes of a name, its end included */

enum flag_kind {
    TEXT,
    WHOLE,    /* uint64_t, from 1 */
    WHOLE_0,  /* uint64_t, from 0 */
    POSITIVE, /* double above 0 */
    SHARE,    /* double in [0, 1) */
    CHOICE,   /* int, the index of the word */
    WORD,     /* const char *, one of the words */
    SCHEDULE, /* struct schedule */
    OPTIONAL, /* const char *, "1" without a value, which only = gives */
    SWITCH    /* int, 1 when given */
};

struct flag {
    const char *name;
    enum flag_kind kind;
    size_t at;            /* offset of its field */
    const char *standard; /* as the user would write it; NULL: none */
    const char *words;    /* what the value may be, or its name */
    const char *help;
};

extern const struct flag flag_table[];
extern const size_t flag_count;

/* Return the flag called so, in which '_' counts as '-' and which ends with its
 * text or with '='; or NULL with train_error() set, a hint included. */
const struct flag *flag_find(const char *text);

/* May it stand without a value? */
static inline int flag_stands_alone(const struct flag *f)
{
    return f->kind == SWITCH || f->kind == OPTIONAL;
}

/* Read a value, "1" for what stands alone.  Result: 0, or -1 with train_error() set. */
int flag_set(struct args *args, const struct flag *f, const char *text);

/* Return the index of the word in "a|b|c", or -1. */
int flag_word(const char *word, const char *words);

#endif
