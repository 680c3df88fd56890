/* SPDX-License-Identifier: BSD-3-Clause */
/* util.h - small functions that several parts need. */
#ifndef COLL_LIB_UTIL_UTIL_H
#define COLL_LIB_UTIL_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CACHE_LINE 64
#define STRING_OF(macro) STRING_OF_TEXT(macro) /* what it stands for */
#define STRING_OF_TEXT(text) #text

static inline size_t min_size(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t max_size(size_t a, size_t b) { return a > b ? a : b; }
static inline int min_int(int a, int b) { return a < b ? a : b; }
static inline int max_int(int a, int b) { return a > b ? a : b; }
static inline double min_double(double a, double b) { return a < b ? a : b; }
static inline double max_double(double a, double b) { return a > b ? a : b; }

/* Round n up to a multiple of the power of two `to`. */
static inline size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) & ~(to - 1);
}

/* Return the hash of what `hash` is of and of one word more; begin with 0. */
static inline uint64_t coll__hash_add(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* Return the monotonic clock in seconds. */
static inline double coll__now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Say whether word is one of the words in list, which sep separates. */
int coll__word_in(const char *word, const char *list, char sep);

/* Return the name with the least edit distance to word; names ends with NULL and
 * holds one name at least. */
const char *coll__nearest(const char *word, const char *const *names);

/* Set the file's length.  Returns 0, or -1 and errno.  Checks the file-size limit itself,
 * since beyond it the kernel would send a signal. */
int coll__set_file_len(int fd, size_t len);

#endif
