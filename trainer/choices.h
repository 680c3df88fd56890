/* SPDX-License-Identifier: BSD-3-Clause */
/* choices.h - the options that decide a run's results, for reports. */
#ifndef COLL_TRAINER_CHOICES_H
#define COLL_TRAINER_CHOICES_H

#include "trainer/args.h"

#include <stddef.h>

#define CHOICE_TEXT 64 /* bytes of a value, its end included */

/* One option and its value. */
struct choice {
    const char *name; /* of the option, without dashes */
    char text
        /* as the user would write it; "" if there is none; "on" or "off" for a
         * switch */
        [CHOICE_TEXT];
    int is_switch;
    int is_standard; /* the value is the default */
    int is_in_head;  /* the head of a run's output already names it */
};

/* Read option i, in the order of --help.  Result: 1, or 0 when there is no such
 * option. */
int choice_at(struct choice *choice, const struct args *args, size_t i);

#endif
