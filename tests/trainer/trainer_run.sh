#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# How coll_train is run and what it shows, by the rows of what tutorials teach:
# its bar, its words to those who come from Horovod, whose checkpoints a folder
# holds, signals, ranks that die, the profile and the timeline.
. "${srcdir:-.}/tests/trainer/trainer_program.sh"
set -u
probe=$build/tests/trace/trace_probe
escape=$(printf '\033')
return=$(printf '\r')

flags() {
    refuse 2 'did you mean --epochs' "$train" --epoch 3
    refuse 2 'no option of coll_train: coll_train computes' "$train" --no-cuda
    refuse 2 'ranks learn their numbers' "$train" --local_rank=0
    refuse 2 '--compression is no option of coll_train: give --fp16-allreduce' \
        "$train" --compression fp16
    for flag in --np -np -n; do
        refuse 2 "$flag is no option of coll_train: the launcher says how many" \
            "$train" $flag 2
    done
    # what launchers have stands before the program
    for flag in nnodes nproc_per_node node-rank rdzv_id rdzv_endpoint \
        master-addr master-port max-restarts hostfile bind scaling; do
        name=$(echo $flag | tr _ -)
        refuse 2 "--$name is no option of coll_train: .*collrun --$name" "$train" --$flag 1
        "$collrun" --help | grep -q -- "--$name" || fail "collrun has no --$name"
    done
    # of scripts and of DeepSpeed's file: what takes its place is a flag
    for pair in num_threads:threads val-batch-size:test-batch-size save-model:checkpoint \
        optimizer:opt arch:model print-freq:log-interval gamma:lr-schedule wd:weight-decay \
        base-lr:lr evaluate:eval-only train_batch_size:global-batch-size fp16:fp16-allreduce \
        gradient_accumulation_steps:accum gradient_clipping:clip-norm zero_stage:zero \
        wall_clock_breakdown:breakdown steps_per_print:log-interval \
        fusion-threshold-mb:bucket-mb timeline-filename:timeline; do
        name=$(echo "${pair%:*}" | tr _ -)
        refuse 2 "--$name is no option of coll_train: .*--${pair#*:}" "$train" "--${pair%:*}" 1
        "$train" --help | grep -q -- "^      --${pair#*:}[ []" || fail "no --${pair#*:}"
    done
    for flag in amp loss-scale timeline-mark-cycles algo op predivide sync-bn-stats chunk \
        kernels fail-on-nan rdzv-backend; do
        refuse 2 "--$flag is no option of coll_train: " "$train" --$flag 1
    done
    refuse 2 'unknown option --frobnicate; see coll_train' "$train" --frobnicate
    refuse 2 'unknown option --mu; see' "$train" --mu
    mkdir -p data/mnist
    refuse 2 'data/mnist//train-images.*name the folder of mnist' \
        "$train" --data-dir data/mnist/
    refuse 2 'name the folder of mnist by --data-dir, or fetch it with trainer/get_data.sh' \
        "$train" --dataset mnist --data-dir data
    # shellcheck disable=SC2086
    HOROVOD_FUSION_THRESHOLD=1 accept "$collrun" -n 2 "$train" $small --dry-run
    [ "$(grep -c 'HOROVOD_FUSION_THRESHOLD has no effect here: give --bucket' \
        err)" = 1 ] || fail "a variable is ignored in silence"
    # shellcheck disable=SC2086
    NCCL_SOCKET_IFNAME=lo accept "$train" $small --dry-run
    grep -q 'NCCL_SOCKET_IFNAME has no effect' err || fail "no word of NCCL's"
    # as horovodrun sets them, whatever its user has set
    # shellcheck disable=SC2086
    HOROVOD_GLOO_IFACE=lo HOROVOD_CPU_OPERATIONS=gloo NCCL_SOCKET_IFNAME=lo \
        accept "$train" $small --dry-run
    ! grep 'no effect' err || fail "horovodrun's own variables are complained of"
}

