/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.c - the file .run: a name, who writes, a lock. */
#include "trainer/folder.h"
#include "trainer/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read "NAME\npid 7 on host\n", or as much of it as there is. */
static void read_file(struct folder *f, char who[2 * FOLDER_NAME])
{
    char text[4 * FOLDER_NAME] = "", *rest = text, *line;

    if (pread(f->fd, text, sizeof(text) - 1, 0) < 0)
        text[0] = '\0';
    line = strsep(&rest, "\n");
    snprintf(f->run, FOLDER_NAME, "%.*s", FOLDER_NAME - 1, line);
    line = rest ? strsep(&rest, "\n") : NULL;
    snprintf(who, 2 * FOLDER_NAME, "%.*s", 2 * FOLDER_NAME - 1,
             line && *line ? line : "another process");
}

static int cannot_write(const char *dir)
{
    char what[PATH_MAX + 8];

    snprintf(what, sizeof(what), "%s/.run", dir);
    return train_cannot_write(what, "folder by --checkpoint");
}

static int write_file(const struct folder *f)
{
    char text[4 * FOLDER_NAME], host[FOLDER_NAME] = "";
    int len;

    gethostname(host, sizeof(host) - 1);
    len = snprintf(text, sizeof(text), "%s\npid %d on %s\n", f->run,
                   (int)getpid(), host);
    if (ftruncate(f->fd, 0) || pwrite(f->fd, text, (size_t)len, 0) != len)
        return cannot_write(f->dir);
    return 0;
}

/* Remove what was left by a rank 0 that was killed while it wrote here.  Only
 * the holder of the lock may do so, since nobody else writes drafts. */
static void remove_drafts(const struct folder *f)
{
    char path[PATH_MAX];
    DIR *folder = opendir(f->dir);
    struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        if (fnmatch(".draft-[0-9]*", entry->d_name, 0) &&
            fnmatch(".probe-[0-9]*", entry->d_name, 0))
            continue;
        snprintf(path, sizeof(path), "%s/%s", f->dir, entry->d_name);
        unlink(path);
    }
    if (folder)
        closedir(folder);
}

int folder_init(struct folder *f, const char *dir)
{
    char path[PATH_MAX], who[2 * FOLDER_NAME];
    int is_free;

    f->dir = dir;
    snprintf(path, sizeof(path), "%s/.run", dir);
    f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (f->fd < 0) {
        f->fd = 0;
        return cannot_write(dir);
    }
    is_free = !flock(f->fd, LOCK_EX | LOCK_NB);
    if (is_free)
        remove_drafts(f);
    else /* ENOLCK and the like: the file system has no locks to hold */
        is_free = errno != EWOULDBLOCK;
    read_file(f, who);
    if (is_free)
        return 0;
    folder_fini(f);
    return train_fail("a running job (%s) writes checkpoints to %s; wait for "
                      "its end or name another folder by --checkpoint",
                      who, dir);
}

void folder_fini(struct folder *f)
{
    if (f->fd)
        close(f->fd);
    f->fd = 0;
}

/* ---- names ---- */

/* Return what collrun or torchrun calls this run; NULL if neither names it.
 * torchrun calls every run "none" that has no name. */
static const char *launchers_name(void)
{
    const char *name = getenv("TORCHELASTIC_RUN_ID");

    return name && *name && strcmp(name, "none") ? name : NULL;
}

/* Take a name, changed so that a folder can have it. */
static void set_name(struct folder *f, const char *name)
{
    snprintf(f->run, FOLDER_NAME, "%.*s", FOLDER_NAME - 1, name);
    for (char *c = f->run; *c; c++)
        if (*c == '/' || *c <= ' ' || *c > '~' || (*c == '.' && c == f->run))
            *c = '_';
}

static void name_run(struct folder *f)
{
    const char *name = launchers_name();
    unsigned bits[2] = {0};
    char text[FOLDER_NAME];

    if (!name) {
        if (getrandom(bits, sizeof(bits), 0) < 0)
            bits[0] = (unsigned)getpid();
        snprintf(text, sizeof(text), "%08x%08x", bits[0], bits[1]);
        name = text;
    }
    set_name(f, name);
}

int folder_is_restart(const struct folder *f)
{
    const char *count = getenv("TORCHELASTIC_RESTART_COUNT");
    struct folder ours = {.fd = 0};

    if (!f->fd || !count || atoi(count) < 1 || !launchers_name())
        return 0;
    name_run(&ours);
    return !strcmp(f->run, ours.run);
}

/* ---- moving ---- */

/* Make a folder in dir named after the run there, by a name that is free. */
static int make_room(struct folder *f, char path[PATH_MAX])
{
    const char *name = *f->run ? f->run : "earlier";

    for (int i = 1; i < 10000; i++) {
        if (i == 1)
            snprintf(f->moved, FOLDER_NAME, "%.40s", name);
        else
            snprintf(f->moved, FOLDER_NAME, "%.40s-%d", name, i);
        snprintf(path, PATH_MAX, "%s/%s", f->dir, f->moved);
        if (!mkdir(path, 0777))
            return 0;
        if (errno != EEXIST)
            break;
    }
    return train_fail("cannot move the checkpoints of an earlier run to %s: "
                      "%s; name another folder by --checkpoint",
                      path, strerror(errno));
}

/* Move one file there; the first one creates the folder. */
static int move(struct folder *f, const char *name)
{
    char from[PATH_MAX], folder[PATH_MAX], to[2 * PATH_MAX];

    if (!*f->moved && make_room(f, folder))
        return -1;
    snprintf(from, sizeof(from), "%s/%s", f->dir, name);
    snprintf(to, sizeof(to), "%s/%s/%s", f->dir, f->moved, name);
    if (!rename(from, to))
        return 0;
    return train_fail("cannot move %s of an earlier run to %s: %s; name "
                      "another folder by --checkpoint",
                      from, to, strerror(errno));
}

static int move_all(struct folder *f)
{
    DIR *folder = opendir(f->dir);
    struct dirent *entry;
    int st = 0;

    if (!folder)
        return train_fail("cannot read %s: %s; check --checkpoint", f->dir,
                          strerror(errno));
    while (!st && (entry = readdir(folder)))
        if (!fnmatch("epoch-*.ckpt", entry->d_name, 0))
            st = move(f, entry->d_name);
    closedir(folder);
    return st;
}

int folder_begin(struct folder *f, int goes_on)
{
    if (goes_on && *f->run)
        return write_file(f);
    if (!goes_on && move_all(f))
        return -1;
    name_run(f);
    return write_file(f);
}
