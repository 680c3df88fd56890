/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc.c - packages, NUMA nodes, caches and cores from hwloc.
 *
 * hwloc's tree is copied into ours, without the parts that no algorithm needs (L1,
 * hardware threads).
 */
#include "lib/topo/hwloc_int.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEPTH 64 /* nesting depth that is accepted in a user's file */

int coll__hwloc_no_memory(void)
{
    log_error("topo", "no memory left for the description of this machine; "
                      "free some memory or start fewer ranks");
    return COLL_ERR_NOMEM;
}

void coll__hwloc_name(char *to, size_t len, const char *from)
{
    snprintf(to, len, "%s", from ? from : "");
    for (char *c = to; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127 || *c == '"' || *c == '\\')
            *c = '_';
}

/* ---- cores, caches and memory ------------------------------------------ */

/* Return the kind of part for an object, or -1 if we leave the object out. */
static int kind_of(hwloc_obj_t obj)
{
    switch (obj->type) {
    case HWLOC_OBJ_PACKAGE:
        return PART_PACKAGE;
    case HWLOC_OBJ_DIE:
    case HWLOC_OBJ_GROUP:
        return PART_GROUP;
    case HWLOC_OBJ_NUMANODE:
        return PART_NUMA;
    case HWLOC_OBJ_L3CACHE:
        return PART_L3;
    case HWLOC_OBJ_L2CACHE:
        return PART_L2;
    case HWLOC_OBJ_CORE:
        return PART_CORE;
    default:
        return -1;
    }
}

static void set_name(struct coll__part *part, const char *name)
{
    coll__hwloc_name(part->name, sizeof(part->name), name);
}

static void describe(struct coll__part *part, hwloc_obj_t obj)
{
    switch (part->kind) {
    case PART_PACKAGE:
        set_name(part, hwloc_obj_get_info_by_name(obj, "CPUModel"));
        break;
    case PART_NUMA:
        part->bytes = obj->attr->numanode.local_memory;
        break;
    case PART_L3:
    case PART_L2:
        part->bytes = obj->attr->cache.size;
        break;
    case PART_CORE:
        hwloc_bitmap_list_snprintf(part->cpus, sizeof(part->cpus), obj->cpuset);
        break;
    default:
        break;
    }
}

/* Copy the objects below obj (memory first, as hwloc prints it). */
static int copy_below(hwloc_obj_t obj, struct coll__part *part, int depth)
{
    hwloc_obj_t lists[] = {obj->memory_first_child, obj->first_child};

    if (depth == MAX_DEPTH)
        return COLL_OK;
    for (int i = 0; i < 2; i++)
        for (hwloc_obj_t child = lists[i]; child; child = child->next_sibling) {
            int kind = kind_of(child), status;
            struct coll__part *below = part;

            if (kind >= 0) {
                below = coll__part_add(part, (enum coll__part_kind)kind,
                                       (int)child->os_index);
                if (!below)
                    return coll__hwloc_no_memory();
                describe(below, child);
            }
            status = copy_below(child, below, depth + 1);
            if (status)
                return status;
        }
    return COLL_OK;
}

/* ---- distances --------------------------------------------------------- */

static hwloc_obj_t package_of(hwloc_topology_t topology, hwloc_obj_t node)
{
    if (!node->cpuset || hwloc_bitmap_iszero(node->cpuset))
        return NULL;
    return hwloc_get_next_obj_covering_cpuset_by_type(topology, node->cpuset,
                                                      HWLOC_OBJ_PACKAGE, NULL);
}

static void take_matrix(hwloc_topology_t topology,
                        const struct hwloc_distances_s *d,
                        struct coll__inside *inside)
{
    for (unsigned i = 0; i < d->nbobjs; i++)
        for (unsigned j = 0; j < d->nbobjs; j++) {
            double own = (double)d->values[i * d->nbobjs + i];
            double far = (double)d->values[i * d->nbobjs + j];
            hwloc_obj_t a = package_of(topology, d->objs[i]);
            hwloc_obj_t b = package_of(topology, d->objs[j]);
            double *most = a == b ? &inside->numa : &inside->package;

            if (i != j && a && b && own > 0 && far / own > *most)
                *most = far / own;
        }
}

void coll__hwloc_inside(const struct coll__hwloc *hwloc,
                        struct coll__inside *inside)
{
    struct hwloc_distances_s *d;
    unsigned n = 1;

    if (hwloc_distances_get_by_type(hwloc->topology, HWLOC_OBJ_NUMANODE, &n, &d,
                                    HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) ||
        !n)
        return;
    take_matrix(hwloc->topology, d, inside);
    hwloc_distances_release(hwloc->topology, d);
}

