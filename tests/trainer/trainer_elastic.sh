#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# coll_train --elastic: ranks die in every phase, and the others go on.  Each image of an
# epoch counts once, and the result is that of a run in which nobody died: bit for bit
# where the numbers of ranks allow it.
. "${srcdir:-.}/tests/trainer/trainer_dying.sh"

losses_of() { grep -o '"loss":[0-9.]*' r.json | tr '\n' ' '; }

refusals() {
    refuse 2 'leave --shard out' "$train" --elastic --shard stride
    refuse 2 'leave --synthetic' "$train" --elastic --synthetic
}

# Two ranks, of which one dies: the same 8 blocks, before and after.
in_each_phase() {
    fixed="--deterministic --global-batch-size 32"
    # shellcheck disable=SC2086
    accept "$collrun" -n 2 "$train" ${base%%--elastic*} $fixed --json r.json
    whole=$(crc_of)
    # shellcheck disable=SC2086
    same 2 "" $fixed
    # a rank has 24 forward passes in an epoch, of 6 steps, and 8 in its test
    all_same 2 1 "$fixed" 0=die:model_forward:5 1=die:model_forward:6 0=die:model_forward:25 \
        1=die:model_forward:30 1=die:model_forward:52 0=die:coll_start:2 \
        1=die:coll_start:9 0=die:coll_wait:4 1=die:coll_wait:6 0=die:optim_move:1 \
        1=die:optim_move:6 0=die:optim_move:12 1=die:coll_allreduce:12 \
        0=die:coll_allreduce:14 1=die:coll_allreduce:16 0=die:coll_allreduce:18
    # who learns too early of a death: the others are a step ahead, and all losses count
    # shellcheck disable=SC2086
    same 4 "" $fixed
    losses=$(losses_of)
    for fault in 0=fail:coll_wait:2 1=fail:coll_wait:5 2=fail:coll_wait:6 \
        0=fail:coll_wait:12; do
        is_tried || continue
        # shellcheck disable=SC2086
        same 4 $fault $fixed
        lost 0 4
        [ "$(losses_of)" = "$losses" ] || fail "$fault: losses $(losses_of), not $losses"
    done
    # who is ahead dies before it sends its state to who is not, or meanwhile, if the others
    # were ahead at all
    for fault in coll_comm_shrink:1 coll_broadcast:3 coll_broadcast:4; do
        is_tried || continue
        # shellcheck disable=SC2086
        elastic 4 "1=fail:coll_wait:5 0=die:$fault" $fixed
    done
}

# Ranks die before the first epoch: the others begin anew.
before_the_first_epoch() {
    fixed="--deterministic --global-batch-size 32"
    all_same 2 1 "$fixed" 0=die:coll_allreduce:1 1=die:coll_allreduce:3 \
        0=die:coll_allreduce:5 1=die:coll_allreduce:8 0=die:coll_allgather:1 \
        1=die:coll_allgather:1 0=die:coll_broadcast:1 0=die:coll_broadcast:2 \
        1=die:coll_broadcast:2 0=die:model_forward:1
    # who learns too early of a death, which the others do not
    all_same 4 0 "$fixed" 1=fail:coll_allreduce:10 0=fail:coll_broadcast:2
    # shellcheck disable=SC2086
    same 4 "0=die:coll_allreduce:3 1=die:coll_allreduce:6 2=die:coll_broadcast:1" $fixed
    all_same 2 1 "$fixed --zero 1" 0=die:coll_broadcast:2 1=die:coll_group_end:1
    rm -rf ck
    # shellcheck disable=SC2086
    accept "$train" ${base%%--elastic*} $fixed --epochs 1 --checkpoint ck
    base="$base --checkpoint ck --resume auto"
    for fault in 0=die:coll_allreduce:7 0=die:coll_broadcast:2 1=die:model_forward:1; do
        is_tried || continue
        rm -f ck/epoch-0002.ckpt
        images=1
        # shellcheck disable=SC2086
        same 2 $fault $fixed
        lost 1 2
    done
    images=2
    base=${base% --checkpoint*}
}

checkpoints() {
    fixed="--deterministic --global-batch-size 32"
    for call in 1 2; do
        rm -rf ck
        # shellcheck disable=SC2086
        same 2 "0=die:checkpoint_save:$call" $fixed --checkpoint ck
        lost 1 2
        ls ck/epoch-0001.ckpt ck/epoch-0002.ckpt > names ||
            fail "the new rank 0 does not save"
        # shellcheck disable=SC2086
        accept "$train" ${base%%--elastic*} $fixed --epochs 3 --checkpoint ck --resume auto
        says 'resumed after epoch 2, step 12'
    done
}

