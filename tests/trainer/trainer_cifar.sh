# SPDX-License-Identifier: BSD-3-Clause
# trainer_cifar.sh - read by the tests that train resnet18 on CIFAR-10 as the tutorial
# does.  TEST_CIFAR names the folder of the binary files, all or some.
. "${srcdir:-.}/tests/trainer/trainer_program.sh"
data=${TEST_CIFAR:-$source/../shared/data/cifar10}
[ -d "$data" ] || { echo "no CIFAR-10 in $data; name it by TEST_CIFAR"; exit 77; }

# figures NAME: of each epoch.
figures() {
    sed 's/].*//' r.json | grep -o "\"$1\":[0-9.]*" | cut -d: -f2
}

# learns_cifar LAUNCHER...: two ranks, two epochs; the losses fall.
learns_cifar() {
    timeout 300 "$@" "$train" --dataset cifar10 --data-dir "$data" \
        --model resnet18 --batch-size 32 --opt sgd --lr 1e-3 --lr-scale none --epochs 2 \
        --json r.json > out 2> err || fail "$1: exit status $?"
    cat out
    grep -q '"procs":2' r.json || fail "not two ranks"
    for name in loss test_loss; do
        figures $name | awk '{fell = NR == 2 && $1 < last; last = $1}
            END {exit !(NR == 2 && fell)}' || fail "$name does not fall: $(figures $name)"
    done
}
