#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# program.sh - read by tests of one program from the outside; $program is its
# name in the build folder, $scratch a folder for what it says.
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/limits.sh"
out=$scratch/out
err=$scratch/err

fail() {
    echo "FAILED: $*" >&2
    head -n 40 "$out" "$err" >&2
    exit 1
}

# shows WORDS ARGUMENTS...: exit status 0, nothing on stderr, the words.
shows() {
    words=$1
    shift
    timeout 120 "$program" "$@" > "$out" 2> "$err" || fail "$*: exit status $?"
    [ ! -s "$err" ] || fail "$*: something on stderr"
    grep -q -- "$words" "$out" || fail "$*: nothing of '$words'"
}

# refused STATUS WORDS ARGUMENTS...: one sentence with the words.
refused() {
    wanted=$1
    words=$2
    shift 2
    timeout 120 "$program" "$@" > "$out" 2> "$err"
    status=$?
    [ $status = "$wanted" ] || fail "$*: exit status $status, not $wanted"
    [ "$(wc -l < "$err")" = 1 ] || fail "$*: not one line on stderr"
    grep -q -- "$words" "$err" || fail "$*: nothing of '$words'"
}
