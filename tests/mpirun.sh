#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The benchmark and the trainer under Open MPI's mpirun, found by PMIx.
. "${srcdir:-.}/tests/launch.sh"

command -v mpirun > /dev/null ||
    { echo "mpirun is not installed (Debian: openmpi-bin)"; exit 77; }
mpirun --version 2>&1 | grep -q 'Open MPI' ||
    { echo "mpirun is not Open MPI's"; exit 77; }
grep -q 'define COLL_HAVE_PMIX 1' config.h ||
    { echo "built without PMIx"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
build=$PWD
cd "$scratch" && ln -s "$build/benchmarks" "$build/trainer" . || exit 1

# Open MPI 5, which calls this otherwise, takes the loopback of itself
export OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
check_launcher 4 mpirun --allow-run-as-root --oversubscribe -np 4
