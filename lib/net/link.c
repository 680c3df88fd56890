/* SPDX-License-Identifier: BSD-3-Clause */
/* link.c - many links over one wire: open, end, and route each frame to its link.
 *
 *   opener    OPEN      this process's name, and a proof of the group's secret
 *   other     ACCEPT    or END, if it neither expects such a link nor will soon
 *   both      frames
 *   either    END       no more frames will come; the other end answers with END
 *
 * A frame for an unknown link was sent before that link ended; it is dropped.
 */
#include "lib/net/link.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_OPEN = 0x10000, FRAME_ACCEPT, FRAME_END };

struct opening {
    unsigned char process[COLL__PROCESS_BYTES];
    unsigned char mac[COLL__MAC_BYTES];
};

/* An opening that came before it was expected. */
struct early {
    struct early *next;
    struct coll__wire *wire;
    struct coll__wire_head head;
    struct opening opening;
};

/* All under the reactor's lock; n_holders counts in the process of `generation`. */
static struct coll__link *expected;
static struct early *early;
static int n_holders;
static unsigned generation;

static void enter(struct coll__link **list, struct coll__link *link)
{
    link->next = *list;
    link->at = list;
    if (link->next)
        link->next->at = &link->next;
    *list = link;
}

static void leave(struct coll__link *link)
{
    if (!link->at)
        return;
    *link->at = link->next;
    if (link->next)
        link->next->at = link->at;
    link->at = NULL;
}

static void detach(struct coll__link *link, enum coll__link_state state)
{
    struct coll__wire *wire = link->wire;

    leave(link);
    link->wire = NULL;
    link->state = state;
    if (wire && !wire->links)
        coll__wire_rest(wire);
}

/* Find the link and move it to the front; or NULL. */
static struct coll__link *find(struct coll__link **list,
                               const struct coll__wire_head *head)
{
    struct coll__link *link = *list;

    while (link &&
           (link->tag != head->tag || (uint32_t)link->self != head->dst ||
            (uint32_t)link->peer != head->src))
        link = link->next;
    if (link && link != *list) {
        leave(link);
        enter(list, link);
    }
    return link;
}

static uint64_t tag_of(const struct coll__link *link)
{
    unsigned char group[COLL__GROUP_BYTES];
    uint64_t tag;

    coll__auth_group(link->secret, group);
    memcpy(&tag, group, sizeof(tag));
    return le64toh(tag);
}

/* ---- what travels ------------------------------------------------------- */

static int say(struct coll__link *link, uint32_t type, const void *body,
               size_t len)
{
    struct coll__wire_head head = {.tag = link->tag,
                                   .src = (uint32_t)link->self,
                                   .dst = (uint32_t)link->peer,
                                   .frame = {.type = type, .len = len}};

    return coll__wire_send(link->wire, &head, body);
}

/* Refuse a link that does not exist here. */
static void refuse(struct coll__wire *wire, const struct coll__wire_head *head)
{
    struct coll__wire_head no = {.tag = head->tag,
                                 .src = head->dst,
                                 .dst = head->src,
                                 .frame = {.type = FRAME_END}};

    coll__wire_send(wire, &no, NULL);
}

/* Compute the proof that the opener of this link is in the group. */
static void prove(const unsigned char secret[COLL__SECRET_BYTES],
                  const struct coll__wire_head *head, struct opening *opening,
                  unsigned char mac[COLL__MAC_BYTES])
{
    unsigned char bytes[16 + COLL__PROCESS_BYTES];
    uint64_t tag = htole64(head->tag);
    uint32_t ends[2] = {htole32(head->src), htole32(head->dst)};

    memcpy(bytes, &tag, 8);
    memcpy(bytes + 8, ends, 8);
    memcpy(bytes + 16, opening->process, COLL__PROCESS_BYTES);
    coll__auth_mac(secret, "link", bytes, sizeof(bytes), mac);
}

/* ---- who came early ------------------------------------------------------ */

/* Keep an opening that is not expected yet but may be soon. */
static void keep(struct coll__wire *wire, const struct coll__wire_head *head,
                 const struct opening *opening)
{
    struct early *e = malloc(sizeof(*e));

    if (!e) {
        refuse(wire, head);
        return;
    }
    *e = (struct early){early, wire, *head, *opening};
    early = e;
}

static int is_same(const struct coll__wire_head *a,
                   const struct coll__wire_head *b)
{
    return a->tag == b->tag && a->src == b->src && a->dst == b->dst;
}

/* Remove and return an early opening of this wire with this frame header; NULL: of any
 * wire, or with any header. */
static struct early *take_early(const struct coll__wire *wire,
                                const struct coll__wire_head *head)
{
    struct early **at = &early, *e;

    while ((e = *at) &&
           ((wire && e->wire != wire) || (head && !is_same(&e->head, head))))
        at = &e->next;
    if (e)
        *at = e->next;
    return e;
}

/* Drop an early opening: the other end has closed it, or has sent more frames, which
 * cannot be kept. */
static void not_to_wait(struct coll__wire *wire,
                        const struct coll__wire_head *head)
{
    struct early *e = take_early(wire, head);

    if (e && head->frame.type != FRAME_END)
        refuse(wire, head);
    free(e);
}

/* ---- open, end ------------------------------------------------------------ */

