#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# No byte that must cross a host's link crosses it twice: counted on the link.
set -u
. "${srcdir:-.}/tests/support/patience.sh"
hosts=${srcdir:-.}/tests/net/hosts
[ "$(id -u)" = 0 ] || { echo "hosts from namespaces want root"; exit 77; }
for tool in ip nsenter unshare; do
    command -v $tool > /dev/null || { echo "no $tool (Debian: iproute2 util-linux)"; exit 77; }
done
unset COLL_RANK COLL_SIZE COLL_ROOT COLL_BOOTSTRAP COLL_TRANSPORTS COLL_NET_INTERFACE
unset COLL_NET_PORTS COLL_ALGO COLL_NET_ENCRYPT
COLL_TIMEOUT=$((60 * patience))
export COLL_TIMEOUT
folder=$("$hosts" up 2) || { echo "no namespaces here"; exit 77; }
out=$(mktemp) || exit 99
trap '"$hosts" down "$folder"; rm -f "$out"' EXIT
n_bad=0

# crosses PLACEMENT ALGORITHM COLLECTIVE LEAST MOST
crosses() {
    place=$1 algo=$2
    shift 2
    COLL_ALGO=$algo timeout 120 "$hosts" ranks "$folder" "$place" tests/bench/test_crossing "$@" \
        > "$out" 2>&1
    status=$?
    sed -n "s/^[a-z_]*: .* MiB/$place ${algo:-as chosen}: &/p" "$out"
    case $status in
    0) ;;
    77) echo "$place $algo $*: left out, packets get lost" ;;
    *) echo "FAIL $place $algo $*: status $status"; cat "$out"; n_bad=$((n_bad + 1)) ;;
    esac
}

# MiB of 1 MiB: half of the sums come from there and the others' half goes back, or all
# at once to and from one rank; a vector once; the blocks of the others
for place in 2+2 3+1; do
    crosses $place hierarchical allreduce 1 1
    crosses $place hierarchical broadcast 1 1
    crosses $place hierarchical reduce 1 1
done
crosses 2+2 hierarchical allgather 0.5 0.5
crosses 3+1 hierarchical allgather 0.75 0.75
crosses 2+2 hierarchical reduce_scatter 0.5 0.5
crosses 3+1 hierarchical reduce_scatter 0.75 0.75
crosses 2+2 direct alltoall 1 1
crosses 2+2 hierarchical alltoall 1 1
crosses 2+2 chain broadcast 1 1
# what the prices choose, which measure the link: where it is as fast as memory, a ring
# may be quicker that crosses it more often, so it is slow here
"$hosts" rate "$folder" h1 1gbit
"$hosts" rate "$folder" h2 1gbit
crosses 2+2 '' allreduce 1 1
crosses 2+2 '' broadcast 1 1

[ $n_bad = 0 ]
