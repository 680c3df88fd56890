/* SPDX-License-Identifier: BSD-3-Clause */
/* flag_value.c - flags by their names, and their values from text. */
#include "tools/common/near.h"
#include "trainer/error.h"
#include "trainer/flags.h"
#include "trainer/hints.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 3 /* letters that a name may be wrong in, for a hint */

/* ---- values ---- */

int flag_word(const char *word, const char *words)
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
    return train_refuse("--%s %s is not valid: it must be %s", f->name, text,
                        wants);
}

static int read_whole(const struct flag *f, const char *text, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno ||
        (f->kind == WHOLE && *value == 0) ||
        *value > (f->at == offsetof(struct args, seed) ? INT64_MAX : INT32_MAX))
        return bad_value(f, text,
                         f->kind == WHOLE ? "a whole number, 1 or more"
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

/* "step:30,0.1": as a kind of schedule and its numbers. */
static int read_schedule(const struct flag *f, const char *text,
                         struct schedule *schedule)
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
            return bad_value(f, text,
                             "const, cosine, or step:E,F with a whole number "
                             "of epochs and a factor above 0, as step:30,0.1");
    }
    *schedule = s;
    return 0;
}

int flag_set(struct args *args, const struct flag *f, const char *text)
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
        index = flag_word(text, f->words);
        if (index < 0)
            return bad_value(f, text, f->words);
        if (f->kind == CHOICE)
            *(int *)field = index;
        else
            *(const char **)field = text;
        return 0;
    case TEXT:
    case OPTIONAL:
        if (!*text)
            return bad_value(f, "''", f->words);
        *(const char **)field = text;
        return 0;
    case SCHEDULE:
        return read_schedule(f, text, field);
    case SWITCH:
        break;
    }
    *(int *)field = 1;
    return 0;
}

/* ---- flags by name ---- */

/* Return the flag whose name this one is meant to be, or NULL. */
static const struct flag *nearest(const char *name)
{
    const struct flag *best = NULL;
    size_t least = NEAR;

    for (size_t i = 0; i < flag_count; i++) {
        size_t d = near_distance(name, flag_table[i].name);

        if (d < least && 2 * d < strlen(name)) {
            least = d;
            best = &flag_table[i];
        }
    }
    return best;
}

/* Copy the name in "--some_name=value" as "some-name". */
static int read_name(char *name, const char *text)
{
    size_t n = strcspn(text, "=");

    if (n >= MAX_FLAG)
        return train_refuse("--%.40s... is no option; see coll_train --help",
                            text);
    for (size_t i = 0; i < n; i++)
        name[i] = text[i] == '_' ? '-' : text[i];
    name[n] = '\0';
    return 0;
}

const struct flag *flag_find(const char *text)
{
    const struct flag *near;
    const char *instead;
    char name[MAX_FLAG];

    if (read_name(name, text))
        return NULL;
    for (size_t i = 0; i < flag_count; i++)
        if (!strcmp(flag_table[i].name, name))
            return &flag_table[i];
    instead = hint_for_flag(name);
    near = nearest(name);
    if (instead)
        train_refuse("--%s is no option of coll_train: %s", name, instead);
    else if (near)
        train_refuse("--%s is no option; did you mean --%s? see coll_train "
                     "--help",
                     name, near->name);
    else
        train_refuse("--%s is no option; see coll_train --help", name);
    return NULL;
}
