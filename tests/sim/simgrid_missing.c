/* SPDX-License-Identifier: BSD-3-Clause */
/* simgrid_missing.c - stands for test_simgrid.c where there is no SimGrid. */
#include <stdio.h>

int main(void)
{
    puts("skipped: built without SimGrid (Debian: apt-get install "
         "libsimgrid-dev)");
    return 77;
}
