#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Rows of the table of tutorials that are about launchers, flags and lines of
# output: each check trains for a second or two, or not at all.
. "${srcdir:-.}/tests/trainer/trainer_program.sh"
set -u
hello=$build/examples/hello

# built NAME 0|1: is the box ticked as config.h says?
built() {
    box=' '
    [ "$2" = 0 ] || box=X
    grep -q "^    \[$box\] $1 " out || fail "config.h says $2 of $1"
}

row01_check_build() {
    accept "$train" --check-build
    for pair in cuda:CUDA pmix:PMIX oneDNN:ONEDNN; do
        value=$(sed -n "s/^#define COLL_HAVE_${pair#*:} //p" "$build/config.h")
        [ "$value" ] || fail "no COLL_HAVE_${pair#*:} in config.h"
        built "${pair%:*}" "$value"
    done
    grep '^Libraries' -A 9 out | grep '^    \[X\]' | while read -r _ name _; do
        ldd "$build/.libs/libcoll.so" | grep -qi "$name" || echo "$name"
    done > missing
    [ ! -s missing ] || fail "not linked: $(cat missing)"
}

# lines: the output without the ranks that collrun puts before it.
lines() {
    sed 's/^\[[0-9]*\] //' out
}

# hellos N: a line of each of N ranks in the output, and no other.
hellos() {
    lines | sort -n -k 3 | cut -d' ' -f 1-5 > got
    for r in $(seq 0 $(($1 - 1))); do
        echo "Hello from: $r of $1,"
    done > wanted
    cmp -s got wanted || fail "the ranks say $(cat got)"
}

row03_hello() {
    accept "$hello"
    hellos 1
    accept "$collrun" -np 4 "$hello"
    hellos 4
    if have_mpirun; then
        mpirun_here 2 "$hello" > out 2> err || fail "hello under mpirun"
        hellos 2
    else
        echo "left out: mpirun (Debian: openmpi-bin)"
    fi
}

# Two hosts of two ranks; a shell of its own, since it may be skipped.
row04_two_hosts() {
    (
        cd "$build" || exit 1
        . "$source/tests/net/world.sh"
        hosts_up 2
        for r in 0 1 2 3; do
            on h$((r / 2 + 1)) env RANK=$r LOCAL_RANK=$((r % 2)) WORLD_SIZE=4 \
                MASTER_ADDR=h1 MASTER_PORT=29500 timeout 60 "$hello" > "$scratch/host.$r" &
        done
        wait
    ) > out 2> err
    status=$?
    [ $status != 77 ] || { echo "left out: two hosts; $(tail -n 1 out)"; return; }
    cat host.[0-3] > out
    printf 'Hello from: %s\n' '0 of 4, rank 0 of 2 on host 0 of 2' \
        '1 of 4, rank 1 of 2 on host 0 of 2' '2 of 4, rank 0 of 2 on host 1 of 2' \
        '3 of 4, rank 1 of 2 on host 1 of 2' | cmp -s - out ||
        fail "ranks of two hosts"
}

row05_bound_ranks() {
    [ "$(nproc)" -ge 2 ] || { echo "left out: one core only"; return; }
    accept "$collrun" -np 2 --bind core sh -c 'taskset -pc $$'
    [ "$(sed 's/.*: //' out | sort -u | wc -l)" = 2 ] || fail "ranks share a core"
}

# shellcheck disable=SC2086
row20_device() {
    for device in cpu auto; do
        accept "$train" $tiny --epochs 1 --device $device --json -
        says '"device":"cpu"'
    done
    refuse 2 '--device gpu is not valid: it must be auto, cpu, cuda, or cuda:N' \
        "$train" --device gpu
    # shellcheck disable=SC2086
    refuse 2 '^coll_train: --device cuda: .* give --device cpu$' "$train" $tiny --device cuda
}

# shellcheck disable=SC2086
row06_rate_by_ranks() {
    for opt in adagrad adam sgd; do
        accept "$collrun" -np 8 "$train" $tiny --batch-size 8 --opt $opt --lr 0.01 --dry-run
        says ', lr 0.08$'
    done
    accept "$collrun" -np 4 "$train" $tiny --lr 0.01 --lr-scale sqrt --dry-run
    says ', lr 0.02$'
    accept "$collrun" -np 4 "$train" $tiny --lr 0.01 --lr-scale none --dry-run
    says ', lr 0.01$'
}

