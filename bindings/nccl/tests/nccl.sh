#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# libnccl.so.2 as programs meet it: its names, and the values of nccl.h, against NVIDIA's
# header where there is one.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
srcdir=${srcdir:-.}
here=$srcdir/bindings/nccl
library=bindings/nccl/.libs/libnccl.so.2
. "${srcdir:-.}/tests/support/installing.sh"
no_install

fail() { echo "FAILED: $*"; exit 1; }
[ -e "$library" ] || { echo "configure found no cuda.h"; exit 77; }

# it finds the libcoll beside whose folder it is installed
# shellcheck disable=SC2016
readelf -d "$library" | grep -q 'RUNPATH.*$ORIGIN/\.\./\.\.' || fail "the way to libcoll"
# every function of nccl.h under both names, and nothing else
readelf -d "$library" | grep -q 'soname: \[libnccl.so.2\]' || fail "the library's name"
{
    sed -n 's/^NCCL_FUNCTION(\([A-Za-z]*\),.*/nccl\1/p' "$here/nccl.h"
    printf '%s\n' ncclGetErrorString ncclGetLastError ncclResetDebugInit
} | sed 'p;s/^/p/' | sort > "$scratch/named"
nm -D --defined-only "$library" | awk '$2 ~ /[TW]/ { print $3 }' | sort > "$scratch/exported"
[ "$(wc -l < "$scratch/named")" -ge 70 ] || fail "too few functions in nccl.h"
diff "$scratch/named" "$scratch/exported" || fail "nccl.h and the library differ"

# a program of C, and of C++, that is linked as for NCCL
loader=$PWD/bindings/nccl/.libs:$PWD/.libs
ln -s "$PWD/$library" "$scratch/libnccl.so"
for language in c c++; do
    compiler=$CC
    [ $language = c ] || compiler=$CXX
    # shellcheck disable=SC2086
    $compiler ${TEST_LDFLAGS:-} -x $language -DNCCL_NO_CUDA_RUNTIME -I"$here" "$here/tests/program.c" \
        -x none -o "$scratch/program" -L"$scratch" -lnccl -Wl,-rpath-link,"$PWD/.libs" ||
        fail "a program of $language"
    LD_LIBRARY_PATH=$loader "$scratch/program" > "$scratch/out" || fail "it does not run"
    grep -q '^33 functions of NCCL 22707$' "$scratch/out" || fail "$(cat "$scratch/out")"
done

# values and layouts, by both headers
values() { # FOLDER OPTION...: of the nccl.h there
    folder=$1
    shift
    # shellcheck disable=SC2086
    $CC ${TEST_LDFLAGS:-} "$@" -I"$folder" "$here/tests/abi.c" -o "$scratch/abi" && "$scratch/abi"
}
values "$here" -DNCCL_NO_CUDA_RUNTIME > "$scratch/ours" || fail "our nccl.h"
grep -q '^ncclConfig_t.nvlsCTAs at 68$' "$scratch/ours" || fail "the layout of ncclConfig_t"
grep -q 'define COLL_HAVE_NCCL 1' config.h || { echo "no nccl.h of NVIDIA's to compare with"; exit 0; }
# shellcheck disable=SC2046
values "$scratch" $(sed -n 's/^NCCL_CFLAGS = //p' Makefile) > "$scratch/theirs" 2> "$scratch/err" ||
    fail "NVIDIA's nccl.h: $(cat "$scratch/err")"
diff "$scratch/ours" "$scratch/theirs" || fail "the two nccl.h differ"

[ -e tests/fake_cuda/.libs/libcuda.so.1 ] || exit 0
# a program that was compiled with NVIDIA's header: the one that compares NCCL with libcoll
FAKE_CUDA_DEVICES=2 LD_LIBRARY_PATH=$PWD/tests/fake_cuda/.libs:$loader timeout 120 \
    benchmarks/compare -q -d cuda -n 2 -c allreduce,broadcast,allgather,reduce_scatter,alltoall \
    -s 1K,64K -r 1 -l nccl > "$scratch/out" 2>&1 || fail "compare: $(cat "$scratch/out")"
grep -q '^# NCCL: NCCL 2\.27\.7$' "$scratch/out" || fail "not by this library: $(cat "$scratch/out")"
[ "$(grep -c '^ *2  [a-z_]* .* nccl ' "$scratch/out")" = 10 ] || fail "$(cat "$scratch/out")"
