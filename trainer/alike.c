/* SPDX-License-Identifier: BSD-3-Clause */
/* alike.c - compare the options and the models of all ranks: each option, and each
 * layer, becomes one number.
 */
#include "trainer/alike.h"
#include "trainer/error.h"
#include "trainer/flags.h"
#include "trainer/model.h"
#include "trainer/rng.h"

#include <stdlib.h>
#include <string.h>

/* The options that each rank may have its own value of. */
static const char *const own[] = {
    "config",   "data-dir", "keep",      "json",    "progress", "log-interval",
    "timeline", "profile",  "breakdown", "verbose", "threads",  "prefetch",
};

static int is_own(const char *name)
{
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (!strcmp(own[i], name))
            return 1;
    return 0;
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 1;

    for (; *text; text++)
        hash = rng_key(hash, (unsigned char)*text);
    return hash;
}

/* Each rank may have a GPU of another number. */
static uint64_t hash_kind(const char *device)
{
    return hash_text(strncmp(device, "cuda", 4) ? device : "cuda");
}

static uint64_t hash_real(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Return a number for the option's value; different values have different numbers.  For
 * a file the number only says whether one is named, since its path may differ between
 * hosts. */
static uint64_t word_of(const struct args *args, const struct program_option *f)
{
    const void *field = (const char *)args + f->at;

    if (!*f->name || is_own(f->name))
        return 0;
    switch (f->kind) {
    case OPTION_U64:
        return *(const uint64_t *)field;
    case OPTION_POSITIVE:
    case OPTION_SHARE:
        return hash_real(*(const double *)field);
    case OPTION_CHOICE:
    case OPTION_SWITCH:
        return (uint64_t) * (const int *)field;
    case OPTION_WORD:
        return hash_text(*(const char *const *)field);
    case OPTION_CALL: /* --profile is a rank's own */
        return strcmp(f->name, "device") ? hash_text(args->schedule.text)
                                         : hash_kind(args->device);
    default:
        return **(const char *const *)field != '\0';
    }
}

static size_t count_options(void)
{
    size_t n = 0;

    while (coll_train.options[n].name)
        n++;
    return n;
}

uint64_t args_digest(const struct args *args)
{
    uint64_t digest = rng_key(args->config_crc, count_options());

    for (size_t i = 0; i < count_options(); i++)
        digest = rng_key(digest, word_of(args, &coll_train.options[i]));
    return digest;
}

int args_check_alike(const struct args *args, struct ddp *ddp)
{
    uint64_t n = count_options(), *words;
    size_t differs = 0;

    if (ddp_compare_words(ddp, &n, 1, &differs))
        return -1;
    if (!differs)
        return train_refuse("the ranks run different versions of coll_train; "
                            "install the same one on all hosts");
    words = calloc(n, sizeof(*words));
    if (!words)
        return train_fail("out of memory for the options of %d ranks; use "
                          "fewer ranks on this machine",
                          ddp->size);
    for (size_t i = 0; i < n; i++)
        words[i] = word_of(args, &coll_train.options[i]);
    if (ddp_compare_words(ddp, words, n, &differs)) {
        free(words);
        return -1;
    }
    free(words);
    return differs == n ? 0
                        : train_refuse("--%s is not the same on all ranks; "
                                       "start all ranks with the same "
                                       "options",
                                       coll_train.options[differs].name);
}

/* Return a number that identifies a layer's kind and shapes. */
static uint64_t signature(const struct layer *l)
{
    const int words[] = {(int)l->spec.kind, l->spec.kernel,  l->spec.stride,
                         l->spec.pad,       l->spec.relu,    l->spec.from,
                         l->spec.plus,      l->in.channels,  l->in.height,
                         l->in.width,       l->out.channels, l->out.height,
                         l->out.width};
    uint64_t sum = 1;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        sum = rng_key(sum, (uint64_t)(uint32_t)words[i]);
    return sum;
}

int model_check_alike(const struct model *m, struct ddp *ddp)
{
    uint64_t n = (uint64_t)model_n_layers(m), *words;
    size_t differs = 0;
    int st = ddp_compare_words(ddp, &n, 1, &differs);

    if (st)
        return -1;
    if (differs == 0)
        return train_refuse("the ranks have models with different numbers of "
                            "layers (here %llu); start all ranks with the same "
                            "options",
                            (unsigned long long)n);
    words = malloc(n * sizeof(*words));
    if (!words)
        return train_fail("out of memory for %llu layers",
                          (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++)
        words[i] = signature(model_layer(m, (int)i));
    st = ddp_compare_words(ddp, words, n, &differs);
    free(words);
    if (!st && differs < n)
        st = train_refuse("layer %zu (%s) is not the same on all ranks; start "
                          "all with the same flags and data",
                          differs, model_layer(m, (int)differs)->ops->name);
    return st;
}