# What is said of a rate that changes, and that each epoch's line has its last.
# shellcheck disable=SC2086
row16_schedules() {
    accept "$collrun" -np 2 "$train" $tiny --lr 0.01 --epochs 4 --lr-schedule step:2,0.1 --json curve.json
    says '  lr schedule step:2,0.1  '
    grep -o ' lr: [0-9.e-]*' out > rates
    printf ' lr: %s\n' 0.02 0.02 0.002 0.002 | cmp -s - rates || fail "rates: $(cat rates)"
    grep -q '"lr_schedule":"step:2,0.1"' curve.json || fail "no schedule in the results"
    accept "$train" $tiny --lr 0.01 --epochs 4 --lr-schedule step:2,0.1 --dry-run
    says ', lr 0.01, 0.001 in the last step$'
    # the last of 12 steps: 0.01 (1 + cos(pi 11/12)) / 2
    accept "$train" $tiny --lr 0.01 --epochs 1 --lr-schedule cosine
    says ' - lr: 0.0001704 '
}

# DeepSpeed's rule: a part of it for each rank and each of its batches.
row21_global_batch() {
    whole="--dataset synthetic --model net --limit-train 192 --limit-test 64"
    # shellcheck disable=SC2086
    accept "$collrun" -np 3 "$train" $whole --global-batch-size 48 --accum 2 --dry-run
    says ' batch 3x8 '
    says '^dry run: 4 steps per epoch'
    # shellcheck disable=SC2086
    refuse 2 '--global-batch-size 50 does not divide by 3 ranks x --accum 1; give a multiple of 3' \
        "$collrun" -np 3 "$train" $whole --global-batch-size 50
}

# The lines of Horovod's pytorch_mnist, of rank 0's images: 6 steps of 96; their
# mean is the epoch's.
log_interval() {
    # shellcheck disable=SC2086
    accept "$collrun" -np 2 "$train" $tiny --epochs 2 --log-interval 1 --verbose
    lines | awk -F '\t' '
        /^Train Epoch: / {
            want = sprintf("Train Epoch: %d [%d/96 (%.0f%%)]", epoch, 16 * step, step / 0.06)
            if ($1 != want || $2 !~ /^Loss: [0-9]\.[0-9][0-9][0-9][0-9][0-9][0-9]$/) exit 1
            sum += substr($2, 7); step++
        }
        /^Epoch [12]\/2/ {epoch++; step = sum = 0}
        /^rank 0 .*loss/ {split($0, w, " "); if (step != 6 || w[8] - sum / 6 > 2e-6 ||
            sum / 6 - w[8] > 2e-6) exit 1; n++}
        END {exit n != 2}' || fail "other lines"
    # shellcheck disable=SC2086
    accept "$collrun" -np 2 "$train" $tiny --epochs 1 --log-interval 4 --limit-steps 5 --progress off
    lines | sed 's/Loss.*/Loss/' > got
    printf 'Train Epoch: 1 [%s]\tLoss\n' '0/80 (0%)' '64/80 (80%)' | cmp -s - got ||
        fail "other lines"
    refuse 2 '--synthetic prints rates' "$train" --synthetic --log-interval 1
}

# Training ends with the epoch that reached it, which is saved whatever its turn, and a
# run that goes on from there has nothing to do.
target_accuracy() {
    long="--dataset synthetic --limit-train 1280 --limit-test 200 --batch-size 16"
    # shellcheck disable=SC2086
    accept "$collrun" -np 2 "$train" $long --epochs 30 --target-acc 0.9 --checkpoint target \
        --checkpoint-every 100 --json target.json
    epoch=$(sed -n 's/.*"target":{"acc":0.9[0-9]*,"epoch":\([0-9]*\),"seconds":[0-9.]*}.*/\1/p' target.json)
    [ "$epoch" ] && [ "$epoch" -lt 30 ] || fail "no epoch reached it"
    says "Reached test accuracy [01][0-9.]*, of 0.9 wanted, after epoch $epoch: [0-9.]* second\$"
    [ "$(ls target)" = "$(printf 'epoch-%04d.ckpt' "$epoch")" ] || fail "saved: $(ls target)"
    sed 's/].*//' target.json | grep -o '"test_acc":[0-9.]*' | cut -d : -f 2 | awk -v n="$epoch" '
        {reached = $1 >= 0.9; if (reached != (NR == n)) exit 1} END {exit NR != n}' ||
        fail "not the first epoch that reached it"
    # shellcheck disable=SC2086
    accept "$collrun" -np 2 "$train" $long --epochs 30 --target-acc 0.9 --checkpoint target \
        --resume auto
    says "Reached test accuracy [01][0-9.]*, of 0.9 wanted, after epoch $epoch: "
    ! grep -q 'Epoch [0-9]*/' out || fail "it trains on"
    # shellcheck disable=SC2086
    accept "$train" $tiny --epochs 1 --target-acc 1 --json -
    says '^Did not reach test accuracy 1; raise --epochs$'
    says '"target":{"acc":1.0,"epoch":null,"seconds":null}'
}

