/* SPDX-License-Identifier: BSD-3-Clause */
/* files.h - files that lie beside the tests, and folders that a test makes. */
#ifndef COLL_TESTS_FILES_H
#define COLL_TESTS_FILES_H

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the path of a file in a folder of tests/, until the next call. */
static inline const char *fixture_file(const char *folder, const char *name)
{
    static _Thread_local char path[1024];
    const char *top = getenv("srcdir");

    snprintf(path, sizeof(path), "%s/tests/%s/%s", top ? top : ".", folder,
             name);
    return path;
}

/* Has such a file a line that begins with these words? */
static inline int fixture_has_line(const char *folder, const char *name,
                                   const char *words)
{
    FILE *file = fopen(fixture_file(folder, name), "r");
    char line[256];
    int has = 0;

    while (file && !has && fgets(line, sizeof(line), file))
        has = !strncmp(line, words, strlen(words));
    if (file)
        fclose(file);
    return has;
}

/* Make a new folder, whose name begins with /tmp/ and ends with six characters that this
 * function replaces. */
static inline void folder_make(char *name)
{
    memset(name + strlen(name) - 6, 'X', 6);
    ck_assert_ptr_nonnull(mkdtemp(name));
}

/* Return how many entries a folder has. */
static inline int folder_count(const char *name)
{
    DIR *dir = opendir(name);
    int n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

/* Remove a folder and all that it holds. */
static inline void folder_remove(const char *name)
{
    char command[256];

    snprintf(command, sizeof(command), "rm -rf '%s'", name);
    ck_assert_int_eq(system(command), 0);
}

#endif
