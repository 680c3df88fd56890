#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What goes wrong around a run: ranks that are not asked for the same, readers that go,
# disks that fill up, signals at any moment.
. "${srcdir:-.}/tests/trainer/trainer_program.sh"
set -u
net="--model net $small"

# Each rank has a shell that gives it flags of its own, $RANK in them.
unlike() {
    words=$1
    refuse 2 "$words" "$collrun" -n 2 sh -c "exec $train $net --epochs 1 --progress off $2"
    [ "$(grep -c -- "$words" err)" = 1 ] || fail "it is said once"
}

ranks_are_asked_for_the_same() {
    unlike '--lr is not the same on all ranks; start all ranks with' '--lr 0.0$((RANK + 1))'
    unlike '--dropout is not the same' '--dropout $([ $RANK = 0 ] && echo on || echo off)'
    unlike '--seed is not the same' '--seed $RANK'
    unlike '--lr-schedule is not the same' '--lr-schedule step:1,0.$((RANK + 1))'
    unlike '--epochs is not the same' '--epochs $((RANK + 1))'
    unlike '--checkpoint is not the same' '$([ $RANK = 0 ] || echo --checkpoint ck)'
    unlike '--data-dir of rank 1 is not that of rank 0, on the same host' '--data-dir d$RANK'
    accept "$collrun" -n 2 sh -c "exec $train $net --epochs 1 --json \$RANK.json --keep \$RANK \
        --log-interval \$RANK \$([ \$RANK = 0 ] || echo --verbose) --threads \$((RANK + 1))"
}

# The images of two hosts, of which one takes those of the test for those to train on; a
# shell of its own, since it may be skipped.
hosts_have_the_same_images() {
    here=/usr/share/datasets/fashion-mnist
    [ -d $here ] || { echo "left out: no $here (Debian: dataset-fashion-mnist)"; return; }
    mkdir other
    for f in images-idx3 labels-idx1; do
        ln -s $here/t10k-$f-ubyte.gz other/train-$f-ubyte.gz
        ln -s $here/t10k-$f-ubyte.gz other/
    done
    (
        cd "$build" || exit 1
        . "$source/tests/net/world.sh"
        hosts_up 2
        for r in 0 1; do
            data=$here
            [ $r = 0 ] || data=$scratch/other
            on h$((r + 1)) env RANK=$r LOCAL_RANK=0 WORLD_SIZE=2 MASTER_ADDR=h1 \
                MASTER_PORT=29500 timeout 60 "$train" --model net --limit-train 256 \
                --limit-test 64 --epochs 1 --data-dir "$data" > "$scratch/host.$r" 2>&1 &
        done
        wait
    ) > out 2> err
    status=$?
    [ $status != 77 ] || { echo "left out: two hosts; $(tail -n 1 out)"; return; }
    cat host.[01] > err
    [ "$(grep -c "the images of rank 1's host are not those of rank 0's" err)" = 1 ] ||
        fail "ranks of two hosts learn from different images"
}

# Who reads the output goes after its first line: all ranks end, the checkpoint is good.
readers_go() {
    { timeout 60 "$collrun" -n 2 "$train" $net --epochs 2000 --checkpoint pipe; echo $? > status; } \
        2> err | head -n 1 > out
    [ "$(cat status)" = 141 ] || fail "a reader that goes: status $(cat status)"
    { timeout 60 "$train" $net --epochs 2000; echo $? > status; } 2> err | head -n 1 > out
    [ "$(cat status)" = 141 ] || fail "a reader of one rank that goes: status $(cat status)"
}

# good FOLDER: the newest checkpoint is one, and nothing half written lies beside it
good() {
    accept "$train" $net --resume auto --checkpoint "$1" --eval-only
    ls "$1" | grep -v '^epoch-[0-9+]*\.ckpt$' > rest
    [ ! -s rest ] || fail "$1 has $(cat rest)"
}