# What a run has printed of its last epoch is what its checkpoint is worth, among
# any number of ranks; a run that still writes is not in the way, nor disturbed.
evaluation() {
    # shellcheck disable=SC2086
    accept "$collrun" -np 2 "$train" $tiny --epochs 2 --checkpoint eval --json trained.json
    lines | grep '^Test set' | tail -n 1 > line
    cp -r eval before
    sums=$(cat eval/.run eval/*.ckpt | cksum)
    for n in 1 3; do
        # shellcheck disable=SC2086
        flock eval/.run "$collrun" -np $n "$train" $tiny --eval-only --resume auto \
            --checkpoint eval --target-acc 1 --json tested.json > out 2> err || fail "--eval-only"
        says 'resumed after epoch 2, step 12'
        lines | grep '^Test set' | cmp -s - line || fail "another accuracy"
        ! grep -q 'Epoch [0-9]*/\|that was with\|checkpoints of an earlier' out || fail "it does more"
        diff -r eval before > /dev/null && [ "$(cat eval/.run eval/*.ckpt | cksum)" = "$sums" ] ||
            fail "it writes"
        sed 's/.*"test_acc":/"test_acc":/;s/,"options.*//' tested.json > got
        sed 's/.*"test_acc":/"test_acc":/;s/,"options.*//' trained.json | cmp -s - got || fail "another result"
        grep -q '"steps":0,"epochs":\[\],.*"options":null}' tested.json || fail "it trains"
    done
    # shellcheck disable=SC2086
    accept "$train" $tiny --eval-only --resume eval/epoch-0001.ckpt --lr-schedule cosine --dry-run
    says '^dry run: .*, 0 epochs, 0 steps, lr 0.001$'
    # shellcheck disable=SC2086
    accept "$collrun" -np 3 "$train" --model net --dataset synthetic \
        --limit-train 192 --limit-test 64 --global-batch-size 64 --eval-only \
        --resume eval/epoch-0002.ckpt --progress plain
    lines | grep '^Test set' | cmp -s - line || fail "another accuracy without a batch"
    refuse 2 'there is no checkpoint in nothing to test' "$train" --model net \
        --dataset synthetic --eval-only --resume auto --checkpoint nothing
    [ ! -e nothing ] || fail "it makes a folder"
}

# Training goes another way, and the test's loss is that of the labels as they are.
label_smoothing() {
    # shellcheck disable=SC2086
    accept "$train" $tiny --epochs 1 --checkpoint smooth --label-smoothing 0.9 --json smooth.json
    grep '^Test set' out > line
    # shellcheck disable=SC2086
    accept "$train" $tiny --eval-only --resume smooth/epoch-0001.ckpt
    grep '^Test set' out | cmp -s - line || fail "the test's labels are smoothed"
    # shellcheck disable=SC2086
    accept "$train" $tiny --epochs 1 --json -
    [ "$(crc)" != "$(sed -n 's/.*"param_crc32":"\([0-9a-f]*\)".*/\1/p' smooth.json)" ] ||
        fail "smoothing changes nothing"
}

# options WORDS...: the last command's line of options, or that there is none.
options() {
    line=$(lines | grep '^options' || true)
    [ "$line" = "$*" ] || fail "options are '$line'"
}

# What decides results and is not as ever stands in a run's head, and all of it in
# the JSON object.
what_decides() {
    # shellcheck disable=SC2086
    accept "$train" $tiny --epochs 1 --json -
    options
    says '"label-smoothing":"0",.*"opt":"adam","lr":null,.*"nesterov":"off",.*"eps":null'
    # shellcheck disable=SC2086
    accept "$train" $tiny --epochs 1 --json - --opt sgd --nesterov --momentum 0.5 \
        --label-smoothing 0.1 --weight-decay 1e-4 --clip-norm 2 --accum 2 --shard stride \
        --drop-last off --limit-steps 3 --warmup-steps 2 --fp16-allreduce
    options 'options limit-steps 3  shard stride  drop-last off  label-smoothing 0.1' \
        ' accum 2  warmup-steps 2  momentum 0.5  weight-decay 0.0001  clip-norm 2  fp16-allreduce'
    says '"shard":"stride","drop-last":"off",.*"label-smoothing":"0.1","accum":"2","opt":"sgd"'
    says '"momentum":"0.5","nesterov":"on",.*"clip-norm":"2",.*"fp16-allreduce":"on"'
    for pair in beta1:0.8 beta2:0.99 eps:1e-08 warmup-epochs:1 target-acc:0.9; do
        # shellcheck disable=SC2086
        accept "$train" $tiny --dry-run "--${pair%:*}" "${pair#*:}"
        options "options ${pair%:*} ${pair#*:}"
    done
    # shellcheck disable=SC2086
    accept "$train" $tiny --dry-run --bf16-allreduce
    options 'options bf16-allreduce'
}

# shellcheck disable=SC2086
row21_config() {
    printf '# as DeepSpeed has a file\ndataset = synthetic\nlimit_train = 192\nlimit-test=64\n
model = net\nbatch-size = 32  # a rank\nepochs = 1\ndeterministic\n' > job.conf
    accept "$collrun" -np 2 "$train" --config job.conf --batch_size 16 --json -
    says ' model net .* batch 2x16 '
    ours=$(crc)
    accept "$collrun" -np 2 "$train" $tiny --epochs 1 --deterministic --json -
    [ "$(crc)" = "$ours" ] || fail "the same flags in a file train otherwise"
    echo 'bach-size = 3' >> job.conf
    refuse 2 'job.conf:10: unknown option --bach-size; did you mean --batch-size' "$train" --config=job.conf
    refuse 2 'cannot read --config nowhere: No such file' "$train" --config nowhere
    refuse 2 'cannot read --config .: Is a directory' "$train" --config .
    refuse 2 'is no text' "$train" --config /bin/sh
    printf '\357\273\277epochs = 1\n' > job.1
    printf 'epochs = 2\n' > job.0
    # shellcheck disable=SC2016
    refuse 2 'not the same file on all ranks' "$collrun" -np 2 sh -c \
        'exec "$@" --config job.$LOCAL_RANK' - "$train" $tiny
    accept "$train" $tiny --config job.1 --dry-run
}

# Each rank draws parameters of its own, and begins with rank 0's: coll_train compares
# the ranks' parameters after each epoch.
# shellcheck disable=SC2086
row08_first_parameters() {
    accept "$collrun" -np 3 "$train" $tiny --epochs 1 --json -
    [ -n "$(crc)" ] || fail "no check sum of the parameters"
}

# What is printed is the mean over the ranks' own lines, but for its digits.
# shellcheck disable=SC2086
row12_metrics_of_ranks() {
    accept "$collrun" -np 2 "$train" $tiny --epochs 2 --verbose
    lines | awk '
        /^rank [01] . Epoch.*loss/ {loss[$5] += $8 / 2; right[$5] += $11 / 2; n[$5]++}
        /^6\/6 / {
            for (i = 1; i < NF; i++) {
                if ($i == "loss:") all_loss[++epochs] = $(i + 1)
                if ($i == "accuracy:") all_right[epochs] = $(i + 1)
            }
        }
        function far(a, b) { return a - b > 0.0001 || b - a > 0.0001 }
        END {
            for (e = 1; e <= 2; e++)
                if (n[e] != 2 || far(loss[e], all_loss[e]) ||
                    far(right[e], all_right[e])) exit 1
        }' || fail "not the mean over the ranks"
}

# Every way to share images trains, and a test counts each image once, however
# many ranks there are.
# shellcheck disable=SC2086
row10_shards_and_tests() {
    for shard in sampler stride random; do
        accept "$collrun" -np 3 "$train" $tiny --shard $shard --drop-last off --limit-train 190 \
            --epochs 1 --checkpoint shards
        says '^4/4 '
    done
    refuse 2 'sampler|stride|random' "$train" --shard all
    : > tests
    for n in 1 2 3; do
        accept "$collrun" -np $n "$train" $tiny --limit-test 61 --epochs 1 \
            --resume shards/epoch-0001.ckpt
        grep '^Test set' out >> tests
    done
    [ "$(sort -u tests | wc -l)" = 1 ] || fail "tests differ: $(cat tests)"
    # a whole number of right answers of 61
    awk '{right = 61 * $NF / 100; exit !(right - int(right + 0.5) < 0.01 &&
        int(right + 0.5) - right < 0.01)}' tests || fail "not of 61 images: $(cat tests)"
}

