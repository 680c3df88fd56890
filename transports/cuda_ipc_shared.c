/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc_shared.c - what several ranks of a process share: the segment, which a process
 * registers once, and inboxes, which other ranks of the process write to by address.  The
 * last user frees them.
 */
#include "transports/cuda_ipc.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"

#include <stdlib.h>

/* ---- segments ------------------------------------------------------------ */

struct registered {
    struct coll__segment *segment;
    void *seen;
    int n_users;
    struct registered *next;
};

struct inbox {
    void *at;
    size_t len;
    int n_users;
    struct inbox *next;
};

static void forget_parents(void);

static struct coll__lock lock = COLL__LOCK(forget_parents);
static struct registered *all; /* under the lock, as the inboxes */
static struct inbox *inboxes;

/* A child has no driver. */
static void forget_parents(void)
{
    all = NULL;
    inboxes = NULL;
}

static struct registered **find(struct coll__segment *segment)
{
    struct registered **at = &all;

    while (*at && (*at)->segment != segment)
        at = &(*at)->next;
    return at;
}

static int add(struct coll__segment *segment, size_t len,
               struct registered **out)
{
    struct registered *r = calloc(1, sizeof(*r));
    int status;

    if (!r) {
        log_error("cuda", "no memory to register a segment");
        return COLL_ERR_NOMEM;
    }
    status = coll__cuda_register(coll__segment_at(segment), len, &r->seen);
    if (status) {
        free(r);
        return status;
    }
    r->segment = segment;
    *out = r;
    return COLL_OK;
}

int cuda_ipc__register(struct coll__segment *segment, size_t len,
                       unsigned char **seen)
{
    struct registered **at;
    int status = COLL_OK;

    coll__lock(&lock);
    at = find(segment);
    if (!*at)
        status = add(segment, len, at);
    if (status == COLL_OK) {
        (*at)->n_users++;
        *seen = (*at)->seen;
    }
    coll__unlock(&lock);
    return status;
}

/* The last user takes it off the list and then waits for the driver without the lock: the
 * driver may wait for a stream that needs another rank of this process. */
void cuda_ipc__unregister(struct coll__segment *segment)
{
    struct registered **at, *last = NULL;

    coll__lock(&lock);
    at = find(segment);
    if (*at && --(*at)->n_users == 0) {
        last = *at;
        *at = last->next;
    }
    coll__unlock(&lock);
    if (last)
        coll__cuda_unregister(coll__segment_at(segment));
    free(last);
}

/* ---- inboxes ------------------------------------------------------------- */

int cuda_ipc__make_inbox(size_t len, unsigned char **at)
{
    struct inbox *inbox = calloc(1, sizeof(*inbox));

    if (!inbox) {
        log_error("cuda", "no memory for an inbox");
        return COLL_ERR_NOMEM;
    }
    inbox->at = coll__device_cuda.alloc(len);
    if (!inbox->at) {
        free(inbox);
        return COLL_ERR_NOMEM;
    }
    *at = inbox->at;
    inbox->len = len;
    inbox->n_users = 1;
    coll__lock(&lock);
    inbox->next = inboxes;
    inboxes = inbox;
    coll__unlock(&lock);
    return COLL_OK;
}

static struct inbox **find_inbox(const void *at)
{
    struct inbox **inbox = &inboxes;

    while (*inbox && (*inbox)->at != at)
        inbox = &(*inbox)->next;
    return inbox;
}

void cuda_ipc__hold(void *at)
{
    coll__lock(&lock);
    (*find_inbox(at))->n_users++;
    coll__unlock(&lock);
}

void cuda_ipc__drop(void *at)
{
    struct inbox **inbox, *last = NULL;

    coll__lock(&lock);
    inbox = find_inbox(at);
    if (--(*inbox)->n_users == 0) {
        last = *inbox;
        *inbox = last->next;
    }
    coll__unlock(&lock);
    if (last)
        coll__device_cuda.free(last->at, last->len);
    free(last);
}
