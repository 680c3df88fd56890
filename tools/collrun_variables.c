/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_variables.c - variables for the ranks: -x and --env-file. */
#include "tools/collrun.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Note "VAR" or "VAR=VALUE"; -1 if text is neither, or there are too many.  A name alone
 * matters only for other hosts: ranks here inherit our environment. */
static int take(struct options *o, const char *text)
{
    size_t len = strcspn(text, "=");
    char *name = strndup(text, len);

    if (!len || !name || o->n_variables == MAX_VARIABLES ||
        (text[len] && setenv(name, text + len + 1, 1))) {
        free(name);
        return -1;
    }
    o->variables[o->n_variables++] = name; /* until the program ends */
    return 0;
}

int variables_take(struct options *o, const char *text)
{
    if (!take(o, text))
        return 0;
    complain("-x %s: it must be VAR or VAR=VALUE, %d times at most", text,
             MAX_VARIABLES);
    return -1;
}

/* Those of libcoll, and PATH, which is needed to find a program given by its name. */
int variables_go_along(const struct options *o, const char *variable)
{
    size_t len = strcspn(variable, "=");

    for (int i = 0; i < o->n_variables; i++)
        if (strlen(o->variables[i]) == len &&
            !strncmp(o->variables[i], variable, len))
            return 1;
    return !strncmp(variable, "COLL_", 5) || !strncmp(variable, "UCX_", 4) ||
           !strncmp(variable, "PATH=", 5);
}

/* Strip the space around a line; VALUE is not changed otherwise. */
static char *strip(char *line)
{
    size_t n;

    line += strspn(line, " \t");
    n = strlen(line);
    while (n && strchr(" \t\r\n", line[n - 1]))
        line[--n] = '\0';
    return line;
}

/* A name has no space: "export A=1" is shell syntax. */
static int take_line(struct options *o, const char *line)
{
    size_t len = strcspn(line, "=");

    if (!*line || *line == '#')
        return 0;
    return strcspn(line, " \t") < len ? -1 : take(o, line);
}

int variables_read(struct options *o, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    int rc = 0, n = 0;

    if (!file) {
        complain("cannot read --env-file %s: %s", path, strerror(errno));
        return -1;
    }
    while (!rc && getline(&line, &room, file) >= 0) {
        rc = take_line(o, strip(n++ ? line : skip_byte_order_mark(line)));
    }
    if (rc)
        complain("%s, line %d: it must be VAR=VALUE or VAR, %d in all at most; "
                 "# begins a comment",
                 path, n, MAX_VARIABLES);
    else if (ferror(file)) {
        complain("cannot read --env-file %s: %s", path, strerror(errno));
        rc = -1;
    }
    free(line);
    fclose(file);
    return rc;
}
