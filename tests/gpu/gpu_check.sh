#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every part of tests/gpu/check.sh for seconds, over the driver of tests/fake_cuda: so that
# one which does not start is found here, and not in the minutes that there is a GPU.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
srcdir=${srcdir:-.}
. "$srcdir/tests/support/program.sh"

[ -x tests/gpu/kernels ] || { echo "configure found no cuda.h, or no nvcc"; exit 77; }
unset CUDA_VISIBLE_DEVICES FAKE_CUDA_FAULT FAKE_CUDA_PEERS FAKE_CUDA_IPC FAKE_CUDA_APART
# as on a machine that has a toolkit, and nothing else; but for nvcc, which takes a minute
IMAGE=$PWD/lib/device/cuda_image.c timeout 120 "$srcdir/tests/gpu/build.sh" \
    "$scratch/programs" driver_rules mechanisms kernels > "$out" 2> "$err" ||
    fail "build.sh: status $?"
reports=$scratch/reports
# without delays, which are of no matter here
FAKE_CUDA_SEED=0 timeout 900 "$srcdir/tests/gpu/check.sh" --fake tests/fake_cuda/.libs \
    "$reports" tests/gpu > "$out" 2> "$err" || fail "status $?"
cat "$out"
grep -q '"driver": "fake_cuda"' "$reports/check.json" || fail "whose driver?"
[ "$(grep -c '"status": 0, "seconds"\|left_out' "$reports/check.json")" = 25 ] ||
    fail "not 25 parts"
! grep left_out "$reports/check.json" | grep -v '"[a-z]*check"\|"mps"\|"hosts"' ||
    fail "more than a sanitizer and MPS left out"
for report in "$reports"/*.json; do
    [ -s "$report" ] || fail "nothing in $report"
done
exit 0
