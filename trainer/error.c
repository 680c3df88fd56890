/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - keeps the last sentence. */
#include "trainer/error.h"

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

const char *train_error(void) { return sentence; }

enum train_cause train_cause(void) { return cause; }
