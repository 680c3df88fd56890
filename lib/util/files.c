/* SPDX-License-Identifier: BSD-3-Clause */
/* files.c - see files.h. */
#include "lib/util/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
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
