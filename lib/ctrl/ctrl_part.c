/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_part.c - make a tree over some ranks of a tree: a part of the whole.
 *
 * The whole knows every process already, where it listens, and hears at once of a death.
 * So there is no rendezvous: each rank makes its end of the part and connects to its
 * parent's process, at the gate of the whole, unless the two processes are connected
 * already.  A rank may get news of a part that it has not made yet; it keeps the news
 * until it has.
 *
 * Until the part is settled, the whole watches over it: a failure of the whole ends the
 * wait, and a rank that gives up tells its part through the whole.
 */
#include "lib/ctrl/ctrl_card.h"
#include "lib/ctrl/ctrl_int.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct apart { /* as it travels, little-endian */
    unsigned char tag[COLL__TAG_BYTES];
    char words[COLL__TEXT_MAX];
};

/* A failure of a part that this rank has not made yet. */
struct ctrl_news {
    struct ctrl_news *next;
    struct apart apart;
    uint32_t rank; /* the rank that gave up, by its number in the whole */
    int status;
};

/* ---- the whole watches over its parts; lock held -------------------------- */

void coll__ctrl_leave_whole(struct coll__ctrl *ctrl)
{
    struct coll__ctrl **at;

    if (!ctrl->parts.whole)
        return;
    at = &ctrl->parts.whole->parts.first;
    while (*at != ctrl)
        at = &(*at)->parts.next;
    *at = ctrl->parts.next;
    ctrl->parts.whole = NULL;
}

/* Return the part's number of the whole's rank, or NOBODY. */
static uint32_t number_in(const struct coll__ctrl *part, uint32_t rank)
{
    for (int r = 0; r < part->size; r++)
        if ((uint32_t)part->known_as[r] == rank)
            return (uint32_t)r;
    return NOBODY;
}

/* The whole failed because of a rank outside the part.  Ranks that have settled the part
 * no longer use the whole's numbers, so they are told that this rank gives up.  On this
 * rank the whole's sentence stays as it is. */
static void fail_with_whole(struct coll__ctrl *part,
                            const struct coll__ctrl *whole)
{
    char words[COLL__TEXT_MAX];
    struct ctrl_reason mine = {whole->failure.status, (uint32_t)part->rank,
                               words};

    if (part->failure.status)
        return;
    snprintf(words, sizeof(words),
             "could not finish making the group: of the one that it was made "
             "from %.300s",
             whole->failure.text);
    coll__ctrl_hear(part, &mine, NULL, 1);
    memcpy(part->failure.text, whole->failure.text, sizeof(part->failure.text));
}

/* The whole failed, perhaps because of a rank of the part. */
static void fail_part(struct coll__ctrl *part, const struct coll__ctrl *whole,
                      const struct ctrl_reason *reason)
{
    struct ctrl_reason mine = *reason;

    mine.subject = number_in(part, reason->subject);
    if (mine.subject != NOBODY)
        coll__ctrl_hear(part, &mine, NULL, 1);
    else if (!part->parts.is_rest)
        fail_with_whole(part, whole);
}

void coll__ctrl_fail_parts(struct coll__ctrl *whole,
                           const struct ctrl_reason *reason)
{
    for (struct coll__ctrl *p = whole->parts.first; p; p = p->parts.next)
        fail_part(p, whole, reason);
}

/* Fail the part, since another rank has given it up. */
static void give_up_part(struct coll__ctrl *part, const struct ctrl_news *news)
{
    struct ctrl_reason reason = {news->status, number_in(part, news->rank),
                                 news->apart.words};

    coll__ctrl_hear(part, &reason, NULL, 1);
}

/* Add the part to the whole, and apply the failures that came before. */
static void enter_whole(struct coll__ctrl *ctrl, struct coll__ctrl *whole)
{
    struct ctrl_reason reason = {whole->failure.status, whole->failure.subject,
                                 whole->failure.words};

    ctrl->parts.whole = whole;
    ctrl->parts.next = whole->parts.first;
    whole->parts.first = ctrl;
    for (const struct ctrl_news *n = whole->parts.news; n; n = n->next)
        if (!memcmp(n->apart.tag, ctrl->parts.tag, sizeof(ctrl->parts.tag)))
            give_up_part(ctrl, n);
    if (whole->failure.status && !ctrl->parts.is_rest)
        fail_part(ctrl, whole, &reason);
}

/* Tell all ranks of the whole why the part with this tag fails; rank: the rank at fault,
 * by its number in the whole. */
static void flood_apart(struct coll__ctrl *whole,
                        const unsigned char tag[COLL__TAG_BYTES], uint32_t rank,
                        int status, const char *words)
{
    struct apart body = {.words = ""};
    struct coll__frame frame;

    memcpy(body.tag, tag, sizeof(body.tag));
    memcpy(body.words, words, min_size(strlen(words), sizeof(body.words) - 1));
    frame = coll__ctrl_frame(whole, CTRL_APART, rank, (uint32_t)-status,
                             sizeof(body));
    coll__ctrl_flood(whole, &frame, &body, NULL);
}

void coll__ctrl_tell_apart(struct coll__ctrl *ctrl,
                           const struct ctrl_reason *reason)
{
    uint32_t subject = reason->subject;

    if (!ctrl->parts.whole || ctrl->failure.status || ctrl->is_released)
        return;
    if (subject != NOBODY)
        subject = (uint32_t)ctrl->known_as[subject];
    flood_apart(ctrl->parts.whole, ctrl->parts.tag, subject, reason->status,
                reason->words);
}

