/* SPDX-License-Identifier: BSD-3-Clause */
/* part.c - find and join GPUs in the tree, and find the NICs near them. */
#include "lib/topo/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_link(struct coll__part *from, const struct coll__part *to,
                    double gbytes)
{
    size_t n = (size_t)from->n_links + 1;
    struct coll__part_link *links = realloc(from->links, n * sizeof(*links));

    if (!links)
        return -1;
    from->links = links;
    links[from->n_links++] = (struct coll__part_link){to, gbytes};
    return 0;
}

int coll__part_join(struct coll__part *a, struct coll__part *b, double gbytes)
{
    return add_link(a, b, gbytes) || add_link(b, a, gbytes) ? -1 : 0;
}

struct coll__part *coll__part_gpu(struct coll__part *part, const char *bus)
{
    struct coll__part *found = NULL;

    if (part->kind == PART_GPU && !strncmp(part->name, bus, strlen(bus)))
        return part;
    for (struct coll__part *p = part->first; p && !found; p = p->next)
        found = coll__part_gpu(p, bus);
    return found;
}

/* ---- NICs near by ---------------------------------------------------------- */

static int count_nics(const struct coll__part *part, int is_rdma)
{
    int n = part->kind == PART_NIC && (!is_rdma || part->nic.is_rdma);

    for (const struct coll__part *p = part->first; p; p = p->next)
        n += count_nics(p, is_rdma);
    return n;
}

static void list_nics(const struct coll__part *part, int is_rdma, char *names,
                      size_t len)
{
    size_t n = strlen(names);

    if (part->kind == PART_NIC && (!is_rdma || part->nic.is_rdma) && n < len)
        snprintf(names + n, len - n, "%s%s", n ? ", " : "", part->nic.name);
    for (const struct coll__part *p = part->first; p; p = p->next)
        list_nics(p, is_rdma, names, len);
}

/* Return the smallest part that holds the GPU and a NIC; *has_gpu: does part hold the
 * GPU? */
static const struct coll__part *holder(const struct coll__part *part,
                                       const struct coll__part *gpu,
                                       int is_rdma, int *has_gpu)
{
    const struct coll__part *found = NULL;

    *has_gpu = part == gpu;
    for (const struct coll__part *p = part->first; p && !*has_gpu; p = p->next)
        found = holder(p, gpu, is_rdma, has_gpu);
    if (found || !*has_gpu)
        return found;
    return count_nics(part, is_rdma) ? part : NULL;
}

void coll__part_near(const struct coll__part *machine,
                     const struct coll__part *gpu, char *names, size_t len)
{
    int is_rdma = count_nics(machine, 1) > 0, has_gpu;
    const struct coll__part *near = holder(machine, gpu, is_rdma, &has_gpu);

    *names = '\0';
    if (near && near != machine)
        list_nics(near, is_rdma, names, len);
}
