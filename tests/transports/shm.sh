#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks of one host in the surroundings that users have: too few cores, bound to
# cores, a small /dev/shm or none, no reading of other processes, huge pages, and
# limits.  Results are right, or an error says in words what is missing.
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/limits.sh"
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out
err=$scratch/err
n_checks=0
unset COLL_ALGO COLL_BOOTSTRAP COLL_CMA COLL_LOG COLL_TUNE_FILE
COLL_TRANSPORTS=self,shm
COLL_TIMEOUT=$((60 * patience))
export COLL_TRANSPORTS COLL_TIMEOUT

fail() {
    echo "FAILED: $*" >&2
    head -n 30 "$out" "$err" >&2
    exit 1
}

# right RANKS PROGRAM COMMAND...: three sizes by COMMAND collrun ..., no errors.
right() {
    ranks=$1
    program=$2
    shift 2
    n_checks=$((n_checks + 1))
    timeout 120 "$@" tools/collrun -n "$ranks" $bind "benchmarks/${program}_bw" \
        -b 24 -e 1300K -f 230 -n 2 -w 1 --json > "$out" 2> "$err" ||
        fail "$* $ranks ranks, $program: exit status $?"
    [ "$(grep -c "^{.*\"ranks\":$ranks,.*\"errors\":0}$" "$out")" = 3 ] ||
        fail "$* $ranks ranks, $program: wrong results"
}

# in_words LIMITS WORDS: under ulimit LIMITS two ranks end well, or with an exit
# status of their own and these words on stderr.
in_words() {
    n_checks=$((n_checks + 1))
    timeout 120 sh -c 'ulimit $1 && exec tools/collrun -n 2 benchmarks/allreduce_bw \
        -b 24 -e 100K -f 60 -n 2 -w 1' sh "$1" > "$out" 2> "$err"
    status=$?
    [ $status -lt 124 ] || fail "ulimit $1: exit status $status"
    [ $status = 0 ] || grep -Eq "$2" "$err" ||
        fail "ulimit $1: exit status $status, and nothing of '$2'"
}

# in_mounts MOUNT PROGRAM: with another /dev/shm, where that can be had.
in_mounts() {
    if unshare -m sh -c "$1" > "$scratch/mount" 2>&1; then
        right 4 "$2" unshare -m sh -c "$1 && exec \"\$@\"" sh
    else
        echo "left out: $1: $(head -n 1 "$scratch/mount")"
    fi
}

# ---- cores
bind=
right 2 allreduce env
right 4 alltoall env
right 8 allgather env
core=$(taskset -cp $$ 2> /dev/null | sed 's/.*: *\([0-9]*\).*/\1/')
if [ -n "$core" ]; then
    right 8 allreduce taskset -c "$core"
    right 4 alltoall taskset -c "$core"
    right 2 broadcast taskset -c "$core"
fi
bind='--bind core'
right 2 broadcast env
right 4 allreduce env
bind=

# ---- /dev/shm is not needed
in_mounts 'mount -t tmpfs -o size=64m tmpfs /dev/shm' alltoall
in_mounts 'mount -t tmpfs -o ro,size=4k tmpfs /dev/shm' allreduce

# ---- no reading of other processes: said once by each rank, and no harm
for program in allreduce broadcast alltoall reduce_scatter; do
    right 4 $program env COLL_CMA=off
done
tests/support/without cma true
if [ $? = 77 ]; then
    echo "left out: no seccomp filter can be installed here"
else
    for program in allgather broadcast reduce; do
        right 4 $program env COLL_LOG=info tests/support/without cma
        grep -q 'no single copy from process .* seccomp' "$err" ||
            fail "without CMA: no word of it"
    done
fi

# ---- pages
right 4 allreduce env GLIBC_TUNABLES=glibc.malloc.hugetlb=1
right 4 allgather env GLIBC_TUNABLES=glibc.malloc.hugetlb=0 \
    "COLL_TUNE_FILE=$(limits stream_min=64K)"
right 2 alltoall env COLL_CMA=off "COLL_TUNE_FILE=$(limits shm_cell=2M shm_slot=64K)"

# ---- limits
COLL_TUNE_FILE=$(limits shm_cell=16M)
export COLL_TUNE_FILE
case ${TEST_LDFLAGS:-} in
*-fsanitize*) ;; # a sanitizer maps terabytes
*)
    in_words '-v 400000' 'memory|allocate'
    for kib in 100000 60000 30000; do
        in_words "-v $kib" 'raise ulimit -v|memory|allocate'
    done
    ;;
esac
in_words '-f 100' 'see ulimit -f'
unset COLL_TUNE_FILE
for files in 64 16 11 8; do
    in_words "-n $files" 'ulimit -n'
done
echo "$n_checks checks"
