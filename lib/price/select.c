/* SPDX-License-Identifier: BSD-3-Clause */
/* select.c - the cheapest algorithm that is allowed. */
#include "lib/price/select.h"
#include "lib/trace/log.h"
#include "lib/util/float_state.h"

#include <stdio.h>
#include <string.h>

/* One item of COLL_ALGO; name and collective are not NUL-terminated. */
struct item {
    const char *collective, *name;
    size_t collective_len, name_len;
};

/* Cut the next item off *text; returns 0 at the end. */
static int next_item(const char **text, struct item *item)
{
    size_t len = strcspn(*text, ",");
    const char *colon = memchr(*text, ':', len);

    if (!**text)
        return 0;
    *item = (struct item){*text, *text, 0, len};
    if (colon) {
        item->collective_len = (size_t)(colon - *text);
        item->name = colon + 1;
        item->name_len = len - item->collective_len - 1;
    }
    *text += len + ((*text)[len] == ',');
    return 1;
}

static int is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && !memcmp(text, word, len);
}

/* Does the algorithm serve the item's collective? */
static int serves_named(const struct coll__algo *algo, const struct item *item)
{
    for (int k = 0; k < COLL_N_COLLECTIVES; k++)
        if (algo->serves & 1u << k &&
            is_word(item->collective, item->collective_len,
                    coll_collective_name((enum coll_collective)k)))
            return 1;
    return 0;
}

static int item_names(const struct item *item, const struct coll__algo *algo)
{
    return is_word(item->name, item->name_len, algo->name) &&
           (!item->collective_len || serves_named(algo, item));
}

/* Write the names that would be valid in place of the item's into text. */
static void list_names(const struct item *item, char *text, size_t len)
{
    size_t n = 0;

    text[0] = '\0';
    for (int i = 0; coll__algos[i] && n < len; i++) {
        const struct coll__algo *algo = coll__algos[i];
        int seen = 0;

        if (item->collective_len && !serves_named(algo, item))
            continue;
        for (int j = 0; j < i && !item->collective_len; j++)
            seen |= !strcmp(coll__algos[j]->name, algo->name);
        if (!seen)
            n += (size_t)snprintf(text + n, len - n, "%s%s", n ? ", " : "",
                                  algo->name);
    }
    if (!n) /* no collective has this name */
        for (int k = 0; k < COLL_N_COLLECTIVES && n < len; k++)
            n += (size_t)snprintf(text + n, len - n, "%s%s:NAME",
                                  k ? ", " : "",
                                  coll_collective_name(
                                      (enum coll_collective)k));
}

int coll__algo_check(const char *forced)
{
    struct item item;
    char names[1024];

    while (next_item(&forced, &item)) {
        int known = 0;

        for (int i = 0; coll__algos[i]; i++)
            known |= item_names(&item, coll__algos[i]);
        if (known)
            continue;
        list_names(&item, names, sizeof(names));
        log_error("plan", "COLL_ALGO: there is no algorithm '%.*s'; there are: "
                  "%s",
                  (int)(item.name + item.name_len - item.collective),
                  item.collective, names);
        return COLL_ERR_INVALID;
    }
    return COLL_OK;
}

int coll__algo_is_forced(const struct coll__algo *algo, const char *forced,
                         enum coll_collective collective)
{
    struct item item;

    while (next_item(&forced, &item))
        if (item_names(&item, algo) &&
            (!item.collective_len ||
             is_word(item.collective, item.collective_len,
                     coll_collective_name(collective))))
            return 1;
    return 0;
}

/* Can one of the forced algorithms serve this problem? */
static int can_be_forced(const struct coll__problem *pb, const char *forced)
{
    for (int i = 0; *forced && coll__algos[i]; i++)
        if (coll__algo_is_forced(coll__algos[i], forced, pb->collective) &&
            !coll__algo_refuses(coll__algos[i], pb))
            return 1;
    return 0;
}

static int comes_before(const struct coll__candidate *a,
                        const struct coll__candidate *b)
{
    return !a->refusal &&
           (b->refusal || coll__algo_is_cheaper(a->seconds, b->seconds));
}

/* Insert into the sorted list, which keeps its first `max` items; returns the new
 * length. */
static int insert(struct coll__candidate *list, int n, int max,
                  const struct coll__candidate *c)
{
    int at = n < max ? n++ : n;

    while (at > 0 && comes_before(c, &list[at - 1])) {
        if (at < max)
            list[at] = list[at - 1];
        at--;
    }
    if (at < max)
        list[at] = *c;
    return n;
}

int coll__algo_candidates(const struct coll__problem *pb, const char *forced,
                          struct coll__candidate *list, int max)
{
    int is_narrowed = can_be_forced(pb, forced), n = 0;
    unsigned long own = float_state_enter(); /* all ranks get the same prices */

    for (int i = 0; coll__algos[i]; i++) {
        struct coll__candidate c = {.algo = coll__algos[i]};

        if (!(c.algo->serves & 1u << pb->collective))
            continue;
        c.refusal = coll__algo_refuses(c.algo, pb);
        if (!c.refusal && is_narrowed &&
            !coll__algo_is_forced(c.algo, forced, pb->collective))
            c.refusal = "is not allowed by COLL_ALGO";
        if (!c.refusal)
            c.seconds = c.algo->cost(pb);
        n = insert(list, n, max, &c);
    }
    float_state_leave(own);
    return n;
}
