#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Some of the deaths of `make check-faults` after which the others go on.
program=tests/faults/check_survivors
[ -x "$program" ] || { echo "built without Check"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
. "${srcdir:-.}/tests/support/program.sh"

shows '--seed S' --help
refused 2 "'many' is no number" --cases many

cases=$(part_of 40)
timeout 600 "$program" --seed 20 --cases "$cases" --soon "$((10 * patience))" > "$out" 2> "$err"
status=$?
cat "$out"
[ $status = 0 ] || fail "$program: exit status $status"
grep -q "^$cases cases, .* 0 hangs, 0 aborted survivors, 0 wrong, 0 strays\$" "$out" ||
    fail "its sum is in other words"
