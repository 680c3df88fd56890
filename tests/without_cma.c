/* SPDX-License-Identifier: BSD-3-Clause */
/* without_cma.c - as env(1): run a program, and all that it starts, where
 * process_vm_readv() is forbidden.  Exits with 77 where that cannot be done. */
#include "tests/forbid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: without_cma PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    if (forbid_cma()) {
        fprintf(stderr,
                "without_cma: cannot install a seccomp filter: %s; a "
                "kernel with CONFIG_SECCOMP_FILTER is needed\n",
                strerror(errno));
        return 77;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "without_cma: cannot run %s: %s; check its name\n", argv[1],
            strerror(errno));
    return 127;
}
