/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun.c - start the ranks of a job: the command line. */
#include "tools/collrun.h"

#include <coll/coll.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void complain(const char *format, ...)
{
    va_list args;

    fputs("collrun: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* A full disk shows only now. */
static int end_output(void)
{
    if (!ferror(stdout) && !fclose(stdout))
        return EXIT_SUCCESS;
    complain("cannot write the output: %s; make room or write elsewhere",
             strerror(errno));
    return EXIT_FAILURE;
}

/* After a table: the first error counts. */
static int status_of_output(int status)
{
    return status ? status : end_output();
}

/* Print what needs no program to run: 1 if nothing else is to be done. */
static int print_only(const struct options *o)
{
    if (o->only == ONLY_CHECK)
        check_build();
    return o->only != ONLY_NOTHING;
}

/* Open /dev/null if stdin, stdout or stderr is closed, so that no file of collrun's own
 * gets that descriptor and the ranks' output. */
static void fill_standard(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    static struct options o; /* it and its strings last as long as the program */
    int status = options_parse(&o, argc, argv);

    if (status)
        return status;
    if (print_only(&o))
        return end_output();
    fill_standard();
    if (o.scaling)
        return status_of_output(scaling_run(&o));
    return (o.hosts || o.hostfile) && !o.min_np ? hosts_run(&o) : job_run(&o);
}
