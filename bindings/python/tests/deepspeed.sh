#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# examples/python/deepspeed_cnn.py on two ranks with gloo and with coll: the losses of each
# stage of ZeRO are the same.  PYTHON may name a python with DeepSpeed.
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/python.sh"
set -u
source=$(cd "${srcdir:-.}" && pwd)
export DS_ACCELERATOR=cpu OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
[ -n "$python" ] || { echo "$no_python"; exit 77; }
"$python" -c 'import deepspeed' > /dev/null 2>&1 ||
    { echo "$python has no deepspeed (PyPI: deepspeed; PYTHON=...)"; exit 77; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset COLL_BOOTSTRAP COLL_LOG
export COLL_LIBRARY="$PWD/.libs/libcoll.so" PYTHONPATH="$source/bindings/python"
export TORCH_EXTENSIONS_DIR="$dir/extensions"
status=0

for stage in 0 1 2 3; do
    for backend in gloo coll; do
        timeout 300 tools/collrun -n 2 "$python" "$source/examples/python/deepspeed_cnn.py" \
            --backend $backend --stage $stage --steps 8 > "$dir/out" 2>&1 < /dev/null
        grep -o 'step [0-9]*: loss .*' "$dir/out" > "$dir/$backend"
        if [ "$(wc -l < "$dir/$backend")" != 8 ]; then
            echo "FAILED: stage $stage with $backend:"
            cat "$dir/out"
            status=1
        fi
    done
    if cmp -s "$dir/gloo" "$dir/coll"; then
        echo "ok   stage $stage: $(tail -1 "$dir/coll")"
    else
        echo "FAILED: stage $stage has other losses than with gloo"
        paste "$dir/gloo" "$dir/coll"
        status=1
    fi
done
exit $status
