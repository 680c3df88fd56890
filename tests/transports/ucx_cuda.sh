#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A UCX that knows CUDA, over the driver of tests/fake_cuda: libcoll's GPU buffers between
# ranks and between hosts, and what such a UCX does with memory of a GPU itself.  CUDA_UCX
# is its folder, with libucp.so.0 and ucx/libuct_cuda.so.0 (PyPI: libucx-cu12, libucx-cu13).
set -u
scratch=$(mktemp -d) || exit 1
folder=
hosts=${srcdir:-.}/tests/net/hosts
trap '[ -z "$folder" ] || "$hosts" down "$folder"; rm -rf "$scratch"' EXIT
srcdir=${srcdir:-.}
. "$srcdir/tests/support/program.sh"

[ -x tests/gpu/ranks ] || { echo "configure found no cuda.h"; exit 77; }
unset CUDA_VISIBLE_DEVICES FAKE_CUDA_FAULT FAKE_CUDA_PEERS FAKE_CUDA_IPC UCX_TLS
LD_LIBRARY_PATH=${CUDA_UCX:+$CUDA_UCX:}$PWD/tests/fake_cuda/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
tests/transports/ucx_device > "$out" 2> "$err"
status=$?
[ $status != 77 ] || { echo "$(tail -n 1 "$out"); CUDA_UCX=FOLDER names another one"; exit 77; }
[ $status = 0 ] || fail "from GPU to GPU: status $status"

# Why none is handed to it: beside a stream that waits, as libcoll's do, UCX 1.22 frees
# memory of the GPU while it chooses how to send, which waits for all streams; its own
# copies wait for theirs where there is one connection.  One that does neither would do.
UCX_TLS=^posix,sysv tests/transports/ucx_device wait > "$out" 2> "$err"
echo "beside a stream that waits: $(tail -n 1 "$out")"
CUDA_DEVICE_MAX_CONNECTIONS=1 tests/transports/ucx_device wait > "$out" 2> "$err"
echo "by one connection: $(tail -n 1 "$out")"

FAKE_CUDA_IPC=0
COLL_TRANSPORTS=self,ucx
export FAKE_CUDA_IPC COLL_TRANSPORTS
COLL_LOG=ucx:info tests/gpu/ranks --time 100 --rounds 30 --ranks 3 --seed 6 random > "$out" \
    2> "$err" || fail "ranks: status $?"
! grep -q ': wrong' "$out" || fail "ranks: wrong"
grep -q 'ucx: this UCX supports CUDA' "$err" || fail "no word of CUDA"

# table COMMAND...: of a benchmark, no errors.
table() {
    timeout 120 "$@" > "$out" 2> "$err" || fail "$*: status $?"
    grep -q '^# .* device cuda (fake_cuda 0)' "$out" || fail "$*: not by fake_cuda"
    [ "$(grep -c ' 0$' "$out")" = "$(grep -vc '^#' "$out")" ] || fail "$*: errors"
    [ "$(grep -vc '^#' "$out")" -ge 3 ] || fail "$*: no lines"
}
sizes="-b 4 -e 4M -f 1024 -n 5"
# shellcheck disable=SC2086
{
    table tools/collrun -n 2 benchmarks/allreduce_bw -d cuda $sizes
    # with other streams' connections, too
    CUDA_DEVICE_MAX_CONNECTIONS=1 table tools/collrun -n 2 benchmarks/p2p_bw -d cuda $sizes
    if [ "$(id -u)" = 0 ] && folder=$("$hosts" up 2); then
        table "$hosts" ranks "$folder" 1+1 benchmarks/allreduce_bw -d cuda $sizes
        grep -q '2 ranks on 2 hosts' "$out" || fail "not on 2 hosts"
    fi
}
exit 0
