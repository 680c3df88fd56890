#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# cuda_image.sh NVCC OUT.c [SOURCE.cu HEADER ARRAY]: compile cuda_kernels.cu, or that
# source, for the architectures below, as far as this nvcc knows them, with PTX of the
# first for all later ones; and write the image as an array in C, which the header
# declares.  NVCCFLAGS comes last.
#
# od and sed are everywhere, and need no toolkit's bin2c nor an assembler's .incbin.
nvcc=${1:?nvcc}
out=${2:?the file to write}
here=$(dirname "$0")
top=$here/../..
image=$out.fatbin
source=${3:-$here/cuda_kernels.cu}
header=${4:-lib/device/cuda_kernels.h}
array=${5:-coll__cuda_image}

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
$nvcc -fatbin --threads 0 -O3 -std=c++17 -fmad=false -I "$top" $targets $NVCCFLAGS \
    -o "$image" "$source" || exit 1
{
    echo '/* made by lib/device/cuda_image.sh */'
    echo "#include \"$header\""
    echo "const unsigned char ${array}[] __attribute__((aligned(64))) = {"
    od -An -v -tu1 "$image" | sed 's/[0-9][0-9]*/&,/g'
    echo '};'
} > "$out.new" && mv "$out.new" "$out"
rm -f "$image"
