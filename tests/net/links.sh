#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# links.sh - links between two hosts that are slow (100 Mbit, 1 Gbit), far (20 ms), that
# lose packets (1 %), that are down for a while or again and again, or whose packets
# change their length: all sums are right, and nobody is taken for lost.  Two cables
# between them are both used, also by one message, and where one leads nowhere the other.
. "${srcdir:-.}/tests/net/world.sh"
bench=$PWD/benchmarks/allreduce_bw
hosts_up 2
in_switch() { nsenter --target="$(cat "$folder/switch")" --net -- "$@"; }

# measure NAME RANKS OPTION...: allreduces of that many ranks on two hosts, each checked.
port=6000
measure() {
    name=$1 size=$2
    shift 2
    port=$((port + 1)) job=bench-$port
    for r in $(seq 0 $((size - 1))); do
        rank h$((r * 2 / size + 1)) $job "$r" "$size" 198.18.0.1:$port "$bench" "$@"
    done
    if await 90 has_line '^ *[0-9].* 0$' $job && have_ended &&
        has_line "$size ranks on 2 hosts" $job && ! has_line 'status -\|lost\|silent' $job
    then
        ok "$name: $(tail -n 1 "$dir/$job.0" | awk '{ print $1 " bytes in " $5 " us" }')"
    else
        fail "$name" "$dir/$job".?
    fi
}

slow() {
    for rate in 1gbit 100mbit; do
        for host in h1 h2; do
            "$net/hosts" rate "$folder" $host $rate 2> "$dir/rate" ||
                { echo "left out: slow links, no tbf here"; cat "$dir/rate"; return; }
        done
        measure "$rate" 2 -b 8 -e 2M -f 64 -n 3 -w 1
        [ -z "${TEST_LONG:-}" ] ||
            measure "$rate, 2 ranks a host" 4 -b 8 -e 16M -f 128 -n 5 -w 1
    done
    for host in h1 h2; do "$net/hosts" rate "$folder" $host none; done
}

# Between h2 and the switch: by the kernel, where it can, else by a cable of our own.
far() {
    delay=$1 loss=$2
    cable=
    if in_switch tc qdisc add dev p2 root netem delay "${delay}ms" loss "$loss%" 2> "$dir/netem" &&
        on h2 tc qdisc add dev eth0 root netem delay "${delay}ms" loss "$loss%"; then
        by=netem
    else
        by=wire
        in_switch ip link set p2 nomaster
        in_switch ip link add w2 type veth peer name w2b
        in_switch ip link set w2b master br0 up
        in_switch ip link set w2 up
        nsenter --target="$(cat "$folder/switch")" --net -- "$PWD/tests/net/wire" p2 w2 \
            $((delay * 1000)) "$loss" > "$dir/cable.0" 2>&1 &
        cable=$!
        await 10 has_line up cable || { fail "no cable" "$dir"/cable.?; return 1; }
    fi
}

near() {
    if [ "$by" = netem ]; then
        in_switch tc qdisc del dev p2 root
        on h2 tc qdisc del dev eth0 root
        return
    fi
    kill "$cable"
    wait "$cable"
    echo "     the cable: $(tail -n 1 "$dir/cable.0")"
    in_switch ip link del w2
    in_switch ip link set p2 master br0
}

delayed() {
    far 20 1 || return
    measure "20 ms and 1 % lost, by $by" 2 -b 8 -e 128K -f 128 -n 5 -w 1
    near
}

# troubled NAME JOB PORT COMMAND: what happens to a link while ranks reduce; they go on,
# and so do connections that have nothing to say meanwhile.
troubled() {
    name=$1 job=$2
    rm -f "$CUT" "$CUT.end"
    for r in 0 1 2 3; do
        rank h$((r / 2 + 1)) "$job" $r 4 198.18.0.1:"$3" "$probe" work
    done
    await 60 has_lines 4 ': up$' "$job" || fail "the job does not form" "$dir/$job".?
    sleep $pause
    "$4"
    : > "$CUT"
    sleep $pause
    : > "$CUT.end"
    if await 60 has_lines 4 ': work: .*, 0 wrong$' "$job" && have_ended; then
        ok "$name: $(sed -n 's/.*work: //p' "$dir/$job.0")"
    else
        fail "$name" "$dir/$job".?
    fi
}

# Down for the longest that is promised; and how long the ranks reduce before and after.
down=5 pause=1
[ -z "${TEST_QUICK:-}" ] || down=2 pause=0.3

link() { "$net/hosts" link "$folder" h2 "$1"; }

