#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# train.sh BUILD RANKS MODEL BATCH STEPS RATE: train on processors, on GPUs, and by PyTorch
# where there is one, from the same state of a run, with the same images, and compare the
# losses of all steps.  Prints where the time of the GPU went, the losses side by side, and
# the largest difference relative to the processors'; exits with 1 if that is over MOST
# (0.001), or if there are no losses or no times.
#
# TORCH says what PyTorch is to compute on: cuda, cpu or none (cuda); PYTHON is one that has
# it.
#
# Take few steps and a low rate: rounding grows from step to step, by Adam and by batch
# normalization most of all, until no two ways to compute have the same losses.
build=${1:?a build folder} ranks=${2:?ranks} model=${3:?a model} batch=${4:?images of a rank}
steps=${5:?steps} rate=${6:?a learning rate}
torch=${TORCH:-cuda}
program=$(cd "$(dirname "$0")/../../benchmarks" && pwd)/train_torch.py
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# torch_of PYTHON: its version, if it has what is needed.
torch_of() {
    "${1:-false}" - "$torch" 2> /dev/null << END
import sys, numpy, torch
print(torch.__version__)
sys.exit(sys.argv[1] != "cpu" and not torch.cuda.is_available())
END
}

# train DEVICE ARGUMENTS...: what it printed is in the file DEVICE.
train() {
    device=$1
    shift
    "$build/tools/collrun" -n "$ranks" "$build/trainer/coll_train" --device "$device" \
        --dataset synthetic --limit-train $((steps * batch * ranks)) --limit-test 1 \
        --model "$model" --batch-size "$batch" --opt sgd --lr "$rate" --lr-scale none \
        --dropout off --progress plain --log-interval 1 "$@" > "$scratch/$device"
}

# took NAME BEGAN
took() { echo "$1: $(($(date +%s) - $2)) s"; }

# A step before, so that there is a momentum.
train cpu --epochs 1 --limit-steps 1 --checkpoint "$scratch/state" || exit 1
state=$scratch/state/epoch-0001.ckpt
for device in cpu cuda; do
    began=$(date +%s)
    train "$device" --epochs 2 --resume "$state" --breakdown || exit 1
    took "$device" "$began"
    sed -n 's/^Train Epoch.*Loss: //p' "$scratch/$device" > "$scratch/$device.losses"
done
head -n 3 "$scratch/cuda"
grep '^breakdown' "$scratch/cuda" || exit 1

python=
[ "$torch" = none ] || for python in "${PYTHON:-}" python3 /usr/bin/python3; do
    version=$(torch_of "$python") && break
    python=
done
if [ "$python" ]; then
    began=$(date +%s)
    OMP_NUM_THREADS=1 "$build/tools/collrun" -n "$ranks" "$python" "$program" \
        --device "$torch" --model "$model" --batch "$batch" --steps "$steps" --opt sgd \
        --lr "$rate" --begin "$state" --meet "$scratch/meet" > "$scratch/torch" || exit 1
    took "PyTorch $version on $torch" "$began"
    sed 's/.*"losses": \[//; s/\].*//' "$scratch/torch" | tr -d ' ' | tr , '\n' \
        > "$scratch/torch.losses"
else
    echo "not compared with PyTorch: no python has it for TORCH=$torch; name one by PYTHON"
    cp "$scratch/cpu.losses" "$scratch/torch.losses"
fi
paste "$scratch/cpu.losses" "$scratch/cuda.losses" "$scratch/torch.losses" |
    awk -v most="${MOST:-0.001}" -v steps="$steps" '
    { print }
    NF != 3 { bad = 1 }
    {
        for (i = 2; i <= 3; i++) {
            d = ($1 - $i) / $1
            if (d < 0) d = -d
            if (d != d + 0) bad = 1
            if (d > largest) largest = d
        }
    }
    END {
        printf "%d losses, the largest difference is %.2g\n", NR, largest
        exit bad || NR != steps || largest > most
    }'
