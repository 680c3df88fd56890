#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What a training may not depend on: among how many ranks its images are split,
# by what they talk, and who holds which part of the optimizer's state.
. "${srcdir:-.}/tests/trainer/trainer_program.sh"
set -u

# field NAME: a number or word of the last command's JSON.
field() {
    sed -n 's/.*"'"$1"'":"\{0,1\}\([0-9a-z.]*\).*/\1/p' out
}

# trained RANKS FLAGS...: one epoch of so many ranks; sets $crc.
trained() {
    n=$1
    shift
    accept "$collrun" -n "$n" "$train" --dataset synthetic --limit-test 8 \
        --lr-scale none --epochs 1 --json - "$@"
    crc=$(field param_crc32)
    [ -n "$crc" ] || fail "$*: no check sum"
}

# Three steps of 64 images, by 1, 2 and 4 ranks, in one piece and in two.
row07_deterministic_ranks() {
    models="cnn net"
    [ "$(part_of 2)" = 2 ] || models=net
    for model in $models; do
        set -- --limit-train 192 --model $model
        trained 1 "$@" --batch-size 64 --deterministic
        says '^deterministic: .* ranks, up to 8, with 64 images a step and'
        first=$crc
        for n in 2 4; do
            trained $n "$@" --batch-size $((64 / n)) --deterministic
            [ "$crc" = "$first" ] || fail "$model: $n ranks have other bits"
        done
        trained 2 "$@" --batch-size 16 --accum 2 --deterministic
        [ "$crc" = "$first" ] || fail "$model: --accum makes other bits"
        trained 2 "$@" --batch-size 32 --deterministic --seed 43
        [ "$crc" != "$first" ] || fail "$model: the seed makes no difference"
    done
    # Sums do round: in another order they are others.
    trained 1 --limit-train 192 --model net --batch-size 64
    one=$crc
    trained 4 --limit-train 192 --model net --batch-size 16
    [ "$crc" != "$one" ] || fail "there was nothing to be deterministic about"
}

# Where it cannot hold, it is said.
row07_deterministic_bounds() {
    trained 3 --limit-train 48 --batch-size 8 --model net --deterministic
    says '^deterministic: the same bits on 3 ranks alone: the ranks do not'
    trained 2 --limit-train 32 --batch-size 8 --model net --deterministic \
        --fp16-allreduce
    says '^deterministic: the same bits on 2 ranks alone: .* 16 bits'
    # Batch normalization sees the same batches on two ranks as in two parts.
    set -- --limit-train 8 --batch-size 2 --model resnet18 --deterministic
    trained 1 "$@" --accum 2
    says ', batches of this size and the same learning rate'
    first=$crc
    trained 2 "$@"
    [ "$crc" = "$first" ] || fail "resnet18: 2 ranks have other bits"
    trained 1 "$@" --accum 3
    says '^deterministic: the same bits on 1 rank alone: batch normalization'
}

# Whatever carries the gradients, in whatever pieces.
row07_deterministic_transports() {
    set -- --limit-train 96 --batch-size 16 --deterministic
    trained 3 "$@"
    first=$crc
    for transport in shm tcp ucx; do
        case $("$train" --check-build) in
        *"[X] $transport"*) ;;
        *) echo "no $transport here"; continue ;;
        esac
        COLL_TRANSPORTS=self,$transport
        export COLL_TRANSPORTS
        trained 3 "$@" --bucket-mb 0.3 --progress plain
        unset COLL_TRANSPORTS
        says "[(,]$transport)  model"
        [ "$crc" = "$first" ] || fail "$transport brings other bits"
    done
}

# same RANKS FLAGS...: with ZeRO and without it a training comes to the same bits.
same() {
    n=$1
    shift
    trained "$n" "$@"
    whole=$crc
    trained "$n" "$@" --zero 1
    [ "$crc" = "$whole" ] || fail "$n ranks, $*: ZeRO makes other bits"
}

# adam has two numbers of state for each of 1,199,882 parameters
row21_zero_steps() {
    set -- --limit-train 96 --batch-size 16
    same 1 "$@"
    [ "$(field optim_bytes)" = 9599056 ] || fail "one rank has not all state"
    same 2 "$@" # two ranks' sums have one order
    says '^zero 1: 4.58 of 9.15 MiB of optimizer state on a rank'
    [ "$(field optim_bytes)" = 4799528 ] || fail "two ranks have not half each"
    same 2 "$@" --bucket-mb 0.01 --opt sgd --clip-norm 0.1 --accum 3
    same 3 "$@" --deterministic --bucket-mb 0.01 --clip-norm 0.1
    [ "$(field optim_bytes)" -le 3199800 ] || fail "three ranks have more than a third"
    is_tried && same 3 "$@" --deterministic --fp16-allreduce --overlap off
    is_tried && same 3 "$@" --deterministic --bf16-allreduce --opt adagrad --warmup-steps 2
    is_tried && same 4 --model net "$@" --deterministic
    is_tried && same 2 --model net "$@" --opt sgd --nesterov --weight-decay 0.01
}

# The same file, whoever has written it; and it is read by any number of ranks.
row21_zero_checkpoints() {
    set -- --dataset synthetic --limit-train 96 --limit-test 8 --batch-size 8 \
        --lr-scale none --deterministic
    for zero in 0 1; do
        accept "$collrun" -n 3 "$train" "$@" --zero $zero --epochs 1 \
            --checkpoint zero$zero
    done
    cmp zero0/epoch-0001.ckpt zero1/epoch-0001.ckpt || fail "other checkpoints"
    accept "$collrun" -n 2 "$train" "$@" --epochs 2 --json - \
        --checkpoint zero1 --resume auto
    whole=$(field param_crc32)
    accept "$collrun" -n 2 "$train" "$@" --epochs 2 --json - --zero 1 \
        --checkpoint zero0 --resume auto
    says '^resumed after epoch 1, step 4'
    says '^that was with 3 ranks of 8 images a step; from here on 2 of 8'
    [ "$(field param_crc32)" = "$whole" ] || fail "ZeRO goes on otherwise"
    cmp zero0/epoch-0002.ckpt zero1/epoch-0002.ckpt || fail "other checkpoints"
}

row07_deterministic_ranks
row07_deterministic_bounds
row07_deterministic_transports
row21_zero_steps
row21_zero_checkpoints
echo "all checks passed"
