#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# build.sh FOLDER PROGRAM...: build driver_rules, mechanisms or kernels there, on a
# machine that has gcc, CUDA's headers, for kernels also nvcc, and nothing else of what
# libcoll needs.  CC, NVCC and CUDA (the toolkit's folder) say where things are; IMAGE is
# what lib/device/cuda_image.sh has made of the kernels, which is made again without.
cd "$(dirname "$0")/../.." || exit 1
to=${1:?a folder for the programs}
shift
cuda=${CUDA:-/usr/local/cuda}
nvcc=${NVCC:-$cuda/bin/nvcc}
mkdir -p "$to" || exit 1

# the host's kernels, with what they stand on
beside_kernels="lib/device/reduce.c lib/device/reduce_base.c lib/device/reduce_avx2.c
    lib/device/reduce_avx512.c lib/device/copy.c
    lib/device/cuda_driver.c lib/device/cuda_table.c
    lib/trace/log.c lib/trace/log_queue.c lib/type/names.c lib/type/op.c
    lib/device/process.c lib/util/lock.c lib/util/param.c lib/util/text.c
    lib/util/util.c
    tests/support/element.c tests/support/kernel_cases.c tests/gpu/bench.c $to/cuda_image.c"

for program; do
    others=
    if [ "$program" = kernels ]; then
        others=$beside_kernels
        if [ -n "${IMAGE:-}" ]; then
            cp "$IMAGE" "$to/cuda_image.c" || exit 1
        else
            sh lib/device/cuda_image.sh "$nvcc" "$to/cuda_image.c" || exit 1
        fi
    fi
    # shellcheck disable=SC2086
    ${CC:-gcc} -std=gnu11 -O2 -pthread -D_GNU_SOURCE '-DPACKAGE_VERSION="bare"' \
        -I. -Iinclude -I"$cuda/include" tests/gpu/"$program"*.c tests/gpu/gpu*.c \
        $others -o "$to/$program" -ldl -lm || exit 1
done
