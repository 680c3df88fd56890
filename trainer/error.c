/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - keeps the last sentence. */
#include "trainer/error.h"

#include <stdarg.h>
#include <stdio.h>

static char sentence[1024];

int train_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    return -1;
}

const char *train_error(void) { return sentence; }
