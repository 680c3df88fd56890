#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# coll_train --device cuda, over the driver of tests/fake_cuda and the libraries of
# tests/fake_cudnn: the same losses as on processors, the same bits on all ranks, and one
# sentence for what is missing or fails.
. "${srcdir:-.}/tests/trainer/trainer_gpus.sh"
probe=$build/tests/trace/trace_probe
few="--dataset synthetic --limit-train 48 --limit-test 16 --batch-size 8 --epochs 1"

# shellcheck disable=SC2086
models() {
    both 1 $few --model cnn --limit-train 24
    grep -q 'device cuda:0 fake_cuda 0, 17 GB  precision f32  cuDNN 9' cuda || fail "no GPU in the head"
    grep -q '"device":"cuda","gpu":"cuda:0 fake_cuda 0, 17 GB"' cuda || fail "no GPU in JSON"
    grep -q '"device":"cpu","gpu":null' cpu || fail "a GPU in JSON"
    # a set that is drawn when it is needed
    drawn="--model resnet18-cifar --limit-train 30000 --limit-test 2"
    both 1 $few $drawn --limit-steps 1 --augment flip-crop
    [ -z "${TEST_QUICK:-}" ] || return 0 # what takes half of the time
    both 1 $few --model alexnet --limit-train 4 --batch-size 2 --limit-test 2
    # a batch that its norm layers can tell apart, and a rate that keeps rounding small
    both 1 $few --model resnet18 --limit-train 16 --batch-size 16 --limit-test 2 --lr 0.0001
    alike_graph 2 $few --model cnn --limit-train 48
    alike_graph 2 $few $drawn --limit-steps 3 --batch-size 4
}

# shellcheck disable=SC2086
ranks() {
    for n in 1 2 3; do
        is_tried && both $n $few --model net
    done
    is_tried && FAKE_CUDA_DEVICES=2 both 3 $few --model net --augment flip-crop --normalize meanstd
    is_tried && both 2 $few --model net --overlap off --opt sgd --nesterov --weight-decay 0.01
    is_tried && both 2 $few --model net --opt adagrad --label-smoothing 0.1 --accum 2 --breakdown
    is_tried && both 2 $few --model net --clip-norm 0.5 --bucket-mb 0.01
    is_tried && both 3 $few --model net --zero 1 --bucket-mb 0.01
    is_tried && both 3 $few --model net --zero 1 --clip-norm 0.5 --overlap off
    # sums of 16 bits with one rounding, whichever the algorithm
    is_tried && both 2 $few --model net --fp16-allreduce
    is_tried && both 2 $few --model net --bf16-allreduce --zero 1
    is_tried && both 2 $few --model net --elastic --zero 1
    is_tried && both 2 $few --model net --drop-last off --limit-train 50 --shard stride
    # the same bits, whatever the number of ranks
    for n in 1 2 4; do
        on cuda $n $few --model net --batch-size $((16 / n)) --deterministic --lr-scale none \
            --json -
        crc
    done > crcs
    [ "$(sort -u crcs | wc -l)" = 1 ] || fail "other bits: $(cat crcs)"
    on cuda 1 $few --model net --limit-train 16 --device cuda:0
}

# GPUs that ranks share, or have for themselves, and GPUs that cannot reach each other's memory.
# shellcheck disable=SC2086,SC2163
devices() {
    for have in FAKE_CUDA_DEVICES=1 FAKE_CUDA_DEVICES=2 FAKE_CUDA_IPC=0 \
        'FAKE_CUDA_DEVICES=2 FAKE_CUDA_PEERS=0' 'FAKE_CUDA_DEVICES=4 CUDA_VISIBLE_DEVICES=3,1'; do
        is_tried || continue
        export $have
        both 4 $few --model net --limit-train 128
        unset FAKE_CUDA_DEVICES FAKE_CUDA_IPC FAKE_CUDA_PEERS CUDA_VISIBLE_DEVICES
    done
    for n in 1 2; do
        LD_LIBRARY_PATH=$gpus FAKE_CUDA_DEVICES=$n accept "$collrun" --scaling 1,2 \
            --csv $n.csv -- "$train" $few --model net --device cuda
        [ "$(grep -c '^[12],[0-9.]*,' $n.csv)" = 2 ] || fail "no table of $n GPUs"
    done
}

