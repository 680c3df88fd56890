#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Real MNIST, two ranks, the default flags: 98.5 % of the test set within three
# epochs.  TEST_MNIST names the folder of its four files.
. "${srcdir:-.}/tests/patience.sh"
build=$PWD
data=${TEST_MNIST:-${srcdir:-.}/../shared/data/mnist}

[ -x trainer/coll_train ] || { echo "built without oneDNN"; exit 77; }
[ -d "$data" ] || { echo "no MNIST in $data; name it by TEST_MNIST"; exit 77; }
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
timeout 900 "$build/tools/collrun" -n 2 trainer/coll_train --data-dir "$data" --lr-scale sqrt --epochs 3 \
    --progress off --json - > "$out" || { cat "$out"; exit 1; }
best=$(grep -o '"test_acc":[0-9.]*' "$out" | cut -d: -f2 | sort -n | tail -n 1)
echo "best test accuracy $best"
awk "BEGIN { exit !($best >= 0.985) }"
