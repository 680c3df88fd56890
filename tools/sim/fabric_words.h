/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_words.h - a line of a topology as words, and words as values. */
#ifndef COLL_TOOLS_SIM_FABRIC_WORDS_H
#define COLL_TOOLS_SIM_FABRIC_WORDS_H

#include "tools/sim/fabric_int.h"

#define MAX_WORDS 64

struct parser {
    struct coll__fabric *fabric;
    const char *path;
    int line;
    char *next; /* what has not been read yet */
    char *words[MAX_WORDS];
    int n_words, at;     /* at: the word to be read next */
    struct graph *block; /* the host or network that is being described */
    int cap_kinds, cap_runs, cap_attach;
};

/* Log "FILE:LINE: " and the sentence; returns COLL_ERR_INVALID. */
int coll__parse_fail(const struct parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Cut the next line that has words; 1, 0 at the end, or a status. */
int coll__parse_line(struct parser *parser);

enum field_kind {
    FIELD_RATE,   /* double, s a byte, of a text such as 25GB/s or 200Gb/s */
    FIELD_TIME,   /* double, s */
    FIELD_COUNT,  /* int, 1 to 2^20 */
    FIELD_COUNTS, /* int[FABRIC_MAX_TREE], separated by commas; 0 behind them */
    FIELD_YES,    /* int, of yes or no */
    FIELD_STATE,  /* int, of active (0) or down (1) */
    FIELD_WORD    /* const char * */
};

struct field {
    const char *key;
    enum field_kind kind;
    void *value; /* not changed if the key is missing */
};

/* Read the rest of the line as keys and values; a NULL key ends fields. */
int coll__parse_fields(struct parser *parser, const struct field *fields);

/* Read one word as a count from 1 to max. */
int coll__parse_count(struct parser *parser, const char *what, int max,
                      int *count);

/* Read one word as the name of something new. */
int coll__parse_name(struct parser *parser, const char *what,
                     char name[FABRIC_NAME]);

/* Find the parts of the block that a word names: NAME, NAME* (all that begin so) or
 * NAME[2-5], several separated by commas; parts[FABRIC_MAX_PARTS], *n >= 1. */
int coll__parse_parts(struct parser *parser, const char *word, int *parts,
                      int *n);

/* Read the lines of a host, or of a network of links, up to its `end`; read an `attach`
 * line. */
int coll__parse_block(struct parser *parser, struct graph *block);
int coll__parse_attach(struct parser *parser);

#endif