# alike_graph RANKS ARGUMENTS...: the same bits with and without graphs, where algorithms
# repeat their bits.
alike_graph() {
    # shellcheck disable=SC2086
    for graph in off on; do
        on cuda "$@" --graph $graph --deterministic $lines
        { losses cuda; grep -o '"param_crc32":"[^"]*"\|"bytes_reduced":[0-9]*' cuda; } > $graph
    done
    cmp -s off on || fail "graphs change something: $*: $(paste off on | tr '\n' ';')"
}

# shellcheck disable=SC2086
graphs() {
    more="--limit-train 100 --model net --epochs 2"
    is_tried && alike_graph 1 $few $more --drop-last off --opt sgd --nesterov
    is_tried && alike_graph 2 $few $more --drop-last off --augment flip-crop --clip-norm 0.5
    is_tried && alike_graph 3 $few $more --zero 1 --bucket-mb 0.01 --clip-norm 0.5 --accum 2
    is_tried && alike_graph 2 $few $more --fp16-allreduce --opt adagrad --overlap off
    is_tried && FAKE_CUDA_DEVICES=2 alike_graph 3 $few $more --bf16-allreduce --zero 1
    is_tried && alike_graph 2 $few $more --test-batch-size 3 --dropout off
    is_tried && alike_graph 2 $few $more --drop-last off --elastic
    # a graph is launched for the steps of all images but the first one: 12 steps of them
    steps="$few $more --drop-last off --device cuda"
    for call in cuGraphLaunch:23:700 cuStreamBeginCapture:1:700; do
        LD_LIBRARY_PATH=$gpus FAKE_CUDA_FAULT=$call accept "$train" $steps --graph off
    done
    LD_LIBRARY_PATH=$gpus FAKE_CUDA_FAULT=cuGraphLaunch:23:700 refuse 1 'cuGraphLaunch' \
        "$train" $steps
    LD_LIBRARY_PATH=$gpus FAKE_CUDA_FAULT=cuGraphLaunch:24:700 accept "$train" $steps
    # what cannot be recorded is made without a graph
    for call in cuStreamBeginCapture:1:1 cuGraphInstantiateWithFlags:1:1 cuLaunchKernel:40:1; do
        is_tried || continue
        LD_LIBRARY_PATH=$gpus FAKE_CUDA_FAULT=$call accept "$collrun" -n 2 "$train" $steps
        [ "$(grep -c 'rank 0 cannot record a step in a graph' err)" = 1 ] ||
            fail "$call: $(cat err)"
    done
    # a loss that is not finite, in a graph
    for device in cpu cuda; do
        LD_LIBRARY_PATH=$gpus refuse 4 'the loss of step' "$collrun" -n 2 "$train" $few $more \
            --device $device --lr 1e10 --opt sgd
        grep -o 'the loss of step.*' err | sort -u > nan.$device
    done
    cmp -s nan.cpu nan.cuda || fail "other sentences: $(cat nan.cpu nan.cuda)"
    refuse 2 '--graph on: --device cpu has no graphs' "$train" $few --device cpu --graph on
    refuse 2 '--graph on is not possible with --elastic and --zero' "$train" $few --elastic \
        --zero 1 --graph on
}

