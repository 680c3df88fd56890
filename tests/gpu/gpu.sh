#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tests/gpu's programs where there is no GPU: what they say of it, what they refuse,
# and that a driver which does nothing right is called wrong in every point.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
srcdir=${srcdir:-.}
. "$srcdir/tests/support/program.sh"

# A GPU of this machine is no matter of this test.
CUDA_VISIBLE_DEVICES=
export CUDA_VISIBLE_DEVICES

# ends STATUS WORDS ARGUMENTS...: that exit status, the words on stdout.
ends() {
    wanted=$1
    words=$2
    shift 2
    timeout 120 "$program" "$@" > "$out" 2> "$err"
    status=$?
    [ $status = "$wanted" ] || fail "$*: exit status $status, not $wanted"
    grep -q -- "$words" "$out" || fail "$*: nothing of '$words'"
}

for program in tests/gpu/driver_rules tests/gpu/mechanisms; do
    name=${program##*/}
    ends 77 "^$name: skipped: .*\(no CUDA driver\|finds no GPU\|driver has no\)"
    shows "^Usage: $name" --help
    shows . --list
    refused 2 'unknown option --frobnicate' --frobnicate
    refused 2 'no .* nonsense' nonsense
    refused 2 '--time is at least 1' --time 0
    refused 2 '--within is at least 1' --within 0
done
program=tests/gpu/ranks
ends 77 '^ranks: skipped: .*no CUDA driver'
shows '^Usage: ranks' --help
shows '^replay' --list
refused 2 'no part nonsense' nonsense
refused 2 'no list of 1 to 16 ranks' --ranks 2,
refused 2 'no list of 1 to 16 ranks' --ranks 17
refused 2 '--rounds is at least 1' --rounds 0
program=tests/gpu/kernels
if [ -x $program ]; then # else built without nvcc
    ends 77 '^kernels: skipped: ' check
    shows '^Usage: kernels' --help
    refused 2 'unknown option --frobnicate' --frobnicate
    refused 2 'neither check nor bench: nonsense' nonsense
    refused 2 'no type nonsense' check nonsense
fi
program="$srcdir/tests/gpu/check.sh"
ends 77 '^check.sh: skipped: ' "$scratch/reports" tests/gpu
[ ! -e "$scratch/reports" ] || fail "reports of no GPU"
program=tests/gpu/driver_rules
refused 2 '--jobs is 1 to 16' --jobs 17
[ "$("$program" --list | sed -n 's/^\([a-z].*\)/\1/p' | sort | uniq -d)" = "" ] ||
    fail "two rules of one name"

# A driver that refuses every call.
$CC -shared -fPIC -o "$scratch/libcuda.so.1" "$srcdir/tests/gpu/refusing_driver.c" ||
    fail "the refusing driver cannot be built"
LD_LIBRARY_PATH=$scratch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
rules=$("$program" --list | grep -c '^[a-z]')
ends 1 '^no "GPU" at all, driver of CUDA 13.0: 0 rules hold' --jobs 4 --time 60 \
    --json "$scratch/rules.json"
[ "$(grep -c '^\(differs\|cannot\) ' "$out")" = "$rules" ] ||
    fail "not every one of $rules rules is said to differ"
[ "$(grep -c '"result": "\(differs\|cannot\)"' "$scratch/rules.json")" = "$rules" ] ||
    fail "not every one of $rules rules is in the report"
grep -q '"gpu": "no \\"GPU\\" at all"' "$scratch/rules.json" || fail "the GPU's name"
REFUSING_DRIVER=crash ends 1 'ended by signal 6' init/before_init
REFUSING_DRIVER=hang ends 1 'still there at its limit of time' --time 1 \
    init/before_init
REFUSING_DRIVER=hang ends 1 'cannot be tried: no time was left' --within 1 init
ends 2 . --json "$scratch/none/rules.json" init/flags

program=tests/gpu/mechanisms
REFUSING_DRIVER=hang ends 1 'not whole: no time was left' --within 1
ends 1 'rank 0: .*: 999 REFUSED' --time 60 --json "$scratch/measured.json"
grep -q '"not_whole": "rank' "$scratch/measured.json" || fail "the report"
[ "$(grep -c '"name": ".*"ranks"' "$scratch/measured.json")" = \
    "$("$program" --list | grep -c '^[a-z]')" ] || fail "not all are reported"

# The whole command: every part is tried, and the report says how it ended.
program="$srcdir/tests/gpu/check.sh"
ends 1 '^mechanisms: exit status 1 ' "$scratch/reports" tests/gpu
[ "$(grep -c '"name": "\(rules\|kernels\|mechanisms\)", "\(status": 1\|left_out\)' \
    "$scratch/reports/check.json")" = 3 ] || fail "check.json"
exit 0
