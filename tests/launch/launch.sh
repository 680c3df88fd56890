# SPDX-License-Identifier: BSD-3-Clause
# launch.sh - read by the tests of real launchers: run the benchmark and the
# trainer under one, and look at what came out.  The launcher is in "$@" of
# check_launcher, ready for a program behind it.
. "${srcdir:-.}/tests/support/patience.sh"

# has_cnn: was the trainer built?
has_cnn() { [ -x trainer/coll_train ]; }

fail() {
    echo "FAILED: $*" >&2
    [ ! -s out ] || cat out >&2
    exit 1
}

# check_children LAUNCHER...: of two ranks, whose children are told that they are none.
check_children() {
    timeout 60 "$@" "$build/tests/boot/rank_starts" "$build/examples/hello" > out 2>&1
    [ "$(grep -c 'has joined as the rank that' out)" = 2 ] || fail "$*: children of ranks"
}

# check_launcher RANKS LAUNCHER...: all sizes without errors, by all ranks.
check_launcher() {
    ranks=$1
    shift
    timeout 60 "$@" benchmarks/allreduce_bw -b 4 -e 256K -n 3 -w 1 --json > out 2> err ||
        { cat err >&2; fail "$* allreduce_bw: exit status $?"; }
    lines=$(grep -c "\"ranks\": *$ranks," out)
    [ "$lines" -ge 17 ] || fail "$* allreduce_bw: $lines lines of $ranks ranks, not 17"
    ! grep '"collective"' out | grep -qv '"errors": *0[,}]' || fail "$*: errors"
    has_cnn || return 0
    timeout 120 "$@" trainer/coll_train --dataset synthetic --epochs 1 \
        --model net --limit-train 1024 --batch-size 64 --json - > out 2> err ||
        { cat err >&2; fail "$* coll_train: exit status $?"; }
    grep -q "\"procs\": *$ranks," out || fail "$* coll_train: not $ranks ranks"
    [ "$(grep -c '"procs"' out)" = 1 ] || fail "$* coll_train: more than rank 0 speaks"
}
