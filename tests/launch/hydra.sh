#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The benchmark and the trainer under hydra, mpiexec of MPICH or Intel MPI, found by the
# lines of PMI.
. "${srcdir:-.}/tests/launch/launch.sh"

mpiexec=
for name in mpiexec.hydra mpiexec.mpich mpiexec; do
    "$name" --version 2>&1 | grep -q 'HYDRA build details\|Intel(R) MPI' || continue
    mpiexec=$name
    break
done
[ "$mpiexec" ] || { echo "no hydra here (Debian: mpich)"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
build=$PWD
cd "$scratch" && ln -s "$build/benchmarks" "$build/trainer" . || exit 1

for ranks in 1 4; do
    check_launcher $ranks "$mpiexec" -iface lo -n $ranks
    echo "ok   $mpiexec -n $ranks"
done
check_children "$mpiexec" -iface lo -n 2
echo "ok   $mpiexec, children of ranks"
