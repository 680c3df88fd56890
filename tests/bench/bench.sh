#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The benchmark programs: what they print, what they refuse, and that 1, 2, 3
# and 7 ranks get right results for every type, operation and algorithm.
. "${srcdir:-.}/tests/support/patience.sh"
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out
err=$scratch/err
n_checks=0
unset COLL_ALGO COLL_TRANSPORTS COLL_BOOTSTRAP

fail() {
    echo "FAILED: $*" >&2
    head -n 30 "$out" "$err" >&2
    exit 1
}

# right RANKS LINES PROGRAM ARGUMENTS...: so many lines, all of them rank 0's,
# and no errors in them.
right() {
    ranks=$1
    lines=$2
    shift 2
    n_checks=$((n_checks + 1))
    COLL_TIMEOUT=$((60 * patience)) timeout 120 \
        tools/collrun -n "$ranks" "benchmarks/$@" --json \
        > "$out" 2> "$err" || fail "$ranks ranks, $*: exit status $?"
    [ "$(wc -l < "$out")" = "$lines" ] || fail "$ranks ranks, $*: not $lines lines"
    [ "$(grep -c "^{.*\"ranks\":$ranks,.*\"errors\":0}$" "$out")" = "$lines" ] ||
        fail "$ranks ranks, $*: errors"
}

# refused STATUS WORDS PROGRAM ARGUMENTS...: one sentence with the words.
refused() {
    wanted=$1
    words=$2
    shift 2
    n_checks=$((n_checks + 1))
    timeout 60 "benchmarks/$@" > "$out" 2> "$err"
    status=$?
    [ $status = "$wanted" ] || fail "$*: exit status $status, not $wanted"
    [ "$(wc -l < "$err")" = 1 ] || fail "$*: not one line on stderr"
    grep -q -- "$words" "$err" || fail "$*: nothing of '$words'"
}

# ---- what is printed
right 1 1 allreduce_bw -b 64 -e 64 -n 3
pattern='^{"collective":"allreduce","ranks":1,"hosts":1,"bytes":64,"count":16,'
pattern=$pattern'"type":"f32","op":"sum","device":"host","algorithm":"[a-z_]*",'
pattern=$pattern'"iters":3,"lat_us":{"min":[0-9.]*,"p50":[0-9.]*,"p99":[0-9.]*},'
pattern=$pattern'"algbw_GBps":[0-9.]*,"busbw_GBps":[0-9.]*,"errors":0}$'
grep -q "$pattern" "$out" || fail "a JSON line without its fields"
# 3, 6, 12, 24, 48 bytes in whole f64: 1, 1, 1, 3, 6
right 1 3 allreduce_lat -b 3 -e 70 -t f64 -n 2
[ "$(sed 's/.*"bytes":\([0-9]*\),.*/\1/' "$out" | tr '\n' ' ')" = "8 24 48 " ] ||
    fail "sizes that are no whole elements"
for program in broadcast_bw broadcast_lat allgather_bw allgather_lat allreduce_bw; do
    right 1 3 $program -b 4K -e 64K -f 4 -n 3 -w 0
done
right 1 1 barrier_lat -n 3
right 3 3 allreduce_bw -b 4K -e 64K -f 4 -n 3 --mem alloc
right 2 2 broadcast_bw -b 64K -e 256K -f 4 -n 9 --vary-buffers --mem alloc
benchmarks/allreduce_bw -b 8 -e 16 -n 2 > "$out" 2> "$err" || fail "a table"
grep -q '^# .*libcoll.*1 rank on 1 host' "$out" || fail "no word of what is measured"
[ "$(grep -vc '^#' "$out")" = 2 ] || fail "not two rows in the table"
benchmarks/allgather_bw -b 8 -e 16 -n 2 --csv > "$out" 2> "$err" || fail "csv"
[ "$(awk -F, '{print NF}' "$out" | sort -u)" = 16 ] || fail "csv of other columns"
right 3 2 allreduce_lat -b 8 -e 16 -n 4 --idle 5
[ "$(grep -c '"idle_ms":5.0,"idle_cpu":[0-9.]*,"errors":0}$' "$out")" = 2 ] ||
    fail "--idle lacks its fields"
right 2 1 barrier_lat -n 3 --idle 2.5
right 3 2 allreduce_lat -b 8 -e 16 -n 20 --beside 1M
[ "$(grep -c '"beside":1048576,"errors":0}$' "$out")" = 2 ] ||
    fail "--beside lacks its field"
benchmarks/allgather_lat -b 8 -e 16 -n 2 --idle 1 --csv > "$out" 2> "$err" || fail "csv"
[ "$(awk -F, '{print NF}' "$out" | sort -u)" = 18 ] || fail "csv of other columns"
benchmarks/allreduce_lat -b 8 -e 8 -n 2 --idle 1 > "$out" 2> "$err" || fail "a table"
grep -q '^# .*1 ms late' "$out" || fail "no word of who is late"
benchmarks/reduce_lat --help > "$out" || fail "--help"
grep -q 'prod|min|max|avg|band' "$out" || fail "--help lacks operations"
benchmarks/plan/plan_build --help > "$out" || fail "--help of plan_build"
benchmarks/plan/plan_build -r 1,5,64 --json > "$out" 2> "$err" || fail "plan_build"
pattern='^{"ranks":64,"collective":"allreduce","algorithm":"ring","steps":[0-9]*,'
grep -q "$pattern\"median_ms\":[0-9.]*,\"max_ms\":[0-9.]*,\"bytes_per_step\":" "$out" ||
    fail "plan_build lacks the ring"
refused 2 'it must be malloc|alloc' allreduce_bw --mem shared
refused 2 'a size such as' allreduce_bw -b '8 '
refused 2 'no list of ranks' plan/plan_build -r 5:6
refused 2 'no number of ranks; it must be 1' plan/plan_build -r 0
refused 2 'no collective' plan/plan_build -c sum
refused 2 'no algorithm' plan/plan_build -r 4 -a nonsense
benchmarks/broadcast_lat --help > "$out" || fail "--help"
grep -q -- --root "$out" || fail "--help says nothing of --root"
benchmarks/broadcast_lat --version > "$out" && grep -q libcoll "$out" || fail "--version"

# ---- what is refused
refused 2 'it must be i8|u8' allreduce_bw -t int
refused 2 'it must be sum|prod|min|max|avg' allreduce_bw -o and
refused 2 'there are: .*recursive_doubling' allreduce_bw -a nonsense
refused 2 'there are: .*chain' broadcast_bw -a nonsense
refused 2 'it must be host|cuda' allreduce_bw -d tape
refused 2 'it must be events|host' allreduce_bw --clock sun
refused 2 'a size such as' allreduce_bw -b 4X
refused 2 'a size such as' allreduce_bw -e -4
refused 2 'above the last' allreduce_bw -b 8 -e 4
refused 2 'a number from 1.001' allreduce_bw -f 1
refused 2 'a whole number from 1' allreduce_bw -n 0
refused 2 'off|on' allreduce_bw -c maybe
refused 2 'needs a value' allreduce_bw -b
refused 2 'unknown option --frobnicate' allreduce_bw --frobnicate
refused 2 'unknown option -z' allreduce_bw -z
refused 2 'a time above 0' allreduce_lat --idle 0
refused 2 'a time above 0' allreduce_lat --idle soon
refused 2 'give one of them' allreduce_lat --idle 5 --vary-buffers
refused 2 'no use for --idle' p2p_lat --idle 5
refused 2 'it must be 4 bytes at least' allreduce_lat --beside 0
refused 2 'give one of them' allreduce_lat --beside 1M --vary-buffers
refused 2 'unexpected argument' allreduce_bw 4K
refused 2 'no use for --op' broadcast_bw -o sum
refused 2 'no use for --root' allreduce_bw -r 0
refused 2 'no use for --end' barrier_lat -e 8
refused 2 'no use for --op' alltoall_bw -o sum
refused 2 'no use for --root' p2p_bw -r 0
refused 2 'no rank 1' broadcast_bw -r 1
refused 2 'there are: .*pairwise' alltoall_bw -a nonsense
refused 1 'not enough memory' allreduce_bw -b 8T -e 8T -n 1
if [ -w /dev/full ]; then
    benchmarks/allreduce_bw -b 8 -e 8 -n 1 > /dev/full 2> "$err"
    [ $? = 1 ] && grep -q 'cannot write' "$err" || fail "a full disk goes unnoticed"
fi

# ---- right results
types="i8 u16 f16 f64" all_ranks=3
[ "${TEST_QUICK:-}" ] || types="i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64" all_ranks="1 2 3"
for type in $types; do
    right 2 2 allreduce_bw -t $type -o sum -b 4 -e 40K -f 10000 -n 2 -w 1
    right 2 2 allgather_bw -t $type -b 4 -e 40K -f 10000 -n 2 -w 1
done
for op in sum prod min max avg; do
    right 3 2 allreduce_lat -t bf16 -o $op -b 4 -e 40K -f 10000 -n 2 -w 1
    right 3 2 allreduce_lat -t i8 -o $op -b 4 -e 40K -f 10000 -n 2 -w 1
done
for op in land lor lxor; do
    right 3 2 allreduce_lat -t f16 -o $op -b 4 -e 40K -f 10000 -n 2 -w 1
done
for op in sum prod avg; do
    right 3 2 allreduce_lat -t c64 -o $op -b 16 -e 40K -f 2000 -n 2 -w 1
done
for op in minloc maxloc; do
    right 3 2 allreduce_lat -t f64_i32 -o $op -b 16 -e 40K -f 2000 -n 2 -w 1
done
for op in band bor bxor land lor lxor; do
    right 3 2 reduce_scatter_lat -t i8 -o $op -b 4 -e 40K -f 10000 -n 2 -w 1
    right 2 2 reduce_lat -t u32 -o $op -b 4 -e 40K -f 10000 -n 2 -w 1
done
for ranks in $all_ranks; do
    for operation in reduce allgatherv reduce_scatter reduce_scatterv alltoall \
        alltoallv gather gatherv scatter scatterv scan p2p; do
        right $ranks 3 ${operation}_bw -b 4 -e 400K -f 300 -n 2 -w 1
        right $ranks 2 ${operation}_lat -b 4 -e 40K -f 10000 -n 2 -w 1 --vary-buffers
    done
    right $ranks 3 p2p_bibw -b 4 -e 400K -f 300 -n 2 -w 1
done
for operation in reduce gather gatherv scatter scatterv; do
    right 3 1 ${operation}_bw -b 40K -e 40K -n 2 -w 1 -r 2
done
several="2 3 7"
[ -z "${TEST_QUICK:-}" ] || several=7
for ranks in $several; do
    for algorithm in ring recursive_doubling binomial; do
        right $ranks 3 allreduce_bw -b 4 -e 400K -f 300 -n 2 -w 1 -a $algorithm
        grep -q "\"algorithm\":\"$algorithm\"" "$out" || fail "not by $algorithm"
    done
    for algorithm in binomial chain; do
        right $ranks 3 broadcast_bw -b 4 -e 400K -f 300 -n 2 -w 1 -a $algorithm \
            -r $((ranks - 1)) --vary-buffers
        grep -q "\"algorithm\":\"$algorithm\"" "$out" || fail "not by $algorithm"
    done
    for algorithm in ring bruck; do
        right $ranks 3 allgather_bw -b 4 -e 400K -f 300 -n 5 -w 1 -a $algorithm \
            --vary-buffers
        grep -q "\"algorithm\":\"$algorithm\"" "$out" || fail "not by $algorithm"
    done
    right $ranks 1 barrier_lat -n 20 -a dissemination
done

right 1 2 allreduce_repro -b 8 -e 40K -f 5000 -n 2 -w 1
for ranks in 2 3; do
    right $ranks 3 allreduce_repro -b 8 -e 400K -f 200 -n 2 -w 1
    grep -q '"ratio":[0-9.]*,"free_algorithm":"[a-z_]*","reproducible_alg' "$out" ||
        fail "allreduce_repro lacks its ratio"
done
refused 2 'no use for --algo' allreduce_repro -a ring

for ranks in 1 3; do
    right $ranks 3 overlap -b 8 -e 400K -f 200 -n 2 -w 1
    grep -q '"hidden":[0-9.]*,"slower":[-0-9.]*,"cpu_us":[-0-9.]*,"errors":0}' "$out" ||
        fail "overlap lacks its shares"
done
refused 2 'no use for --vary-buffers' overlap --vary-buffers
refused 2 'no use for -n above 21' overlap -n 22

for ranks in 2 5; do
    right $ranks 4 shrink_latency -n 2 -w 1
    grep -q '"phase":"shrink","turns":2,"ms":{"min":[0-9.]*,"p50":[0-9.]*,"p90":' "$out" ||
        fail "shrink_latency lacks its times"
done
right 3 4 shrink_latency -n 1 -w 0 --victim 0
COLL_TRANSPORTS=self,tcp COLL_TIMEOUT=$((60 * patience)) timeout 120 tools/collrun -n 2 \
    benchmarks/shrink_latency -n 1 > "$out" 2> "$err" || fail "shrink_latency over tcp"
grep -q 'transports self,tcp; rank 1 is killed' "$out" || fail "shrink_latency: other transports"
refused 2 'takes 2 ranks at least' shrink_latency
refused 2 'a whole number from 1' shrink_latency -n 0

# ---- every rank ends with the same status
for wrong in '-a nonsense' '-r 3' '-o and'; do
    program=allreduce_bw
    [ "$wrong" != '-r 3' ] || program=broadcast_bw
    timeout 60 tools/collrun -n 3 benchmarks/$program $wrong > "$out" 2> "$err"
    [ $? = 2 ] || fail "3 ranks, $program $wrong: not exit status 2"
    [ "$(grep -c "$program:" "$err")" = 1 ] || fail "$wrong: said more than once"
done
echo "$n_checks checks"
