#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Rows 15 and 16: eight ranks at a rate of 0.08 learn nothing at once, and learn
# when they come to that rate in three epochs.  14 steps of 8 x 128 images are an
# epoch.  Real MNIST (TEST_MNIST names its folder), else Fashion-MNIST.
. "${srcdir:-.}/tests/trainer_program.sh"
set -u
data=${TEST_MNIST:-$source/../shared/data/mnist}
train_least=0.85 test_least=0.94
if [ ! -d "$data" ]; then
    data=/usr/share/datasets/fashion-mnist train_least=0.75 test_least=0.80
    [ -d "$data" ] || { echo "no MNIST in TEST_MNIST, and no dataset-fashion-mnist"; exit 77; }
fi

# learn EPOCHS FLAGS...: the epochs' lines are in out, the figures in r.json.
learn() {
    epochs=$1
    shift
    timeout 1500 "$collrun" -n 8 "$train" --data-dir "$data" --batch-size 128 --limit-steps 14 \
        --opt adam --lr 0.01 --epochs "$epochs" --json r.json "$@" > out 2> err ||
        fail "training: exit status $?"
    cat out
}

# figure NAME EPOCH: of that epoch.
figure() {
    grep -o "\"$1\":[0-9.e-]*" r.json | sed -n "$2s/.*://p"
}

# holds CONDITION: of numbers.
holds() {
    awk "BEGIN {exit !($1)}" || fail "not so: $1"
}

row15_stuck_without_warm_up() {
    learn 3
    holds "$(figure lr 1) == 0.08"
    holds "$(figure acc 3) < 0.2"
    holds "$(figure test_acc 3) < 0.2"
}

row16_learns_with_warm_up() {
    learn 4 --warmup-epochs 3
    says '^Epoch 3: finished gradual learning rate warmup to 0.08\.$'
    for pair in 1:0.0333 2:0.0567 3:0.0800 4:0.0800; do
        [ "$(printf '%.4f' "$(figure lr "${pair%:*}")")" = "${pair#*:}" ] ||
            fail "the rate of epoch ${pair%:*} is $(figure lr "${pair%:*}")"
    done
    holds "$(figure acc 3) > $train_least"
    holds "$(figure test_acc 4) > $test_least"
}

row15_stuck_without_warm_up
row16_learns_with_warm_up
echo "all checks passed"
