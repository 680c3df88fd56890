#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Device buffers as programs use them, over the driver of tests/fake_cuda: operations at
# random on one device and several, aborts, deaths, a benchmark under mpirun.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
srcdir=${srcdir:-.}
. "$srcdir/tests/support/program.sh"
driver=$PWD/tests/fake_cuda/.libs

[ -x tests/gpu/ranks ] || { echo "configure found no cuda.h"; exit 77; }
LD_LIBRARY_PATH=$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset CUDA_VISIBLE_DEVICES FAKE_CUDA_FAULT FAKE_CUDA_PEERS FAKE_CUDA_IPC FAKE_CUDA_APART
export LD_LIBRARY_PATH

# right ROUNDS ARGUMENTS...: of tests/gpu/ranks, with what else the environment says.  All
# of them are for TEST_LONG, else a half, and of the calls those that TEST_QUICK leaves.
right() {
    ! is_tried || always_right "$@"
}

always_right() {
    rounds=$1
    [ "${TEST_LONG:-}" ] || rounds=$((rounds / 2))
    rounds=$(part_of "$rounds")
    shift
    tests/gpu/ranks --time 100 --rounds "$rounds" "$@" > "$out" 2> "$err" ||
        fail "ranks $*: status $?"
    ! grep -q ': wrong' "$out" || fail "ranks $*: wrong"
}
right 60 --ranks 1,2,5,7 random
FAKE_CUDA_DEVICES=3 FAKE_CUDA_SEED=7 right 30 --ranks 4,8 --seed 2 random
FAKE_CUDA_DEVICES=2 FAKE_CUDA_PEERS=0 right 30 --ranks 3 --seed 3 random
# two GPUs that are apart, by streams and by kernels
FAKE_CUDA_DEVICES=4 FAKE_CUDA_APART=0-1 right 30 --ranks 4 --seed 12 random replay abort death
FAKE_CUDA_DEVICES=4 FAKE_CUDA_APART=1-3 COLL_TUNE_FILE=$(limits cuda_kernel_max=1G) \
    right 30 --ranks 4 --seed 13 random abort death
FAKE_CUDA_IPC=0 right 30 --ranks 3 --seed 4 random
CUDA_DEVICE_MAX_CONNECTIONS=1 right 30 --ranks 2 --seed 5 random
FAKE_CUDA_IPC=0 right 60 --ranks 1,2,5,6 --seed 8 random
COLL_TUNE_FILE=$(limits cuda_slot=192 cuda_slots=1) right 40 --ranks 3,5 --seed 9 random
FAKE_CUDA_IPC=0 COLL_TUNE_FILE=$(limits cuda_slot=32K) FAKE_CUDA_SEED=8 right 30 --ranks 3,8 --seed 7 random
FAKE_CUDA_IPC=0 COLL_TRANSPORTS=self,ucx right 20 --ranks 3 --seed 6 random
# several hosts: from GPU to GPU within each, carried by the host between them
if [ "$(id -u)" = 0 ] && unshare -m true 2> "$err"; then
    FAKE_CUDA_DEVICES=2 right 60 --ranks 4,6 --hosts 2 --seed 14 random abort death
    COLL_TUNE_FILE=$(limits cuda_slot=32K) right 40 --ranks 6,8 --hosts 3 --seed 15 random
    COLL_CHECK=1 right 40 --ranks 4 --hosts -2 --seed 16 random
    FAKE_CUDA_DEVICES=4 FAKE_CUDA_SEED=17 \
        COLL_TUNE_FILE=$(limits cuda_kernel_max=1G) right 40 --ranks 8 --hosts 2 --seed 17 random abort death
    right 30 --ranks 3,5 --hosts 2 --seed 18 random
fi
# GPUs of a machine that a file describes, and ranks that are not in their order
machine=$srcdir/tests/topo/gpus_pcie.xml
FAKE_CUDA_DEVICES=8 CUDA_VISIBLE_DEVICES=0,4,2,6,1,5,3,7 COLL_TOPO_FILE=$machine COLL_LOG=comm:info \
    always_right 30 --ranks 8 --seed 10 random
