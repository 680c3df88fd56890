# SPDX-License-Identifier: BSD-3-Clause
# trainer_dying.sh - read by tests of coll_train --elastic: runs whose ranks die where a test
# wants it.
. "${srcdir:-.}/tests/trainer/trainer_program.sh"
set -u
dying=$build/tests/trainer/coll_train_dying
[ -x "$dying" ] || { echo "built without Check"; exit 77; }

# A rank gets its fault from FAULTS, and newcomer 3 that of n3.
cat > rank << 'EOF'
me=${RANK:-n$COLLRUN_NEWCOMER}
for fault in $FAULTS; do
    [ "${fault%%=*}" = "$me" ] && export DYING_FAULT="${fault#*=}"
done
exec "$@"
EOF

# that many epochs are trained
images=2
# newcomers that may take the places of dead ranks
restarts=0
base="--model net --dataset synthetic --limit-train 192 --limit-test 64 --epochs 2 --lr-scale none --elastic --json r.json"

# elastic RANKS FAULTS FLAG...: FAULTS are RANK=KIND:FUNCTION:CALL (see dying.c).  All images
# of all epochs must count.
elastic() {
    ranks=$1 FAULTS=$2
    shift 2
    export FAULTS
    rm -f r.json
    # shellcheck disable=SC2086
    accept "$collrun" --min-np 1 --max-restarts $restarts -n "$ranks" sh rank "$dying" $base "$@"
    # others would go on without a rank that crashes, too
    ! grep 'killed by signal \(6\|11\) \|Sanitizer' err ||
        fail "$ranks ranks, $FAULTS, $*: a rank crashed"
    [ "$(grep -o '"images":192,\|"images":192}' r.json | wc -l)" = $images ] ||
        fail "$ranks ranks, $FAULTS, $*: images $(grep -o '"images":[0-9]*' r.json)"
}

crc_of() { sed -n 's/.*"param_crc32":"\([0-9a-f]*\)".*/\1/p' r.json; }

# same RANKS FAULTS FLAG...: the run has the bits of one without faults.
same() {
    elastic "$@"
    [ "$(crc_of)" = "$whole" ] || fail "$*: other parameters"
}

lost() {
    grep -q "lost $1 of $2 ranks" out || fail "$FAULTS: no word of $1 lost rank"
}

# all_same RANKS LOST FLAGS FAULT...: so it is with each of these faults that is tried.
all_same() {
    n=$1 n_lost=$2 flags=$3
    shift 3
    for fault; do
        is_tried || continue
        # shellcheck disable=SC2086
        same "$n" "$fault" $flags
        lost "$n_lost" "$n"
    done
}

# n_at_random: so many sets of random deaths are tried.
n_at_random() { [ "${TEST_LONG:-0}" = 0 ] && echo 4 || echo 30; }

# run_with_deaths: four ranks, with the faults of each line of the file "deaths".
run_with_deaths() {
    while read -r faults; do
        elastic 4 "$faults" --global-batch-size 32 < /dev/null
        elastic 4 "$faults" --batch-size 10 --drop-last off < /dev/null
        elastic 4 "${faults%% *}" --global-batch-size 32 --zero 1 < /dev/null
    done < deaths
}
