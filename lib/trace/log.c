/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - levels by part, and the last error of a thread.
 *
 * COLL_LOG is parsed once (pthread_once), so a line that is off costs a load
 * and a compare.  By default only warnings are on.
 */
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/param.h"
#include "lib/util/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_RULES 16

static const char *const level_names[] = {"error", "warn", "info", "debug",
                                          "trace", NULL};

static struct rule {
    char part[16]; /* "" holds for every part */
    int level;
} rules[MAX_RULES];
static int n_rules;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static atomic_int loudest = -1; /* the highest of all rules; -1 before they are read */
static _Atomic uint64_t speaker;

static _Thread_local char last_error[COLL__LINE_MAX];

/* The parts that log; tests/style/check_layers.sh checks that none is missing. */
static const char *const parts[] = {"api",  "boot",  "cma",  "comm", "cuda",
                                    "exec", "log",   "mem",  "op",   "param",
                                    "plan", "self",  "shm",  "tags", "tcp",
                                    "topo", "trace", "tune", "ucx",  NULL};

static int index_of(const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (!strcasecmp(word, words[i]))
            return i;
    return -1;
}

/* Parse "LEVEL" or "PART:LEVEL".  Returns 0, or -1 if it is neither.  rule may be
 * NULL. */
static int read_rule(char *text, struct rule *rule)
{
    char *colon = strchr(text, ':');
    int level = index_of(colon ? colon + 1 : text, level_names), part = 0;

    if (colon) {
        *colon = '\0';
        part = index_of(text, parts);
    }
    if (level < 0 || part < 0)
        return -1;
    if (rule) {
        snprintf(rule->part, sizeof(rule->part), "%s",
                 colon ? parts[part] : "");
        rule->level = level;
    }
    return 0;
}

int coll__log_check(void)
{
    char text[256], item[256], *rest = text, *next;
    const char *all = coll__param_text(PARAM_LOG);
    int n = 0;

    if (snprintf(text, sizeof(text), "%s", all) >= (int)sizeof(text)) {
        log_error("param", "COLL_LOG is longer than %zu characters",
                  sizeof(text) - 1);
        return COLL_ERR_INVALID;
    }
    while ((next = strsep(&rest, ","))) {
        snprintf(item, sizeof(item), "%s", next);
        if (!*next || (!read_rule(next, NULL) && ++n <= MAX_RULES))
            continue;
        log_error("param",
                  "COLL_LOG=%s is not valid: '%s' is no level (error, warn, "
                  "info, debug, trace), nor PART:LEVEL with a part such as "
                  "comm, boot, topo, plan, shm, tcp, ucx, %d of them at most",
                  all, item, MAX_RULES);
        return COLL_ERR_INVALID;
    }
    return COLL_OK;
}

/* Skip wrong rules; coll__log_check() reports them when a communicator is made. */
static void read_rules(void)
{
    char text[256], *rest = text, *item;
    int level = COLL_LOG_WARN;

    snprintf(text, sizeof(text), "%s", coll__param_text(PARAM_LOG));
    while ((item = strsep(&rest, ",")) && n_rules < MAX_RULES)
        if (*item && !read_rule(item, &rules[n_rules]))
            n_rules++;
    for (int i = 0; i < n_rules; i++)
        if (rules[i].level > level)
            level = rules[i].level;
    atomic_store_explicit(&loudest, level, memory_order_release);
}

int coll__log_wants(enum coll_log_level level, const char *part)
{
    int limit = COLL_LOG_WARN;

    pthread_once(&once, read_rules);
    if ((int)level > atomic_load_explicit(&loudest, memory_order_relaxed))
        return 0;
    for (int i = 0; i < n_rules; i++)
        if (!rules[i].part[0] || !strcmp(rules[i].part, part))
            limit = rules[i].level;
    return (int)level <= limit;
}

/* ---- speaking ------------------------------------------------------------------ */

/* Callers may still want errno. */
static void say(enum coll_log_level level, const char *part, const char *text)
{
    int err = errno;

    coll__log_enqueue(level, part, text);
    if (!coll__holds_lock())
        coll__log_flush();
    errno = err;
}

void coll__log_write(enum coll_log_level level, const char *part,
                     const char *format, ...)
{
    char text[COLL__LINE_MAX];
    va_list args;

    va_start(args, format);
    coll__vprint(text, sizeof(text), format, args);
    va_end(args);
    say(level, part, text);
}

void log_error(const char *part, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    coll__vprint(last_error, sizeof(last_error), format, args);
    va_end(args);
    if (coll__param_is_set(PARAM_LOG) && coll__log_wants(COLL_LOG_ERROR, part))
        say(COLL_LOG_ERROR, part, last_error);
}

const char *coll_last_error(void) { return last_error; }

void coll__log_set_error(const char *text)
{
    snprintf(last_error, sizeof(last_error), "%s", text);
}

uint64_t coll__log_speaker(void)
{
    return atomic_load_explicit(&speaker, memory_order_relaxed);
}

void coll__log_set_rank(int rank, int size)
{
    atomic_store_explicit(&speaker,
                          (uint64_t)(uint32_t)size << 32 | (uint32_t)rank,
                          memory_order_relaxed);
}