/* Keep the news until the part is made; without memory, fail the whole. */
static void keep_news(struct coll__ctrl *whole, const struct ctrl_news *news)
{
    struct ctrl_reason reason = {COLL_ERR_NOMEM, (uint32_t)whole->rank,
                                 "has no memory to divide the group"};
    struct ctrl_news *kept = malloc(sizeof(*kept));

    if (!kept) {
        coll__ctrl_fail(whole, &reason, 1);
        return;
    }
    *kept = *news;
    kept->next = whole->parts.news;
    whole->parts.news = kept;
}

int coll__ctrl_got_apart(struct coll__ctrl *whole, struct coll__link *link,
                         const struct coll__frame *frame,
                         const unsigned char *body)
{
    struct ctrl_news news = {.rank = frame->to, .status = -(int)frame->id};
    int is_here = 0;

    if (frame->len != sizeof(news.apart) || body[frame->len - 1] ||
        !frame->id || frame->id > (uint32_t)-COLL_ERR_INTERNAL)
        return -1;
    memcpy(&news.apart, body, sizeof(news.apart));
    coll__ctrl_flood(whole, frame, body, link);
    for (struct coll__ctrl *p = whole->parts.first; p; p = p->parts.next)
        if (!memcmp(p->parts.tag, news.apart.tag, sizeof(p->parts.tag))) {
            give_up_part(p, &news);
            is_here = 1;
        }
    if (!is_here && whole->parts.is_dividing)
        keep_news(whole, &news);
    return 0;
}

void coll__ctrl_forget_news(struct coll__ctrl *whole)
{
    while (whole->parts.news) {
        struct ctrl_news *news = whole->parts.news;

        whole->parts.news = news->next;
        free(news);
    }
}

/* ---- making a part -------------------------------------------------------- */

/* Fill in the part's ranks and its secret, which only the whole's ranks can compute. */
static int take_members(struct coll__ctrl *ctrl, const struct coll__ctrl *whole,
                        const struct coll__ctrl_part *part)
{
    size_t n = (size_t)part->size;

    ctrl->known_as = malloc(n * sizeof(*ctrl->known_as));
    if (!ctrl->known_as) {
        log_error("boot", "no memory for a group of %zu ranks", n);
        return COLL_ERR_NOMEM;
    }
    for (size_t r = 0; r < n; r++) {
        ctrl->known_as[r] = part->ranks[r];
        ctrl->peers[r] = whole->peers[part->ranks[r]];
    }
    ctrl->parts.is_rest = part->is_rest;
    memcpy(ctrl->parts.tag, part->tag, sizeof(ctrl->parts.tag));
    coll__auth_mac(whole->tree.gate.secret, "part", part->tag,
                   sizeof(part->tag), ctrl->tree.gate.secret);
    return COLL_OK;
}

/* Make this rank's end of the part, and listen for its children. */
static int make_end(struct coll__ctrl *whole,
                    const struct coll__ctrl_part *part,
                    struct coll__ctrl **ctrl)
{
    int n_addrs;
    int status = part->status;

    if (status)
        return status;
    *ctrl = coll__ctrl_new(part->rank, part->size, part->events);
    status = *ctrl ? take_members(*ctrl, whole, part) : COLL_ERR_NOMEM;
    if (!status)
        status = coll__ctrl_begin(*ctrl);
    if (status || part->size == 1)
        return status;
    coll__reactor_lock();
    enter_whole(*ctrl, whole);
    coll__reactor_unlock();
    coll__ctrl_offer(*ctrl);
    n_addrs = (*ctrl)->peers[part->rank].place.n_addrs;
    return n_addrs < 0 ? n_addrs : COLL_OK;
}

/* Tell the part's ranks, once, not to wait for this one: by the part's end (ctrl) if it
 * is in the whole already. */
static void not_made(struct coll__ctrl *whole,
                     const struct coll__ctrl_part *part,
                     struct coll__ctrl *ctrl, int status)
{
    char words[COLL__TEXT_MAX];
    struct ctrl_reason mine = {status, (uint32_t)part->rank, words};

    coll__ctrl_cannot_join(words);
    coll__reactor_lock();
    if (ctrl && ctrl->parts.whole)
        coll__ctrl_fail(ctrl, &mine, 0);
    else
        flood_apart(whole, part->tag, (uint32_t)whole->rank, status, words);
    coll__reactor_unlock();
    if (ctrl)
        coll__ctrl_close(ctrl, 0, 0);
}

void coll__ctrl_divide_begin(struct coll__ctrl *whole)
{
    coll__reactor_lock();
    whole->parts.is_dividing = 1;
    coll__link_hold();
    coll__reactor_unlock();
}

void coll__ctrl_divide_end(struct coll__ctrl *whole)
{
    coll__reactor_lock();
    whole->parts.is_dividing = 0;
    coll__ctrl_forget_news(whole);
    coll__link_unhold();
    coll__reactor_unlock();
}

int coll__ctrl_divide(struct coll__ctrl *whole,
                      const struct coll__ctrl_part *part, double timeout,
                      struct coll__ctrl **out)
{
    struct coll__ctrl *ctrl = NULL;
    int status = make_end(whole, part, &ctrl);

    if (status) {
        not_made(whole, part, ctrl, status);
        return status;
    }
    if (part->size > 1)
        status = coll__ctrl_connect(ctrl, whole, timeout);
    if (!status)
        *out = ctrl;
    else
        coll__ctrl_give_up(ctrl, status);
    return status;
}
