/* SPDX-License-Identifier: BSD-3-Clause */
/* choices.h - the flags that decide what comes out of a run, so that a report can
 * name them. */
#ifndef COLL_TRAINER_CHOICES_H
#define COLL_TRAINER_CHOICES_H

#include "trainer/args.h"

#include <stddef.h>

#define CHOICE_TEXT 64 /* bytes of a value, its end included */

/* One of them and its value. */
struct choice {
    const char *name; /* the flag's, without dashes */
    char text
        [CHOICE_TEXT]; /* as the user would write it; "" is none, and "on" or
                             * "off" is of a switch */
    int is_switch;
    int is_standard; /* what holds without the flag */
    int is_in_head;  /* the first lines of a run say it in words of their own */
};

/* Read the i-th, in the order of --help.  Returns whether there is one. */
int choice_at(struct choice *choice, const struct args *args, size_t i);

#endif
