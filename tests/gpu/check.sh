#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check.sh [--fake DRIVER] REPORTS [PROGRAMS]: everything that a GPU can show, in less than nine
# minutes.  What the parts print and their reports, *.json, go into the folder REPORTS;
# check.json says how each part ended.  The programs are those in the folder PROGRAMS
# (tests/gpu of a build folder), or are built (build.sh) in REPORTS; there libcoll itself
# needs BUNDLE=FILE, what bundle.sh has made, and is left out without.  Each part has a
# limit, so that one that hangs costs no other.
#
# With --fake each part is tried for seconds, on the driver of tests/fake_cuda, whose
# folder DRIVER is, and on the libraries of tests/fake_cudnn: so that one which does not even start is found without a GPU.
#
# Exits with 0, with 1 when a part failed, with 77 and the reason without a GPU.
fake=''
if [ "${1:-}" = --fake ]; then
    fake=$(cd "${2:?a folder with libcuda.so.1}" && pwd) || exit 1
    LD_LIBRARY_PATH=$fake:${fake%/fake_cuda/.libs}/fake_cudnn/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    shift 2
fi
reports=${1:?a folder for the reports}
is_new=$([ -e "$reports" ] || echo yes)
mkdir -p "$reports" && reports=$(cd "$reports" && pwd) || exit 1
programs=${2:-$reports}
programs=$(cd "$programs" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
is_built=${2:+yes}
cuda=${CUDA:-/usr/local/cuda}
status=0
parts=
run=
scratch=$(mktemp -d) || exit 1
mps="env CUDA_MPS_PIPE_DIRECTORY=$scratch CUDA_MPS_LOG_DIRECTORY=$scratch"
has_mps=''
trap 'stop_mps; rm -rf "$scratch"' EXIT

skip() {
    [ -z "$is_new" ] || rm -r "$reports"
    echo "check.sh: skipped: $*"
    exit 77
}
build() { timeout -k 5 "$1" sh "$here/build.sh" "$programs" $2; }

# descendants PID: the processes below it
descendants() {
    for child in $(cat "/proc/$1/task/"*/children 2> /dev/null); do
        echo "$child"
        descendants "$child"
    done
}

# stacks PID: where the processes below it stand
stacks() {
    for process in $(descendants "$1"); do
        echo "process $process"
        timeout -k 2 8 env -u LD_LIBRARY_PATH cuda-gdb -batch -nx -p "$process" \
            -ex 'info cuda kernels' -ex 'thread apply all backtrace 30'
    done
}

# part SECONDS NAME COMMAND...: what it prints goes to NAME.txt; before it is ended, where it
# stands goes to NAME.stacks.txt if there is cuda-gdb.  A fake driver is among other tests,
# and gets more time.
part() {
    limit=$1 name=$2 began=$(date +%s)
    [ -z "$fake" ] || limit=$((limit * 4))
    shift 2
    timeout -k 5 "$limit" "$@" > "$reports/$name.txt" 2>&1 &
    timeout $((limit - 9)) tail -s 0.1 --pid=$! -f /dev/null ||
        ! command -v cuda-gdb > /dev/null || stacks $! > "$reports/$name.stacks.txt" 2>&1
    wait $!
    rc=$?
    took=$(($(date +%s) - began))
    echo "$name: exit status $rc after $took s"
    [ $rc = 0 ] || { tail -n 5 "$reports/$name.txt" | sed 's/^/    /'; status=1; }
    note "$name" "\"status\": $rc, \"seconds\": $took"
}

# NVIDIA's service that runs kernels of several processes side by side
start_mps() { [ -z "$fake" ] && $mps nvidia-cuda-mps-control -d > /dev/null && has_mps=yes; }
stop_mps() {
    [ -z "$has_mps" ] || echo quit | $mps nvidia-cuda-mps-control
    has_mps=''
}

# left_out NAME REASON
left_out() {
    echo "$1: left out: $2"
    note "$1" "\"left_out\": \"$2\""
}
note() { parts="$parts${parts:+,}
    {\"name\": \"$1\", $2}"; }

if [ -z "$is_built" ]; then
    [ -f "$cuda/include/cuda.h" ] ||
        skip "no cuda.h in $cuda/include; set CUDA to the toolkit's folder"
    build 40 "driver_rules mechanisms" || exit 1
fi
found=$("$programs/driver_rules" --probe)
case $found in G*) ;; *) skip "${found#W}" ;; esac
if [ -z "$is_built" ] && [ -x "${NVCC:-$cuda/bin/nvcc}" ]; then
    part 150 build_kernels sh "$here/build.sh" "$programs" kernels
