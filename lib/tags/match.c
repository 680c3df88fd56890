/* SPDX-License-Identifier: BSD-3-Clause */
/* match.c - lists of receives and of messages, each in the order of its envelopes. */
#include "lib/tags/match.h"
#include "include/coll/coll.h"

#include <stdlib.h>

struct coll__envelopes {
    struct coll__envelope *first, **last;
};

static void clear(struct coll__envelopes *list)
{
    list->first = NULL;
    list->last = &list->first;
}

static void append(struct coll__envelopes *list,
                   struct coll__envelope *envelope)
{
    envelope->next = NULL;
    *list->last = envelope;
    list->last = &envelope->next;
}

/* Take out the envelope at that place of a list. */
static struct coll__envelope *take(struct coll__envelopes *list,
                                   struct coll__envelope **at)
{
    struct coll__envelope *envelope = *at;

    *at = envelope->next;
    if (!*at)
        list->last = at;
    return envelope;
}

int coll__matcher_init(struct coll__matcher *m, int size)
{
    size_t n = (size_t)size;

    *m = (struct coll__matcher){.size = size};
    m->receives = calloc(n + 1, sizeof(*m->receives));
    m->messages = calloc(n, sizeof(*m->messages));
    if (!m->receives || !m->messages) {
        coll__matcher_fini(m);
        return COLL_ERR_NOMEM;
    }
    coll__match_forget(m);
    return COLL_OK;
}

void coll__match_forget(struct coll__matcher *m)
{
    for (int r = 0; r < m->size; r++)
        clear(&m->messages[r]);
    for (int r = 0; r <= m->size; r++)
        clear(&m->receives[r]);
    m->n_receives = m->n_messages = 0;
}

void coll__matcher_fini(struct coll__matcher *m)
{
    free(m->receives);
    free(m->messages);
    m->receives = m->messages = NULL;
}

/* ---- receives -------------------------------------------------------------- */

/* Return the place of the first receive of a list that takes the tag, or NULL. */
static struct coll__envelope **find_receive(struct coll__envelopes *list,
                                            int tag)
{
    for (struct coll__envelope **at = &list->first; *at; at = &(*at)->next)
        if ((*at)->tag == tag || (*at)->tag == COLL_ANY_TAG)
            return at;
    return NULL;
}

struct coll__envelope *coll__match_message(struct coll__matcher *m, int source,
                                           int tag)
{
    struct coll__envelopes *own = &m->receives[source];
    struct coll__envelopes *any = &m->receives[m->size];
    struct coll__envelope **one = find_receive(own, tag);
    struct coll__envelope **other = find_receive(any, tag);

    if (!one && !other)
        return NULL;
    m->n_receives--;
    if (!other || (one && (*one)->order < (*other)->order))
        return take(own, one);
    return take(any, other);
}

void coll__match_post(struct coll__matcher *m, struct coll__envelope *receive)
{
    int at = receive->source == COLL_ANY_RANK ? m->size : receive->source;

    receive->order = m->n++;
    m->n_receives++;
    append(&m->receives[at], receive);
}

/* ---- messages -------------------------------------------------------------- */

static struct coll__envelope **find_message(struct coll__envelopes *list,
                                            int tag)
{
    for (struct coll__envelope **at = &list->first; *at; at = &(*at)->next)
        if (tag == COLL_ANY_TAG || (*at)->tag == tag)
            return at;
    return NULL;
}

/* Return the place of the earliest message that a receive matches, and its list. */
static struct coll__envelope **find(const struct coll__matcher *m, int source,
                                    int tag, struct coll__envelopes **list)
{
    int first = source == COLL_ANY_RANK ? 0 : source;
    int last = source == COLL_ANY_RANK ? m->size - 1 : source;
    struct coll__envelope **found = NULL;

    for (int r = first; m->n_messages && r <= last; r++) {
        struct coll__envelope **at = find_message(&m->messages[r], tag);

        if (!at || (found && (*found)->order < (*at)->order))
            continue;
        found = at;
        *list = &m->messages[r];
    }
    return found;
}

struct coll__envelope *coll__match_receive(struct coll__matcher *m, int source,
                                           int tag)
{
    struct coll__envelopes *list = NULL;
    struct coll__envelope **at = find(m, source, tag, &list);

    if (!at)
        return NULL;
    m->n_messages--;
    return take(list, at);
}

const struct coll__envelope *coll__match_look(const struct coll__matcher *m,
                                              int source, int tag)
{
    struct coll__envelopes *list;
    struct coll__envelope **at = find(m, source, tag, &list);

    return at ? *at : NULL;
}

void coll__match_keep(struct coll__matcher *m, struct coll__envelope *message)
{
    message->order = m->n++;
    m->n_messages++;
    append(&m->messages[message->source], message);
}
