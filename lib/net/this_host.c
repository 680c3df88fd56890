/* SPDX-License-Identifier: BSD-3-Clause */
/* this_host.c - see this_host.h. */
#include "lib/net/this_host.h"
#include "lib/net/auth.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

unsigned long long coll__host_inode(const char *path)
{
    struct stat st;

    return stat(path, &st) ? 0 : (unsigned long long)st.st_ino;
}

static void read_line(const char *path, char *text, size_t len)
{
    FILE *file = fopen(path, "re");

    text[0] = '\0';
    if (!file)
        return;
    if (!fgets(text, (int)len, file))
        text[0] = '\0';
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
}

void coll__host_id(unsigned char id[COLL__HOST_BYTES])
{
    char boot_id[64], key[128];

    read_line("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
    if (!*boot_id && gethostname(boot_id, sizeof(boot_id)))
        snprintf(boot_id, sizeof(boot_id), "unknown");
    boot_id[sizeof(boot_id) - 1] = '\0';
    snprintf(key, sizeof(key), "%s %llu", boot_id,
             coll__host_inode("/proc/self/ns/net"));
    coll__auth_from_text(key, id);
}
