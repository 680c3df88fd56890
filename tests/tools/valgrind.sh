#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Two ranks under valgrind: no read of what was not written, none beyond an end,
# nothing lost.  Valgrind knows no AVX-512.  Nothing is suppressed.
. "${srcdir:-.}/tests/support/patience.sh"
set -u
command -v valgrind > /dev/null || { echo "skipped: no valgrind"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
unset COLL_ALGO COLL_BOOTSTRAP COLL_LOG
export COLL_TRANSPORTS=self,shm COLL_TIMEOUT=$((100 * patience)) COLL_WAIT=yield

case ${TEST_LDFLAGS:-} in
*-fsanitize*) echo "skipped: a sanitizer and valgrind exclude each other"; exit 77 ;;
esac

# clean PROGRAM NAME=VALUE...: two ranks of it, with these variables.
clean() {
    program=benchmarks/${1}_bw
    shift
    timeout 120 env "$@" tools/collrun -n 2 ./libtool --mode=execute \
        valgrind -q --error-exitcode=9 --leak-check=full \
        --errors-for-leak-kinds=definite \
        "$program" -b 24 -e 130K -f 70 -n 2 -w 1 --json > "$scratch/out" 2> "$scratch/err"
    status=$?
    if [ $status != 0 ] || grep -q '==[0-9]*==' "$scratch/err"; then
        echo "FAILED: $program $*: exit status $status" >&2
        head -n 40 "$scratch/err" >&2
        exit 1
    fi
    [ "$(grep -c '"errors":0}' "$scratch/out")" -ge 2 ] || { cat "$scratch/out"; exit 1; }
}

clean allreduce COLL_SIMD=avx2
clean broadcast COLL_SIMD=base COLL_CMA=off