/* An expected link is being opened: accept it if the proof is right. */
static void judge(struct coll__link *link, struct coll__wire *wire,
                  const struct coll__wire_head *head, struct opening *opening)
{
    unsigned char mac[COLL__MAC_BYTES];

    prove(link->secret, head, opening, mac);
    if (!coll__auth_equal(mac, opening->mac)) {
        log_warn("boot", "refused a link that did not prove its secret");
        refuse(wire, head);
        return;
    }
    memcpy(wire->process, opening->process, sizeof(wire->process));
    wire->is_known = 1;
    leave(link);
    enter(&wire->links, link);
    link->wire = wire;
    link->state = LINK_UP;
    say(link, FRAME_ACCEPT, NULL, 0);
    link->answered(link);
}

static int is_held(void)
{
    return n_holders && !coll__is_inherited(generation);
}

static void got_open(struct coll__wire *wire,
                     const struct coll__wire_head *head,
                     const unsigned char *body)
{
    struct coll__link *link = find(&expected, head);
    struct opening opening;

    if (head->frame.len != sizeof(opening)) {
        refuse(wire, head);
        return;
    }
    memcpy(&opening, body, sizeof(opening));
    if (link)
        judge(link, wire, head, &opening);
    else if (is_held())
        keep(wire, head, &opening);
    else
        refuse(wire, head);
}

/* The other end has sent END: answer with END. */
static void got_end(struct coll__link *link)
{
    int was_asking = link->state == LINK_ASKING;

    if (!was_asking && !link->is_shut)
        say(link, FRAME_END, NULL, 0);
    detach(link, was_asking ? LINK_REFUSED : LINK_DOWN);
    if (was_asking)
        link->answered(link);
    else
        link->broken(link);
}

static void got_frame(struct coll__link *link,
                      const struct coll__wire_head *head, unsigned char *body)
{
    if (!link->got(link, &head->frame, body) || !link->wire)
        return;
    if (!link->is_shut)
        say(link, FRAME_END, NULL, 0);
    detach(link, LINK_DOWN);
    link->broken(link);
}

void coll__wire_got(struct coll__wire *wire, const struct coll__wire_head *head,
                    unsigned char *body)
{
    uint32_t type = head->frame.type;
    struct coll__link *link;

    if (type == FRAME_OPEN) {
        got_open(wire, head, body);
        free(body);
        return;
    }
    link = find(&wire->links, head);
    if (link && type < FRAME_OPEN && link->state == LINK_UP) {
        got_frame(link, head, body);
        return;
    }
    if (link && type == FRAME_ACCEPT && link->state == LINK_ASKING) {
        link->state = LINK_UP;
        link->answered(link);
    } else if (link && type == FRAME_END) {
        got_end(link);
    } else if (!link) {
        not_to_wait(wire, head);
    }
    free(body);
}

void coll__wire_broken(struct coll__wire *wire, int is_ours)
{
    struct early *e;

    while ((e = take_early(wire, NULL)))
        free(e);
    while (wire->links) {
        struct coll__link *link = wire->links;
        int was_asking = link->state == LINK_ASKING;

        leave(link);
        link->wire = NULL;
        link->state = LINK_DOWN;
        link->is_silent = wire->is_silent;
        if (is_ours && was_asking)
            link->answered(link);
        else if (is_ours)
            link->broken(link);
    }
}

void coll__wire_drained(struct coll__wire *wire)
{
    for (struct coll__link *link = wire->links; link; link = link->next)
        if (link->is_shut)
            link->drained(link);
}

/* ---- the owner's side --------------------------------------------------- */

void coll__link_expect(struct coll__link *link)
{
    struct coll__wire_head head = {.src = (uint32_t)link->peer,
                                   .dst = (uint32_t)link->self};
    struct early *e;

    head.tag = link->tag = tag_of(link);
    link->state = LINK_EXPECTED;
    enter(&expected, link);
    e = take_early(NULL, &head);
    if (e)
        judge(link, e->wire, &e->head, &e->opening);
    free(e);
}

void coll__link_hold(void)
{
    if (!is_held())
        n_holders = 0; /* a forked child has a copy of the parent's count */
    generation = coll__generation_now();
    n_holders++;
}

void coll__link_unhold(void)
{
    struct early *e;

    if (!is_held() || --n_holders)
        return;
    while ((e = take_early(NULL, NULL))) {
        refuse(e->wire, &e->head);
        free(e);
    }
}

int coll__link_ask(struct coll__link *link, struct coll__wire *wire)
{
    struct coll__wire_head head = {.src = (uint32_t)link->self,
                                   .dst = (uint32_t)link->peer};
    struct opening opening;
    int status;

    head.tag = link->tag = tag_of(link);
    coll__wire_self(opening.process);
    prove(link->secret, &head, &opening, opening.mac);
    link->state = LINK_ASKING;
    link->wire = wire;
    enter(&wire->links, link);
    status = say(link, FRAME_OPEN, &opening, sizeof(opening));
    if (status)
        detach(link, LINK_DOWN);
    return status;
}

int coll__link_send(struct coll__link *link, const struct coll__frame *frame,
                    const void *body)
{
    struct coll__wire_head head = {.tag = link->tag,
                                   .src = (uint32_t)link->self,
                                   .dst = (uint32_t)link->peer,
                                   .frame = *frame};

    if (!link->wire || link->is_shut)
        return COLL_OK;
    return coll__wire_send(link->wire, &head, body);
}

void coll__link_shut(struct coll__link *link)
{
    if (!link->wire || link->is_shut)
        return;
    say(link, FRAME_END, NULL, 0);
    link->is_shut = 1;
}

void coll__link_close(struct coll__link *link)
{
    coll__link_shut(link);
    detach(link, LINK_DOWN);
}