# spans ROW: "NAME BEGIN END" of each span in t.json's rows of this name.
spans() {
    awk -v row="$1" '
        { gsub(/[{}",]/, "") }
        $1 == "name:" && $2 == "process_name" { if ($0 ~ "name: " row) rows[$6] = 1; next }
        $1 == "ph:" && $2 == "B" && rows[$8] { begun[$8] = $4 " " $6 }
        $1 == "ph:" && $2 == "E" && rows[$6] { print begun[$6], $4 }' t.json
}

# A step's phases, and the exchange of its buckets, are in the timeline and the breakdown,
# with and without a graph.
# shellcheck disable=SC2086
measured() {
    more="--limit-train 100 --model net --epochs 2 --drop-last off --bucket-mb 0.01 --breakdown"
    for graph in off on; do
        for zero in "" "--zero 1"; do
            is_tried || continue
            on cuda 2 $few $more $zero --graph $graph --timeline t.json $lines
            "$probe" check t.json > out 2> err || fail "no timeline: $(cat err)"
            for phase in FORWARD BACKWARD OPTIMIZER; do
                spans $phase > $phase
                [ "$(wc -l < $phase)" = 14 ] || fail "$graph $zero: not 14 times $phase"
            done
            paste FORWARD BACKWARD | awk '$3 > $5 { exit 1 }' || fail "backward before forward"
            for bucket in 0 1 2; do
                spans "bucket $bucket" > exchange
                words="ALLREDUCE"
                [ -z "$zero" ] || words="REDUCESCATTER ALLGATHER"
                for word in $words; do
                    [ "$(grep -c "^$word " exchange)" = 14 ] ||
                        fail "$graph $zero: not 14 times $word of bucket $bucket"
                done
                grep -v ALLGATHER exchange | paste BACKWARD - |
                    awk '$2 > $5 || $5 > $6 { exit 1 }' || fail "an exchange before backward"
            done
            for key in 'COMM [0-9.]* EXCHANGE [0-9.]* hidden [0-9]*% all' \
                'ms/step: DATA [0-9.]* FORWARD [0-9.]* BACKWARD [0-9.]* OPTIMIZER [0-9.]* COMM'; do
                [ "$(grep -c "breakdown of rank 0.*$key" cuda)" = 2 ] || fail "no $key"
            done
            grep -q '"exchange_s":[0-9.e-]*,"hidden":[0-9.e-]*}' cuda || fail "no JSON of them"
        done
    done
    on cuda 2 $few $more --timeline t%r.json
    ! cmp -s t0.json t1.json || fail "two ranks have the same times"
}

# shellcheck disable=SC2086
checkpoints() {
    on cpu 2 $few --model net --checkpoint first
    on cuda 2 $few --model net --resume first/epoch-0001.ckpt --checkpoint second --epochs 2
    both 2 $few --model net --resume second/epoch-0002.ckpt --epochs 3
    both 3 $few --model net --zero 1 --checkpoint third
    both 1 $few --model net --eval-only --resume third/epoch-0001.ckpt --batch-size 8
}

# not WORDS STATUS [FLAG...]: --device cuda is refused so, in one line.
not() {
    words=$1 status=$2
    shift 2
    # shellcheck disable=SC2086
    refuse "$status" "$words" "$train" $few --model net --device cuda "$@"
    [ "$(wc -l < err)" = 1 ] || fail "not one line: $(cat err)"
}

# shellcheck disable=SC2086
wrong() {
    mkdir empty
    not 'no CUDA driver of version 12.*give --device cpu$' 2
    LD_LIBRARY_PATH=$gpus FAKE_CUDA_DEVICES=0 not 'finds no GPU.*--device cpu$' 2
    LD_LIBRARY_PATH=$gpus FAKE_CUDA_VERSION=11040 not 'no CUDA driver of version 12\|too old' 2
    LD_LIBRARY_PATH=$gpus refuse 2 'cuda:7: there is only 1 GPU here, counted from 0' \
        "$train" $few --device cuda:7
    refuse 2 '--device .cuda:x. is not valid\|--device cuda:x' "$train" --device cuda:x
    refuse 2 'gpu' "$train" --device gpu
    ln -s "$driver/libcuda.so.1" empty
    for broken in libcudnn.so.9 libcublasLt.so.13; do
        echo > empty/$broken
        LD_LIBRARY_PATH=$scratch/empty:$gpus not "cannot be loaded.*$broken.*install" 2
        rm empty/$broken
    done
    LD_LIBRARY_PATH=$gpus not 'profile does not count.*give .*--timeline instead' 2 --profile
    # out of memory: of images, of activations
    LD_LIBRARY_PATH=$gpus FAKE_CUDA_MEMORY=1 not 'memory' 1
    LD_LIBRARY_PATH=$gpus FAKE_CUDA_MEMORY=8 refuse 1 'memory' "$train" $few --model alexnet \
        --device cuda
    # a device that fails in the middle
    for call in cuLaunchKernel:50:700 cuMemcpyDtoHAsync:9:719 cuStreamSynchronize:12:702; do
        LD_LIBRARY_PATH=$gpus FAKE_CUDA_FAULT=$call not 'the GPU cuda:0 (fake_cuda 0) failed: ' 1
    done
    # each rank its own --device
    printf '#!/bin/sh\nexec "$@" --device "$(eval echo "$DEVICE")"\n' > own
    chmod +x own
    LD_LIBRARY_PATH=$gpus DEVICE='cuda$([ $COLL_RANK = 0 ] || echo :0)' accept \
        "$collrun" -n 2 ./own "$train" $few --limit-train 16 --model net
    LD_LIBRARY_PATH=$gpus FAKE_CUDA_DEVICES=2 DEVICE='cuda:$COLL_RANK' accept \
        "$collrun" -n 2 ./own "$train" $few --limit-train 16 --model net
    for device in cpu auto; do
        LD_LIBRARY_PATH=$gpus DEVICE="\$([ \$COLL_RANK = 0 ] && echo cuda || echo $device)" \
            refuse 2 '--device is not the same on all ranks' \
            "$collrun" -n 2 ./own "$train" $few --model net
    done
    # auto takes a GPU if all ranks have one
    LD_LIBRARY_PATH=$gpus accept "$collrun" -n 2 "$train" $few --limit-train 16 --model net
    says 'device cuda:0'
    accept "$collrun" -n 2 "$train" $few --limit-train 16 --model net
    ! grep 'device cuda' out || fail "a GPU from nowhere"
}

# The GPU of rank 1 fails: the others end, too, or go on and let a newcomer in.
# shellcheck disable=SC2086
broken() {
    more="--limit-train 240 --model net --device cuda --progress plain"
    cat > one << 'END'
#!/bin/sh
[ "${COLL_RANK-}" != 1 ] || [ "${COLLRUN_NEWCOMER-}" ] || export FAKE_CUDA_FAULT=cuLaunchKernel:50:700
exec "$@"
END
    chmod +x one
    # the status and the words are those of the rank that ends first
    LD_LIBRARY_PATH=$gpus timeout 300 "$collrun" -n 3 ./one "$train" $few $more > out 2> err &&
        fail "a broken GPU is not noticed"
    grep -q 'rank 1\( aborted\)*: the GPU cuda:0 (fake_cuda 0) failed: ' err || fail "no reason"
    for zero in '' '--zero 1'; do
        is_tried || continue
        LD_LIBRARY_PATH=$gpus timeout 300 "$collrun" -n 3 --min-np 2 ./one "$train" $few $more \
            --elastic $zero --breakdown --timeline t.json > out 2> err
        "$probe" check t.json > judged || fail "no timeline after a death"
        says '^lost 1 of 3 ranks: 2 go on'
        says '^Test set: Average loss: '
        LD_LIBRARY_PATH=$gpus timeout 300 "$collrun" -n 2 --min-np 1 --max-restarts 1 ./one \
            "$train" $few $more --elastic $zero --epochs 40 --target-acc 0.0001 > out 2> err
        says '^lost 1 of 2 ranks: 1 goes on'
    done
}

# dying FAULTS ARGUMENTS...: two ranks, of which some die; a newcomer takes the place of one.
# FAULTS are RANK=FAULT, or n1=FAULT for the first newcomer (see dying.c).
dying() {
    FAULTS=$1
    export FAULTS
    shift
    cat > faulty << 'END'
#!/bin/sh
me=${COLLRUN_NEWCOMER:+n$COLLRUN_NEWCOMER}
for fault in $FAULTS; do
    [ "${fault%%=*}" != "${me:-$COLL_RANK}" ] || export DYING_FAULT="${fault#*=}"
done
exec "$@"
END
    chmod +x faulty
    DYING_REFILL=2:1 LD_LIBRARY_PATH=$gpus accept "$collrun" -n 2 --min-np 1 --max-restarts 2 \
        ./faulty "$build/tests/trainer/coll_train_dying" --dataset synthetic --limit-train 240 \
        --limit-test 16 --epochs 1 --global-batch-size 16 --model net --elastic --device cuda \
        --progress plain "$@"
    says 'Images: \([0-9]*\) of \1$'
}

# Ranks die, or one learns of a death too early, while all launch a graph: the step is
# undone, and the result is that of a run in which nobody died.
elastic_graphs() {
    fixed="--limit-train 256 --epochs 2 --deterministic --global-batch-size 32 --graph on --json -"
    # shellcheck disable=SC2086
    dying '' $fixed
    whole=$(crc)
    for fault in 1=die:trainer__replay:5 0=die:trainer__replay:6 \
        '1=die:trainer__replay:3 n1=die:trainer__replay:5' 0=fail:coll_comm_async_error:9 \
        1=fail:coll_comm_async_error:12; do
        is_tried || continue
        # shellcheck disable=SC2086
        dying "$fault" $fixed
        [ "$(crc)" = "$whole" ] || fail "$fault: other parameters"
    done
}

# GPUs exchange by themselves if libcoll has its kernels, which nvcc makes.
has_kernels() { [ -e "$build/lib/device/cuda_image.c" ]; }

# from_gpu_to_gpu N: so the last N words of ranks' GPU buffers are.
from_gpu_to_gpu() {
    has_kernels || return 0
    grep 'GPU buffers' err | tail -n "$1" > words
    [ "$(grep -c 'from GPU to GPU$' words)" = "$1" ] || fail "GPU buffers go by the host"
}

# Nothing goes by the host, also when ranks have changed.
# shellcheck disable=SC2086
direct() {
    COLL_LOG=comm:info on cuda 2 $few --model net
    from_gpu_to_gpu 2
    COLL_LOG=comm:info dying 1=die:trainer__replay:9
    says '1 newcomer joined 1 rank'
    from_gpu_to_gpu 2
    # ranks die on the way
    dying 1=die:coll_comm_dup:1
    dying '1=die:trainer__replay:9 n1=die:coll_comm_dup:1'
    [ "$(grep -c 'lost 1 of 2 ranks: 1 goes on' out)" = 2 ] || fail "no growth was cut short"
}

# With ZeRO parameters are waited for in the stream: the host waits for one bucket in each of
# 5 steps, and for nothing else.
# shellcheck disable=SC2086
gathers() {
    printf '#!/bin/sh\nexport DYING_FAULT=die:coll_wait:6\nexec "$@"\n' > sixth
    chmod +x sixth
    LD_LIBRARY_PATH=$gpus accept "$collrun" -n 3 ./sixth "$build/tests/trainer/coll_train_dying" \
        $few --limit-train 120 --model net --device cuda --zero 1 --graph off
}

# Ranks read each other's gradients in place, all at the same places, also when ranks have
# changed; what they cannot read so is sent as other memory, without a word.
# shellcheck disable=SC2086
in_place() {
    COLL_CHECK=1 both 3 $few --model net --bucket-mb 0.02
    COLL_CHECK=1 dying 1=die:trainer__replay:9
    COLL_CHECK=1 dying 1=die:trainer__replay:9 --fp16-allreduce
    ! grep coll_train err || fail "$(cat err)"
    has_kernels || return 0
    FAKE_CUDA_FAULT=cuIpcGetMemHandle:2:801 both 2 $few --model net
    [ ! -s err ] || fail "$(cat err)"
    FAKE_CUDA_FAULT=cuIpcGetMemHandle:2:801 COLL_LOG=error on cuda 2 $few --model net
    grep -q 'registered memory: ' err || fail "no memory is registered"
    FAKE_CUDA_IPC=0 both 2 $few --model net
}

# --device auto: a newcomer takes what the ranks have, also if it has a GPU that they lack;
# if it has none and they do, it ends, and the next one joins.
newcomers() {
    cat > own << 'END'
#!/bin/sh
case ${COLLRUN_NEWCOMER-}:$LACKS in :ranks|1:newcomer) unset LD_LIBRARY_PATH ;; esac
[ "${COLL_RANK-}" != 1 ] || [ "${COLLRUN_NEWCOMER-}" ] || export DYING_FAULT=die:trainer__replay:9
exec "$@"
END
    chmod +x own
    for LACKS in newcomer ranks; do
        export LACKS
        # shellcheck disable=SC2086
        DYING_REFILL=2:1 LD_LIBRARY_PATH=$gpus accept "$collrun" -n 2 --min-np 1 --max-restarts 2 \
            ./own "$build/tests/trainer/coll_train_dying" $few --limit-train 240 --model net \
            --elastic --progress plain
        says '1 newcomer joined 1 rank: 2 go on'
        [ "$(grep -c 'device cuda:0' out)" = "$([ $LACKS = ranks ] && echo 0 || echo 1)" ] ||
            fail "the ranks have another device"
        n_refused=$(grep -c 'train on GPUs, and this newcomer finds none' err)
        [ "$n_refused" = "$([ $LACKS = ranks ] && echo 0 || echo 1)" ] ||
            fail "$n_refused newcomers were refused"
    done
}

models
ranks
devices
graphs
measured
checkpoints
wrong
broken
direct
in_place
gathers
elastic_graphs
newcomers
echo "passed"
