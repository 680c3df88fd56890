/* SPDX-License-Identifier: BSD-3-Clause */
/* config_file.c - read the file of --config. */
#include "trainer/config_file.h"
#include "trainer/error.h"
#include "trainer/flags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#define BOM "\xef\xbb\xbf" /* some editors begin a UTF-8 file with it */

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* Cut blanks off both ends. */
static char *trim(char *text)
{
    size_t n = strlen(text);

    while (n > 0 && is_blank(text[n - 1]))
        text[--n] = '\0';
    while (is_blank(*text))
        text++;
    return text;
}

static void cut_comment(char *line)
{
    for (char *c = line; *c; c++)
        if (*c == '#' && (c == line || is_blank(c[-1]))) {
            *c = '\0';
            return;
        }
}

/* Read one line, without its end. */
static int read_line(struct args *args, char *line)
{
    const struct program_option *f;
    char *value;

    cut_comment(line);
    line = trim(line);
    if (!*line)
        return 0;
    if (*line == '-')
        return train_refuse("'%s' is not understood: a line is NAME = VALUE, "
                            "without dashes",
                            line);
    value = strchr(line, '=');
    if (value)
        *value++ = '\0';
    f = program_find(&coll_train, trim(line));
    if (!f)
        return -1;
    if (!strcmp(f->name, "config"))
        return train_refuse("--config names one file; it cannot stand in it");
    if (value && !f->value)
        return train_refuse("%s takes no value; write it alone", f->name);
    if (!value && !program_stands_alone(f))
        return train_refuse("%s needs a value: %s", f->name, f->value);
    return program_set(&coll_train, f, value ? trim(value) : NULL, args) ? -1
                                                                         : 0;
}

/* Return the whole of a text file, the caller's to free; or NULL. */
static char *read_text(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    ssize_t len;

    if (!f) {
        train_refuse("cannot read --config %s: %s", path, strerror(errno));
        return NULL;
    }
    errno = 0;
    len = getdelim(&text, &room, '\0', f); /* -1: also when it is empty */
    if (ferror(f) || !text) {
        train_refuse("cannot read --config %s: %s", path, strerror(errno));
    } else if (len > 0 && text[len - 1] == '\0' && !feof(f)) {
        train_refuse(
            "--config %s is no text; name a file of lines NAME = VALUE", path);
    } else {
        text[len > 0 ? len : 0] = '\0';
        fclose(f);
        return text;
    }
    fclose(f);
    free(text);
    return NULL;
}

int config_read(struct args *args, const char *path)
{
    char *line = read_text(path), *next;
    char why[768];

    args->config_text = line;
    if (!line)
        return -1;
    args->config_crc =
        (uint32_t)crc32_z(0, (const unsigned char *)line, strlen(line));
    if (!strncmp(line, BOM, strlen(BOM)))
        line += strlen(BOM);
    for (int n = 1; line; n++, line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (read_line(args, line)) {
            snprintf(why, sizeof(why), "%s", train_error());
            return train_refuse("%s:%d: %s", path, n, why);
        }
    }
    return 0;
}
