#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The backend "coll" of torch.distributed on 1 to 5 ranks: every operation, training beside
# gloo, faults; that torch finds it; and the tutorial's program.
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/python.sh"
set -u
want_torch
begin_python
PYTHONPATH=$PYTHONPATH:$dir

timeout 300 "$python" "$source/bindings/python/tests/torch_ranks.py" "$dir" \
    > "$dir/out" 2>&1 < /dev/null || wrong "torch_ranks.py"
grep -q '^passed' "$dir/out" || wrong "torch_ranks.py did not come to its end"

# the entry point, as in an installed package
mkdir "$dir/libcoll-0.dist-info"
printf 'Metadata-Version: 2.1\nName: libcoll\nVersion: 0\n' > "$dir/libcoll-0.dist-info/METADATA"
cp "$source/bindings/python/entry_points.txt" "$dir/libcoll-0.dist-info"
COLL_LIBRARY=$dir/none timeout 60 "$python" -c '
from importlib.metadata import entry_points
found = {e for e in entry_points(group="torch.backends") if e.name == "coll"}
found.pop().load()()
import torch.distributed as dist
assert "COLL" in dist.Backend._plugins' > "$dir/out" 2>&1 || wrong "the entry point"

# train BACKEND: the tutorial's program on two ranks, with the variables of torchrun
train() {
    for rank in 0 1; do
        RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port timeout 100 "$python" \
            "$source/examples/python/train_torch.py" --backend "$1" --epochs 2 \
            > "$dir/$1.$rank" 2>&1 < /dev/null &
    done
    wait
    sed -n 's/^\(epoch.*\),.*/\1/p' "$dir/$1.0" > "$dir/$1"
    cat "$dir/$1.0" "$dir/$1.1" > "$dir/out"
    [ "$(wc -l < "$dir/$1")" = 2 ] || wrong "train_torch.py with $1"
}
port=$("$python" -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
train gloo
train coll
cmp -s "$dir/gloo" "$dir/coll" || wrong "train_torch.py: other losses than with gloo"
exit $status
