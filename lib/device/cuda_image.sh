#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# cuda_image.sh NVCC OUT.c: compile cuda_kernels.cu for the architectures below, as
# far as this nvcc knows them, with PTX of the first for all later ones; and write
# the image as an array in C.  NVCCFLAGS comes last.
#
# od and sed are everywhere, and need no toolkit's bin2c nor an assembler's .incbin.
nvcc=${1:?nvcc}
out=${2:?the file to write}
here=$(dirname "$0")
top=$here/../..
image=$out.fatbin

known=$($nvcc --list-gpu-code) || exit 1
targets=
for arch in 80 90 100; do
    echo "$known" | grep -qx "sm_$arch" || continue
    [ -n "$targets" ] ||
        targets="-gencode arch=compute_$arch,code=compute_$arch"
    targets="$targets -gencode arch=compute_$arch,code=sm_$arch"
done
[ -n "$targets" ] || { echo "$nvcc knows none of sm_80, sm_90, sm_100"; exit 1; }
# smaller by a factor of ten; nvcc has it from 12.8 on
! $nvcc --help | grep -q -e --compress-mode || targets="$targets --compress-mode=size"

# shellcheck disable=SC2086
$nvcc -fatbin -O3 -std=c++17 -fmad=false -I "$top" $targets $NVCCFLAGS \
    -o "$image" "$here/cuda_kernels.cu" || exit 1
{
    echo '/* made by lib/device/cuda_image.sh */'
    echo '#include "lib/device/cuda_kernels.h"'
    echo 'const unsigned char coll__cuda_image[] __attribute__((aligned(64))) = {'
    od -An -v -tu1 "$image" | sed 's/[0-9][0-9]*/&,/g'
    echo '};'
} > "$out.new" && mv "$out.new" "$out"
rm -f "$image"
