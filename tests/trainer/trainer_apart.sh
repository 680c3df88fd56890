#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# coll_train reaches the memory of its device through the device's functions alone: it trains
# on a device whose memory the host cannot touch (apart.c), and ends with the bits that the
# processors give, whatever it is asked for.
. "${srcdir:-.}/tests/trainer/trainer_dying.sh"

# With overlap a thread of the library would touch that memory at any time.
base="$base --overlap off"

# run_on DEVICE STATUS FLAG...: it saves in the folder DEVICE.
run_on() {
    device=$1 status=$2
    shift 2
    [ "$device" = cpu ] || export DEVICE_APART=1
    timeout 300 "$dying" --dataset synthetic --limit-test 20 --batch-size 8 --overlap off \
        --checkpoint "$device" "$@" > "$device.out" 2> err
    got=$?
    unset DEVICE_APART
    [ $got = "$status" ] || fail "$*: exit status $got on $device, not $status"
    mv err "$device.err"
}

# both STATUS FLAG...: on the processors and on the device runs say the same on stderr, and
# save the same.
both() {
    run_on cpu "$@"
    run_on apart "$@"
    cmp cpu.err apart.err || fail "$*: other words"
    for file in cpu/*.ckpt; do
        [ ! -e "$file" ] || cmp "$file" "apart/${file#*/}" || fail "$*: $file differs"
    done
}

# resumed FLAG...: an epoch, and another one by a run that goes on.
resumed() {
    rm -rf cpu apart
    both 0 --epochs 1 "$@"
    both 0 --epochs 2 --resume auto "$@"
    [ -s apart/epoch-0002.ckpt ] || fail "$*: no second epoch was saved"
}

alone() {
    resumed --limit-train 96 --clip-norm 0.1 --augment flip-crop --label-smoothing 0.1 \
        --prefetch on --elastic
    resumed --limit-train 50 --drop-last off --zero 1 --clip-norm 0.1 --elastic
    resumed --limit-train 96 --model net --deterministic --accum 2 --opt sgd --init torch
    resumed --limit-train 96 --model net --bf16-allreduce --opt adagrad --zero 1
    # with normalization and sums, whose images are drawn when they are needed
    resumed --model resnet18-cifar --limit-steps 1 --elastic
    rm -rf cpu apart
    both 4 --limit-train 96 --model net --opt sgd --lr 1e30
    grep -q 'the first is layer' apart.err || fail "no place of what is not finite"
}

# Ranks die, and the others have what the device held for them.
with_deaths() {
    fixed="--deterministic --global-batch-size 32"
    # shellcheck disable=SC2086
    accept "$collrun" -n 2 "$train" ${base%%--elastic*} $fixed --json r.json
    whole=$(crc_of)
    export DEVICE_APART=1
    all_same 2 1 "$fixed" 0=die:coll_wait:4 1=die:optim_move:6 1=die:model_forward:52
    all_same 2 1 "$fixed --zero 1" 0=die:coll_group_end:7 1=die:coll_wait:6 \
        0=die:coll_allreduce:17
    all_same 4 0 "$fixed" 1=fail:coll_wait:5 2=fail:coll_wait:6
    all_same 4 0 "$fixed --zero 1" 1=fail:coll_wait:3 3=fail:coll_group_end:2
    # a newcomer
    restarts=20
    export DYING_REFILL=2:2
    # shellcheck disable=SC2086
    same 2 1=die:coll_wait:9 $fixed
    # shellcheck disable=SC2086
    same 2 1=die:coll_wait:9 $fixed --zero 1
    unset DEVICE_APART DYING_REFILL
}

alone
with_deaths
echo "all checks passed"
