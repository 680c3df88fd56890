#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The fake CUDA driver is judged by the program that judges real ones: each rule has to
# hold, or be as impossible to try, and each status that the rule expects something of
# has to be what a real H200 answered (tests/gpu/reports).
srcdir=${srcdir:-.}
. "$srcdir/tests/support/patience.sh"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
real=$srcdir/tests/gpu/reports/2026-11-27-h200-driver-580.159-rules.json
driver=$PWD/tests/fake_cuda/.libs

[ -x tests/gpu/driver_rules ] || { echo "configure found no cuda.h"; exit 77; }

# Names of its own would take the place of others of the process.
others=$(nm -D --defined-only "$driver/libcuda.so.1" |
    awk '$3 !~ /^(cu[A-Z]|fake_cuda_)/ {print $3}')
[ -z "$others" ] || { echo "the driver exports" $others; exit 1; }

# What is not compared, and why:
#   host/unmapped_first   private pages cannot be mapped a second time, so a write to
#                         a registration whose mapping has gone hits the new mapping
#   queue/beside_copy     expected nothing when it was asked, and does since
#   graph/timed_records   has been asked of no device yet
not_compared='^\(host/unmapped_first\|queue/beside_copy\|graph/timed_records\)[: ]'

# "area/name: verdict" and "area/name what: what was seen", sorted: since the report some
# rules ask in another order, with other arguments and longer words.
lines() {
    awk '
    /^ *\{"area"/ {
        split($0, part, "\"")
        rule = part[4] "/" part[8]
        print rule ": " part[12]
    }
    /^ *\{"what": .*, "expected": / {
        what = $0
        sub(/^ *\{"what": /, "", what)
        sub(/, "expected": .*/, "", what)
        gsub(/\(.*| in another stream| behind the wait(, beside the capture)?/, "", what)
        gsub(/ of pageable memory| of 64 MiB|, and undone|"/, "", what)
        seen = $0
        sub(/.*"seen": /, "", seen)
        sub(/},*$/, "", seen)
        print rule " " what ": " seen
    }' "$1" | grep -v "$not_compared" | sort
}

# The rules poll plain words that the driver writes, which is no matter of the thread
# sanitizer; they crash on purpose, and clean up nothing.
TSAN_OPTIONS=$TSAN_OPTIONS:report_bugs=0:handle_segv=0
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0:handle_segv=0
export TSAN_OPTIONS ASAN_OPTIONS
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_MAX_CONNECTIONS
LD_LIBRARY_PATH=$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

# judge JOBS RULE...: their lines in $scratch/fake; without one, of all rules.
judge() {
    rm -f "$scratch/fake.json"
    tests/gpu/driver_rules -t $((30 * patience)) --json "$scratch/fake.json" -j "$@" > "$scratch/out"
    [ -s "$scratch/fake.json" ] || { cat "$scratch/out"; exit 1; }
    lines "$scratch/fake.json" > "$scratch/fake"
}

# What differed from an expectation there is what the rule expects since.
lines "$real" | sed 's/: differs$/: holds/' > "$scratch/real"
[ "$(wc -l < "$scratch/real")" -gt 1000 ] || { echo "the report is cut"; exit 1; }
judge 4
if ! diff "$scratch/real" "$scratch/fake" > "$scratch/diff"; then
    # Some rules measure time, which a busy machine has not: once more, by themselves.
    again=$(sed -n 's/^[<>] \([a-z]*\/[a-z0-9_]*\)[: ].*/\1/p' "$scratch/diff" | sort -u)
    # shellcheck disable=SC2086
    judge 1 $again
    for rule in $again; do
        grep "^${rule}[: ]" "$scratch/real"
    done | sort > "$scratch/some"
    if ! diff "$scratch/some" "$scratch/fake" > "$scratch/diff"; then
        echo "< the H200, > the fake driver"
        cat "$scratch/diff"
        exit 1
    fi
fi

# The product's image as nvcc has made it, and its entries.
[ ! -x tests/gpu/kernels ] || tests/gpu/kernels check i8 > "$scratch/out" ||
    { cat "$scratch/out"; exit 1; }
