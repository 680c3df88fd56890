#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The benchmark and the trainer under real Slurm, srun with PMIx, with PMI and with
# neither: a cluster of one node on this machine, started and stopped here.
. "${srcdir:-.}/tests/launch/launch.sh"
. "${srcdir:-.}/tests/launch/slurm_here.sh"

build=$PWD
scratch=$(mktemp -d) || exit 1
trap 'stop_slurm; rm -rf "$scratch"' EXIT
start_slurm 16
kinds="pmi2 none"
if grep -q 'define COLL_HAVE_PMIX 1' config.h && srun --mpi=list 2>&1 | grep -q pmix
then
    kinds="pmix $kinds"
else
    echo "left out: --mpi=pmix, libcoll or Slurm has no PMIx (Debian: libpmix-dev libpmix2)"
fi
cd "$scratch" && ln -s "$build/benchmarks" "$build/trainer" . || exit 1

for kind in $kinds; do
    check_launcher 4 srun --mpi=$kind -n 4
    check_children srun --mpi=$kind -n 2
    echo "ok   srun --mpi=$kind"
done
