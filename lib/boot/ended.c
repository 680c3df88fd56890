/* SPDX-License-Identifier: BSD-3-Clause */
/* ended.c - read collrun's file of the ranks that have ended. */
#include "lib/boot/ended.h"
#include "lib/boot/launcher_env.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* One entry of the file. */
struct record {
    int32_t rank, how; /* waitpid()'s status */
};

/* A program in between may have closed the file and opened another one in its place. */
void coll__ended_begin(struct coll__ended *ended, int is_collruns)
{
    unsigned long long device, inode;
    struct stat st;
    int fd;

    *ended = (struct coll__ended){.fd = -1};
    if (is_collruns &&
        sscanf(coll__launcher_env("COLLRUN_ENDED"), "%d:%llu:%llu", &fd,
               &device, &inode) == 3 &&
        !fstat(fd, &st) && st.st_dev == device && st.st_ino == inode)
        ended->fd = fd;
}

int coll__ended_next(struct coll__ended *ended, int *rank,
                     char text[COLL__ENDED_TEXT])
{
    struct record record;

    if (ended->fd < 0 ||
        pread(ended->fd, &record, sizeof(record), ended->at) != sizeof(record))
        return 0;
    ended->at += (off_t)sizeof(record);
    *rank = record.rank;
    if (WIFSIGNALED(record.how))
        snprintf(text, COLL__ENDED_TEXT, "rank %d ended (killed by signal %d)",
                 record.rank, WTERMSIG(record.how));
    else
        snprintf(text, COLL__ENDED_TEXT, "rank %d ended (exit status %d)",
                 record.rank, WEXITSTATUS(record.how));
    return 1;
}
