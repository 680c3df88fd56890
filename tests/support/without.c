/* SPDX-License-Identifier: BSD-3-Clause */
/* without.c - as env(1): run a program, and all that it starts, where a system call
 * is forbidden: cma (process_vm_readv()) or poll.  Exits with 77 where that cannot be
 * done. */
#include "tests/support/forbid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int is_poll = argc > 1 && !strcmp(argv[1], "poll");

    if (argc < 3 || (!is_poll && strcmp(argv[1], "cma") != 0)) {
        fprintf(stderr, "usage: without cma|poll PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    if (is_poll ? forbid_poll() : forbid_cma()) {
        fprintf(stderr,
                "without: cannot install a seccomp filter: %s; a kernel with "
                "CONFIG_SECCOMP_FILTER is needed\n",
                strerror(errno));
        return 77;
    }
    execvp(argv[2], argv + 2);
    fprintf(stderr, "without: cannot run %s: %s; check its name\n", argv[2],
            strerror(errno));
    return 127;
}
