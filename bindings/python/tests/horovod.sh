#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Horovod's interface, libcoll.horovod.torch, on 1 to 5 ranks: every operation, training
# beside one process, faults; and the tutorial's program, which imports horovod.torch.
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/python.sh"
set -u
want_torch
begin_python

for program in horovod_ranks.py horovod_faults.py; do
    timeout 300 "$python" "$source/bindings/python/tests/$program" "$dir" \
        > "$dir/out" 2>&1 < /dev/null || wrong "$program"
    grep -q '^passed' "$dir/out" || wrong "$program did not come to its end"
done

# train RANKS [OPTION]: the tutorial's program
train() {
    ranks=$1
    shift
    timeout 100 ./tools/collrun -n "$ranks" "$python" -m libcoll.horovod \
        "$source/examples/python/horovod_mnist.py" --epochs 4 "$@" > "$dir/out" 2>&1 < /dev/null
    grep -q '^epoch 3: loss 0\.[0-9]*, accuracy [0-9.]* %$' "$dir/out" ||
        wrong "horovod_mnist.py $* on $ranks ranks"
}
train 1
printf 'from horovod.torch.mpi_ops import allreduce\nfrom horovod.common.exceptions import %s
import sys, horovod.torch as hvd\nassert hvd.allreduce is allreduce and sys.argv[1:] == ["a"]\n' \
    HorovodInternalError > "$dir/names.py"
timeout 60 "$python" -m libcoll.horovod "$dir/names.py" a > "$dir/out" 2>&1 || wrong "the names"
train 2 --fp16-allreduce
train 2 --use-adasum
timeout 60 "$python" -m libcoll.horovod > "$dir/out" 2>&1 && wrong "no program, and no error"
grep -q 'PROGRAM' "$dir/out" || wrong "a usage without PROGRAM"
exit $status
