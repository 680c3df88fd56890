#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tests of what is started and waited for, and some faults, once more with a
# progress thread in every rank.
[ -x tests/run/test_order ] || { echo "built without Check"; exit 77; }
. "${srcdir:-.}/tests/support/patience.sh"
export COLL_PROGRESS=thread
status=0

# with LIMIT PROGRAM...: it succeeds within so many seconds.
with() {
    limit=$1
    shift
    echo "== $*"
    timeout "$limit" "$@" && return
    echo "FAILED: COLL_PROGRESS=thread $*: exit status $?"
    status=1
}

programs="run/test_order run/test_channel run/test_group run/test_p2p run/test_p2p_wrong
    comm/test_fork"
[ -z "${TEST_QUICK:-}" ] || programs=run/test_order
for program in $programs; do
    with 120 tests/$program
done
with 120 tests/faults/check_faults --seed 21 --cases "$(part_of 10)" --soon "$patience"
exit $status
