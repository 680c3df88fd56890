#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Device buffers of ranks that are threads, by each engine: what the thread sanitizer
# can see of cuda.sh.
set -u
srcdir=${srcdir:-.}
. "$srcdir/tests/support/patience.sh"
[ -x tests/gpu/ranks ] || { echo "configure found no cuda.h"; exit 77; }
driver=$PWD/tests/fake_cuda/.libs
LD_LIBRARY_PATH=$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset CUDA_VISIBLE_DEVICES FAKE_CUDA_FAULT FAKE_CUDA_PEERS FAKE_CUDA_IPC
export LD_LIBRARY_PATH

# right ENGINE ARGUMENTS...
right() {
    engine=$1
    shift
    COLL_CUDA_ENGINE=$engine timeout 120 tests/gpu/ranks --time 100 --threads \
        --rounds "$(part_of 40)" "$@" && return
    echo "FAILED: COLL_CUDA_ENGINE=$engine ranks --threads $*"
    exit 1
}
right stream --ranks 3 --seed 14
right kernel --ranks 2 --seed 15

