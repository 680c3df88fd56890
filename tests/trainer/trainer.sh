#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# coll_train as its user meets it: sentences and exit codes for what is wrong,
# files that it writes, and several ranks under collrun.
. "${srcdir:-.}/tests/trainer/trainer_program.sh"
set -u

# Stricter than elsewhere.
# refuse STATUS WORDS COMMAND...: COMMAND ends with STATUS and says one line on
# stderr, which holds WORDS; collrun may add which rank ended first.
refuse() {
    status=$1 words=$2
    shift 2
    timeout 300 "$@" > out 2> err
    got=$?
    [ $got = "$status" ] || fail "$*: exit status $got, not $status"
    [ "$(grep -vc '^collrun: ' err)" = 1 ] || fail "$*: not one line on stderr"
    grep -q -- "$words" err || fail "$*: does not say '$words'"
}

# accept COMMAND...: COMMAND ends well and says nothing on stderr.
accept() {
    timeout 300 "$@" > out 2> err || fail "$*: exit status $?"
    [ ! -s err ] || fail "$*: something on stderr"
}

usage() {
    accept "$train" --help
    says '--checkpoint DIR'
    accept "$train" --version
    refuse 2 'did you mean --epochs?' "$train" --epoch 3
    refuse 2 'sgd|adam|adagrad' "$train" --opt=lion
    refuse 2 'needs a value' "$train" --json
    for lr in nan inf -inf 1e400 1e-400 1e39 1e-50 -1 0 0.1x ''; do
        refuse 2 'it must be a number above 0' "$train" --lr="$lr"
    done
    refuse 2 'more than this machine' "$train" --dry-run --threads 100000
    refuse 3 'WORLD_SIZE' env RANK=0 "$train" --dry-run
}

