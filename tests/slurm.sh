#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The benchmark and the trainer under real Slurm, srun --mpi=pmix: a cluster of
# one node on this machine, started and stopped here.
. "${srcdir:-.}/tests/launch.sh"
slurm_up=$(cd "${srcdir:-.}" && pwd)/tests/net/slurm-up

[ "$(id -u)" = 0 ] || { echo "starting slurmd needs root"; exit 77; }
for program in munged slurmctld slurmd srun; do
    PATH=$PATH:/usr/sbin command -v $program > /dev/null ||
        { echo "$program is not installed (Debian: slurm-wlm munge)"; exit 77; }
done
grep -q 'define COLL_HAVE_PMIX 1' config.h ||
    { echo "built without PMIx"; exit 77; }
build=$PWD
SLURM_UP_LIMIT=$((15 * patience))
export SLURM_UP_LIMIT
SLURM_CONF=$("$slurm_up" -n 1 -c 16) || exit 1
export SLURM_CONF
scratch=$(mktemp -d) || exit 1
trap '"$slurm_up" stop "$SLURM_CONF"; rm -rf "$scratch"' EXIT
srun --mpi=list 2>&1 | grep -q pmix ||
    { echo "Slurm has no pmix plugin (Debian: libpmix2)"; exit 77; }
cd "$scratch" && ln -s "$build/benchmarks" "$build/trainer" . || exit 1

check_launcher 4 srun --mpi=pmix -n 4