if [ -f benchmarks/bench_kernel.c ]; then # else there are no kernels to join GPUs
    grep -q 'comm: GPUs: ring 0 4 2 6 1 5 3 7$' "$err" || fail "a ring by rank"
    grep -q 'comm: GPUs, switch (4): ' "$err" || fail "no switches"
    grep -q 'comm: GPUs, socket (2): ' "$err" || fail "no sockets"
fi
FAKE_CUDA_DEVICES=8 COLL_TOPO_FILE=$srcdir/tests/topo/gpus_nvswitch.xml right 20 --ranks 5 \
    --seed 11 random
program=tools/coll_info
FAKE_CUDA_DEVICES=2 FAKE_CUDA_NVLINK=1 shows \
    'gpu ffff:01:00.0 fake_cuda 1, GPU-66616b65-5f63-7564-612d-2d2d2d2d2d02, nvlink 400 GB/s to 1 GPU' \
    --topology
FAKE_CUDA_DEVICES=2 FAKE_CUDA_NVLINK=1 shows 'label="nvlink 400 GB/s"' --topology --dot
FAKE_CUDA_DEVICES=2 shows 'gpu ffff:00:00.0 fake_cuda 0, GPU-' --topology
! grep -q nvlink "$out" || fail "NVLink from nowhere"
COLL_CHECK=1 right 40 --ranks 1,2,5 --seed 10 random
right 40 --ranks 1,2,4 replay
COLL_CHECK=1 right 40 --ranks 3 replay
right 40 --ranks 2,4,8 abort death

# as one kernel: small ones where each rank has a GPU, or all; processes that share one
# run at once under MPS, threads anyway
FAKE_CUDA_DEVICES=4 COLL_TUNE_FILE=$(limits cuda_kernel_max=8K) right 40 --ranks 2,4 \
    --seed 10
COLL_CUDA_ENGINE=kernel
export COLL_CUDA_ENGINE
FAKE_CUDA_ATTRIBUTES=133=1 right 40 --ranks 1,2,5,8 --seed 11 random
FAKE_CUDA_ATTRIBUTES=133=1 \
    COLL_TUNE_FILE=$(limits cuda_kernel_blocks=3 cuda_slot=4K cuda_slots=1) right 30 --ranks 3,5 --seed 12 random
FAKE_CUDA_DEVICES=3 FAKE_CUDA_SEED=12 FAKE_CUDA_ATTRIBUTES=133=1 right 30 --ranks 4,8 \
    --seed 13 random
FAKE_CUDA_DEVICES=4 COLL_TUNE_FILE=$(limits cuda_kernel_blocks=2) right 40 --ranks 2,4 replay abort death
unset COLL_CUDA_ENGINE
FAKE_CUDA_IPC=0 right 40 --ranks 2,4,8 abort death

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
        table env OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo mpirun \
            --allow-run-as-root --oversubscribe -np 3 benchmarks/allreduce_bw -d cuda $sizes
    fi
}
# plans from a file, within a host and carried
plans=$scratch/plans.json
tools/coll_plan --collective allreduce --bytes 64K --ranks 3 --type f32 --algo rabenseifner \
    --dump > "$plans" || fail "no plan"
for ipc in 1 0; do
    FAKE_CUDA_IPC=$ipc COLL_PLAN_FILE=$plans tools/collrun -n 3 benchmarks/allreduce_bw -d cuda \
        -t f32 -b 64K -e 64K -n 5 > "$out" 2> "$err" || fail "plans of a file: status $?"
    grep -q ' rabenseifner  *0$' "$out" || fail "not the file's plan"
