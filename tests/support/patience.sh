# SPDX-License-Identifier: BSD-3-Clause
# patience.sh - read by scripts: limits of time as on a quiet machine, each taken so
# many times as CK_TIMEOUT_MULTIPLIER says, for these as for the programs by Check;
# and an end by a signal, at which dash alone would leave out what EXIT is trapped for.
patience=${CK_TIMEOUT_MULTIPLIER:-1}

# part_of N: of N rounds that differ by chance alone, those that TEST_QUICK leaves.
part_of() {
    n=$(($1 / ${TEST_QUICK:-1}))
    echo $((n > 0 ? n : 1))
}

# is_tried: of cases that differ by one thing, is this one of those that TEST_QUICK=K leaves?
# Each K-th one is.
n_cases=0
is_tried() {
    n_cases=$((n_cases + 1))
    [ $((n_cases % ${TEST_QUICK:-1})) = 0 ]
}

trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# timeout SECONDS COMMAND...: the program of that name, with patience.
timeout() {
    seconds=$(($1 * patience))
    shift
    command timeout "$seconds" "$@"
}

# await SECONDS COMMAND...: until the command is content, with patience.
await() {
    i=$(($1 * 10 * patience))
    shift
    until "$@"; do
        [ $i -gt 0 ] || return 1
        i=$((i - 1))
        sleep 0.1
    done
}
