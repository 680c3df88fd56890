/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - coll_plan: show how an operation would run on this or another machine: the
 * algorithm and why, its plans, their proof and their time. */
#include "tools/plan/tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int say(int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("coll_plan: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return status;
}

int say_last(void) { return say(1, "%s", coll_last_error()); }

static int act(const struct job *job)
{
    switch (job->action) {
    case ACTION_EXPLAIN:
        return explain(job);
    case ACTION_DUMP:
        return dump(job);
    case ACTION_DOT:
        return draw(job);
    case ACTION_CHECK:
        return job->all ? check_all(job) : check(job);
    case ACTION_SIMULATE:
        return simulate(job);
    case ACTION_CROSSOVER:
        return crossover(job);
    case ACTION_NONE:
        break;
    }
    return 0; /* --help and --version have spoken */
}

int main(int argc, char **argv)
{
    struct job job = {.type = COLL_F32, .bytes = (size_t)1 << 20, .rank = -1,
                      .algo = "", .chunk = (size_t)128 << 10};
    int rc = args_take(argc, argv, &job);

    if (rc < 0)
        rc = act(&job);
    if (ferror(stdout) || fclose(stdout)) /* a full disk shows only now */
        return say(1, "cannot write the output: %s; make room or write "
                   "elsewhere", strerror(errno ? errno : EIO));
    return rc;
}
