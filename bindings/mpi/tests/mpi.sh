#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The library to preload into MPI programs, for each MPI that it was built for: every
# collective beside MPI's own, on 2, 3 and 5 ranks; with TEST_QUICK not on 5, where MPI's
# ranks take the cores from each other.
. "${srcdir:-.}/tests/support/patience.sh"

here=bindings/mpi/tests
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
. "${srcdir:-.}/tests/support/installing.sh"
no_install
export OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
n_tried=0
sizes="2 3 5"
[ -z "${TEST_QUICK:-}" ] || sizes="2 3"

# start MPI RANKS PROGRAM [ARGUMENT]: with the library preloaded
start() {
    preload=$PWD/.libs/libcoll_mpi_$1.so
    case $1 in
    ompi) timeout 150 mpirun.openmpi --allow-run-as-root --oversubscribe \
        -np "$2" -x LD_PRELOAD="$preload" -x COLL_MPI_REPORT=1 "$3" $4 ;;
    mpich) timeout 150 mpiexec.mpich -iface lo -n "$2" \
        -genv LD_PRELOAD "$preload" -genv COLL_MPI_REPORT 1 "$3" $4 ;;
    abi) timeout 150 "${MPI_ABI_MPIEXEC:-mpiexec}" -iface lo -n "$2" \
        -genv LD_PRELOAD "$preload" -genv COLL_MPI_REPORT 1 "$3" $4 ;;
    esac
}

# try MPI RANKS NAME [ARGUMENT]: that program succeeds, and each rank says what was carried
try() {
    if ! start "$1" "$2" "$here/${3}_$1" "$4" > "$scratch/out" 2>&1 9<&-; then
        echo "$3 $4 with $1 on $2 ranks:"
        cat "$scratch/out"
        exit 1
    fi
    if [ "$(grep -c 'libcoll carried .* allreduce' "$scratch/out")" != "$2" ]; then
        echo "$3 with $1: $2 ranks should say what was carried:"
        cat "$scratch/out"
        exit 1
    fi
    # in the tests, the operation and the communicator are wrong in one allreduce each
    if [ "$3" = blocking ] && [ "$(grep -c 'for the type or operation: 1 allreduce' \
        "$scratch/out")" != "$2" ]; then
        echo "blocking with $1: of its reductions one should be left to MPI:"
        cat "$scratch/out"
        exit 1
    fi
    n_tried=$((n_tried + 1))
    echo "ok   $3 $4, $1, $2 ranks"
}

for mpi in ompi mpich abi; do
    if [ ! -f .libs/libcoll_mpi_$mpi.so ]; then
        echo "no  $mpi: built without it"
        continue
    fi
    for ranks in $sizes; do
        try $mpi $ranks blocking
        try $mpi $ranks immediate single
        try $mpi $ranks immediate multiple
        try $mpi $ranks persistent
    done
done
[ $n_tried -gt 0 ] || { echo "built without Open MPI and MPICH"; exit 77; }
