/* SPDX-License-Identifier: BSD-3-Clause */
/* quota.c - the processors' time of this process, from the files of its control groups.
 *
 * /proc/self/cgroup names this process's group in each hierarchy. /proc/self/mountinfo
 * says where that hierarchy is mounted, and which of its groups is at the mount point (in
 * a container perhaps the process's own).  Each group from the process's up to the mount
 * point may have a limit.
 */
#include "lib/topo/quota.h"
#include "lib/topo/machine.h"
#include "lib/util/read.h"
#include "lib/util/util.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A mounted hierarchy and the result of the search in it; on the heap, since it is too
 * large for a small thread's stack. */
struct mount {
    int is_v2;
    char root[PATH_MAX]; /* the group at the mount point */
    char at[PATH_MAX];
    char group[PATH_MAX];    /* this process's */
    char path[3 * PATH_MAX]; /* of what is being read */
};

/* ---- limits ------------------------------------------------------------- */

/* Return how many cores' time the group in this directory may use, 0 for no limit. */
static double limit_of(const char *dir, int is_v2)
{
    char quota_line[64] = "", period_line[64] = "";
    long long quota = 0, period = 0;

    if (is_v2) {
        coll__read_line(dir, "cpu.max", quota_line, sizeof(quota_line));
        if (sscanf(quota_line, "%lld %lld", &quota, &period) != 2) /* max */
            return 0;
    } else {
        coll__read_line(dir, "cpu.cfs_quota_us", quota_line,
                        sizeof(quota_line));
        coll__read_line(dir, "cpu.cfs_period_us", period_line,
                        sizeof(period_line));
        if (sscanf(quota_line, "%lld", &quota) != 1 ||
            sscanf(period_line, "%lld", &period) != 1)
            return 0;
    }
    return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

/* Return a number for the group in this directory; all processes see the same number,
 * whatever path they use. */
static uint32_t number_of(const char *dir)
{
    struct stat st;
    uint64_t mixed;

    if (stat(dir, &st))
        return 1;
    mixed =
        ((uint64_t)st.st_dev << 40 ^ (uint64_t)st.st_ino) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(mixed >> 32) | 1;
}

/* Take the tightest limit of the group in dir and of its parents, up to the first `top`
 * bytes of the path. */
static void take_limits(char *dir, size_t top, int is_v2,
                        struct coll__quota *quota)
{
    for (;;) {
        double cores = limit_of(dir, is_v2);
        char *end = strrchr(dir, '/');

        if (cores > 0 && (quota->cores <= 0 || cores < quota->cores))
            *quota = (struct coll__quota){cores, number_of(dir)};
        if (!end || end < dir + top)
            return;
        *end = '\0';
    }
}

/* ---- where a group is ----------------------------------------------------- */

/* Turn the kernel's \040 into spaces, and so on. */
static void unescape(char *text)
{
    char *to = text;

    for (; *text; text++) {
        unsigned code;

        if (*text == '\\' && sscanf(text + 1, "%3o", &code) == 1) {
            *to++ = (char)code;
            text += 3;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
}

/* Is this line of mountinfo a hierarchy with the cpu controller? */
static int read_mount(char *line, struct mount *mount)
{
    char *rest = strstr(line, " - "), type[16], options[256];

    if (!rest || sscanf(rest, " - %15s %*s %255s", type, options) != 2)
        return 0;
    mount->is_v2 = !strcmp(type, "cgroup2");
    if (!mount->is_v2 &&
        (strcmp(type, "cgroup") || !coll__word_in("cpu", options, ',')))
        return 0;
    _Static_assert(PATH_MAX == 4096, "as in the format");
    if (sscanf(line, "%*s %*s %*s %4095s %4095s", mount->root, mount->at) != 2)
        return 0;
    unescape(mount->root);
    unescape(mount->at);
    return 1;
}

/* Note this process's group in that hierarchy from /proc/self/cgroup: "0::/path",
 * "4:cpu,cpuacct:/path"; 0 if it is in none. */
static int find_group(const char *root, struct mount *mount)
{
    char *line = NULL, *rest, *names;
    size_t len = 0;
    int is_found = 0;
    FILE *file;

    snprintf(mount->path, sizeof(mount->path), "%s/proc/self/cgroup", root);
    file = fopen(mount->path, "re");
    while (file && !is_found && getline(&line, &len, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        rest = line;
        strsep(&rest, ":");
        names = strsep(&rest, ":");
        if (!names || !rest)
            continue;
        is_found = mount->is_v2 ? !*names : coll__word_in("cpu", names, ',');
        if (is_found)
            snprintf(mount->group, sizeof(mount->group), "%s", rest);
    }
    free(line);
    if (file)
        fclose(file);
    return is_found;
}

/* Return the part of the group's path below the mount point; "" if the group is at the
 * mount point, or not below it. */
static const char *below(const struct mount *mount)
{
    const char *group = mount->group;
    size_t n = strlen(mount->root);

    if (strstr(group, "/.."))
        return "";
    if (!strcmp(mount->root, "/"))
        return strcmp(group, "/") ? group : "";
    return !strncmp(group, mount->root, n) && group[n] == '/' ? group + n : "";
}

static void look_at(const char *root, struct mount *mount,
                    struct coll__quota *quota)
{
    size_t top = strlen(root) + strlen(mount->at);

    if (!find_group(root, mount))
        return;
    snprintf(mount->path, sizeof(mount->path), "%s%s%s", root, mount->at,
             below(mount));
    take_limits(mount->path, top, mount->is_v2, quota);
}

void coll__quota_load_from(const char *root, struct coll__quota *quota)
{
    struct mount *mount = malloc(sizeof(*mount));
    char *line = NULL;
    size_t len = 0;
    FILE *file;

    *quota = (struct coll__quota){0};
    if (!mount)
        return;
    snprintf(mount->path, sizeof(mount->path), "%s/proc/self/mountinfo", root);
    file = fopen(mount->path, "re");
    while (file && getline(&line, &len, file) > 0)
        if (read_mount(line, mount))
            look_at(root, mount, quota);
    free(line);
    free(mount);
    if (file)
        fclose(file);
}

void coll__quota_load(struct coll__quota *quota)
{
    coll__quota_load_from("", quota);
}