row11_steps() {
    for pair in 1:117 2:58 4:29 8:14; do
        accept "$collrun" -np "${pair%:*}" "$train" --dataset synthetic --model net \
            --batch-size 512 --dry-run
        says "^dry run: ${pair#*:} steps per epoch"
    done
}

# losses TRANSPORTS: the lines of the test, over these.
losses() {
    # shellcheck disable=SC2086
    accept env COLL_TRANSPORTS=self,"$1" "$collrun" -np 3 "$train" $tiny --deterministic
    says "on 1 node (self,$1)"
    grep 'Average loss' out > "losses.$1"
}

row20_transports() {
    losses shm
    losses tcp
    cmp -s losses.shm losses.tcp || fail "losses by tcp are not those by shm"
    [ "$(wc -l < losses.shm)" = 3 ] || fail "not three epochs"
}

# shellcheck disable=SC2086
row23_scaling_of_models() {
    accept "$collrun" --scaling 1,2 --models net,cnn --csv speed.csv -- \
        "$train" $small --epochs 1
    [ "$(grep '^model' out)" = "$(printf 'model net\nmodel cnn')" ] || fail "not two tables"
    [ "$(grep -c '^ *[12] .*[0-9.]*%.*%' out)" = 4 ] || fail "not two rows of each"
    for model in net cnn; do
        [ "$(wc -l < speed.$model.csv)" = 3 ] || fail "no figures of $model"
    done
    [ "$(grep -c ' model net 21,840 params' err)" = 2 ] || fail "not net, twice"
}

