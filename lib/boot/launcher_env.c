/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher_env.c - read launchers' variables, and make the jobs' secrets. */
#include "lib/boot/launcher_env.h"
#include "include/coll/coll.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX 4096 /* bytes of a secret that are used */

const char *coll__launcher_env(const char *name)
{
    const char *text = getenv(name);

    return text ? text : "";
}

int coll__launcher_env_has_all(const char *set, const char *const needed[],
                               const char *remedy)
{
    if (!*coll__launcher_env(set))
        return 0;
    while (*needed && *coll__launcher_env(*needed))
        needed++;
    if (!*needed)
        return 1;
    log_error("boot", "%s is set but %s is not; %s", set, *needed, remedy);
    return COLL_ERR_BOOTSTRAP;
}

int coll__launcher_env_number(const char *name, long least, long most,
                              long *value)
{
    const char *text = coll__launcher_env(name);
    char *end;

    errno = 0;
    *value = strtol(text, &end, 10);
    if (end != text && !*end && !errno && *value >= least && *value <= most)
        return COLL_OK;
    log_error("boot", "%s=%s is not valid: it must be %ld to %ld", name, text,
              least, most);
    return COLL_ERR_BOOTSTRAP;
}

int coll__launcher_env_place(const char *rank_name, const char *size_name,
                             int *rank, int *size)
{
    long me, all;
    int status = coll__launcher_env_number(size_name, 1, INT_MAX / 2, &all);

    if (!status)
        status = coll__launcher_env_number(rank_name, 0, all - 1, &me);
    if (status)
        return status;
    *rank = (int)me;
    *size = (int)all;
    return COLL_OK;
}

int coll__launcher_has_secret(void)
{
    return coll__param_is_set(PARAM_JOB_SECRET) ||
           coll__param_is_set(PARAM_JOB_SECRET_FILE);
}

/* Return why the file cannot keep a secret; NULL if it can. */
static const char *judge(int fd)
{
    struct stat st;

    if (fstat(fd, &st))
        return strerror(errno);
    if (!S_ISREG(st.st_mode))
        return "it is no regular file";
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return "it belongs to somebody else";
    if (st.st_mode & 077)
        return "others may read it; chmod 600 it";
    return st.st_size ? NULL : "it is empty";
}

/* Read the file into text[FILE_MAX + 1]. */
static int read_file(const char *path, char *text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const char *why = fd < 0 ? strerror(errno) : judge(fd);
    ssize_t n = why ? 0 : read(fd, text, FILE_MAX);

    if (!why && n < 0)
        why = strerror(errno);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (!why && !*text)
        why = "its first line is empty";
    if (!why)
        return COLL_OK;
    log_error("boot", "COLL_JOB_SECRET_FILE=%s: %s", path, why);
    return COLL_ERR_INVALID;
}

int coll__launcher_secret(const char *words, const char *launcher, int says_so,
                          unsigned char secret[COLL__SECRET_BYTES])
{
    char text[FILE_MAX + 1], all[FILE_MAX + 1024];
    int status = COLL_OK;

    snprintf(text, sizeof(text), "%s", coll__param_text(PARAM_JOB_SECRET));
    if (!coll__param_is_set(PARAM_JOB_SECRET) &&
        coll__param_is_set(PARAM_JOB_SECRET_FILE))
        status = read_file(coll__param_text(PARAM_JOB_SECRET_FILE), text);
    if (status)
        return status;
    snprintf(all, sizeof(all), "%.900s %s", words, text);
    coll__auth_from_text(all, secret);
    coll__auth_wipe(all, sizeof(all));
    coll__auth_wipe(text, sizeof(text));
    if (says_so && !coll__launcher_has_secret())
        log_warn("boot",
                 "%s gives its ranks no secret, so anyone who knows the job's "
                 "name could join it; on a network shared with others, set "
                 "COLL_JOB_SECRET or COLL_JOB_SECRET_FILE on all ranks",
                 launcher);
    return COLL_OK;
}
