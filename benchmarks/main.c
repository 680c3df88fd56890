/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - one program; its Makefile entry says which collective it measures
 * (BENCH_OP) and how (BENCH_MODE). */
#include "benchmarks/bench.h"

int main(int argc, char **argv)
{
    return bench_main(argc, argv, &BENCH_OP, &BENCH_MODE);
}