down_and_up() {
    link down
    sleep $down
    link up
}

flap() {
    for time in $(seq "$(part_of 10)"); do
        link down
        sleep 0.2
        link up
        sleep 0.3
    done
}

# Packets that are too long for the other end, and for the way there.
other_mtu() {
    for mtu in 1400 576 9000 1500; do
        for host in h1 h2; do
            on $host ip link set eth0 mtu $mtu
            sleep 0.2
        done
    done
}

# A second cable from each host, in a network of its own.
second_cable() {
    in_switch ip link add br1 type bridge forward_delay 0 stp_state 0
    in_switch ip link set br1 up
    for i in 1 2; do
        in_switch ip link add s$i type veth peer name eth1 \
            netns "$(cat "$folder/h$i.pid")"
        in_switch ip link set s$i master br1 up
        on h$i ip address add 198.18.1.$i/24 dev eth1
        on h$i ip link set eth1 up
    done
}

# sent HOST INTERFACE: bytes.
sent() { on "$1" cat "/sys/class/net/$2/statistics/tx_bytes"; }

# slow_cables: both of them, where the machine can.
slow_cables() {
    shape="tbf rate 200mbit burst 256kb latency 50ms"
    for i in 1 2; do
        for end in "on h$i tc qdisc replace dev eth0" "on h$i tc qdisc replace dev eth1" \
            "in_switch tc qdisc replace dev p$i" "in_switch tc qdisc replace dev s$i"; do
            # shellcheck disable=SC2086
            $end root $shape 2> "$dir/rate" || { echo "     not slowed: no tbf"; return; }
        done
    done
}

full_cables() {
    for i in 1 2; do
        in_switch tc qdisc del dev p$i root
        in_switch tc qdisc del dev s$i root
        on h$i tc qdisc del dev eth0 root
        on h$i tc qdisc del dev eth1 root
    done 2> /dev/null
}

# both_carry NAME LEAST RANKS OPTION...: measure, and see that each of h1's cables carries
# that many bytes, and a third of all.  A connection that waits too long for one cable takes
# the other, so a busy machine has three tries.
both_carry() {
    carried=$1 least=$2
    shift 2
    for try in 1 2 3; do
        before0=$(sent h1 eth0) before1=$(sent h1 eth1)
        measure "$carried" "$@"
        by0=$(($(sent h1 eth0) - before0)) by1=$(($(sent h1 eth1) - before1))
        [ $by0 -lt "$least" ] || [ $by1 -lt "$least" ] ||
            [ $by0 -gt $((2 * by1)) ] || [ $by1 -gt $((2 * by0)) ] || break
        [ $try = 3 ] || continue
        fail "$carried: $by0 bytes by the first cable, $by1 by the second"
        return
    done
    ok "$carried: both carry as much"
}

# One message there and one back: as it is alone, a part of it goes by each cable.
one_message() {
    slow_cables
    bench=$PWD/benchmarks/p2p_lat
    both_carry "a message over two cables" 6000000 2 -b 16M -e 16M -n 1 -w 0
    bench=$PWD/benchmarks/allreduce_bw
    full_cables
}

# The second cable fails for a while, amid messages that both carry.
second_fails() {
    in_switch ip link set s2 down
    sleep $down
    in_switch ip link set s2 up
}

# Ranks beside each other, and a rank alone, use both; a host that is reached by the first
# cable alone is reached.
two_cables() {
    second_cable
    COLL_ALGO=hierarchical # both ranks of a host send to the other one
    export COLL_ALGO
    both_carry "two cables" 8000000 4 -b 4M -e 4M -n 5 -w 1
    unset COLL_ALGO
    one_message
    troubled "one of two cables that is down for $down s" pair 6103 second_fails
    in_switch ip link set s2 down
    measure "a second cable that leads nowhere" 4 -b 8 -e 1M -f 128 -n 5 -w 1
    COLL_NET_INTERFACE=eth0
    export COLL_NET_INTERFACE
    in_switch ip link set s2 up
    before=$(sent h1 eth1)
    measure "the first cable alone" 4 -b 1M -e 1M -n 5 -w 1
    unset COLL_NET_INTERFACE
    [ $(($(sent h1 eth1) - before)) -lt 10000 ] || fail "the second cable was used"
    for host in h1 h2; do on $host ip link del eth1; done
}

troubled "a link that is down for $down s" work 6100 down_and_up
troubled "a link that goes down again and again" flap 6101 flap
troubled "packets of other lengths" mtu 6102 other_mtu
slow
delayed
two_cables
the_end