fi

# What each part is to do.
rules='' checks='' quick='' mechanisms='--mps --within 90'
ranks='' every='-b 8 -e 256M -f 32' small='-b 8 -e 64K -f 8' large='-b 1M -e 64M -f 8'
compare='-n 2,4 -s 8,64K,1M,64M'
train_ranks='1 2 4' train_batch=64 cnn_steps=50 resnet_steps=3 torch=cuda
train_speed='--procs 1 --rounds 3 --steps 40 --cells cnn:64,cnn:512,resnet18:128'
precisions='f32 bf16'
driver=''
if [ -n "$fake" ]; then
    driver=' "driver": "fake_cuda",'
    rules=init/flags checks='--quick i8' quick='--quick --most 65536'
    mechanisms='pointers ping_pong' ranks='--ranks 2 --rounds 5 --time 5'
    every='-b 8 -e 64K -f 64 -n 3' small='-b 8 -e 64 -f 8 -n 3' large='-b 4K -e 64K -f 16 -n 3'
    compare='-n 2 -s 8,64K -t 0.005'
    train_ranks=2 train_batch=16 cnn_steps=2 resnet_steps=2
    torch=${TEST_LONG:+cpu}
    train_speed='--quick --python none --cells net:4 --procs 1' precisions=bf16
fi

# shellcheck disable=SC2086
part 70 rules "$programs/driver_rules" -v --jobs 6 --within 60 \
    --json "$reports/rules.json" $rules
# shellcheck disable=SC2086
if [ -x "$programs/kernels" ]; then
    part 80 kernels "$programs/kernels" check $checks
    part 80 plan "$programs/kernels" check --plan $checks
    sanitizer=$(command -v "$cuda/bin/compute-sanitizer" || command -v compute-sanitizer)
    for tool in memcheck racecheck initcheck; do
        [ -z "$fake" ] || { left_out $tool "the driver is a fake one"; continue; }
        [ -n "$sanitizer" ] || { left_out $tool "no compute-sanitizer"; continue; }
        limit=30 options=''
        # kernels also tries calls that fail
        [ $tool != memcheck ] || options='--report-api-errors no'
        [ $tool != racecheck ] || limit=80
        part $limit $tool "$sanitizer" --tool $tool --error-exitcode 3 $options \
            "$programs/kernels" check --quick i8 f32
        part $((limit / 2 + 15)) "${tool}_plan" "$sanitizer" --tool $tool \
            --error-exitcode 3 $options "$programs/kernels" check --quick --plan u16
    done
    part 30 bench "$programs/kernels" bench $quick --json "$reports/kernels.json"
else
    left_out kernels "built without nvcc, or not built"
fi
# shellcheck disable=SC2086
part 100 mechanisms "$programs/mechanisms" --json "$reports/mechanisms.json" $mechanisms

if [ -n "$is_built" ]; then
    library=$programs/../..
elif [ -n "${BUNDLE:-}" ]; then
    library=$scratch/build run=$scratch/run
    part 120 library sh "$here/library.sh" "$BUNDLE" "$scratch"
else
    left_out library "no BUNDLE=FILE, see bundle.sh"