# A save that finds no room: one sentence, and the checkpoints before stay.
disks_fill_up() {
    accept "$train" $net --epochs 1 --checkpoint full
    (
        ulimit -f 200
        trap '' XFSZ
        refuse 1 'cannot write checkpoint full/epoch-0002.ckpt: File too large; free the disk' \
            "$collrun" -n 2 "$train" $net --epochs 3 --resume auto --checkpoint full
    ) || exit 1
    good full
    : > file
    refuse 1 'cannot write checkpoints to file: .* a directory; name another folder by --checkpoint' \
        "$train" $net --epochs 1 --checkpoint file
    refuse 1 'checkpoints to a/b: .*; make the folder above it or name another folder by --checkpoint' \
        "$train" $net --epochs 1 --checkpoint a/b
    refuse 1 'cannot write a/b: .*; make the folder above it or name another place' \
        "$train" $net --epochs 1 --json a/b
    unshare -rm true 2> /dev/null || { echo "left out: a full disk; no mount namespace"; return; }
    mkdir m
    cat > full.sh << 'END'
mount -t tmpfs -o size=700k none m || exit 9
"$@" 2>&1
status=$?
ls m
exit $status
END
    timeout 60 unshare -rm sh full.sh "$collrun" -n 2 "$train" $net --epochs 9 --progress off \
        --checkpoint m > out 2> err
    [ $? = 1 ] || fail "a full disk: another status"
    says 'cannot write checkpoint m/epoch-0003.ckpt: No space left on device; free the disk'
    grep -v '^coll' out | tr '\n' ' ' > left
    [ "$(cat left)" = "epoch-0001.ckpt epoch-0002.ckpt " ] || fail "a full disk leaves $(cat left)"
}

# A signal at any moment, in a save, too; SIGUSR1 more than once, as batch systems send it.
signals_at_any_moment() {
    for delay in 0.3 0.5 0.7; do
        for signal in TERM USR1; do
            rm -rf ended
            "$collrun" -n 2 "$train" $net --epochs 100000 --progress off --checkpoint ended \
                > out 2> err &
            pid=$!
            i=0
            while [ ! -e ended/epoch-0001.ckpt ] && [ $i -lt $((200 * patience)) ]; do
                sleep 0.05
                i=$((i + 1))
            done
            sleep $delay
            kill -$signal $pid
            for _ in 1 2 3 4 5 6; do
                [ $signal = TERM ] || kill -$signal $pid 2> /dev/null
                sleep 0.02
            done
            wait $pid
            status=$?
            case $signal-$status in
            TERM-143 | USR1-0) ;;
            *) fail "$signal: status $status" ;;
            esac
            good ended
        done
    done
}

# A decimal comma, and letters that are not what they seem.
locales() {
    accept "$train" $net --epochs 1 --lr 0.5 --json - --progress off
    want=$(crc)
    for l in de_DE tr_TR; do
        mkdir -p loc
        localedef -i $l -f UTF-8 loc/$l.UTF-8 > /dev/null 2>&1 ||
            { echo "left out: the locale $l (Debian: locales)"; continue; }
        accept env LOCPATH="$scratch/loc" LC_ALL=$l.UTF-8 "$train" $net --epochs 1 --lr 0.5 \
            --json - --progress off
        [ "$(crc)" = "$want" ] || fail "other parameters in $l"
        says '"lr":0\.5[,0]'
    done
}

# Every model on one image a step.
one_image() {
    for model in cnn net alexnet resnet18 resnet18-cifar resnet50; do
        accept "$train" --synthetic --model $model --batch-size 1 --num-warmup-batches 1 \
            --num-batches-per-iter 1 --num-iters 1
        says '^Total img/sec on 1 CPU(s): '
    done
}

ranks_are_asked_for_the_same
hosts_have_the_same_images
readers_go
disks_fill_up
signals_at_any_moment
locales
one_image
echo "all checks passed"