# The table of exit statuses, alone and among ranks: STATUS, what is wrong, flags.
# shellcheck disable=SC2086
statuses() {
    mkdir -p none st
    while read -r status what flags; do
        for ranks in 1 3; do
            timeout 300 "$collrun" -n $ranks "$train" $tiny --epochs 1 $flags > out 2> err
            got=$?
            [ $got = "$status" ] || fail "$what, $ranks ranks: exit status $got, not $status"
        done
        "$train" --help | tail -n 5 | tr '\n' ' ' | grep -q "$status " ||
            fail "--help does not explain $status"
    done <<- END
	0 well
	2 flag --bogus
	2 data --dataset mnist --data-dir none
	2 batch --batch-size 1000
	2 checkpoint --resume none
	1 disk --json none/nowhere/x.json
	1 folder --checkpoint /proc/none
	4 loss --lr 1e30
	END
    # the status is that of whom it concerns, on every rank; a reader of the ranks'
    # own statuses sees no other
    "$collrun" -n 3 sh -c '[ $COLL_RANK != 1 ] || set -- "$@" --normalize meanstd
        "$@"; echo $? > st/$COLL_RANK; exit 0' - "$train" $tiny --epochs 1 > out 2> err
    [ "$(cat st/0 st/1 st/2 | tr '\n' ' ')" = "2 2 2 " ] || fail "statuses: $(cat st/*)"
    # a rank that dies amid the epochs: the others' collective fails; collrun, which would
    # end them soon, does not see it
    rm -f st/*
    "$collrun" -n 3 sh -c 'if [ $COLL_RANK = 1 ]; then
            "$@" &
            until grep -qi "^epoch" out; do sleep 0.1; done; kill -9 $!; wait; exit 0
        fi
        "$@"; echo $? > st/$COLL_RANK; exit 0' - "$train" $tiny --epochs 10000 > out 2> err
    [ "$(cat st/0 st/2 | tr '\n' ' ')" = "3 3 " ] || fail "after a death: $(cat st/0 st/2)"
}

data() {
    mkdir empty foreign
    refuse 2 'empty/train-images-idx3-ubyte is missing' "$train" --data-dir empty
    # a variable of earlier versions
    # shellcheck disable=SC2086
    COLL_DATA=empty "$train" $small --dry-run > out 2> err || fail "COLL_DATA is refused"
    grep -q '^coll_train: COLL_DATA has no effect here: give --data-dir DIR' err ||
        fail "COLL_DATA is ignored without a word"
    [ "$(grep -c COLL_DATA err)" = 1 ] || fail "COLL_DATA is spoken of twice"
    for f in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
        echo "this is no data" > foreign/$f-ubyte
    done
    refuse 2 'foreign/train-images-idx3-ubyte is no IDX file' "$train" --data-dir foreign
    # shellcheck disable=SC2086
    refuse 2 'lower --batch-size' "$train" $small --batch-size 193
}

# shellcheck disable=SC2086
files() {
    touch file
    refuse 1 'file/below' "$train" $small --checkpoint file/below
    refuse 1 'nowhere/x.json' "$train" $small --json nowhere/x.json
    refuse 2 'nowhere/x.ckpt' "$train" $small --resume nowhere/x.ckpt
    refuse 1 '/dev/full' "$train" $small --epochs 1 --json /dev/full
    refuse 1 'standard output' sh -c "exec $train $small --epochs 1 > /dev/full"

    echo old > r.json
    accept "$train" $small --dry-run --json r.json
    says 'dry run: 12 steps per epoch, 3 epochs, 36 steps, lr 0.001'
    grep -q old r.json || fail "--dry-run wrote to --json"
    accept "$train" $small --epochs 2 --json r.json
    [ "$(wc -l < r.json)" = 1 ] || fail "r.json is not one line"
    for key in '"version":1' '"model":"cnn"' '"dataset":"synthetic"' '"procs":1' \
        '"steps":24' '"batch_per_proc":16' '"test_acc":' '"images_per_s":' \
        '"bytes_reduced":115188672' '"max_rss_mib":' '"seed":42' '"threads":1'; do
        grep -q "$key" r.json || fail "no $key in r.json"
    done
    accept "$train" $small --epochs 1 --progress off --json -
    [ "$(wc -l < out)" = 1 ] || fail "--progress off --json - prints more than JSON"
}

# shellcheck disable=SC2086
ranks() {
    accept "$collrun" -n 2 "$train" --dataset synthetic --batch-size 512 --dry-run
    says '58 steps per epoch'
    accept "$collrun" -n 2 "$train" $tiny --epochs 1
    [ "$(grep -c 'Test set' out)" = 1 ] || fail "more than rank 0 speaks"
    says '2 procs on 1 node'
    refuse 2 'empty/train-images-idx3-ubyte is missing' \
        "$collrun" -n 3 "$train" --data-dir empty
    timeout 300 "$collrun" -n 2 "$train" --bogus > out 2> err
    [ $? = 2 ] || fail "collrun -n 2 coll_train --bogus: exit status is not 2"

    accept "$collrun" -n 3 "$train" $tiny --json -
    first=$(crc)
    accept "$collrun" -n 3 "$train" $tiny --json -
    [ "$(crc)" = "$first" ] || fail "two runs of the same seed differ"
    accept "$collrun" -n 3 "$train" $tiny --json - --seed 43
    [ "$(crc)" != "$first" ] || fail "another seed makes no difference"
}

# shellcheck disable=SC2086
resume() {
    accept "$collrun" -n 2 "$train" $tiny --json -
    whole=$(crc)
    accept "$collrun" -n 2 "$train" $tiny --epochs 2 --checkpoint saved --resume auto
    accept "$collrun" -n 2 "$train" $tiny --checkpoint saved --resume auto --json -
    says 'resumed after epoch 2, step 12'
    [ "$(crc)" = "$whole" ] || fail "a resumed run differs from a whole one"
    accept "$train" $tiny --checkpoint saved --resume auto # nothing is left to do
    says 'Test set'
    accept "$train" $tiny --checkpoint saved --resume auto --epochs 4
    says 'that was with 2 ranks of 16 images a step; from here on 1 of 16'
    rm saved/epoch-0004.ckpt
    refuse 2 'made with --seed 42' "$train" $tiny --resume saved/epoch-0003.ckpt --seed 1
    refuse 2 'the same --opt' "$train" $tiny --resume saved/epoch-0003.ckpt --opt sgd
    head -c 100000 saved/epoch-0003.ckpt > cut.ckpt
    refuse 2 'cut.ckpt is cut off.*; name another by --resume' "$collrun" -n 2 "$train" $tiny --resume cut.ckpt
    refuse 2 'no checkpoint of this coll_train' "$train" $tiny --resume "$train"
}

# good_but COMMAND...: it ends well and says one line on stderr.
good_but() {
    timeout 300 "$@" > out 2> err || fail "$*: exit status $?"
    [ "$(wc -l < err)" = 1 ] || fail "$*: not one line on stderr"
}

# What a crash has damaged is left out, with one line, and named where nothing is
# left; what was damaged is written anew.
# shellcheck disable=SC2086
resume_damaged() {
    for zero in 0 1; do
        set -- "$collrun" -n 2 "$train" $tiny --zero $zero --checkpoint torn$zero
        accept "$@" --json -
        whole=$(crc)
        cut_file "torn$zero/epoch-0003.ckpt" 100000
        good_but "$@" --resume auto --json -
        grep -q "torn$zero/epoch-0003.ckpt is cut off: .*; the next older" err ||
            fail "what is cut off is not named"
        says 'resumed after epoch 2, step 12'
        [ "$(crc)" = "$whole" ] || fail "the parameters differ after damage"
        accept "$@" --resume auto
        says 'resumed after epoch 3'
    done
    printf x | dd of=torn1/epoch-0003.ckpt bs=1 seek=70000 conv=notrunc 2> /dev/null
    : > torn1/epoch-0002.ckpt
    timeout 300 "$@" --resume auto > out 2> err || fail "two are damaged"
    [ "$(cut -d' ' -f2-4 err | tr '\n' ,)" = \
        'torn1/epoch-0003.ckpt is damaged:,torn1/epoch-0002.ckpt is no,' ] ||
        fail "not the damaged ones are named"
    [ "$(grep -c 'the next older one is taken' err)" = 2 ] || fail "not two are passed over"
    says 'resumed after epoch 1, step 6'
    cut_file torn0/epoch-0001.ckpt 10
    cut_file torn0/epoch-0002.ckpt 99999
    cut_file torn0/epoch-0003.ckpt 0
    sums=$(cat torn0/*.ckpt | cksum)
    status=0
    timeout 300 "$collrun" -n 2 "$train" $tiny --checkpoint torn0 --resume auto \
        > out 2> err || status=$?
    [ $status = 2 ] || fail "all are damaged: exit status $status"
    grep -q 'none of the checkpoints in torn0 (3) is good' err || fail "no word of it"
    [ "$(grep -c 'the next older one is taken' err)" = 2 ] ||
        fail "an older one is promised though there is none"
    grep -q 'torn0/epoch-0001.ckpt is cut off[^;]*$' err || fail "the oldest is not named"
    [ "$(cat torn0/*.ckpt | cksum)" = "$sums" ] || fail "they are not left as they were"
    # another model is no damage
    refuse 2 'epoch-0003.ckpt holds another model' "$train" $tiny --checkpoint torn1 \
        --resume auto --model cnn
}

# make_idx FOLDER: 64 black images and their labels, as training and as test set.
make_idx() {
    mkdir "$1"
    for part in train t10k; do
        { printf '\0\0\10\3\0\0\0\100\0\0\0\34\0\0\0\34'; head -c 50176 /dev/zero; } \
            > "$1/$part-images-idx3-ubyte"
        { printf '\0\0\10\1\0\0\0\100'; head -c 64 /dev/zero; } > "$1/$part-labels-idx1-ubyte"
    done
}

# A checkpoint is taken for another data set only if the user names that set.
# shellcheck disable=SC2086
resume_other_data() {
    make_idx images
    set -- --model net --batch-size 16 --data-dir images
    accept "$collrun" -n 2 "$train" "$@" --dataset mnist --epochs 1 --checkpoint digits
    made='digits/epoch-0001.ckpt was made with --dataset mnist'
    for ranks in 1 2; do
        refuse 2 "$made, but this run has fashion-mnist" \
            "$collrun" -n $ranks "$train" "$@" --eval-only --resume digits/epoch-0001.ckpt
        refuse 2 "$made, but this run has fashion-mnist" \
            "$collrun" -n $ranks "$train" "$@" --checkpoint digits --resume auto
    done
    accept "$train" "$@" --eval-only --resume digits/epoch-0001.ckpt --dataset mnist
    says 'Test set'
    good_but "$train" "$@" --eval-only --resume digits/epoch-0001.ckpt --dataset fashion-mnist
    grep -q "$made; this run uses fashion-mnist" err || fail "no warning of other images"
    mv images mnist # a folder's name says which set it holds
    accept "$train" "$@" --data-dir mnist --eval-only --resume digits/epoch-0001.ckpt
    mv mnist images
    # an unfinished epoch goes on with the same images, and starts anew with others
    cp digits/epoch-0001.ckpt epoch-0001+000001.ckpt
    set -- "$collrun" -n 2 "$train" "$@"
    accept "$@" --resume epoch-0001+000001.ckpt --dataset mnist --epochs 2 --json -
    says '"bytes_reduced":87360,' # one step
    good_but "$@" --resume epoch-0001+000001.ckpt --dataset fashion-mnist --epochs 2 --json -
    says '"bytes_reduced":174720,'
    # trained further on other images, it is of those
    good_but "$@" --resume digits/epoch-0001.ckpt --dataset fashion-mnist \
        --epochs 2 --checkpoint clothes
    accept "$@" --eval-only --resume clothes/epoch-0002.ckpt
    refuse 2 'holds another model (.*) of fashion-mnist; name' \
        "$train" $small --resume clothes/epoch-0002.ckpt
}

# cut_file FILE BYTES
cut_file() {
    head -c "$2" "$1" > part && cp part "$1"
}

# A loss that is not finite stops the training, on one rank and on several; good
# checkpoints stay, and the run goes on from them as if nothing had been.
# shellcheck disable=SC2086
not_finite() {
    echo old > r.json
    for opt in sgd adam; do
        refuse 4 'the loss of step 2 in epoch 1 is not finite on rank 0: the first is layer' \
            "$train" $tiny --opt $opt --lr 1e30 --checkpoint none --json r.json
    done
    [ -z "$(ls none)" ] || fail "a checkpoint was made of what is not finite"
    grep -q old r.json || fail "--json was written without a result"
    refuse 4 'of step 2 in epoch 1 is not finite' \
        "$train" $tiny --lr 1e30 --dropout off --batch-size 1
    refuse 4 'of step 2 in epoch 1 is not finite' "$train" --dataset synthetic \
        --limit-train 768 --batch-size 384 --limit-test 8 --progress bar --lr 1e30
    [ -z "$(tail -c 1 out)" ] || fail "the sentence stands on the bar's line"

    accept "$collrun" -n 3 "$train" $tiny --json -
    whole=$(crc)
    accept "$collrun" -n 3 "$train" $tiny --checkpoint good --epochs 2 --keep 1
    cp good/epoch-0002.ckpt was
    refuse 4 'of step 2 in epoch 3 .* lower --lr .* by --resume auto' \
        "$collrun" -n 3 "$train" $tiny --checkpoint good --keep 1 --lr 1e30 --resume auto
    [ "$(ls good)" = epoch-0002.ckpt ] || fail "checkpoints: $(ls good)"
    cmp good/epoch-0002.ckpt was || fail "a good checkpoint was written over"
    accept "$collrun" -n 3 "$train" $tiny --checkpoint good --resume auto --json -
    [ "$(crc)" = "$whole" ] || fail "a run resumed after a stop differs from a whole one"
}

usage
statuses
data
files
ranks
resume
resume_damaged
resume_other_data
not_finite