/* ---- loading ----------------------------------------------------------- */

static int copy_tree(struct coll__topo *topo)
{
    hwloc_obj_t root = hwloc_get_root_obj(topo->hwloc->topology);

    topo->machine = coll__part_add(NULL, PART_MACHINE, -1);
    if (!topo->machine)
        return coll__hwloc_no_memory();
    topo->machine->bytes = root->total_memory;
    set_name(topo->machine, hwloc_obj_get_info_by_name(root, "HostName"));
    return copy_below(root, topo->machine, 0);
}

static int bad_file(const char *file, const char *why)
{
    log_error("topo",
              "topology file %s %s; write one with lstopo FILE.xml or "
              "coll_info --topology --xml",
              file, why);
    return COLL_ERR_INVALID;
}

/* Load the file or, if there is none, this machine (hwloc also obeys its own
 * HWLOC_SYNTHETIC and HWLOC_XMLFILE).  Returns 0, or -1 and errno. */
static int load(hwloc_topology_t topology, const char *file)
{
    hwloc_topology_set_io_types_filter(topology,
                                       HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (file && hwloc_topology_set_xml(topology, file))
        return -1;
    return hwloc_topology_load(topology);
}

static int try_file(const char *file)
{
    hwloc_topology_t topology;

    return hwloc_topology_init(&topology) || load(topology, file);
}

static int check_file(const char *file)
{
    int survives;

    if (access(file, R_OK))
        return bad_file(file,
                        errno == ENOENT ? "does not exist" : "cannot be read");
    survives = coll__survives(try_file, file);
    if (survives > 0)
        return COLL_OK;
    if (!survives)
        return bad_file(file, "is no hwloc XML file");
    log_error("topo",
              "no child process to read the topology file in: %s; raise "
              "the limits on processes and open files",
              strerror(errno));
    return COLL_ERR_SYSTEM;
}

static int load_checked(hwloc_topology_t topology, const char *file)
{
    int status = file ? check_file(file) : COLL_OK;

    if (status || !load(topology, file))
        return status;
    if (file) /* changed since */
        return bad_file(file, "is no hwloc XML file");
    log_error("topo",
              "hwloc cannot describe this machine: %s; check that /sys "
              "is mounted, or set COLL_TOPO_FILE",
              strerror(errno));
    return COLL_ERR_SYSTEM;
}

int coll__hwloc_open(const char *file, struct coll__hwloc **hwloc)
{
    struct coll__hwloc *new = malloc(sizeof(*new));
    int status;

    if (!new || hwloc_topology_init(&new->topology)) {
        free(new);
        return coll__hwloc_no_memory();
    }
    status = load_checked(new->topology, file);
    if (status) {
        coll__hwloc_free(new);
        return status;
    }
    *hwloc = new;
    return COLL_OK;
}

/* ---- where a process is --------------------------------------------------- */

static int32_t around(hwloc_obj_t object, hwloc_obj_type_t type)
{
    while (object && object->type != type)
        object = object->parent;
    return object ? (int32_t)object->logical_index : -1;
}

/* The outermost cache: a fourth level is rare. */
static int32_t cache_around(hwloc_obj_t object)
{
    int32_t cache = around(object, HWLOC_OBJ_L4CACHE);

    return cache < 0 ? around(object, HWLOC_OBJ_L3CACHE) : cache;
}

static void find_within(hwloc_topology_t topology, hwloc_const_bitmap_t set,
                        int32_t within[COLL__WITHIN])
{
    hwloc_obj_t object = hwloc_get_obj_covering_cpuset(topology, set);

    within[WITHIN_CACHE] = cache_around(object);
    within[WITHIN_PACKAGE] = around(object, HWLOC_OBJ_PACKAGE);
    within[WITHIN_NUMA] =
        object && object->nodeset && hwloc_bitmap_weight(object->nodeset) == 1
            ? (int32_t)hwloc_bitmap_first(object->nodeset)
            : -1;
}

/* Add the processors of a set to bits. */
static void add_set(hwloc_bitmap_t bits, const cpu_set_t *set, size_t len)
{
    for (int cpu = 0; cpu < (int)len * 8; cpu++)
        if (CPU_ISSET_S((size_t)cpu, len, set))
            hwloc_bitmap_set(bits, (unsigned)cpu);
}

int coll__hwloc_within(const struct coll__hwloc *hwloc, const cpu_set_t *set,
                       size_t len, int32_t within[COLL__WITHIN])
{
    hwloc_bitmap_t bits = hwloc_bitmap_alloc();

    if (!bits)
        return coll__hwloc_no_memory();
    add_set(bits, set, len);
    find_within(hwloc->topology, bits, within);
    hwloc_bitmap_free(bits);
    return COLL_OK;
}

/* ---- cores to spare -------------------------------------------------------- */

/* Intersect `spare` with the set, unless the result would be empty. */
static void prefer(hwloc_bitmap_t spare, hwloc_const_bitmap_t set)
{
    if (hwloc_bitmap_intersects(spare, set))
        hwloc_bitmap_and(spare, spare, set);
}

/* Prefer cores that have no taken processor, and among these the near ones. */
static void prefer_good(hwloc_topology_t topology, hwloc_bitmap_t spare,
                        hwloc_const_bitmap_t taken, hwloc_const_bitmap_t near)
{
    static const hwloc_obj_type_t levels[] = {HWLOC_OBJ_PACKAGE,
                                              HWLOC_OBJ_NUMANODE};
    hwloc_bitmap_t whole = hwloc_bitmap_dup(spare);
    hwloc_obj_t object = NULL;

    if (!whole)
        return;
    while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE,
                                                object)))
        if (hwloc_bitmap_intersects(object->cpuset, taken))
            hwloc_bitmap_andnot(whole, whole, object->cpuset);
    prefer(spare, whole);
    hwloc_bitmap_free(whole);
    for (size_t l = 0; l < ARRAY_LEN(levels); l++)
        while ((object = hwloc_get_next_obj_by_type(topology, levels[l],
                                                    object)))
            if (hwloc_bitmap_isincluded(near, object->cpuset))
                prefer(spare, object->cpuset);
}

