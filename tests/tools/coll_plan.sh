#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# coll_plan: each action, plan files from outside, and what it refuses.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
topo=${srcdir:-.}/tests/topo
plan=$scratch/a.plan
unset COLL_LOG

program=tools/coll_plan
. "${srcdir:-.}/tests/support/program.sh"

# spoilt SED-SCRIPT WORDS: the file, changed so, is refused in these words.
spoilt() {
    sed "$1" "$plan" > "$scratch/spoilt.plan"
    refused 1 "$2" --check "$scratch/spoilt.plan"
}

# explain: candidates, their prices, the winner; quick among many ranks
shows '^\* ' -c allreduce -n 1024 -b 64M --explain
[ "$(grep -c ' [mu]*s .*%)$' "$out")" -ge 6 ] || fail "less than six candidates"
shows ' wins: ' -c allreduce -n 16384 -b 64M --explain
shows '^\* ring .* 1\.00 ' -c allreduce -n 8 -b 64M --algo ring --explain
shows '^- ring .*reproducible' -c allreduce -n 8 --order canonical --explain
shows '"candidates"' -c allreduce -n 16 --explain --json
# --algo: that algorithm alone, or why not
shows '^ring: bandwidth' -c allreduce -n 8 -b 64M -a ring --explain
[ "$(grep -c '^[-*] ' "$out")" = 1 ] || fail "--algo explains others"
! grep -q COLL_ALGO "$out" || fail "a variable is named that nobody has set"
shows '^recursive_doubling wins: ' -c allreduce -n 8 -b 64 -a ring,recursive_doubling --explain
refused 1 'ring cannot do this allreduce$' -c allreduce -n 8 --order canonical -a ring --explain
grep -q '^- ring .*is not reproducible' "$out" || fail "no reason why ring is refused"
[ "$(grep -c '^[-*] ' "$out")" = 1 ] || fail "--algo is ignored where it is refused"
refused 1 'ring cannot do' -c allreduce -n 8 --order canonical -a ring --explain --json
for action in --dump --dot --check --simulate; do
    refused 1 'ring cannot do this allreduce; see --explain' -c allreduce -n 4 \
        --topology "$topo/flat.topo" --order canonical -a ring $action
done
(
    # 16,384 ranks take seconds of a processor
    # shellcheck disable=SC3045
    ulimit -t $((10 * patience))
    shows 'fat' -c allreduce -n 16384 -b 64M --topology "$topo/fattree.topo" --explain
) || exit 1
[ "$(grep -c ' [mu]*s .*%)$' "$out")" -ge 6 ] || fail "less than six candidates"

# dump, and the same file back
shows '^rank 2 ' -c allreduce -n 3 -b 48 -a ring --dump
cp "$out" "$plan"
shows '^proven: allreduce ring of 12 f32 over 3 ranks' --check "$plan"
shows '"is_proven": true' --check "$plan" --json
shows '"slots": 32' -c allgather -a bruck -n 9 -b 1M --check --json
shows 'room for 1 message from' -c broadcast -a knomial -n 9 --check
shows '^coll_plan 1$' -c alltoallv -n 5 -b 40 --dump
cp "$out" "$scratch/v.plan"
shows '^proven: alltoallv' --check "$scratch/v.plan"
shows '^rank 77 ' -c allreduce -n 16384 --rank 77 --dump
[ "$(grep -c '^rank ' "$out")" = 1 ] || fail "--rank shows more than one"
shows '"waits_for"' -c allreduce -n 3 -b 48 -a ring --dump --json
shows 'r0_[0-9]* -> r1_[0-9]* .style=bold' -c allreduce -n 3 -b 48 -a ring --dot
shows 'cluster_9' -c allreduce -n 64 -b 48 --rank 9 --dot
! grep -q 'cluster_8' "$out" || fail "--rank draws more than one"
shows '^proven: ' -c reduce_scatter -n 6 -b 1K --in-place --check

# a file from outside
spoilt 's/^0 send peer 1/0 send peer 9/' "spoilt.plan:[0-9]*: peer 9 is not within 0 to 2"
spoilt 's/^\(1 recv\)_reduce\(.*\) with [^ ]*/\1\2/' 'is not what the collective defines'
spoilt 's/^\(1 recv_reduce.*\) with [^ ]*/\1/' 'reads bytes that nobody wrote'
spoilt 's/^\(1 recv_reduce.* with\) [^ ]*/\1 in[0,4)/' 'have 4 and 16 bytes'
spoilt 's/ waits for.*//' 'does not wait for step'
spoilt 's/^edges listed/edges inferred/' 'waits: the head does not say'
spoilt 's/^ranks 3/ranks 4/' "rank 3's part is missing"
spoilt '/^collective/d' 'the head has no collective'
spoilt '1d' 'this is no plan file'
sed -e 's/^edges listed/edges inferred/' -e 's/ waits for.*//' "$plan" > "$scratch/b.plan"
shows '^proven: ' --check "$scratch/b.plan"
refused 1 'No such file' --check "$scratch/none.plan"
refused 1 'is no regular file; give the path' --check "$scratch"

# every algorithm, all ranks
range=1:65
[ -z "${TEST_QUICK:-}" ] || range=1:9
shows ' plans proven in .* 0 failures' --check --all --ranks $range
shows '"failures": 0' --check --all --ranks 1:3 --json

