#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# coll_train --elastic: newcomers take the places of ranks that have died.  Each image of an
# epoch counts once, and the result is that of a run in which nobody died: bit for bit
# where the numbers of ranks allow it.
. "${srcdir:-.}/tests/trainer/trainer_dying.sh"
. "$source/tests/trainer/trainer_killed.sh"
restarts=20
fixed="--deterministic --global-batch-size 32"

# joined N RANKS: so many newcomers joined so many ranks.
joined() {
    grep -q "^\(\[[0-9]*\] \)\?$1 newcomers\? joined $2 ranks\?: $(($1 + $2)) go on" out ||
        fail "$FAULTS: no word of $1 newcomers that joined $2"
}

# refill WANT FLOOR: rank 0 waits for newcomers as DYING_REFILL has it (see dying.c).
refill() {
    DYING_REFILL=$1:$2
    export DYING_REFILL
}

# all_replaced FLAGS FAULTS...: with each of these faults that is tried a newcomer joins, and
# the run has the bits of one without faults.
all_replaced() {
    flags=$1
    shift
    for fault; do
        is_tried || continue
        # shellcheck disable=SC2086
        same 2 "$fault" $flags
        joined 1 1
    done
}

# One of two ranks dies and is replaced; so is the newcomer, in each phase of joining.
one_of_two() {
    refill 2 2
    elastic 2 "" $fixed
    whole=$(crc_of)
    all_replaced "$fixed" 0=die:coll_wait:4 1=die:coll_wait:9 0=die:coll_allreduce:2 \
        "1=die:coll_wait:3 n1=die:coll_comm_create_env:1" \
        "1=die:coll_wait:3 n1=die:connect:2" \
        "1=die:coll_wait:3 n1=die:coll_broadcast:1" \
        "1=die:coll_wait:3 n1=die:coll_broadcast:3" \
        "1=die:coll_wait:3 n1=die:coll_allgather:1" \
        "1=die:coll_wait:3 n1=die:coll_allreduce:1" \
        "1=die:coll_wait:3 n1=die:coll_allreduce:3" \
        "1=die:coll_wait:3 n1=die:model_forward:1"
    # all that began are gone in the end: the newcomers print, and know the first epoch.  The
    # first one's waits are for steps 5 to 9, perhaps for one that fails, for one alone,
    # and for one with the second newcomer.
    all_replaced "$fixed" "1=die:coll_wait:3 0=die:coll_wait:9 n1=die:coll_wait:8"
}

# Ranks die before a growth, or when it is done.
in_a_growth() {
    refill 4 2
    half="1=die:model_forward:9 2=die:model_forward:9"
    # shellcheck disable=SC2086
    same 4 "$half n1=die:connect:2" $fixed
    for fault in 0=die:coll_comm_grow:1 3=die:coll_comm_grow:1 0=end:coll_comm_grow:1 \
        3=end:coll_comm_grow:1; do
        is_tried || continue
        # shellcheck disable=SC2086
        elastic 4 "$half $fault" $fixed
    done
}

# Down to one rank, and back to four.
down_and_up() {
    refill 4 1
    # shellcheck disable=SC2086
    same 4 "1=die:model_forward:9 2=die:model_forward:9 3=die:model_forward:9" $fixed
    joined 3 1
    # without rank 0, in the second epoch
    # shellcheck disable=SC2086
    same 4 "0=die:model_forward:17 1=die:model_forward:17 2=die:model_forward:17" $fixed
    joined 3 1
}

checkpoints() {
    refill 2 2
    rm -rf ck
    # shellcheck disable=SC2086
    same 2 "1=die:coll_wait:3 0=die:coll_wait:10" $fixed --checkpoint ck
    ls ck/epoch-0001.ckpt ck/epoch-0002.ckpt > names || fail "a newcomer does not save"
}

# The steps change, and their number: no image is lost, and none comes twice.
other_steps() {
    refill 3 3
    elastic 3 "1=die:coll_wait:2" --batch-size 10 --drop-last off
    joined 1 2
    elastic 3 "0=die:coll_wait:2 2=die:coll_wait:3" --batch-size 7 --drop-last off \
        --fp16-allreduce --overlap off
    elastic 3 "1=die:coll_wait:2" --batch-size 8 --accum 2 --drop-last off --opt sgd \
        --clip-norm 1 --prefetch on
    refill 4 4
    elastic 4 "3=die:coll_wait:2" --global-batch-size 64 --lr-schedule cosine
    joined 1 3
}

# Batches are normalized as wholes, and newcomers get the statistics.
batches() {
    was=$base
    base="$base --model resnet18"
    whole_batches="--deterministic --global-batch-size 64 --accum 1"
    refill 2 2
    # shellcheck disable=SC2086
    elastic 2 "" $whole_batches
    whole=$(crc_of)
    # shellcheck disable=SC2086
    same 2 "1=die:coll_wait:5" $whole_batches
    joined 1 1
    base=$was
}

# With ZeRO newcomers get a part of the state.
zero() {
    parts="$fixed --zero 1"
    refill 2 2
    all_replaced "$parts" 0=die:coll_wait:5 1=die:coll_group_end:7 1=die:optim_move:3 \
        "1=die:coll_wait:6 n1=die:coll_broadcast:2" \
        "1=die:coll_wait:6 n1=die:coll_group_end:1" \
        "1=die:coll_wait:6 n1=die:coll_allreduce:2"
    refill 4 4
    elastic 4 "1=die:coll_wait:3 3=die:coll_wait:9" --global-batch-size 32 --zero 1
    elastic 4 "1=die:coll_wait:3 3=die:coll_comm_grow:1" --global-batch-size 32 --zero 1
    # when all have come so far, all hold the whole state, and any may die
    elastic 4 "1=die:coll_wait:3 2=end:coll_comm_grow:1 3=end:coll_comm_grow:1" \
        --global-batch-size 32 --zero 1
}

# A newcomer that would make another run ends, and the next one joins.
strangers() {
    refill 2 2
    mv rank rank.good
    cat > rank << 'END'
[ "$COLLRUN_NEWCOMER" != 1 ] || set -- "$@" --seed 7
. ./rank.good
END
    # shellcheck disable=SC2086
    same 2 "1=die:coll_wait:3" $fixed
    grep -q 'this newcomer has other options' err || fail "a stranger says nothing"
    joined 1 1
    mv rank.good rank
}

# One to three of four ranks die at random calls, and newcomers too.
at_random() {
    refill 4 4
    awk -v n="$(n_at_random)" -v seed="${SEED:-1}" 'function any(m) { return int(rand() * m) }
        BEGIN {
            srand(seed)
            n_names = split("model_forward coll_start coll_wait optim_move " \
                "coll_allreduce coll_broadcast coll_allgather coll_comm_grow", name, " ")
            while (n--) {
                victim = any(4)
                for (left = 1 + any(3); left--; victim = (victim + 1) % 4)
                    printf "%d=die:%s:%d ", victim, name[1 + any(n_names)], 1 + any(20)
                for (i = 1 + any(3); i < 4; i++)
                    printf "n%d=die:%s:%d ", i, name[1 + any(n_names)], 1 + any(10)
                print ""
            }
        }' > deaths
    run_with_deaths
}

# Ranks are killed at any moment.
at_any_moment() {
    unset DYING_REFILL
    kill_ranks 4 8 192 --model net --dataset synthetic --limit-train 192 --limit-test 64 \
        --lr-scale none --global-batch-size 32
}

one_of_two
in_a_growth
down_and_up
checkpoints
other_steps
zero
strangers
batches
at_random
at_any_moment
echo "all checks passed"
