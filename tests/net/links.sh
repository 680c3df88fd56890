#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# links.sh - links between two hosts that are slow (100 Mbit, 1 Gbit), far (20 ms), that
# lose packets (1 %), that are down for a while or again and again, or whose packets
# change their length: all sums are right, and nobody is taken for lost.  Two cables
# between them are both used, and where one leads nowhere the other.
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

# sent HOST: bytes by its second cable.
sent() { on "$1" awk '$1 == "eth1:" { print $10 }' /proc/net/dev; }

# Ranks beside each other go by one each; a rank alone has its large operations, and a
# host that is reached by the first cable alone is reached.  A rank that waits too long for
# the second one takes the first, so a busy machine has three tries.
two_cables() {
    second_cable
    COLL_ALGO=hierarchical # both ranks of a host send to the other one
    export COLL_ALGO
    for try in 1 2 3; do
        before=$(sent h1)
        measure "two cables" 4 -b 4M -e 4M -n 5 -w 1
        bytes=$(($(sent h1) - before))
        [ $bytes -lt 8000000 ] || break
    done
    unset COLL_ALGO
    if [ $bytes -gt 8000000 ] && [ $bytes -lt 16000000 ]; then
        ok "half of 24 MiB by each"
    else
        fail "$bytes bytes by the second cable"
    fi
    in_switch ip link set s2 down
    measure "a second cable that leads nowhere" 4 -b 8 -e 1M -f 128 -n 5 -w 1
    COLL_NET_INTERFACE=eth0
    export COLL_NET_INTERFACE
    in_switch ip link set s2 up
    before=$(sent h1)
    measure "the first cable alone" 4 -b 1M -e 1M -n 5 -w 1
    unset COLL_NET_INTERFACE
    [ $(($(sent h1) - before)) -lt 10000 ] || fail "the second cable was used"
    for host in h1 h2; do on $host ip link del eth1; done
}

troubled "a link that is down for $down s" work 6100 down_and_up
troubled "a link that goes down again and again" flap 6101 flap
troubled "packets of other lengths" mtu 6102 other_mtu
slow
delayed
two_cables
the_end
