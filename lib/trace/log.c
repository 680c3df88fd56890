/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - levels by part, one write(2) a line, the last error of a thread.
 *
 * COLL_LOG is parsed once (pthread_once), so a line that is off costs a load
 * and a compare.  Warnings are on by default; everything else is asked for.
 */
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_RULES 16
#define MAX_LINE 1024

static const char *const level_names[] = {"error", "warn", "info", "debug",
                                          "trace", NULL};

static struct {
    char part[16]; /* "" holds for every part */
    int level;
} rules[MAX_RULES];
static int n_rules;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static atomic_int loudest = -1; /* of all rules; -1 before they are read */
static _Atomic uint64_t speaker;
static pthread_mutex_t handler_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*handler)(enum coll_log_level, const char *, const char *, void *);
static void *handler_arg;

static _Thread_local char last_error[MAX_LINE];

static int level_of(const char *name)
{
    for (int i = 0; level_names[i]; i++)
        if (!strcmp(name, level_names[i]))
            return i;
    return -1;
}

static void add_rule(char *text)
{
    char *colon = strchr(text, ':');
    const char *name = colon ? colon + 1 : text;

    if (colon)
        *colon = '\0';
    if (level_of(name) < 0 || n_rules == MAX_RULES) {
        fprintf(stderr, "coll: COLL_LOG knows no level '%s'; it must be "
                "error, warn, info, debug or trace\n", name);
        return;
    }
    snprintf(rules[n_rules].part, sizeof(rules[0].part), "%s",
             colon ? text : "");
    rules[n_rules++].level = level_of(name);
}

static void read_rules(void)
{
    char text[256], *rest = text, *item;
    int level = COLL_LOG_WARN;

    snprintf(text, sizeof(text), "%s", coll__param_text(PARAM_LOG));
    while ((item = strsep(&rest, ",")))
        if (*item)
            add_rule(item);
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

static void emit(enum coll_log_level level, const char *part, const char *text)
{
    uint64_t who = atomic_load_explicit(&speaker, memory_order_relaxed);
    char line[MAX_LINE + 64];
    int n;

    void (*call)(enum coll_log_level, const char *, const char *, void *);
    void *arg;

    pthread_mutex_lock(&handler_lock);
    call = handler;
    arg = handler_arg;
    pthread_mutex_unlock(&handler_lock);
    if (call) { /* without the lock: it may make the library speak */
        call(level, part, text, arg);
    } else {
        n = who ? snprintf(line, sizeof(line), "coll %d/%d %s: %s\n",
                           (int)(who & 0xffffffff), (int)(who >> 32), part,
                           text)
                : snprintf(line, sizeof(line), "coll %s: %s\n", part, text);
        n = (int)write(STDERR_FILENO, line,
                       min_size((size_t)n, sizeof(line) - 1));
        (void)n; /* a closed stderr loses the line */
    }
}

void coll__log_write(enum coll_log_level level, const char *part,
                     const char *format, ...)
{
    char text[MAX_LINE];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    emit(level, part, text);
}

void log_error(const char *part, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(last_error, sizeof(last_error), format, args);
    va_end(args);
    if (coll__param_is_set(PARAM_LOG) && coll__log_wants(COLL_LOG_ERROR, part))
        emit(COLL_LOG_ERROR, part, last_error);
}

const char *coll_last_error(void) { return last_error; }

void coll__log_set_rank(int rank, int size)
{
    atomic_store_explicit(&speaker,
                          (uint64_t)(uint32_t)size << 32 | (uint32_t)rank,
                          memory_order_relaxed);
}

void coll_set_log_handler(void (*new_handler)(enum coll_log_level,
                                              const char *, const char *,
                                              void *),
                          void *arg)
{
    pthread_mutex_lock(&handler_lock);
    handler = new_handler;
    handler_arg = arg;
    pthread_mutex_unlock(&handler_lock);
}
