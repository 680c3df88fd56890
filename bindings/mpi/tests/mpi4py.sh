#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# mpi4py's own tests of collectives with the library preloaded, on 2, 3 and 5 ranks.
# MPI4PY_TESTS is the folder test of mpi4py's sources, of the version that is installed.
. "${srcdir:-.}/tests/support/patience.sh"

[ "$MPI4PY_TESTS" ] || { echo "MPI4PY_TESTS does not name the tests of mpi4py"; exit 77; }
. "${srcdir:-.}/tests/support/installing.sh"
no_install
preload=$PWD/.libs/libcoll_mpi_ompi.so
[ -f "$preload" ] || { echo "built without Open MPI"; exit 77; }
for python in python3 /usr/bin/python3; do
    $python -c 'from mpi4py import MPI; assert "Open MPI" in MPI.Get_library_version()' \
        2> /dev/null && break
    python=
done
[ "$python" ] || { echo "no mpi4py over Open MPI here (Debian: python3-mpi4py)"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
cd "$MPI4PY_TESTS" || exit 1

for ranks in 2 3 5; do
    for name in test_cco_*.py; do
        if ! timeout 200 mpirun.openmpi --allow-run-as-root --oversubscribe -np $ranks \
            -x LD_PRELOAD="$preload" -x COLL_MPI_REPORT=1 \
            $python -m unittest "${name%.py}" > "$scratch/out" 2>&1; then
            echo "$name on $ranks ranks:"
            cat "$scratch/out"
            exit 1
        fi
        [ "$(grep -c 'libcoll carried' "$scratch/out")" = $ranks ] ||
            { echo "$name on $ranks ranks: nothing was carried"; exit 1; }
        echo "ok   $name, $ranks ranks"
    done
done