# The steps change, and their number: no image is lost, and none comes twice.
other_steps() {
    elastic 3 "1=die:coll_wait:2" --batch-size 10 --drop-last off
    lost 1 3
    elastic 4 "3=die:coll_wait:2" --global-batch-size 64
    lost 1 4
    elastic 4 "0=die:coll_wait:2 1=die:coll_wait:4 2=die:model_forward:9" \
        --global-batch-size 16
    grep -q '1 goes on after step' out || fail "three of four ranks died"
    elastic 3 "0=die:coll_wait:2 1=die:coll_wait:2" --batch-size 7 --drop-last off \
        --fp16-allreduce --overlap off
    elastic 3 "1=die:coll_wait:2" --batch-size 8 --accum 2 --drop-last off --opt sgd \
        --clip-norm 1 --prefetch on
}

# Batches are normalized as wholes, so they are dealt as wholes.
batches() {
    base="$base --model resnet18 --limit-train 192"
    fixed="--deterministic --global-batch-size 64 --accum 1"
    elastic 2 "" $fixed
    whole=$(crc_of)
    same 2 "1=die:coll_wait:5" $fixed
    lost 1 2
    same 2 "1=fail:coll_wait:8" $fixed
}

# With ZeRO a dead rank's part of the optimizer's state is on the next rank.
zero() {
    fixed="--deterministic --global-batch-size 32 --zero 1"
    all_same 2 1 "$fixed" 0=die:coll_group_end:2 1=die:coll_group_end:7 1=die:coll_start:4 \
        0=die:coll_wait:5 1=die:coll_wait:6 0=die:coll_wait:12 1=die:optim_move:3 \
        0=die:model_forward:26 0=die:coll_allreduce:17
    # not all ranks have made the step, or not all have the copies: it is taken back; or
    # all have both, but not all have the parameters: it counts
    all_same 4 0 "$fixed" 1=fail:coll_wait:3 0=fail:coll_group_end:4 3=fail:coll_group_end:2 \
        2=fail:coll_wait:4
    # in each phase of going on
    for call in coll_comm_shrink:1 coll_allgather:2 coll_broadcast:3 \
        coll_broadcast:4 coll_broadcast:6 coll_group_end:5 coll_group_end:6; do
        is_tried || continue
        elastic 4 "1=fail:coll_group_end:4 0=die:$call" --global-batch-size 32 --zero 1
        lost 1 4
    done
    elastic 4 "1=die:coll_wait:3 3=die:coll_wait:9 0=die:coll_wait:15" \
        --global-batch-size 16 --zero 1 --clip-norm 1
    elastic 3 "1=die:coll_wait:5" --batch-size 10 --drop-last off --zero 1 --opt sgd
    # rank 2 as it begins to go on: before the others have
    FAULTS="1=die:coll_wait:4 2=die:coll_comm_shrink:1"
    # the status is that of the rank whose end collrun sees last
    # shellcheck disable=SC2086
    timeout 300 "$collrun" --min-np 1 -n 4 sh rank "$dying" $base --batch-size 8 --zero 1 > out 2> err &&
        fail "a part of the state is lost, and the run goes on"
    grep -q 'ranks 1 and 2 died together' err || fail "no word of the lost state"
}

# One to three of four ranks die at random calls.
at_random() {
    awk -v n="$(n_at_random)" -v seed="${SEED:-1}" 'function any(m) { return int(rand() * m) }
        BEGIN {
            srand(seed)
            split("model_forward coll_start coll_wait optim_move coll_allreduce", name, " ")
            most["model_forward"] = most["coll_allreduce"] = 30
            while (n--) {
                victim = any(4)
                for (left = 1 + any(3); left--; victim = (victim + 1) % 4) {
                    f = name[1 + any(5)]
                    printf "%d=die:%s:%d ", victim, f,
                        1 + any(f in most ? most[f] : 12)
                }
                print ""
            }
        }' > deaths
    run_with_deaths
}

refusals
in_each_phase
before_the_first_epoch
checkpoints
other_steps
zero
batches
at_random
echo "all checks passed"