# shellcheck disable=SC2086
row13_progress() {
    accept "$collrun" -n 2 "$train" $small --epochs 1
    ! grep -q "[$escape$return]" out || fail "codes of a terminal in a file"
    says '^6/6 \[==============================\] - [0-9]*s [0-9]*ms/step - loss: [0-9.]* - accuracy: [0-9.]* - lr: '
    if command -v script > /dev/null; then
        script -qec "$collrun -n 2 $train $small --limit-train 1024 --epochs 1" \
            /dev/null > out 2> err < /dev/null || fail "on a terminal"
        grep -q "${return} *[0-9]*/32 \[=*>.*ETA" out ||
            fail "no bar on a terminal"
    fi
    if command -v mpirun > /dev/null; then
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            timeout 300 mpirun --oversubscribe -np 2 "$train" $small \
            --epochs 1 > out 2> err || { echo "no mpirun here"; return; }
        ! grep -q "$escape" out || fail "codes of a terminal under mpirun"
    fi
}

# shellcheck disable=SC2086
row09_folder() {
    accept "$collrun" -n 2 "$train" $tiny --checkpoint ck
    # Another run in the same folder: what the first has left is not taken.
    accept "$collrun" -n 2 "$train" $tiny --checkpoint ck --epochs 1 --seed 7
    says 'checkpoints of an earlier run are in ck/'
    [ "$(ls -d ck/epoch-*)" = ck/epoch-0001.ckpt ] || fail "runs mix: $(ls ck)"
    [ "$(ls ck/*/epoch-0003.ckpt | wc -l)" = 1 ] || fail "a checkpoint is lost"
    accept "$collrun" -n 3 "$train" $tiny --checkpoint ck --epochs 2 --seed 7 \
        --resume auto
    says 'resumed after epoch 1, step 6'
    says 'that was with 2 ranks of 16 images a step; from here on 3 of 16'
    accept "$collrun" -n 3 "$train" $tiny --checkpoint ck --epochs 3 --seed 7 \
        --resume auto --shard stride --drop-last off
    says 'that was with --shard sampler --drop-last on; from here on --shard stride --drop-last off'
    ! grep -q 'that was with 3 ranks' out || fail "the ranks are no others"
    # Going back begins a run of its own.
    accept "$train" $tiny --checkpoint ck --seed 7 --epochs 2 \
        --resume ck/epoch-0001.ckpt
    [ "$(ls -d ck/epoch-*)" = ck/epoch-0002.ckpt ] || fail "runs mix: $(ls ck)"

    mkfifo hold
    flock ck/.run sh -c 'echo held; read -r _ < hold' > held &
    holder=$!
    i=0
    until [ -s held ] || [ $i -gt $((100 * patience)) ]; do
        sleep 0.1
        i=$((i + 1))
    done
    refuse 1 'a running job (pid .* on .*) writes checkpoints to ck' \
        "$collrun" -n 2 "$train" $tiny --checkpoint ck --resume auto
    echo > hold
    wait $holder
}

# A rank is killed in the second epoch: the same lines as of a run that was not.
# shellcheck disable=SC2086
row09_restart() {
    long="--dataset synthetic --limit-train 512 --limit-test 64 --batch-size 16"
    accept "$collrun" -n 2 "$train" $long --json -
    whole=$(crc)
    grep 'Average loss' out > lines
    "$collrun" -n 2 --max-restarts 1 sh -c '
        if [ "$RANK$TORCHELASTIC_RESTART_COUNT" = 10 ]; then
            "$@" & pid=$!
            until [ -e ck2/epoch-0001.ckpt ]; do sleep 0.02; done
            kill -9 $pid; kill -9 $$
        fi
        exec "$@"' - "$train" $long --checkpoint ck2 --json - > out 2> err ||
        fail "a job that is started again"
    grep -q 'restart 1 of 1' err || fail "the job was not started again"
    says 'resumed after epoch'
    # a first run that was killed after its end has printed its checksum, too
    [ "$(crc | tail -n 1)" = "$whole" ] || fail "other parameters after a restart"
    tail -n 1 lines > last
    grep 'Average loss' out | tail -n 1 | cmp -s - last ||
        fail "other losses after a restart"
}

# Wait until the output of the job in the background has such a line.
await() {
    i=0
    until grep -q -- "$1" "$2" 2> /dev/null; do
        [ $i -lt $((600 * patience)) ] || fail "no '$1' in $2"
        sleep 0.1
        i=$((i + 1))
    done
}

