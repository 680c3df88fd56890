/* SPDX-License-Identifier: BSD-3-Clause */
/* attachment.c - call a function of each attachment that has it. */
#include "lib/comm/attachment.h"
#include "include/coll/coll.h"

#include <stddef.h>

static int count(void)
{
    int n = 0;

    while (coll__attachments[n])
        n++;
    return n;
}

int coll__attachments_step(enum coll__life step, struct coll_comm *comm)
{
    int is_down = step >= LIFE_DRAIN, is_for_all = step >= LIFE_LEAVE;
    int n = count(), first = COLL_OK;

    for (int i = 0; i < n && (first == COLL_OK || is_for_all); i++) {
        const struct coll__attachment *a =
            coll__attachments[is_down ? n - 1 - i : i];
        int rc = a->life[step] ? a->life[step](comm) : COLL_OK;

        first = first ? first : rc;
    }
    return first;
}

int32_t coll__attachments_tell(void)
{
    int32_t told = 0;

    for (int i = 0; coll__attachments[i]; i++)
        if (coll__attachments[i]->tell)
            told = coll__attachments[i]->tell();
    return told;
}

int coll__attachments_join(struct coll_comm *comm,
                           const struct coll__options *options,
                           const int32_t *told)
{
    int rc = COLL_OK;

    for (int i = 0; coll__attachments[i] && rc == COLL_OK; i++)
        if (coll__attachments[i]->join)
            rc = coll__attachments[i]->join(comm, options, told);
    return rc;
}

void coll__attachments_fail(struct coll_comm *comm, int status)
{
    for (int i = 0; coll__attachments[i]; i++)
        if (coll__attachments[i]->fail)
            coll__attachments[i]->fail(comm, status);
}

void coll__attachments_hear(struct coll_comm *comm)
{
    for (int i = 0; coll__attachments[i]; i++)
        if (coll__attachments[i]->hear)
            coll__attachments[i]->hear(comm);
}

const struct coll__signature *
coll__attachments_find(const struct coll_comm *comm, int channel, uint64_t seq)
{
    for (int i = 0; coll__attachments[i]; i++)
        if (coll__attachments[i]->find)
            return coll__attachments[i]->find(comm, channel, seq);
    return NULL;
}

uint32_t coll__attachments_n_starts(const struct coll_comm *comm,
                                    uint32_t number)
{
    for (int i = 0; coll__attachments[i]; i++)
        if (coll__attachments[i]->n_starts)
            return coll__attachments[i]->n_starts(comm, number);
    return 0;
}

void coll__attachments_bytes(const struct coll_comm *comm,
                             struct coll_mem_stats *stats)
{
    for (int i = 0; coll__attachments[i]; i++)
        if (coll__attachments[i]->bytes)
            coll__attachments[i]->bytes(comm, stats);
}