# on the links of a machine
shows '^simulated ' -c allreduce -n 64 -b 1M -a ring --topology "$topo/fattree.topo" --simulate
if [ -z "${TEST_QUICK:-}" ]; then
    shows '^simulated ' -c allreduce -n 1024 -b 1G -a ring --topology "$topo/fattree.topo" --simulate
    shows '^simulated ' -c allreduce -n 16384 -b 8 -a recursive_doubling \
        --topology "$topo/fattree.topo" --simulate
fi
shows '"simulated_s"' -c broadcast -n 64 --topology "$topo/fattree.topo" --placement cyclic \
    --simulate --json

# a picture
if command -v gnuplot > /dev/null; then
    shows '^from 8 B ' -c allreduce -n 64 --crossover "$scratch/x.svg"
    grep -q '</svg>' "$scratch/x.svg" || fail "no picture"
    shows '^from ' -c allreduce -n 16 --topology "$topo/fattree.topo" --crossover "$scratch/y.svg"
    refused 1 'cannot write' -c allreduce -n 64 --crossover /nonexistent/x.svg
    refused 1 'cannot write /dev/full: No space' -c allreduce -n 64 --crossover /dev/full
    [ -c /dev/full ] || fail "/dev/full was removed"
fi
program=$(pwd)/tools/coll_plan
PATH=/nonexistent "$program" -c allreduce -n 64 --crossover "$scratch/z.svg" > "$out" 2> "$err"
[ $? = 1 ] && grep -q 'gnuplot was not found; install it' "$err" || fail "without gnuplot"
[ ! -e "$scratch/z.svg" ] || fail "a picture without gnuplot"
echo mine > "$scratch/z.svg"
PATH=/nonexistent "$program" -c allreduce -n 64 --crossover "$scratch/z.svg" > "$out" 2> "$err"
[ "$(cat "$scratch/z.svg")" = mine ] || fail "a file is lost without gnuplot"

# usage
shows 'Usage: coll_plan' --help
shows 'libcoll' --version
refused 2 'name an action' -c allreduce -n 4
refused 2 'only one action' -c allreduce -n 4 --dump --dot
refused 2 'name a --collective' -n 4 --explain
refused 2 'how many --ranks' -c allreduce --explain
refused 2 'allsum is not valid: it must be allreduce|' -c allsum -n 4 --explain
refused 2 'f31 is not valid: it must be i8|' -c allreduce -n 4 -t f31 --explain
refused 2 'plus is not valid: it must be sum|' -c allreduce -n 4 -o plus --explain
refused 2 "no algorithm 'rign'; there are: " -c allreduce -n 4 -a rign --explain
refused 2 "no algorithm 'reduce:halving'; there are: " -c reduce -n 4 -a halving --explain
refused 2 'band is for integers and bool, not for' -c allreduce -n 4 -o band --explain
refused 2 'for pairs of a value and an index, not for f32; add --type f32_i32' -c allreduce -n 4 -o minloc --explain
refused 2 'sum is for numbers, not for i32_i32; add --op minloc' -c allreduce -n 4 -t i32_i32 --explain
shows '^\* ' -c allreduce -n 4 -o maxloc -t f64_i32 --explain
shows '^\* ' -c allreduce -n 4 -o band -t u8 --explain
refused 2 'a whole number from 1 to' -c allreduce -n 0 --explain
refused 2 'a size such as' -c allreduce -n 4 -b lots --explain
refused 2 'no multiple of the 4 bytes of f32; take 8' -c allreduce -n 4 -b 10 --explain
refused 2 'root 4 is not within 0 to 3' -c broadcast -n 4 -r 4 --explain
refused 2 'rank 4 is not within 0 to 3' -c broadcast -n 4 --rank 4 --dump
refused 2 'add --rank' -c allreduce -n 9 --dot
refused 2 'add --rank' -c allreduce -n 2048 --dump
refused 2 'such as 1:65' --check --all
refused 2 'goes with --check' -c allreduce --all --ranks 1:4 --dump
refused 2 'goes with --check --all' -c allreduce --ranks 1:4 --dump
refused 2 'needs the links' -c allreduce -n 4 --simulate
refused 2 'needs a value' -c allreduce -n 4 --explain --bytes
refused 2 'unknown option --frobnicate' --frobnicate
refused 2 'unexpected argument more' -c allreduce -n 4 --explain more
refused 1 'nonexistent' -c allreduce -n 4 --topology /nonexistent --explain
# more ranks than seats, whatever is asked for
for action in --explain --dump --dot --check --simulate; do
    refused 1 'seats' -c allreduce -n 65 --topology "$topo/flat.topo" --rank 0 $action
done
refused 1 'seats' -c allreduce -n 65 --topology "$topo/flat.topo" --crossover "$scratch/seats.svg"
printf 'nonsense\n' > "$scratch/bad.topo"
refused 1 'bad.topo:1' -c allreduce -n 4 --topology "$scratch/bad.topo" --explain
if [ -w /dev/full ]; then
    tools/coll_plan -c allreduce -n 4 --dump > /dev/full 2> "$err"
    [ $? = 1 ] && grep -q 'cannot write' "$err" || fail "a full disk goes unnoticed"
fi
exit 0