# What comes out of a pipe comes line by line: the first epoch's line is there
# before the run's results are.
row24_lines_of_a_pipe() {
    have_mpirun || { echo "left out: mpirun (Debian: openmpi-bin)"; return; }
    : > out
    mpirun_here 8 "$train" --dataset synthetic --model net --batch_size=256 --epochs=2 \
        --limit-train 8192 --limit-test 256 --json r.json 2> err |
        while read -r line; do
            echo "$line"
            case $line in
            'Epoch 1/2') [ -s r.json ] && echo "results are there before" ;;
            esac
        done > out
    says '^Epoch 1/2$'
    says '^Procs 8 Total time: .* (without the first epoch: '
    ! grep -q 'results are there before' out || fail "output is held back"
    grep -q '"procs":8' r.json || fail "no results"
}

# Whole files come, others do not, and what is there is not fetched again.
row24_get_data() {
    get=$source/trainer/get_data.sh
    here=/usr/share/datasets/fashion-mnist
    mkdir other
    echo "no images" | gzip > other/train-images-idx3-ubyte.gz
    refuse 2 'mnist|fashion-mnist|cifar10' sh "$get" letters
    command -v curl > /dev/null || { echo "left out: curl"; return; }
    refuse 1 'is not the original' sh "$get" -u "file://$PWD/other" mnist
    refuse 1 'cannot fetch' sh "$get" -u "file://$PWD/nowhere" cifar10
    [ -z "$(ls -A data/mnist data/cifar10 | grep -v :)" ] || fail "a bad file stays"
    [ -d $here ] || { echo "left out: good files (Debian: dataset-fashion-mnist)"; return; }
    accept sh "$get" -u file://$here fashion-mnist fetched
    [ "$(wc -l < out)" = 4 ] || fail "not four files"
    accept sh "$get" -u "file://$PWD/nowhere" fashion-mnist fetched
    accept "$train" --data-dir fetched --dataset fashion-mnist --dry-run
    says ' fashion-mnist 60000/10000 '
}

# shellcheck disable=SC2086
row28_no_network() {
    if unshare -rn true 2> /dev/null; then
        accept unshare -rn "$train" $tiny --epochs 1
        says '^Procs 1 Total time: '
    else
        echo "left out: no network namespaces here"
    fi
}