done
# graphs: the same loop, launched; what ends with a barrier, too
# shellcheck disable=SC2086
if [ -f benchmarks/bench_kernel.c ]; then
    table tools/collrun -n 3 benchmarks/allreduce_bw -d cuda --graph $sizes
    grep -q '^# launches of a graph of 10 calls' "$out" || fail "no word of the graph"
    table tools/collrun -n 2 benchmarks/broadcast_lat -d cuda --graph=3 --clock host $sizes
    grep -q '^# launches of a graph of 3 calls' "$out" || fail "no word of 3 calls"
    tools/collrun -n 2 benchmarks/allgatherv_bw -d cuda --graph=4 --json $sizes > "$out" \
        2> "$err" || fail "JSON of graphs: status $?"
    [ "$(grep -c '"iters":8,.*"graph":4,"errors":0}$' "$out")" = 3 ] || fail "JSON of graphs"
    tools/collrun -n 2 benchmarks/barrier_lat -d cuda --graph -n 30 --csv > "$out" 2> "$err" ||
        fail "CSV of graphs: status $?"
    [ "$(awk -F, '{print NF}' "$out" | sort -u)" = 17 ] || fail "CSV of other columns"
fi
# shellcheck disable=SC2086
table env FAKE_CUDA_IPC=0 tools/collrun -n 2 benchmarks/allreduce_bw -d cuda --graph $sizes
# what hides behind a kernel in another stream
# shellcheck disable=SC2086
if [ -f benchmarks/bench_kernel.c ]; then
    tools/collrun -n 3 benchmarks/allreduce_bw -d cuda --stream-overlap $sizes > "$out" \
        2> "$err" || fail "overlap: status $?"
    [ "$(grep -c '[01][.][0-9]* *0$' "$out")" = 3 ] || fail "no share that is hidden"
    tools/collrun -n 2 benchmarks/p2p_bw -d cuda --stream-overlap --json $sizes > "$out" \
        2> "$err" || fail "JSON of overlap: status $?"
    shares='"alone_us":[0-9.]*,"kernel_us":[0-9.]*,"both_us":[0-9.]*,"hidden":[01][0-9.]*'
    [ "$(grep -c "$shares,\"errors\":0}\$" "$out")" = 3 ] || fail "JSON of overlap"
else
    tools/collrun -n 1 benchmarks/allreduce_bw -d cuda --stream-overlap $sizes > "$out" \
        2> "$err" && fail "an overlap without a kernel"
    grep -q 'built without nvcc, so it has no kernel to hide behind' "$err" || fail "no word of nvcc"
fi
# compare: copies of the same run as the limit; NCCL shares no GPU
json=$scratch/compare.json
benchmarks/compare -d cuda -n 2 -r 1 -t 0.005 -s 8,64K --json "$json" > "$out" 2> "$err" ||
    fail "compare: status $?"
grep -q '^# limits of cuda (fake_cuda 0), 1 GPU: a copy of 8 bytes' "$out" || fail "no limit"
grep -q '^# GB/s read and written by cuMemcpyAsync' "$out" || fail "no copies"
[ "$(grep -c '^    2  [a-z_]* .* [0-9]*%' "$out")" = 11 ] || fail "not 11 rows with a limit"
grep -q '^# nccl: left out with 2 ranks: it takes no two ranks on a GPU, and this machine has 1' \
    "$out" || grep -q '^# nccl is absent: ' "$out" || fail "no word of NCCL"
[ "$(grep -c '"wrong": 0,' "$json")" = 11 ] || fail "wrong results"
grep -q '"copy_GBps"' "$json" || fail "JSON without copies"
program=benchmarks/compare
refused 2 '--device gpu is not valid: it must be host|cuda' -d gpu
CUDA_VISIBLE_DEVICES='' refused 1 'cannot measure the GPU: .*finds no GPU; see nvidia-smi and CUDA_VISIBLE_DEVICES' -d cuda
program=benchmarks/allreduce_bw
refused 2 'is for buffers on a GPU; give -d cuda' --graph
refused 2 'different things; give one' -d cuda --graph --vary-buffers
refused 2 'different things; give one' -d cuda --graph --stream-overlap
refused 2 '--stream-overlap is for buffers on a GPU' --stream-overlap
refused 2 'a number of calls from 1' -d cuda --graph=0
program=benchmarks/overlap
refused 2 'start allreduce_bw -d cuda --stream-overlap' -d cuda
program=benchmarks/allreduce_repro
refused 2 'no use for --device cuda' -d cuda
program=benchmarks/allreduce_bw
refused 2 'are for buffers on the host' -d cuda --idle 5
CUDA_VISIBLE_DEVICES='' refused 1 'finds no GPU; see nvidia-smi' -d cuda
