#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# examples/python/ddp_resnet18.py with gloo and with coll on 2 and 3 ranks, by collrun and by
# torchrun.  On two ranks the losses are the same.  On three the order of a sum differs, and
# so do its last bits: 2^-24 of it, which some steps of a small learning rate keep small.
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/python.sh"
set -u
want_torch
begin_python
program=$source/examples/python/ddp_resnet18.py

# losses NAME LAUNCHER... -- OPTION...: train; the epochs' losses into NAME
losses() {
    name=$1 launcher=
    shift
    while [ "$1" != -- ]; do
        launcher="$launcher $1"
        shift
    done
    shift
    timeout 150 $launcher "$program" --width 8 --batch 16 --steps 2 --lr 0.001 "$@" \
        > "$dir/out" 2>&1 < /dev/null
    sed -n 's/.*\(epoch .: loss [0-9.]*\), .*/\1/p' "$dir/out" > "$dir/$name"
    [ "$(wc -l < "$dir/$name")" = 2 ] || wrong "$name has no losses"
}

# near NAME OTHER BOUND: their losses differ by no more than this part
near() {
    paste "$dir/$1" "$dir/$2" | awk -v most="$3" '
        { d = $4 - $8; if (d < 0) d = -d; if (!(d <= most * $4)) bad = 1 }
        END { exit bad || NR != 2 }' || { wrong "$1 and $2 differ:"; cat "$dir/$1" "$dir/$2"; }
}

losses gloo-2 tools/collrun -n 2 "$python" -- --backend gloo
losses coll-2 tools/collrun -n 2 "$python" -- --backend coll
cmp -s "$dir/gloo-2" "$dir/coll-2" || near gloo-2 coll-2 0
losses gloo-3 tools/collrun -n 3 "$python" -- --backend gloo
losses coll-3 tools/collrun -n 3 "$python" -- --backend coll
near gloo-3 coll-3 1e-4
port=$("$python" -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
# redirects: without, Debian's torchrun starts nothing
losses torchrun-2 "$python" -m torch.distributed.run --redirects 9:1 --tee 9:1 \
    --nproc_per_node 2 --master_port "$port" -- --backend coll --hook fp16
near coll-2 torchrun-2 1e-2
exit $status
