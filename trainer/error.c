/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - keeps the last sentence. */
#include "trainer/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char sentence[1024];
static enum train_cause cause = CAUSE_MACHINE;

static int keep(enum train_cause of, const char *format, va_list args)
{
    char next[sizeof(sentence)];

    vsnprintf(next, sizeof(next), format, args);
    memcpy(sentence, next, sizeof(next));
    cause = of;
    return -1;
}

int train_fail(const char *format, ...)
{
    va_list args;
    int st;

    va_start(args, format);
    st = keep(CAUSE_MACHINE, format, args);
    va_end(args);
    return st;
}

int train_refuse(const char *format, ...)
{
    va_list args;
    int st;

    va_start(args, format);
    st = keep(CAUSE_USER, format, args);
    va_end(args);
    return st;
}

int train_fail_by(enum train_cause of, const char *format, ...)
{
    va_list args;
    int st;

    va_start(args, format);
    st = keep(of, format, args);
    va_end(args);
    return st;
}

const char *train_error(void) { return sentence; }

enum train_cause train_cause(void) { return cause; }
