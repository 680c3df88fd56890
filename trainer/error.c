/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - keeps the last sentence. */
#include "trainer/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char sentence[1024];
static enum train_cause cause = CAUSE_MACHINE;

int train_fail_by(enum train_cause of, const char *format, ...)
{
    char next[sizeof(sentence)];
    va_list args;

    va_start(args, format);
    vsnprintf(next, sizeof(next), format, args);
    va_end(args);
    memcpy(sentence, next, sizeof(next));
    cause = of;
    return -1;
}

static const char *remedy_of(int err)
{
    switch (err) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return "free the disk or ";
    case ENOENT:
        return "make the folder above it or ";
    default:
        return "";
    }
}

int train_cannot_write(const char *what, const char *elsewhere)
{
    return train_fail("cannot write %s: %s; %sname another %s", what,
                      strerror(errno), remedy_of(errno), elsewhere);
}

const char *train_error(void) { return sentence; }

enum train_cause train_cause(void) { return cause; }
