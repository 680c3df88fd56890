#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# examples/python/deepspeed_cnn.py on two ranks with gloo and with coll: the losses of each
# stage of ZeRO are the same.  PYTHON may name a python with DeepSpeed.
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/python.sh"
set -u
begin_python
export DS_ACCELERATOR=cpu TORCH_EXTENSIONS_DIR="$dir/extensions"
"$python" -c 'import deepspeed' > /dev/null 2>&1 ||
    { echo "$python has no deepspeed (PyPI: deepspeed; PYTHON=...)"; exit 77; }

for stage in 0 1 2 3; do
    for backend in gloo coll; do
        timeout 300 tools/collrun -n 2 "$python" "$source/examples/python/deepspeed_cnn.py" \
            --backend $backend --stage $stage --steps 8 > "$dir/out" 2>&1 < /dev/null
        grep -o 'step [0-9]*: loss .*' "$dir/out" > "$dir/$backend"
        [ "$(wc -l < "$dir/$backend")" = 8 ] || wrong "stage $stage with $backend"
    done
    paste "$dir/gloo" "$dir/coll" > "$dir/out"
    if cmp -s "$dir/gloo" "$dir/coll"; then
        echo "ok   stage $stage: $(tail -1 "$dir/coll")"
    else
        wrong "stage $stage has other losses than with gloo"
    fi
done
exit $status
