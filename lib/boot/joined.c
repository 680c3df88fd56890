/* SPDX-License-Identifier: BSD-3-Clause */
/* joined.c - the mark of a process that has joined: it maps a page of a memory file whose
 * name other processes of the user can read in /proc/PID/maps.  A mapping needs no
 * descriptor, ends with exec(), and is not inherited by children. */
#include "lib/boot/joined.h"
#include "lib/boot/ancestor.h"
#include "lib/boot/launcher_env.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MARK 64       /* bytes of the mark's name */
#define MARK_HASH 16  /* bytes of the hash in the name */
#define MARK_LEN 4096 /* bytes of the mapping */

/* The name holds a hash, so that it does not show the variables to other processes. */
static void name_mark(const struct coll__boot_ops *ops, char name[MARK])
{
    unsigned char hash[COLL__SECRET_BYTES];
    char text[1024], hex[2 * MARK_HASH + 1];
    int len = snprintf(text, sizeof(text), "%s", ops->name);

    for (const char *const *v = ops->identity; *v; v++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, " %.200s",
                        coll__launcher_env(*v));
    coll__auth_from_text(text, hash);
    coll__auth_hex(hash, MARK_HASH, hex);
    snprintf(name, MARK, "coll-rank-%s", hex);
}

static int make_mark(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    void *page = MAP_FAILED;

    if (fd >= 0 && !ftruncate(fd, MARK_LEN))
        page = mmap(NULL, MARK_LEN, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return page == MAP_FAILED ? -1 : madvise(page, MARK_LEN, MADV_DONTFORK);
}

void coll__joined_mark(const struct coll__boot_ops *ops)
{
    static atomic_uint marked; /* the generation that is marked, plus 1; 0: none */
    unsigned mine = coll__generation_now() + 1;
    char name[MARK];

    if (!*ops->identity || atomic_exchange(&marked, mine) == mine)
        return;
    name_mark(ops, name);
    if (make_mark(name))
        log_debug("boot",
                  "this process bears no mark of its rank (%s): its children "
                  "will not know that they are none",
                  strerror(errno));
}

static int has_mark(int pid, const char *name)
{
    char path[32], *line = NULL;
    size_t size = 0;
    int found = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    file = fopen(path, "re");
    while (file && !found && getline(&line, &size, file) > 0)
        found = strstr(line, name) != NULL;
    if (file)
        fclose(file);
    free(line);
    return found;
}

/* The nearest ancestor without the launcher's variables is the launcher.  Its mark is
 * checked too: a program may have set the variables itself. */
int coll__joined_ancestor(const struct coll__boot_ops *ops)
{
    int pid = getppid();
    char name[MARK];

    if (!*ops->identity)
        return 0;
    name_mark(ops, name);
    for (int i = 0; i < COLL__MOST_ANCESTORS && pid > 1; i++) {
        if (has_mark(pid, name))
            return pid;
        if (!coll__began_with(pid, *ops->identity))
            return 0;
        pid = coll__parent_of(pid);
    }
    return 0;
}
