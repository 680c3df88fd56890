#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Two hosts that are network namespaces joined by a virtual cable, whose speed
# nobody knows: a job measures it once, all its ranks have that price, and the
# communicators made from it inherit it; a card's speed, or a tuning file's link,
# makes that needless.
set -u
. "${srcdir:-.}/tests/support/patience.sh"

skip() {
    echo "skipped: $*"
    exit 77
}

# rank SPEED: we are a rank; with a speed, put a card in place of the cable.
if [ "${1:-}" = rank ]; then
    if [ "$2" != 0 ]; then
        card=$scratch/card.$COLL_RANK net=$scratch/net.$COLL_RANK
        mkdir -p "$card/device" "$net" && ln -sfn "$card" "$net/wire" &&
            cp /sys/class/net/wire/ifindex "$card" &&
            echo 1 > "$card/type" && echo up > "$card/operstate" &&
            echo "$2" > "$card/speed" &&
            mount --bind "$net" /sys/class/net || exit 1
    fi
    exec tests/bench/prices_probe
fi

# in_private: we are in namespaces of our own, which end with us.
if [ "${1:-}" != in_private ]; then
    unset COLL_TOPO_FILE COLL_TRANSPORTS COLL_TUNE_FILE UCX_TLS UCX_NET_DEVICES
    unset COLL_BOOTSTRAP COLL_NET_PORTS COLL_NET_INTERFACE
    command -v ip > /dev/null || skip "no ip; install iproute2"
    scratch=$(mktemp -d) || exit 99
    export scratch
    trap 'rm -rf "$scratch"' EXIT
    map=
    unshare -nm true 2> /dev/null || map=-r
    # shellcheck disable=SC2086
    unshare $map -nmpf --kill-child --mount-proc sh -c '
        mount -t tmpfs none /run && ip netns add a && ip netns exec a true' \
        > /dev/null 2>&1 ||
        skip "no network namespaces here; they want root, or user namespaces"
    # shellcheck disable=SC2086
    unshare $map -nmpf --kill-child --mount-proc sh "$0" in_private
    exit
fi

fail() {
    echo "FAILED: $*" >&2
    head -n 60 "$scratch"/out.* >&2
    exit 1
}

mount -t tmpfs none /run || fail "no private /run"
for host in a b; do
    ip netns add $host && ip -n $host link set lo up || fail "no host $host"
done
ip link add wire netns a type veth peer name wire netns b || fail "no cable"
ip -n a addr add 10.77.0.1/24 dev wire && ip -n a link set wire up &&
    ip -n b addr add 10.77.0.2/24 dev wire && ip -n b link set wire up ||
    fail "no addresses"
tries=0
until ip -n a link show wire | grep -q 'state UP' &&
    ip -n b link show wire | grep -q 'state UP'; do
    tries=$((tries + 1))
    [ $tries -lt $((300 * patience)) ] || fail "the cable does not come up"
    sleep 0.1
done

# job [SPEED]: ranks 0 and 1 on host a, 2 and 3 on b; what rank r says is in
# out.r.  With a SPEED (Mbit/s) the cable is one between cards of that speed.
job() {
    pids=
    for rank in 0 1 2 3; do
        [ $rank -lt 2 ] && host=a || host=b
        COLL_RANK=$rank COLL_SIZE=4 COLL_ROOT=10.77.0.1:7741 \
            COLL_JOB_SECRET=prices COLL_TIMEOUT=$((100 * patience)) \
            COLL_LOG=info timeout 120 ip netns exec $host sh "$0" rank \
            "${1:-0}" > "$scratch/out.$rank" 2>&1 &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid" || fail "a rank: exit status $?"
    done
}

# price RANK: its lines of the network.
price() { sed -n 's/^.*\(network: alpha.*\)$/\1/p' "$scratch/out.$1"; }

# The same price on all ranks, and in the copy and the half.
same_everywhere() {
    first=$(price 0 | head -n 1)
    [ -n "$first" ] || fail "no price of the network"
    for rank in 0 1 2 3; do
        [ "$(price $rank | wc -l)" = 3 ] || fail "not three prices on rank $rank"
        ! price $rank | grep -qvxF "$first" ||
            fail "rank $rank has $(price $rank), rank 0 first $first"
    done
}

# measured COUNT: so often, on rank 0 alone.
measured() {
    [ "$(cat "$scratch"/out.* | grep -c 'a message to another host')" = "$1" ] ||
        fail "not measured $1 times"
    [ "$(grep -c 'a message to another host, rank 2' "$scratch/out.0")" = "$1" ] ||
        fail "rank 0 did not measure $1 times"
}

job
same_everywhere
price 0 | grep -q 'measured; wire, speed not known' ||
    fail "the cable was not measured: $(price 0)"
measured 1
sed -n 's/^.*\(a message to another host.*\)$/\1/p' "$scratch/out.0"
echo "$first"

job 200000
same_everywhere
price 0 | grep -q 'beta 0.33 ns/B, wire, 200 Gbit/s by /sys' ||
    fail "the card's speed is not the price: $(price 0)"
measured 0
echo "$first"

cat > "$scratch/tune.json" << END
{"version": 1, "links": [{"level": "network", "alpha": 5e-6, "beta": 2e-10}]}
END
export COLL_TUNE_FILE="$scratch/tune.json"
job
same_everywhere
price 0 | grep -q 'alpha 5 us, beta 0.2 ns/B, COLL_TUNE_FILE' ||
    fail "the tuning file does not count: $(price 0)"
measured 0
echo "$first"
