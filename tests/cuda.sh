#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Device buffers as programs use them, over the driver of tests/fake_cuda: operations at
# random on one device and several, aborts, deaths, a benchmark under mpirun.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
srcdir=${srcdir:-.}
. "$srcdir/tests/program.sh"
driver=$PWD/tests/fake_cuda/.libs

[ -x tests/gpu/ranks ] || { echo "configure found no cuda.h"; exit 77; }
LD_LIBRARY_PATH=$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset CUDA_VISIBLE_DEVICES FAKE_CUDA_FAULT FAKE_CUDA_PEERS FAKE_CUDA_IPC
export LD_LIBRARY_PATH

# right ARGUMENTS...: of tests/gpu/ranks, with what else the environment says.
right() {
    tests/gpu/ranks --time 100 "$@" > "$out" 2> "$err" || fail "ranks $*: status $?"
    ! grep -q ': wrong' "$out" || fail "ranks $*: wrong"
}
right --ranks 1,2,5 --rounds 60 random
FAKE_CUDA_DEVICES=3 FAKE_CUDA_SEED=7 right --ranks 4,8 --rounds 30 --seed 2 random
FAKE_CUDA_DEVICES=2 FAKE_CUDA_PEERS=0 right --ranks 3 --rounds 30 --seed 3 random
FAKE_CUDA_IPC=0 right --ranks 3 --rounds 30 --seed 4 random
CUDA_DEVICE_MAX_CONNECTIONS=1 right --ranks 2 --rounds 30 --seed 5 random
COLL_CUDA_ENGINE=staged right --ranks 1,2,5 --rounds 60 --seed 8 random
COLL_CUDA_SLOT=192 COLL_CUDA_SLOTS=1 right --ranks 3,5 --rounds 40 --seed 9 random
COLL_CUDA_ENGINE=staged COLL_CUDA_STAGE=64K FAKE_CUDA_SEED=8 right --ranks 3,8 --rounds 30 --seed 7 random
COLL_CUDA_ENGINE=staged COLL_TRANSPORTS=self,ucx right --ranks 3 --rounds 20 --seed 6 random
right --ranks 1,2,4 replay
right --ranks 2,4 abort death
COLL_CUDA_ENGINE=staged right --ranks 2,4 abort death

# table COMMAND...: of a benchmark, which says where it was made, and no errors.
table() {
    "$@" > "$out" 2> "$err" || fail "$*: status $?"
    grep -q '^# .* device cuda (fake_cuda 0)' "$out" || fail "$*: not by fake_cuda"
    [ "$(grep -c ' 0$' "$out")" = "$(grep -vc '^#' "$out")" ] || fail "$*: errors"
    [ "$(grep -vc '^#' "$out")" -ge 3 ] || fail "$*: no lines"
}
sizes="-b 4 -e 256K -f 256 -n 5"
# shellcheck disable=SC2086
{
    table tools/collrun -n 3 benchmarks/allreduce_bw -d cuda $sizes
    table tools/collrun -n 2 benchmarks/alltoallv_lat -d cuda --clock host $sizes
    if mpirun --version 2> /dev/null | grep -q 'Open MPI' &&
        grep -q 'define COLL_HAVE_PMIX 1' config.h; then
        table mpirun --allow-run-as-root --oversubscribe --mca oob_tcp_if_include lo \
            --mca btl_tcp_if_include lo -np 3 benchmarks/allreduce_bw -d cuda $sizes
    fi
}
program=benchmarks/allreduce_bw
refused 2 'are for buffers on the host' -d cuda --idle 5
CUDA_VISIBLE_DEVICES='' refused 1 'no CUDA-capable device' -d cuda