# start COMMAND...: in the background, as $pid; out has nothing but what it says.
start() {
    : > out # the shell that is to empty it may be late
    "$@" > out 2> err &
    pid=$!
}

# oneDNN's kernels may keep an address of the heap in the stack pointer: where a
# handler ran in such a thread, the system would write its frame there.
# shellcheck disable=SC2086
no_handlers() {
    start "$train" $small --epochs 100000
    await '^Epoch 1/' out
    caught=$(awk '/^SigCgt/ {print substr($2, 9)}' /proc/$pid/status)
    kill -TERM $pid
    wait $pid
    status=$?
    [ $status = 143 ] || fail "SIGTERM, one rank: exit status $status"
    [ $((0x$caught & 0x4202)) = 0 ] || fail "handlers of signals: 0x$caught"
}

# shellcheck disable=SC2086
row26_signals() {
    long="--dataset synthetic --limit-train 2048 --limit-test 64 --batch-size 16"
    accept "$collrun" -n 2 "$train" $long --epochs 2 --json -
    whole=$(crc)
    long="$long --prefetch on"
    for try in 1 2 3 4 5; do # the run may be over before
        rm -rf ck3
        start "$collrun" -n 2 "$train" $long --epochs 2 --checkpoint ck3
        await '^Epoch 1/2' out
        kill -USR1 $pid
        wait $pid || fail "SIGUSR1: exit status $?"
        ! grep -q '^stopped by' out || break
    done
    says 'stopped by SIGUSR1 after step [0-9]* of epoch [12], saved'
    accept "$collrun" -n 2 "$train" $long --epochs 2 --checkpoint ck3 \
        --resume auto --json -
    says '^resumed after epoch'
    [ "$(crc)" = "$whole" ] || fail "a run saved within an epoch goes on otherwise"

    start "$collrun" -n 2 "$train" $long --epochs 50
    await '^Epoch 1/50' out
    kill -TERM $pid
    wait $pid
    status=$?
    [ $status = 143 ] || fail "SIGTERM: exit status $status"
    says 'stopped by SIGTERM after step'
    [ ! -s err ] || fail "SIGTERM: something on stderr"

    start "$collrun" -n 2 "$train" --synthetic --model net --batch-size 2 \
        --num-iters 1000000
    await '^Iter #0' out
    kill -TERM $pid
    wait $pid
    status=$?
    [ $status = 143 ] || fail "SIGTERM while measuring: exit status $status"
    says '^stopped by SIGTERM after [1-9][0-9]* of 1000000 rates$'
    ! grep -q '^Total' out || fail "a total of what was not measured"
}

