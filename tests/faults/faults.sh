#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Some of the cases of `make check-faults`; and the program's own command line.
[ -x tests/faults/check_faults ] || { echo "built without Check"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
program=tests/faults/check_faults
. "${srcdir:-.}/tests/support/program.sh"

shows '--seed S' --help
refused 2 "'many' is no number" --cases many
refused 2 "'0' is no number" --cases 0
refused 2 "'1000' is no option" 1000

cases=$(part_of 24)
timeout 300 "$program" --seed 20 --cases "$cases" --soon "$patience" > "$out" 2> "$err"
status=$?
cat "$out"
[ $status = 0 ] || fail "$program: exit status $status"
# wherever: UCX says on stdout, too, what it did not like about a rank's death
grep -q '^libcoll [0-9.]*, UCX built with [0-9.]*; .*, [0-9]* cores$' "$out" ||
    fail "it does not say what was tried"
grep -q "^$cases cases, .* 0 hangs, 0 aborted survivors, 0 wrong, 0 leftovers\$" "$out" ||
    fail "its sum is in other words"
