/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - keeps the last sentence. */
#include "trainer/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char sentence[1024];

int train_fail(const char *format, ...)
{
    char next[sizeof(sentence)];
    va_list args;

    va_start(args, format);
    vsnprintf(next, sizeof(next), format, args);
    va_end(args);
    memcpy(sentence, next, sizeof(next));
    return -1;
}

const char *train_error(void) { return sentence; }
