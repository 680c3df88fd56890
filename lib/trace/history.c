/* SPDX-License-Identifier: BSD-3-Clause */
/* history.c - a ring buffer of the signatures of the last operations. */
#include "lib/trace/history.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <string.h>

/* Words of a signature; its user tag follows, which ranks do not compare. */
enum { WORDS = 3, TAG = WORDS };

_Static_assert(sizeof(struct coll__signature) == WORDS * sizeof(uint64_t),
               "a signature is three words");

void coll__history_start(struct coll__history *h,
                         const struct coll__signature *sig, uint64_t user_tag)
{
    uint64_t words[WORDS];
    uint64_t n = atomic_load_explicit(&h->n_started, memory_order_relaxed);
    _Atomic uint64_t *to = h->words[n % COLL__HISTORY];

    memcpy(words, sig, sizeof(words));
    for (int i = 0; i < WORDS; i++) {
        atomic_store_explicit(&to[i], words[i], memory_order_release);
        h->hash = coll__hash_add(h->hash, words[i]);
    }
    atomic_store_explicit(&to[TAG], user_tag, memory_order_release);
    atomic_store_explicit(&h->n_started, n + 1, memory_order_release);
}

void coll__history_end(struct coll__history *h, uint64_t seq)
{
    atomic_store_explicit(&h->n_done, seq, memory_order_relaxed);
}

static int get(struct coll__history *h, uint64_t seq,
               struct coll__signature *sig, uint64_t *user_tag)
{
    uint64_t n = atomic_load_explicit(&h->n_started, memory_order_acquire);
    uint64_t words[WORDS + 1];

    if (seq < 1 || seq > n)
        return 0;
    for (int i = 0; i <= TAG; i++)
        words[i] = atomic_load_explicit(&h->words[(seq - 1) % COLL__HISTORY][i],
                                        memory_order_acquire);
    n = atomic_load_explicit(&h->n_started, memory_order_relaxed);
    if (seq + COLL__HISTORY <= n + 1) /* maybe it is being written anew */
        return 0;
    memcpy(sig, words, sizeof(*sig));
    *user_tag = words[TAG];
    return 1;
}

int coll__history_get(struct coll__history *h, uint64_t seq,
                      struct coll__signature *sig)
{
    uint64_t user_tag;

    return get(h, seq, sig, &user_tag);
}

/* ---- where a rank is ----------------------------------------------------- */

void coll__history_p2p(struct coll__history *h,
                       const struct coll__signature *sig, uint64_t user_tag)
{
    unsigned version =
        atomic_load_explicit(&h->p2p_version, memory_order_relaxed);
    uint64_t words[WORDS + 1] = {[TAG] = user_tag};

    if (sig)
        memcpy(words, sig, sizeof(*sig));
    atomic_store_explicit(&h->p2p_version, version + 1, memory_order_relaxed);
    for (int i = 0; i <= TAG; i++)
        atomic_store_explicit(&h->p2p[i], words[i], memory_order_release);
    atomic_store_explicit(&h->p2p_version, version + 2, memory_order_release);
}

/* Read the send or receive that this rank is in.  Returns 1, or 0 if there is none. */
static int get_p2p(struct coll__history *h, struct coll__signature *sig,
                   uint64_t *user_tag)
{
    uint64_t words[WORDS + 1];
    unsigned version;

    do {
        version = atomic_load_explicit(&h->p2p_version, memory_order_acquire);
        for (int i = 0; i <= TAG; i++)
            words[i] = atomic_load_explicit(&h->p2p[i], memory_order_acquire);
    } while (version % 2 ||
             version !=
                 atomic_load_explicit(&h->p2p_version, memory_order_relaxed));
    memcpy(sig, words, sizeof(*sig));
    *user_tag = words[TAG];
    return sig->seq != 0;
}

uint64_t coll__history_user_tag(struct coll__history *h,
                                const struct coll__signature *sig)
{
    enum coll_collective collective = (enum coll_collective)sig->collective;
    int is_message = coll__is_p2p(collective) || coll__is_tagged(collective);
    struct coll__signature noted;
    uint64_t user_tag;
    int is_known = is_message ? get_p2p(h, &noted, &user_tag)
                              : get(h, sig->seq, &noted, &user_tag);

    return is_known && !memcmp(&noted, sig, sizeof(noted)) ? user_tag : 0;
}

void coll__history_describe(struct coll__history *h,
                            const struct coll__signature *sig, char *text,
                            size_t len)
{
    coll__signature_describe_own(sig, coll__history_user_tag(h, sig), text,
                                 len);
}

/* Describe the first collective that is under way, or else the last one. */
static int describe_collective(struct coll__history *h, int *is_under_way,
                               char what[COLL__SIGNATURE_TEXT])
{
    uint64_t n = atomic_load_explicit(&h->n_started, memory_order_acquire);
    uint64_t done = atomic_load_explicit(&h->n_done, memory_order_relaxed);
    struct coll__signature sig;

    *is_under_way = done < n;
    if (!n || !coll__history_get(h, done < n ? done + 1 : n, &sig))
        return 0;
    coll__history_describe(h, &sig, what, COLL__SIGNATURE_TEXT);
    return 1;
}

void coll__history_where(struct coll__history *h, char *text, size_t len)
{
    struct coll__signature sig;
    uint64_t user_tag;
    char what[COLL__SIGNATURE_TEXT], p2p[COLL__SIGNATURE_TEXT];
    int is_in, is_known = describe_collective(h, &is_in, what);

    if (get_p2p(h, &sig, &user_tag)) {
        coll__signature_describe_own(&sig, user_tag, p2p, sizeof(p2p));
        if (is_known && is_in)
            snprintf(text, len, "in %s and %s", what, p2p);
        else
            snprintf(text, len, "in %s", p2p);
    } else if (is_known) {
        snprintf(text, len, "%s %s", is_in ? "in" : "after", what);
    } else {
        snprintf(text, len, "before its first operation");
    }
}
