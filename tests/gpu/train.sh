#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# train.sh BUILD RANKS ARGUMENTS...: train on processors and on GPUs with the same arguments
# of coll_train, and compare the losses of all steps.  Prints where the time of the GPU went,
# the losses side by side, and the largest difference relative to the loss; exits with 1 if
# that is over MOST (0.001), or if there are no losses or no times.
build=${1:?a build folder} ranks=${2:?ranks}
shift 2
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

for device in cpu cuda; do
    began=$(date +%s)
    "$build/tools/collrun" -n "$ranks" "$build/trainer/coll_train" --device $device \
        --progress plain --log-interval 1 --lr-scale none --breakdown "$@" \
        > "$scratch/$device" || exit 1
    echo "$device: $(($(date +%s) - began)) s"
    sed -n 's/^Train Epoch.*Loss: //p; s/.*Average loss: \([0-9.]*\),.*/\1/p' \
        "$scratch/$device" > "$scratch/$device.losses"
done
head -n 3 "$scratch/cuda"
grep '^breakdown' "$scratch/cuda" || exit 1
paste "$scratch/cpu.losses" "$scratch/cuda.losses" | awk -v most="${MOST:-0.001}" '
    { print; d = ($1 - $2) / $1; if (d < 0) d = -d }
    NF != 2 || d != d + 0 { bad = 1 }
    d > largest { largest = d }
    END {
        printf "%d losses, the largest difference is %.2g\n", NR, largest
        exit bad || !NR || largest > most
    }'