static int find_spare(hwloc_topology_t topology,
                      const struct coll__cores *ranks, int n, int me,
                      struct coll__cores *spare)
{
    hwloc_bitmap_t taken = hwloc_bitmap_alloc(), near = hwloc_bitmap_alloc(),
                   left = hwloc_bitmap_dup(
                       hwloc_topology_get_allowed_cpuset(topology));
    int n_left = 0;

    if (taken && near && left) {
        for (int r = 0; r < n; r++)
            add_set(taken, ranks[r].set, ranks[r].len);
        add_set(near, ranks[me].set, ranks[me].len);
        hwloc_bitmap_andnot(left, left, taken);
        n_left = hwloc_bitmap_weight(left);
        prefer_good(topology, left, taken, near);
        CPU_ZERO_S(spare->len, spare->set);
        for (int cpu = 0; cpu < (int)spare->len * 8; cpu++)
            if (hwloc_bitmap_isset(left, (unsigned)cpu))
                CPU_SET_S((size_t)cpu, spare->len, spare->set);
    }
    hwloc_bitmap_free(taken);
    hwloc_bitmap_free(near);
    hwloc_bitmap_free(left);
    return n_left;
}

int coll__hwloc_spare(const struct coll__cores *ranks, int n, int me,
                      struct coll__cores *spare)
{
    hwloc_topology_t topology;
    int n_left = 0;

    if (hwloc_topology_init(&topology))
        return 0;
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE,
                                   HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE,
                                   HWLOC_TYPE_FILTER_KEEP_ALL);
    if (!hwloc_topology_load(topology))
        n_left = find_spare(topology, ranks, n, me, spare);
    hwloc_topology_destroy(topology);
    return n_left;
}

/* The questions do not change hwloc's topology. */
int coll__hwloc_tree(const struct coll__hwloc *hwloc, struct coll__topo *topo)
{
    struct coll__topo with = {NULL, (struct coll__hwloc *)hwloc};
    int status = copy_tree(&with);

    if (!status)
        status = coll__hwloc_devices(&with, 1);
    if (status)
        coll__part_free(with.machine);
    else
        topo->machine = with.machine;
    return status;
}

int coll__hwloc_load(struct coll__topo *topo, const char *file)
{
    int status = coll__hwloc_open(file, &topo->hwloc);

    if (!status)
        status = copy_tree(topo);
    if (!status)
        status = coll__hwloc_devices(topo, file != NULL);
    return status;
}

void coll__hwloc_free(struct coll__hwloc *hwloc)
{
    if (hwloc)
        hwloc_topology_destroy(hwloc->topology);
    free(hwloc);
}

int coll__hwloc_xml(const struct coll__hwloc *hwloc, char **text)
{
    char *xml;
    int len;

    if (hwloc_topology_export_xmlbuffer(hwloc->topology, &xml, &len, 0))
        return coll__hwloc_no_memory();
    *text = strndup(xml, (size_t)len);
    hwloc_free_xmlbuffer(hwloc->topology, xml);
    return *text ? COLL_OK : coll__hwloc_no_memory();
}
