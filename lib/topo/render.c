/* SPDX-License-Identifier: BSD-3-Clause */
/* render.c - write the tree for a reader (text) and for graphviz (dot).
 *
 * A cache with one thing below it shares its line: "L2 0 (1 MiB) + core 0".
 */
#include "lib/topo/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const kind_names[] = {
    [PART_MACHINE] = "machine", [PART_PACKAGE] = "package",
    [PART_GROUP] = "group",     [PART_NUMA] = "numa",
    [PART_L3] = "L3",           [PART_L2] = "L2",
    [PART_CORE] = "core",       [PART_SWITCH] = "switch",
    [PART_NIC] = "nic",         [PART_GPU] = "gpu",
};

static void put_bytes(FILE *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;

    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    fprintf(out, value < 10 && unit ? " (%.3g %s)" : " (%.0f %s)", value,
            units[unit]);
}

static void put_nic(FILE *out, const struct coll__nic *nic)
{
    fprintf(out, "%s %s", nic->is_rdma ? "rdma" : "nic", nic->name);
    if (nic->port)
        fprintf(out, " port %d", nic->port);
    fprintf(out, " %s", nic->port_state);
    if (nic->gbits > 0)
        fprintf(out, " %g Gbit/s", nic->gbits);
}

/* Write "nvlink 450 GB/s to 7 GPUs", one entry for each speed. */
static void put_links(FILE *out, const struct coll__part *gpu)
{
    for (int i = 0; i < gpu->n_links; i++) {
        double gbytes = gpu->links[i].gbytes;
        int n = 0, is_first = 1;

        for (int j = 0; j < gpu->n_links; j++) {
            int is_same = fabs(gpu->links[j].gbytes - gbytes) < 0.5;

            n += is_same;
            is_first &= !is_same || j >= i;
        }
        if (is_first)
            fprintf(out, ", nvlink %.0f GB/s to %d GPU%s", gbytes, n,
                    n == 1 ? "" : "s");
    }
}

static void put_gpu(FILE *out, const struct coll__part *machine,
                    const struct coll__part *gpu)
{
    char names[200];

    coll__part_near(machine, gpu, names, sizeof(names));
    if (*gpu->uuid)
        fprintf(out, ", %s", gpu->uuid);
    put_links(out, gpu);
    if (*names)
        fprintf(out, ", near %s", names);
}

static void put_part(FILE *out, const struct coll__part *machine,
                     const struct coll__part *part)
{
    if (part->kind == PART_NIC) {
        put_nic(out, &part->nic);
        return;
    }
    fputs(kind_names[part->kind], out);
    if (part->index >= 0)
        fprintf(out, " %d", part->index);
    if (part->name[0])
        fprintf(out, " %s", part->name);
    if (part->bytes)
        put_bytes(out, part->bytes);
    if (part->cpus[0])
        fprintf(out, " (cpu %s)", part->cpus);
    if (part->quota > 0)
        fprintf(out, ", %.3g cores by quota", part->quota);
    if (part->kind == PART_GPU)
        put_gpu(out, machine, part);
}

static int shares_line(const struct coll__part *part)
{
    return (part->kind == PART_L3 || part->kind == PART_L2) && part->first &&
           part->first == part->last;
}

static void put_lines(FILE *out, const struct coll__part *machine,
                      const struct coll__part *part, int depth)
{
    fprintf(out, "%*s", 2 * depth, "");
    put_part(out, machine, part);
    while (shares_line(part)) {
        part = part->first;
        fputs(" + ", out);
        put_part(out, machine, part);
    }
    fputc('\n', out);
    for (const struct coll__part *p = part->first; p; p = p->next)
        put_lines(out, machine, p, depth + 1);
}

/* Write the nodes n1, n2, ... in the order of the tree; returns the last number. */
static int put_node(FILE *out, const struct coll__part *machine,
                    const struct coll__part *part, int parent, int number)
{
    int me = ++number;

    fprintf(out, "    n%d [label=\"", me);
    put_part(out, machine, part);
    fprintf(out, "\"%s];\n",
            part->kind == PART_NIC || part->kind == PART_GPU ? ", style=rounded"
                                                             : "");
    if (parent)
        fprintf(out, "    n%d -- n%d;\n", parent, me);
    for (const struct coll__part *p = part->first; p; p = p->next)
        number = put_node(out, machine, p, me, number);
    return number;
}

/* Return the number of a part's node, 0 if it is not below `part`; *number is the number
 * of the part visited last. */
static int node_of(const struct coll__part *part,
                   const struct coll__part *wanted, int *number)
{
    int found = ++*number;

    if (part == wanted)
        return found;
    found = 0;
    for (const struct coll__part *p = part->first; p && !found; p = p->next)
        found = node_of(p, wanted, number);
    return found;
}

/* NVLink, each pair once. */
static void put_joints(FILE *out, const struct coll__part *machine,
                       const struct coll__part *part)
{
    for (int i = 0; i < part->n_links; i++) {
        int from = 0, to = 0;
        int a = node_of(machine, part, &from);
        int b = node_of(machine, part->links[i].to, &to);

        if (a < b)
            fprintf(out,
                    "    n%d -- n%d [style=bold, constraint=false, "
                    "label=\"nvlink %.0f GB/s\"];\n",
                    a, b, part->links[i].gbytes);
    }
    for (const struct coll__part *p = part->first; p; p = p->next)
        put_joints(out, machine, p);
}

static void put_text(FILE *out, const struct coll__part *machine)
{
    put_lines(out, machine, machine, 0);
}

static void put_dot(FILE *out, const struct coll__part *machine)
{
    fputs("graph machine {\n    node [shape=box];\n", out);
    put_node(out, machine, machine, 0, 0);
    put_joints(out, machine, machine);
    fputs("}\n", out);
}

/* The text's address is final only after the stream is closed. */
static int write_to(void (*put)(FILE *, const struct coll__part *),
                    const struct coll__part *machine, char **text)
{
    char *written = NULL;
    size_t len;
    FILE *out = open_memstream(&written, &len);
    int is_bad;

    if (!out)
        return COLL_ERR_NOMEM;
    put(out, machine);
    is_bad = ferror(out);
    if (fclose(out) || is_bad) {
        free(written);
        return COLL_ERR_NOMEM;
    }
    *text = written;
    return COLL_OK;
}

int coll__part_text(const struct coll__part *machine, char **text)
{
    return write_to(put_text, machine, text);
}

int coll__part_dot(const struct coll__part *machine, char **text)
{
    return write_to(put_dot, machine, text);
}
