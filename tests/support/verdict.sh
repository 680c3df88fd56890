# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2034
# verdict.sh - read by scripts of many cases: a line for each, and $n_bad of them were not
# as they should be.
n_bad=0

ok() { echo "ok   $*"; }

fail() {
    echo "FAIL $1"
    shift
    [ $# = 0 ] || head -n 30 "$@"
    n_bad=$((n_bad + 1))
}
