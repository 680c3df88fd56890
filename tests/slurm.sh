#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The benchmark and the trainer under real Slurm, srun with PMIx, with PMI and with
# neither: a cluster of one node on this machine, started and stopped here.
. "${srcdir:-.}/tests/launch.sh"
slurm_up=$(cd "${srcdir:-.}" && pwd)/tests/net/slurm-up

[ "$(id -u)" = 0 ] || { echo "starting slurmd needs root"; exit 77; }
for program in munged slurmctld slurmd srun; do
    PATH=$PATH:/usr/sbin command -v $program > /dev/null ||
        { echo "$program is not installed (Debian: slurm-wlm munge)"; exit 77; }
done
build=$PWD
SLURM_UP_LIMIT=$((15 * patience))
export SLURM_UP_LIMIT
SLURM_CONF=$("$slurm_up" -n 1 -c 16) || exit 1
export SLURM_CONF
scratch=$(mktemp -d) || exit 1
trap '"$slurm_up" stop "$SLURM_CONF"; rm -rf "$scratch"' EXIT
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
    echo "ok   srun --mpi=$kind"
done
