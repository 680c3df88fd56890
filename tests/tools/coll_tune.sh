#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# coll_tune: the file that it writes is used, and what is wrong is explained.
. "${srcdir:-.}/tests/support/patience.sh"
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out
err=$scratch/err
file=$scratch/tune.json
unset COLL_ALGO COLL_TRANSPORTS COLL_BOOTSTRAP COLL_TUNE_FILE
export COLL_TIMEOUT=$((60 * patience))

fail() {
    echo "FAILED: $*" >&2
    head -n 30 "$out" "$err" >&2
    exit 1
}

# tune RANKS ARGUMENTS...
tune() {
    ranks=$1
    shift
    timeout 300 tools/collrun -n "$ranks" tools/coll_tune "$@" > "$out" 2> "$err"
}

# refused STATUS WORDS ARGUMENTS...: one sentence of coll_tune's own.
refused() {
    wanted=$1
    words=$2
    shift 2
    tune 2 "$@"
    [ $? = "$wanted" ] || fail "$*: not exit status $wanted"
    [ "$(grep -c '^coll_tune:' "$err")" = 1 ] || fail "$*: not one sentence"
    grep -q -- "$words" "$err" || fail "$*: nothing of '$words'"
}

timeout 60 tools/coll_tune --quick > "$out" 2> "$err"
[ $? = 2 ] && grep -q 'with one rank there is nothing to choose; start it as collrun' "$err" ||
    fail "one rank tunes"

# ---- a file is written, of what is no noise: this machine may be busy
tune 2 --quick ${TEST_QUICK:+-n 2} -f 16 --noisy --tolerance 100 -o "$file" ||
    fail "coll_tune --quick"
for collective in allreduce broadcast reduce allgather reduce_scatter alltoall \
    gather scatter barrier; do
    grep -q "\"collective\": \"$collective\", \"ranks\": \[2, 2\]" "$file" ||
        ! grep -q "^ $collective .* best" "$out" || fail "no entry for $collective"
done
grep -q '"level": "host", "alpha": [0-9.e-]*, "beta": ' "$file" ||
    grep -q '^# within a host: noise' "$out" || fail "no links"
# every size has a best one or is noise, and predictions stand beside
awk '$1 == "allreduce" { sizes[$2] = 1; best[$2] += $NF == "best"; noise[$2] += $NF == "noise" }
    END { for (s in sizes) { m++; n += (best[s] == 1) != (noise[s] > 0) } exit !(m == 4 && n == m) }' \
    "$out" || fail "not one best algorithm for each size"
! grep -q ' 0\.00 .*best' "$out" || fail "nothing measured, and best"
if grep -q 'noise' "$out"; then
    grep -q 'warning: .* are noise' "$err" || fail "noise without a warning"
fi

# ---- noise is not: nothing is known to a thousandth of a percent
tune 2 --quick -c allreduce -b 1K -e 1K --tolerance 0.001 -o "$scratch/noise.json"
[ $? = 1 ] || fail "noise is written"
grep -q '^coll_tune: [0-9]* of [0-9]* results .* are noise (allreduce of .* after 24 rounds); nothing is written' "$err" ||
    fail "nothing said of noise"
[ ! -e "$scratch/noise.json" ] || fail "a file of noise"
grep -q ' best' "$out" && fail "the best one, of noise"
[ -z "$(find "$scratch" -name 'tune.json.*')" ] || fail "something is left behind"

# ---- it is used: the reverse of what is predicted, by a file made by hand
algorithm_of() {
    timeout 60 tools/collrun -n 2 benchmarks/allreduce_lat -b 64 -e 64 -n 2 -w 1 \
        --json > "$out" 2> "$err" || fail "allreduce_lat with $COLL_TUNE_FILE"
    sed 's/.*"algorithm":"\([a-z_]*\)".*/\1/' "$out"
}
COLL_TUNE_FILE=$file
export COLL_TUNE_FILE
algorithm_of > /dev/null
COLL_TUNE_FILE=$scratch/hand.json
for algorithm in ring binomial; do
    echo '{"version": 1, "entries": [{"collective": "allreduce", "ranks": [2, 2],' \
        "\"bytes\": [60, 70], \"algorithm\": \"$algorithm\"}]}" > "$COLL_TUNE_FILE"
    [ "$(algorithm_of)" = $algorithm ] || fail "the file says $algorithm"
done
# COLL_ALGO goes before it
[ "$(COLL_ALGO=ring algorithm_of)" = ring ] || fail "COLL_ALGO is not obeyed"

# ---- bad files
echo '{"version": 1, "entries": [{"collective": "allreduce"}]}' > "$COLL_TUNE_FILE"
timeout 60 benchmarks/allreduce_lat -n 2 > "$out" 2> "$err"
[ $? = 2 ] && grep -q "hand.json: entries\[0\]: field 'algorithm'" "$err" ||
    fail "a file without an algorithm is taken"
COLL_TUNE_FILE=$scratch/none.json timeout 60 benchmarks/allreduce_lat > "$out" 2> "$err"
[ $? = 2 ] && grep -q 'No such file' "$err" || fail "a file that is not there"
# shellcheck disable=SC2016
timeout 60 tools/collrun -n 2 sh -c \
    'COLL_TUNE_FILE=$0/tune.json; [ "$COLL_RANK" = 0 ] && unset COLL_TUNE_FILE
     exec benchmarks/allreduce_lat -n 2' "$scratch" > "$out" 2> "$err" &&
    fail "ranks with different files get on"
grep -q 'content of COLL_TUNE_FILE' "$err" || fail "different files: no word of it"
unset COLL_TUNE_FILE

# ---- bad usage, bad places
refused 1 'already there' --quick -o "$file"
sed 's/^{"version": 1,/&\n "limits": {"cma_min": "32K"},/' "$file" > "$file.new" && mv "$file.new" "$file"
tune 2 --quick -c barrier --force --noisy -o "$file" || fail "--force"
grep -q allreduce "$file" && fail "--force left the old file"
grep -q '"limits": {"cma_min": "32K"}' "$file" || fail "--force lost the limits"
mkfifo "$scratch/fifo"
refused 1 'is no regular file' --quick -c barrier --force -o "$scratch/fifo"
[ -p "$scratch/fifo" ] || fail "--force wrote over what is no file"
refused 1 'No such file' --quick -o "$scratch/no/where.json"
refused 2 'cannot be tuned; there are: allreduce' -c sum
refused 2 'a size such as' -e 4X
refused 2 'it must be a number from 1.001' -f 1
refused 2 'it must be a whole number from 1' -n 0
refused 2 'not above the last' -b 8 -e 4
refused 2 'a number of percent above 0' --tolerance 0
refused 2 'unknown option --frobnicate' --frobnicate
refused 2 'needs a value' -o
refused 2 'unexpected argument' now
tools/coll_tune --help > "$out" && grep -q -- --force "$out" || fail "--help"
tools/coll_tune --version > "$out" && grep -q libcoll "$out" || fail "--version"
echo "coll_tune: all is well"