# A job that is killed leaves nothing, and the next one starts.
# shellcheck disable=SC2086
row29_nothing_stays() {
    unshare -rm true 2> /dev/null ||
        { echo "left out: no mount namespaces here"; return; }
    accept unshare -rm sh -c '
        mount -t tmpfs none /dev/shm || exit 1
        collrun=$1
        shift
        "$collrun" -np 2 "$@" --epochs 1 || exit 1
        echo "left by a run: $(ls -A /dev/shm)"
        # each rank kills itself when it has begun to train
        "$collrun" -np 2 sh -c "
            \"\$@\" --epochs 1000 --keep 0 --progress plain --checkpoint ck.\$COLL_RANK &
            until [ -e ck.0/epoch-0001.ckpt ]; do sleep 0.05; done
            kill -9 \$!; kill -9 \$\$" - "$@"
        echo "left by kill -9: $(ls -A /dev/shm)"
        "$collrun" -np 2 "$@" --epochs 1' - "$collrun" "$train" $tiny
    says '^left by a run: $'
    says '^left by kill -9: $'
    tail -n 1 out | grep -q '^Procs 2 Total time: [0-9.]* second$' || fail "no new start"
}

# shellcheck disable=SC2086
row31_ranks_and_epochs() {
    accept "$collrun" -np 2 "$train" $tiny --epochs 2 --verbose
    for line in 'rank 0 | Epoch 1' 'rank 0 | Epoch 2' 'rank 1 | Epoch 1' 'rank 1 | Epoch 2'; do
        [ "$(lines | grep -c "^$line\$")" = 1 ] || fail "not one line '$line'"
    done
    accept "$collrun" -np 2 "$train" $tiny --epochs 1
    ! lines | grep -q '^rank' || fail "ranks speak without --verbose"
}

# PyTorch's own launcher, by the tutorial's line, whose agent keeps MASTER_PORT.  The
# two words before it say of a rank that there is not that its output stays: with
# the default of these, Debian's torchrun (PyTorch 1.13 under Python 3.11) fails.
# shellcheck disable=SC2086
row32_torchrun() {
    command -v torchrun > /dev/null ||
        { echo "left out: torchrun (Debian: python3-torch)"; return; }
    accept torchrun --redirects=9:1 --tee=9:1 --nnodes=1 --nproc_per_node=2 \
        --rdzv_id=12345 --rdzv_backend=c10d \
        --rdzv_endpoint=localhost:$((20000 + $$ % 10000)) \
        --no_python "$train" $tiny --epochs 1
    says ' 2 procs on 1 node '
    says '^Procs 2 Total time'
}

# What Horovod's pytorch_synthetic_benchmark prints, with CPU for GPU.
# shellcheck disable=SC2086
row34_synthetic() {
    models="cnn net resnet18"
    [ "${TEST_QUICK:-}" ] || models="$models alexnet resnet18-cifar resnet50"
    short="--num-warmup-batches 1 --num-batches-per-iter 1 --num-iters 3"
    for model in $models; do
        accept "$collrun" -np 2 "$train" --synthetic --model $model --batch-size 2 \
            $short --json r.json
        says "^Model: $model$"
        says '^Batch size: 2$'
        says '^Number of CPUs: 2$'
        [ "$(grep -c '^Iter #[012]: [0-9]*\.[0-9] img/sec per CPU$' out)" = 3 ] ||
            fail "not three rates"
        says '^Img/sec per CPU: [0-9]*\.[0-9] +-[0-9]*\.[0-9]$'
        says '^Total img/sec on 2 CPU(s): [0-9]*\.[0-9] +-[0-9]*\.[0-9]$'
        # the total is that of two ranks, and the mean is that of the rates
        awk '/^Iter/ {sum += $3} /^Img/ {mean = $4} /^Total/ {total = $6}
            END {exit !(sum / 3 - mean < 0.2 && mean - sum / 3 < 0.2 &&
                total - 2 * mean < 0.2 && 2 * mean - total < 0.2)}' out ||
            fail "figures do not agree"
        grep -q '"images_per_s_spread":' r.json || fail "no results"
    done
    # as many images as there are in MNIST, of ImageNet's size: none is made before
    accept "$train" --model resnet50 --dataset synthetic --batch-size 4 --dry-run
    says '^dry run: 15000 steps per epoch'
    refuse 2 'makes its images up' "$train" --synthetic --dataset mnist
    refuse 2 'keeps nothing' "$train" --synthetic --checkpoint ck
}

row01_check_build
row03_hello
row04_two_hosts
row05_bound_ranks
row20_device
row06_rate_by_ranks
row16_schedules
row21_global_batch
log_interval
target_accuracy
evaluation
label_smoothing
what_decides
row21_config
row08_first_parameters
row12_metrics_of_ranks
row10_shards_and_tests
row11_steps
row20_transports
row23_scaling_of_models
row24_lines_of_a_pipe
row24_get_data
row28_no_network
row29_nothing_stays
row31_ranks_and_epochs
row32_torchrun
row34_synthetic
echo "all checks passed"
