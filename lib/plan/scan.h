/* SPDX-License-Identifier: BSD-3-Clause */
/* scan.h - a text cut into lines and words, for parsers of untrusted text.
 *
 * Words are separated by blanks.  '#' begins a comment, which ends with its line.
 * Lines without a word are skipped.  Every error names the file and the line.
 */
#ifndef COLL_LIB_PLAN_SCAN_H
#define COLL_LIB_PLAN_SCAN_H

#include <stddef.h>

struct coll__scan {
    const char *name;            /* of the file */
    const char *rest, *end;      /* the next line; of the text */
    const char *at, *line_end;   /* what is left of this line */
    const char *word;            /* the last word, not NUL-terminated */
    size_t word_len;
    int line;
};

void coll__scan_init(struct coll__scan *scan, const char *name,
                     const char *text, size_t len);

/* Go to the next line that has a word, and take the word.  0 at the end. */
int coll__scan_line(struct coll__scan *scan);

/* Take this line's next word.  0 at the line's end. */
int coll__scan_word(struct coll__scan *scan);

/* Is it the last word taken? */
int coll__scan_is(const struct coll__scan *scan, const char *text);

/* Log "FILE:LINE: ..." and return COLL_ERR_INVALID. */
int coll__scan_fault(const struct coll__scan *scan, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Take the next word, which must be a whole number; `what` names it in errors.
 * COLL_OK or COLL_ERR_INVALID, logged. */
int coll__scan_size(struct coll__scan *scan, const char *what, size_t *value);

/* Take a number from low to high. */
int coll__scan_int(struct coll__scan *scan, const char *what, int low, int high,
                   int *value);

/* Take the next word, which must be one of names[n]; *value is its index. */
int coll__scan_name(struct coll__scan *scan, const char *what,
                    const char *const *names, int n, int *value);

/* Check that the line has no more words. */
int coll__scan_ended(struct coll__scan *scan);

/* Read the digits at *at, before end.  Returns 0 and moves *at past them; -1 if there
 * are none, or too many for a size_t. */
int coll__scan_digits(const char **at, const char *end, size_t *value);

#endif
