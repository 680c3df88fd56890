/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks_random.c - operations at random on device buffers, every byte of the results and
 * around them compared. */
#include "tests/gpu/ranks.h"

#include <stdlib.h>

/* What the device has of a buffer of the host. */
struct image {
    unsigned char *host;
    struct room *room;
    size_t len;
};

/* An operation under way on a stream. */
struct job {
    struct work work;
    struct image images[2];
    int n_images;
    CUstream stream;
    struct coll_args args;
};

/* Each room holds the longest buffer that is drawn. */
static struct image image_of(struct gpu_rank *g, unsigned char *host,
                             size_t len)
{
    struct image image = {.host = host, .len = len + WORK_GUARD};
    struct room *room = g->rooms;

    while (room->is_taken)
        room++;
    if (!room->at) {
        MUST(MemAlloc(&room->at, ROOM));
        MUST(MemAlloc(&room->found, ROOM));
    }
    gpu_must(image.len > ROOM ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS,
             "a room for a buffer");
    room->is_taken = 1;
    image.room = room;
    return image;
}

static void *on_device(const struct job *job, const unsigned char *host)
{
    for (int i = 0; i < job->n_images; i++) {
        const struct image *image = &job->images[i];

        if (host >= image->host && host < image->host + image->len)
            return (void *)(uintptr_t)(image->room->at +
                                       (size_t)(host - image->host));
    }
    return NULL;
}

/* Buffers, and their content on its way to the device. */
static void prepare(struct job *job, struct gpu_rank *g,
                    const struct oracle_op *op, int is_in_place, int s)
{
    size_t size = coll_type_size(op->type), in, out;
    struct work *w = &job->work;

    work_init(w, op, g->me->rank, &g->handles, is_in_place);
    in = w->in_at.len * size;
    out = w->out_at.len * size;
    job->stream = g->streams[s];
    job->n_images = w->is_in_place ? 1 : 2;
    if (w->is_in_place) {
        job->images[0] = image_of(g, w->room, in > out ? in : out);
    } else {
        job->images[0] = image_of(g, w->in, in);
        job->images[1] = image_of(g, w->out, out);
    }
    for (int i = 0; i < job->n_images; i++)
        MUST(MemcpyHtoDAsync(job->images[i].room->at, job->images[i].host,
                             job->images[i].len, job->stream));
    job->args = work_args(w);
    job->args.in = on_device(job, w->in);
    job->args.out = on_device(job, w->out);
    job->args.stream = job->stream;
}

/* What a kernel behind the operation finds.  A copy to the host would stop other ranks of
 * this process while it waits (driver_rules, queue/beside_copy). */
static void find(const struct job *job)
{
    for (int i = 0; i < job->n_images; i++)
        MUST(MemcpyDtoDAsync(job->images[i].room->found,
                             job->images[i].room->at, job->images[i].len,
                             job->stream));
}

static int judge(struct job *job, struct gpu_rank *g)
{
    int is_wrong;

    MUST(StreamSynchronize(job->stream));
    for (int i = 0; i < job->n_images; i++) {
        MUST(MemcpyDtoH(job->images[i].host, job->images[i].room->found,
                        job->images[i].len));
        job->images[i].room->is_taken = 0;
    }
    is_wrong = work_check(&job->work, g->me);
    work_fini(&job->work);
    return is_wrong;
}

static int by_request(const struct coll_args *args, struct coll_comm *comm)
{
    struct coll_request *request;
    int rc = coll_request_create(args, comm, &request), end;

    if (rc)
        return rc;
    rc = coll_start(request);
    if (!rc)
        rc = coll_wait(request, 0);
    end = coll_request_destroy(request);
    return rc ? rc : end;
}

static int by_group(struct job *jobs, int n, struct coll_comm *comm)
{
    int rc = coll_group_start(), end;

    for (int i = 0; i < n && !rc; i++)
        rc = work_call_with(&jobs[i].args, comm);
    end = coll_group_end();
    return rc ? rc : end;
}

/* One to three operations, of one way to call them, which all ranks choose alike as
 * they must for groups; in place and the stream are each rank's own choice. */
static int do_round(struct gpu_rank *g, uint64_t *alike, uint64_t *own)
{
    int way = (int)oracle_random(alike, 4), n = way == 3 ? 3 : 1, rc = 0;
    int s = (int)oracle_random(own, 2), n_wrong = 0;
    struct job jobs[MOST_JOBS];

    for (int i = 0; i < n; i++) {
        struct oracle_op op = oracle_draw(alike, g->me->size);

        prepare(&jobs[i], g, &op, (int)oracle_random(own, 3) == 0, s);
    }
    if (way == 3)
        rc = by_group(jobs, n, g->comm);
    else if (way == 2)
        rc = by_request(&jobs[0].args, g->comm);
    else
        rc = work_call_with(&jobs[0].args, g->comm);
    if (rc)
        fprintf(stderr, "rank %d of %d: %s: %s\n", g->me->rank, g->me->size,
                coll_collective_name(jobs[0].args.collective),
                coll_last_error());
    for (int i = 0; i < n && !rc; i++)
        find(&jobs[i]);
    for (int i = 0; i < n && !rc; i++)
        n_wrong += judge(&jobs[i], g);
    if (g->me->rank == 0 && !rc)
        atomic_fetch_add(&g->run->shared->n_done, n);
    return rc ? 1 : n_wrong;
}

int gpu_rank_random(struct world_rank *me)
{
    struct gpu_rank g;
    uint64_t alike, own;
    int n_wrong = gpu_rank_begin(&g, me);

    alike = g.run->seed * 1000003u + (unsigned)me->size;
    own = alike + 1 + (unsigned)me->rank;
    for (int i = 0; i < g.run->rounds && !n_wrong; i++)
        n_wrong = do_round(&g, &alike, &own);
    return n_wrong || gpu_rank_end(&g);
}