fi
# shellcheck disable=SC2086
if [ -x "${library:-}/tests/gpu/ranks" ]; then
    part 110 ranks $run "$library/tests/gpu/ranks" --within 90 $ranks \
        --json "$reports/ranks.json"
    part 30 threads $run "$library/tests/gpu/ranks" --threads --within 20 $ranks \
        --json "$reports/ranks_threads.json"
    # operations as one kernel: threads may share a GPU so
    part 60 kernel env COLL_CUDA_ENGINE=kernel $run "$library/tests/gpu/ranks" --threads \
        --within 50 $ranks --json "$reports/ranks_kernel.json"
    # rings, whose ranks pass on what they take, with few and short slots
    echo '{"version": 1, "limits": {"cuda_slots": 3, "cuda_slot": "64K"}}' \
        > "$scratch/slots.json"
    part 40 slots env COLL_ALGO=ring "COLL_TUNE_FILE=$scratch/slots.json" \
        $run "$library/tests/gpu/ranks" --within 30 $ranks \
        --json "$reports/ranks_slots.json" random replay register
    part 40 slots_kernel env COLL_ALGO=ring "COLL_TUNE_FILE=$scratch/slots.json" \
        COLL_CUDA_ENGINE=kernel $run "$library/tests/gpu/ranks" --threads --within 30 $ranks \
        --json "$reports/ranks_slots_kernel.json" random replay register
    # and processes that have MPS, of which none may be killed
    if start_mps; then
        part 40 mps env COLL_CUDA_ENGINE=kernel $mps $run "$library/tests/gpu/ranks" \
            --within 30 --json "$reports/ranks_mps.json" random replay register
        for engine in stream kernel; do
            part 25 "mps_$engine" env COLL_CUDA_ENGINE=$engine $mps $run \
                "$library/tools/collrun" -n 2 "$library/benchmarks/allreduce_lat" -d cuda \
                $small --json
        done
        stop_mps
    else
        left_out mps "MPS did not start"
    fi
    # several hosts, as far as libcoll tells them apart on one machine
    if [ "$(id -u)" = 0 ] && unshare -m true 2> /dev/null; then
        part 40 hosts $run "$library/tests/gpu/ranks" --within 30 \
            $ranks --ranks 4 --hosts 2 --json "$reports/ranks_hosts.json" random abort death
    else
        left_out hosts "mount namespaces want root"
    fi
    for n in 2 4 8; do
        part 25 "allreduce_$n" $run "$library/tools/collrun" -n $n \
            "$library/benchmarks/allreduce_bw" -d cuda $every --json
    done
    part 25 graph $run "$library/tools/collrun" -n 2 \
        "$library/benchmarks/allreduce_lat" -d cuda --graph $small --json
    part 25 overlap $run "$library/tools/collrun" -n 2 \
        "$library/benchmarks/allreduce_bw" -d cuda --stream-overlap $large --json
    part 60 compare $run "$library/benchmarks/compare" -d cuda --quick -r 1 $compare \
        --json "$reports/compare.json"
    # the trainer: the losses of processors and PyTorch's, and images a second beside that
    if [ -x "$library/trainer/coll_train" ]; then
        for n in $train_ranks; do
            part 60 "train_cnn_$n" env TORCH=${torch:-none} $run "$here/train.sh" "$library" $n \
                cnn $((train_batch / n)) $cnn_steps 0.003
            part 60 "train_resnet18_$n" env TORCH=${torch:-none} MOST=0.01 $run "$here/train.sh" \
                "$library" $n resnet18 $((train_batch / n)) $resnet_steps 0.001
        done
        for precision in $precisions; do
            part 60 "train_speed_$precision" $run "$here/../../benchmarks/train_compare" \
                --build "$library" --device cuda --precision $precision $train_speed \
                --json "$reports/train_$precision.json"
        done
    else
        left_out train "built without oneDNN"
    fi
    part 10 topology $run "$library/tools/coll_info" --topology
fi

cat > "$reports/check.json" << END
{
  "program": "check",$driver "date": "$(date -u +%Y-%m-%d)", "status": $status,
  "parts": [$parts
  ]
}
END
exit $status
