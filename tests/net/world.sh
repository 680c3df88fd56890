# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2034,SC2154
# world.sh - read by the tests here, in a build folder: hosts (see `hosts`), ranks on them
# in the background, and what they have said.  $dir is a folder for that.
set -u
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/verdict.sh"
net=$(cd "${srcdir:-.}/tests/net" && pwd) || exit 99
probe=$PWD/tests/support/host_probe
folder=
ranks=

skip() {
    echo "skipped: $*"
    exit 77
}

[ "$(id -u)" = 0 ] || skip "hosts from namespaces want root"
for program in ip nsenter unshare; do
    command -v $program > /dev/null || skip "no $program (Debian: iproute2 util-linux)"
done
dir=$(mktemp -d) || exit 99
finish() {
    [ -z "$folder" ] || "$net/hosts" down "$folder"
    rm -rf "$dir"
}
trap finish EXIT

unset COLL_RANK COLL_SIZE COLL_ROOT COLL_BOOTSTRAP COLL_NET_PORTS COLL_NET_FAMILY
unset COLL_NET_INTERFACE COLL_NET_ENCRYPT COLL_LOG COLL_TRANSPORTS RANK WORLD_SIZE LOCAL_RANK
COLL_TIMEOUT=$((50 * patience)) COLL_JOB_SECRET=hosts UCX_LOG_LEVEL=fatal CUT=$dir/cut
export COLL_TIMEOUT COLL_JOB_SECRET UCX_LOG_LEVEL CUT

# hosts_up N
hosts_up() { folder=$("$net/hosts" up "$1") || skip "no namespaces here"; }

on() {
    host=$1
    shift
    "$net/hosts" exec "$folder" "$host" "$@"
}

# rank HOST JOB RANK SIZE ROOT COMMAND...: in the background; it says $dir/JOB.RANK.
rank() {
    "$net/hosts" exec "$folder" "$1" env COLL_RANK="$3" COLL_SIZE="$4" COLL_ROOT="$5" \
        sh -c 'shift 5; exec "$@"' sh "$@" > "$dir/$2.$3" 2>&1 &
    ranks="$ranks $!"
}

# have_ended: wait for all ranks since the last time; did none end badly?
have_ended() {
    n=0
    for pid in $ranks; do wait "$pid" || n=$((n + 1)); done
    ranks=
    [ $n = 0 ]
}

nodes=

# node HOST JOB COMMAND...: a collrun in the background; it says $dir/JOB.HOST, and its
# status last.
node() {
    host=$1 job=$2
    shift 2
    (
        on "$host" timeout $((60 * patience)) "$@"
        echo "status $?"
    ) > "$dir/$job.$host" 2>&1 &
    nodes="$nodes $!"
}

all_ended() {
    # shellcheck disable=SC2086
    wait $nodes
    nodes=
}

# judge NAME JOB TRUE-COMMAND...: what the job has said is as it should be.
judge() {
    name=$1 job=$2
    shift 2
    if "$@"; then ok "$name"; else fail "$name" "$dir/$job".h?; fi
}

# n_lines PATTERN FILE...: how often is it there?
n_lines() {
    pattern=$1
    shift
    cat "$@" 2> /dev/null | grep -c -- "$pattern"
}

# has_lines N PATTERN JOB: say the job's ranks so, taken together?
has_lines() { [ "$(n_lines "$2" "$dir/$3".*)" = "$1" ]; }

has_line() { [ "$(n_lines "$1" "$dir/$2".*)" -gt 0 ]; }

# the_end: of the test.
the_end() {
    if [ $n_bad -gt 0 ]; then
        echo "$n_bad checks failed"
        exit 1
    fi
    echo "all checks passed"
}
