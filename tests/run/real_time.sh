#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks of real-time priorities that share cores: those that wait let the others run, as
# a yield does not where priorities differ, and say so where COLL_WAIT wants otherwise.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
. "${srcdir:-.}/tests/support/program.sh"
core=$(taskset -cp $$ 2> /dev/null | sed 's/.*: //; s/[-,].*//')
[ -n "$core" ] && chrt -f 1 true 2> /dev/null ||
    { echo "real-time priorities are not allowed here (chrt -f 1)"; exit 77; }
unset COLL_TRANSPORTS COLL_PROGRESS

# reduces WAIT NUMBERS: four ranks on one core, of these priorities.
reduces() {
    # shellcheck disable=SC2016
    COLL_WAIT=$1 COLL_TIMEOUT=$((20 * patience)) timeout 60 tools/collrun -n 4 sh -c '
        shift "$COLL_RANK"
        exec taskset -c "$0" chrt -f "$1" benchmarks/allreduce_bw -t i32 -b 4 -e 256K \
            -f 256 -n 3 -w 1' "$core" $2 > "$out" 2> "$err" ||
        fail "COLL_WAIT=$1, priorities $2: exit status $?"
    grep -q '262144 .* 0$' "$out" || fail "COLL_WAIT=$1, priorities $2: no result"
}
for wait in auto block spin yield; do
    reduces $wait "1 1 1 1"
    reduces $wait "4 3 2 1"
    reduces $wait "1 2 3 4"
    case $wait in
    auto | block) ! grep -q 'real-time' "$err" || fail "COLL_WAIT=$wait: a warning" ;;
    *) grep -q "COLL_WAIT=$wait.*real-time" "$err" || fail "COLL_WAIT=$wait: no warning" ;;
    esac
done
# where the library waits outside of a collective
for list in self,tcp self,ucx; do
    COLL_TRANSPORTS=$list
    export COLL_TRANSPORTS
    reduces auto "4 3 2 1"
done
