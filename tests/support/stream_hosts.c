/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_hosts.c - ranks on hosts that their scene invents: a proxy over shm, and a thread
 * for each rank that carries its messages as a communicator's owner does. */
#include "tests/support/stream_fixture.h"
#include "transports/proxy.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct stream_hosts {
    struct stream_rank *rank;
    struct coll__tp *shm;
    struct coll__tp **to; /* [size] */
    pthread_t carrier;
    atomic_int may_stop;
};

int stream_hosts_move(const struct stream_rank *rank)
{
    struct coll__moved moved;
    int n = rank->hosts->shm->ops->poll(rank->hosts->shm);
    int rc = n < 0 ? n : rank->tp->ops->move(rank->tp, &moved);

    return rc ? rc : n || moved.is_any;
}

static void *carry(void *arg)
{
    struct stream_hosts *h = arg;
    struct coll__stream_tp *tp = h->rank->tp;

    while (!atomic_load(&h->may_stop)) {
        int rc = stream_hosts_move(h->rank);

        if (rc < 0) {
            tp->ops->release(tp, rc);
            break;
        }
        if (!rc)
            sched_yield();
    }
    return NULL;
}

static int open_shm(struct stream_hosts *h)
{
    const struct world_rank *me = h->rank->me;
    size_t n = (size_t)me->size;
    struct coll__peer *peers = calloc(n, sizeof(*peers));
    uint32_t *found = calloc(n, sizeof(*found));
    struct coll__tp_env env = {.rank = me->rank,
                               .size = me->size,
                               .peers = peers,
                               .allgather = stream_gather,
                               .arg = h->rank,
                               .timeout = 60};
    int rc = stream_peers(h->rank, 1, peers);

    if (rc == COLL_OK)
        rc = coll__transport_find("shm")->open(&env, &h->shm);
    if (rc == COLL_OK)
        rc = stream_gather(h->rank, &h->shm->found, sizeof(*found), found);
    if (rc == COLL_OK)
        rc = h->shm->ops->settle(h->shm, found);
    free(peers);
    free(found);
    return rc;
}

int stream_hosts_open(struct stream_rank *rank)
{
    size_t size = (size_t)rank->me->size;
    struct stream_hosts *h = calloc(1, sizeof(*h));
    struct coll__proxy_env env = {.rank = rank->me->rank,
                                  .size = rank->me->size,
                                  .inner = rank->tp,
                                  .channel = 1,
                                  .channel_aside = 2,
                                  .n_slots = rank->scene->n_slots,
                                  .slot = rank->scene->slot};
    int rc;

    h->rank = rank;
    rank->hosts = h;
    rc = open_shm(h);
    if (rc)
        return rc;
    h->to = calloc(size, sizeof(struct coll__tp *));
    for (size_t r = 0; r < size; r++)
        h->to[r] = h->shm;
    env.to = h->to;
    rc = coll__proxy_open(&env, &rank->tp);
    if (rc == COLL_OK)
        rc = pthread_create(&h->carrier, NULL, carry, h);
    return rc;
}

void stream_hosts_stop(const struct stream_rank *rank)
{
    struct stream_hosts *h = rank->hosts;

    if (!atomic_exchange(&h->may_stop, 1))
        pthread_join(h->carrier, NULL);
}

void stream_hosts_close(struct stream_rank *rank, int is_orderly)
{
    struct stream_hosts *h = rank->hosts;

    stream_hosts_stop(rank);
    rank->tp->ops->close(rank->tp, is_orderly);
    h->shm->ops->close(h->shm, is_orderly);
    free(h->to);
    free(h);
}
