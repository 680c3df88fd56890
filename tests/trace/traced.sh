#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# traced.sh - read by tests of what COLL_PROFILE, COLL_TIMELINE, COLL_HISTORY and
# COLL_METRICS write: the probe, and jobs of it in a folder of their own.
. "${srcdir:-.}/tests/support/patience.sh"
set -u
probe=$PWD/tests/trace/trace_probe
collrun=$PWD/tools/collrun
reader=$PWD/tools/coll_history
[ -x "$probe" ] || { echo "tests/trace/trace_probe was not built" >&2; exit 1; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset COLL_PROFILE COLL_TIMELINE HOROVOD_TIMELINE COLL_HISTORY COLL_METRICS

fail() {
    echo "FAILED: $*" >&2
    for file in out err coll_profile.0 m.0; do
        [ ! -e "$file" ] || tail -n 30 "$file" >&2
    done
    exit 1
}

# job RANKS PROGRAM...
job() {
    timeout $((60 * patience)) "$collrun" -n "$@" > out 2> err
}