# 6 steps of 2 buckets, 2 epochs; averages of metrics are allreduces of doubles.
# shellcheck disable=SC2086
row17_profile() {
    COLL_PROFILE=1 accept "$collrun" -n 2 "$train" $small --epochs 2
    n=$(awk '/^coll_/ {name = $1} name == "coll_allreduce" && $1 == 12 &&
        $2 > 50000 {bytes += $1 * $2; n++} END {print n, bytes / 12}' coll_profile.1)
    [ "$n" = "2 4799528" ] ||
        fail "buckets and bytes of a step in the profile: $n, not 2 and 4799528"
    rm coll_profile.[01]
    # the flag, with a prefix and without, goes before the variable
    COLL_PROFILE=0 accept "$collrun" -n 2 "$train" $small --epochs 1 --profile
    COLL_PROFILE=1 accept "$collrun" -n 2 "$train" $small --epochs 1 --profile=mine
    for file in coll_profile.0 coll_profile.1 mine.0 mine.1; do
        grep -q '^coll_allreduce ' $file || fail "no profile in $file"
    done
    refuse 2 'cannot write nowhere/x.0' "$train" $small --profile=nowhere/x
}

# shellcheck disable=SC2086
row18_timeline() {
    COLL_TIMELINE=other.json accept "$collrun" -n 2 "$train" $small --epochs 1 \
        --timeline t%r.json
    "$probe" check t1.json > out 2> err || fail "the flag's timeline is not whole"
    [ -s t0.json ] && [ ! -e other.json ] || fail "the flag does not go before"
    COLL_TIMELINE=t.json accept "$collrun" -n 2 "$train" $small --epochs 1
    "$probe" check t.json > out 2> err || fail "the timeline is not whole"
    for row in FORWARD BACKWARD OPTIMIZER DATA ALLREDUCE; do
        grep -q "\"ph\": \"B\", \"name\": \"$row\"" t.json ||
            fail "no $row in the timeline"
    done
}

# shellcheck disable=SC2086
row27_threads() {
    accept env -u OMP_NUM_THREADS SLURM_CPUS_PER_TASK=1 "$train" $small --dry-run
    says '  threads 1  '
    [ "$(nproc)" = 1 ] || {
        accept env -u OMP_NUM_THREADS SLURM_CPUS_PER_TASK=2 "$train" $small \
            --dry-run
        says '  threads 2  '
    }
    accept env OMP_NUM_THREADS=1 SLURM_CPUS_PER_TASK=2 "$train" $small --dry-run
    says '  threads 1  '
    accept env OMP_NUM_THREADS=100000 "$train" $small --dry-run
}

row02_check_build() {
    accept "$train" --check-build
    grep -v 'Trainer kernels\|oneDNN\|cuDNN' out | sed '$d' > ours
    "$collrun" -cb > theirs || fail "collrun -cb"
    cmp -s ours theirs || fail "coll_train and collrun say different things"
    says '^Available Trainer kernels:$'
    says '^    \[X\] oneDNN ([0-9.]*)$'
    says '^    \[[ X]\] cuDNN (.*)$'
}

# shellcheck disable=SC2086
row14_scaling() {
    accept "$collrun" --scaling 1,2 --repeat 2 --csv s.csv -- "$train" $small \
        --epochs 1 --breakdown
    says '^procs   total \[s\]   s/epoch   images/s   speed-up   efficiency   comm exposed   accuracy$'
    [ "$(grep -c '^ *[12]  .* [0-9.]*%  .*%' out)" = 2 ] || fail "not two rows"
    [ "$(wc -l < s.csv)" = 3 ] || fail "not three lines of figures"
    grep -q 'breakdown of rank 0, ms/step: DATA [0-9.]* FORWARD [0-9.]* BACKWARD [0-9.]* OPTIMIZER [0-9.]* COMM [0-9.]* all' \
        err || fail "no breakdown"
}

# Pictures of what the checks before have left.
# shellcheck disable=SC2086
row14_row18_pictures() {
    plot=$build/trainer/coll_plot
    accept "$train" $small --breakdown --json r.json
    number='[0-9.e-]*'
    grep -q "\"breakdown\":{\"data_s\":$number,\"forward_s\":$number,\"backward_s\":$number,.*\"hidden\":null}" \
        r.json || fail "no breakdown in $(cat r.json)"
    command -v gnuplot > /dev/null || { echo "no gnuplot: no pictures"; return; }
    for end in svg png; do
        accept "$plot" loss -o loss.$end r.json
        accept "$plot" accuracy -o accuracy.$end r.json r.json
        accept "$plot" scaling -o scaling.$end s.csv
        accept "$plot" timeline -o timeline.$end t.json
        for picture in loss accuracy scaling timeline; do
            [ -s $picture.$end ] || fail "$picture.$end is empty"
        done
    done
    head -c 8 loss.png | grep -q PNG || fail "loss.png is no PNG"
    grep -q 'FORWARD' timeline.svg || fail "no FORWARD in timeline.svg"
    grep -q '<svg' scaling.svg || fail "scaling.svg is no SVG"
    refuse 2 'NAME.svg or -o NAME.png' "$plot" loss -o x.gif r.json
    refuse 2 'it draws loss' "$plot" lost -o x.svg r.json
    refuse 1 'coll_plot: unable to open none.json: No such' "$plot" loss -o x.svg none.json
    refuse 1 'coll_plot: s.csv, line 1: ' "$plot" timeline -o x.svg s.csv
    refuse 2 'say what to draw: loss' "$plot"
    refuse 1 'no table' "$plot" scaling -o x.svg r.json
    [ ! -e x.svg ] || fail "a bad file leaves a picture"
}

flags
row02_check_build
row27_threads
row13_progress
row09_folder
row09_restart
no_handlers
row26_signals
row17_profile
row18_timeline
row14_scaling
row14_row18_pictures
echo "all checks passed"
