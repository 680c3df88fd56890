#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gpus.sh - coll_train --device cuda on two hosts with two ranks each, over the driver of
# tests/fake_cuda and the libraries of tests/fake_cudnn: the losses are those of processors,
# and a rank that dies ends all others, or these go on without it.
. "${srcdir:-.}/tests/net/world.sh"
collrun=$PWD/tools/collrun
train=$PWD/trainer/coll_train
[ -x "$train" ] || skip "built without oneDNN"
[ -e tests/fake_cudnn/.libs/libcudnn.so.9 ] || skip "configure found no headers of CUDA or cuDNN"
[ -e trainer/cuda/cuda_image.c ] || train=$PWD/tests/trainer/coll_train_cuda
gpus=$PWD/tests/fake_cuda/.libs:$PWD/tests/fake_cudnn/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
hosts_up 2
unset COLL_JOB_SECRET CUDA_VISIBLE_DEVICES FAKE_CUDA_FAULT FAKE_CUDA_MEMORY FAKE_CUDA_DEVICES
unset FAULT
port=3300

# The last of four ranks says which process it is; or its GPU fails, if $FAULT is set.
cat > "$dir/program" << END
#!/bin/sh
if [ \$RANK = 3 ]; then
    echo \$\$ > "$dir/last"
    [ -z "\${FAULT:-}" ] || export FAKE_CUDA_FAULT=\$FAULT
fi
exec "$train" "\$@"
END
chmod +x "$dir/program"

# start JOB ARGUMENTS...: two ranks on each host; collrun's options are in $options.
options=
start() {
    job=$1
    port=$((port + 1))
    shift
    for h in h1 h2; do
        # shellcheck disable=SC2086
        node $h "$job" env LD_LIBRARY_PATH="$gpus" "$collrun" --nnodes 2 --nproc-per-node 2 \
            --rdzv-id "$job" --rdzv-endpoint h1:$port $options "$dir/program" \
            --dataset synthetic --model net --batch-size 8 --limit-test 16 --progress plain \
            --log-interval 1 --json - "$@"
    done
}

# losses JOB: of its steps and its test.
losses() {
    sed -n 's/^Train Epoch.*Loss: //p; s/.*"test_loss":\([0-9.]*\).*/\1/p' "$dir/$1".h?
}

# same_losses JOB: those of the processors.
same_losses() {
    losses cpu > "$dir/cpu"
    losses "$1" > "$dir/cuda"
    [ "$(wc -l < "$dir/cpu")" = 11 ] && paste "$dir/cpu" "$dir/cuda" | awk '
        NF != 2 || $1 - $2 > 1e-4 || $2 - $1 > 1e-4 { bad = 1 }
        END { exit bad }' && has_lines 2 '^status 0' "$1" && has_line '4 procs on 2 nodes' "$1"
}

# The ranks of a host share a GPU, or have one each.
# shellcheck disable=SC2086
alike() {
    few="--limit-train 320 --epochs 1"
    start cpu --device cpu $few
    all_ended
    for n in 1 2; do
        export FAKE_CUDA_DEVICES=$n
        for more in '' '--zero 1 --bucket-mb 0.01' '--overlap off' '--elastic'; do
            start "cuda$n" --device cuda $few $more
            all_ended
            judge "GPUs on two hosts, $n each $more" "cuda$n" same_losses "cuda$n"
        done
    done
    judge "the ranks are on GPUs" cuda2 has_line 'device cuda:0 fake_cuda 0' cuda2
}

# all_end JOB: no rank ends well, and the launcher or another rank says why.
all_end() {
    has_lines 0 '^status 0' "$1" && has_lines 2 '^status [1-9]' "$1" &&
        has_line 'rank 3 (pid .*) \(was killed by signal 9\|died\)' "$1"
}

# The training is too long to end by itself.
dead_rank() {
    for graph in on off; do
        start dead-$graph --device cuda --limit-train 32000 --epochs 1000 --graph $graph
        await 60 has_line 'Train Epoch: 1 \[24/' dead-$graph || echo "it does not train"
        kill -KILL "$(cat "$dir/last")"
        all_ended
        judge "a killed rank ends all ranks, --graph $graph" dead-$graph all_end dead-$graph
    done
}

# three_end JOB: they say that they go on, and come to their test.
three_end() {
    has_line '^lost 1 of 4 ranks: 3 go on' "$1" && has_line '^Test set: Average loss: ' "$1"
}

# shellcheck disable=SC2086
survivors() {
    options="--min-np 2"
    export FAULT=cuLaunchKernel:200:700
    for more in '' '--zero 1'; do
        start lost --device cuda --elastic --graph off --limit-train 640 --epochs 1 $more
        all_ended
        judge "three ranks go on without one whose GPU fails $more" lost three_end lost
    done
}

alike
dead_rank
survivors
the_end
