/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_link.c - the key of the words between the collruns of two hosts. */
#include "tools/collrun_link.h"
#include "tools/collrun.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Read the first line of a file that only the user may read. */
static int read_secret(const char *path, char *text, int len)
{
    FILE *file = fopen(path, "re");
    const char *why = NULL;
    struct stat st;

    if (!file || fstat(fileno(file), &st))
        why = strerror(errno);
    else if (st.st_mode & 077)
        why = "others may read it; chmod 600 it";
    else if (!fgets(text, len, file) || !text[strcspn(text, "\n")])
        why = strcspn(text, "\n") ? NULL : "its first line is empty";
    if (file)
        fclose(file);
    if (!why)
        text[strcspn(text, "\n")] = '\0';
    else
        complain("COLL_JOB_SECRET_FILE=%s: %s", path, why);
    return why ? -1 : 0;
}

int link_key(const char *run_id, unsigned char key[COLL__SECRET_BYTES])
{
    const char *secret = getenv("COLL_JOB_SECRET"),
               *path = getenv("COLL_JOB_SECRET_FILE");
    char text[1024] = "", all[2048];
    int is_secret;

    if (secret && *secret)
        snprintf(text, sizeof(text), "%s", secret);
    else if (path && *path && read_secret(path, text, sizeof(text)))
        return -1;
    snprintf(all, sizeof(all), "collrun %.900s\n%s", run_id, text);
    coll__auth_from_text(all, key);
    coll__auth_wipe(all, sizeof(all));
    is_secret = *text != '\0';
    coll__auth_wipe(text, sizeof(text));
    return is_secret;
}

int link_await(struct coll__words *words, double deadline,
               char word[COLL__WORD])
{
    struct pollfd pfd = {.fd = words->fd, .events = POLLIN};
    int is_there;

    while (!(is_there = coll__words_take(words, word))) {
        double left = deadline - now();

        if (left <= 0)
            return -1;
        poll(&pfd, 1, left > 60 ? 60000 : (int)(left * 1000) + 1);
    }
    return is_there;
}
