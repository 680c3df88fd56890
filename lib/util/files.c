/* SPDX-License-Identifier: BSD-3-Clause */
/* files.c - see files.h. */
#include "lib/util/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int coll__files_left(int enough)
{
    struct rlimit limit;
    int n = 0;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return enough;
    for (rlim_t fd = 0; fd < limit.rlim_cur && n < enough; fd++)
        n += fcntl((int)fd, F_GETFD) < 0;
    return n;
}

void coll__files_fill_standard(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int coll__files_lack(int err) { return err == EMFILE || err == ENFILE; }

const char *coll__files_error(int err)
{
    if (err == EMFILE)
        return "this process may not open another file; raise ulimit -n";
    if (err == ENFILE)
        return "this host may not open another file; raise fs.file-max (its "
               "processes' ulimit -n allow more than there are)";
    return strerror(err);
}

struct coll__stamp coll__stamp_of(const char *path)
{
    struct coll__stamp stamp = {0};
    struct stat st;

    if (stat(path, &st))
        return stamp;
    stamp.dev = (uint64_t)st.st_dev;
    stamp.ino = (uint64_t)st.st_ino;
    stamp.size = (uint64_t)st.st_size;
    stamp.modified[0] = st.st_mtim.tv_sec;
    stamp.modified[1] = st.st_mtim.tv_nsec;
    stamp.changed[0] = st.st_ctim.tv_sec;
    stamp.changed[1] = st.st_ctim.tv_nsec;
    return stamp;
}

int coll__stamp_same(const struct coll__stamp *a, const struct coll__stamp *b)
{
    return a->ino && !memcmp(a, b, sizeof(*a)); /* it has no padding */
}
