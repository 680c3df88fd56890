/* SPDX-License-Identifier: BSD-3-Clause */
/* data_share.c - one copy of the images for all ranks of a host.
 *
 * The first rank of a host loads them into an anonymous file, which the others
 * open below /proc and map: nothing is left behind, however the ranks end.
 * Pages are mapped privately, so that no rank can change another's images.  If
 * the others cannot open the file, or if images are drawn when they are needed,
 * each rank loads its own.
 */
#include "trainer/data.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STRIDE 61 /* pixels */

/* What a rank tells all others.  The pointers in `data` mean nothing to them.
 */
struct notice {
    int is_leader, status, host; /* of the rank */
    int pid, fd;                 /* fd -1: there is nothing to map */
    uint64_t folder;             /* a hash of --data-dir */
    uint64_t digest;             /* of a leader's images */
    struct dataset data;
};

static size_t bytes_of(const struct images *images)
{
    return images->n * (images_len(images) + 1);
}

static int write_all(int fd, const unsigned char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

static int write_images(int fd, const struct images *images)
{
    return write_all(fd, images->pixels, images->n * images_len(images)) ||
           write_all(fd, images->labels, images->n);
}

/* Return a descriptor of a file with the images of d, or -1. */
static int make_file(const struct dataset *d)
{
    int fd = memfd_create("coll_train images", MFD_CLOEXEC);

    if (fd >= 0 &&
        (write_images(fd, &d->train) || write_images(fd, &d->test))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static unsigned char *place(struct images *images, unsigned char *at)
{
    images->pixels = at;
    images->labels = at + images->n * images_len(images);
    return images->labels + images->n;
}

/* Use the images in the file in place of those that *d has. */
static int map_file(struct dataset *d, const struct dataset *from, int fd)
{
    size_t len = bytes_of(&from->train) + bytes_of(&from->test);
    void *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    struct dataset mapped = *from;

    if (map == MAP_FAILED)
        return -1;
    mapped.map = map;
    mapped.map_len = len;
    place(&mapped.test, place(&mapped.train, map));
    dataset_fini(d);
    *d = mapped;
    return 0;
}

static int map_leader(struct dataset *d, const struct notice *leader)
{
    char path[64];
    int fd, st;

    if (leader->fd < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", leader->pid, leader->fd);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    st = fd < 0 ? -1 : map_file(d, &leader->data, fd);
    if (fd >= 0)
        close(fd);
    return st;
}

/* Return what this host's first rank has told. */
static const struct notice *find_leader(const struct notice *all, int n,
                                        int host)
{
    for (int r = 0; r < n; r++)
        if (all[r].is_leader && all[r].host == host)
            return &all[r];
    return NULL;
}

/* Hash the labels and a few pixels: enough to notice different files. */
static uint64_t digest_images(const struct images *images)
{
    size_t n_pixels = images->n * images_len(images);
    uint64_t digest = rng_key(images->n, images_len(images));

    for (size_t i = 0; !images->drawn && i < images->n; i++)
        digest = rng_key(digest, images->labels[i]);
    for (size_t i = 0; !images->drawn && i < n_pixels; i += STRIDE)
        digest = rng_key(digest, images->pixels[i]);
    return digest;
}

uint64_t dataset_digest(const struct dataset *d)
{
    return rng_key(digest_images(&d->train), digest_images(&d->test));
}

static uint64_t hash_folder(const char *folder)
{
    uint64_t hash = 1;

    for (; *folder; folder++)
        hash = rng_key(hash, (unsigned char)*folder);
    return hash;
}

/* Return 1 if some ranks have other images than the rest. */
static int judge(const struct notice *all, int n)
{
    const struct notice *first = NULL;

    for (int r = 0; r < n; r++) {
        const struct notice *leader = find_leader(all, n, all[r].host);

        if (!leader || leader->status || all[r].status)
            continue; /* said by that one */
        first = first ? first : leader;
        if (leader->digest != first->digest)
            return train_refuse("the images of rank %d's host are not those of "
                                "rank %d's; have the same files on all hosts",
                                r, (int)(first - all));
        if (all[r].folder != leader->folder)
            return train_refuse("--data-dir of rank %d is not that of rank %d, "
                                "on the same host; give all the same",
                                r, (int)(leader - all));
    }
    return 0;
}

/* Tell all ranks what this one has, and take what the host's first rank has. */
static int exchange(struct dataset *d, const struct data_config *config,
                    struct ddp *ddp, const struct notice *mine,
                    struct notice *all)
{
    const struct notice *leader;
    int failed, st = mine->status;

    if (ddp_gather_bytes(ddp, mine, all, sizeof(*mine)))
        return -1;
    leader = find_leader(all, ddp->size, mine->host);
    if (!st)
        st = judge(all, ddp->size);
    if (leader && leader != &all[ddp->rank] && !st) {
        if (leader->status)
            st = train_fail(
                "the first rank of this host could not load the images");
        else if (map_leader(d, leader))
            st = dataset_load(d, config);
    }
    /* the file must stay until all ranks have opened it */
    return ddp_agree(ddp, st, &failed) ? -1 : st;
}

int dataset_load_shared(struct dataset *d, const struct data_config *config,
                        struct ddp *ddp, int status)
{
    int is_leader = ddp_local_rank(ddp) == 0, st;
    struct notice *all = calloc((size_t)ddp->size + 1, sizeof(*all));
    struct notice *mine = all ? &all[ddp->size] : NULL;

    *d = (struct dataset){.where = ""};
    if (!mine)
        return train_fail(
            "out of memory for what the ranks tell each other; use fewer "
            "ranks on this machine");
    mine->is_leader = is_leader;
    mine->host = ddp_host(ddp);
    mine->pid = (int)getpid();
    mine->fd = -1;
    mine->status = status;
    mine->folder = hash_folder(config->dir);
    if (is_leader && !status) {
        mine->status = dataset_load(d, config);
        if (!mine->status && !d->train.drawn && ddp_local_size(ddp) > 1)
            mine->fd = make_file(d);
        if (!mine->status)
            mine->digest = dataset_digest(d);
        mine->data = *d;
    }
    st = exchange(d, config, ddp, mine, all);
    if (!st && mine->fd >= 0)
        map_file(d, &mine->data, mine->fd); /* or keep what was loaded */
    if (mine->fd >= 0)
        close(mine->fd);
    free(all);
    return st;
}
