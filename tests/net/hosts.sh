#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# hosts.sh - ranks on several hosts, that are network namespaces, and on hosts
# whose network is not as it should be.
#
# Everything lives in namespaces that this script makes, processes included, and
# that end with it; the machine's own network is not touched.
set -u
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/verdict.sh"
top=${top_builddir:-.}
if [ -z "${HOSTS_OF:-}" ]; then
    skip() {
        echo "skipped: $*"
        exit 77
    }
    command -v ip > /dev/null || skip "no ip; install iproute2"
    command -v nsenter > /dev/null || skip "no nsenter; install util-linux"
    map=
    unshare -nm true 2> /dev/null || map=-r
    # shellcheck disable=SC2086
    unshare $map -nmpf --kill-child --mount-proc sh -c '
        ip link set lo up && ip link add p0 type veth peer name p1 &&
        ip link del p0' > /dev/null 2>&1 ||
        skip "no network namespaces here; they want root, or user namespaces"
    # shellcheck disable=SC2086
    HOSTS_OF=$$ exec unshare $map -nmpf --kill-child --mount-proc sh "$0"
fi

probe=$top/tests/support/host_probe
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset COLL_RANK COLL_SIZE COLL_ROOT COLL_BOOTSTRAP COLL_NET_PORTS
unset COLL_NET_INTERFACE COLL_LOG COLL_TRANSPORTS RANK WORLD_SIZE LOCAL_RANK
COLL_TIMEOUT=$((50 * patience)) COLL_JOB_SECRET=hosts UCX_LOG_LEVEL=fatal CUT=$dir/cut
export COLL_TIMEOUT COLL_JOB_SECRET UCX_LOG_LEVEL CUT

# ---- hosts: 198.18.0.NAME at a switch, which is this namespace

ip link set lo up
ip link add br0 type bridge forward_delay 0 stp_state 0
ip link set br0 up

# is_apart PID: does it have a network of its own yet?
is_apart() {
    [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

# host NAME: plug in a host; its namespace is kept open by pid_NAME.
host() {
    unshare -n sleep infinity &
    eval "pid_$1=$!"
    await 30 is_apart $! || { echo "no host $1"; exit 99; }
    ip link add "p$1" type veth peer name eth0 netns $!
    ip link set "p$1" master br0 up
    on "$1" ip -batch - << END
link set lo up
address add 198.18.0.$1/24 dev eth0
link set eth0 up
END
}

# on HOST COMMAND...
on() {
    eval "where=\$pid_$1"
    shift
    nsenter --target="$where" --net -- "$@"
}

# rank HOST OUT RANK SIZE ROOT COMMAND...: in the background.
rank() {
    on "$1" env COLL_RANK="$3" COLL_SIZE="$4" COLL_ROOT="$5" \
        sh -c 'shift 5; exec "$@"' sh "$@" > "$2.$3" 2>&1 &
}

# n_lines PATTERN FILE...: how often is it there?
n_lines() {
    pattern=$1
    shift
    cat "$@" 2> /dev/null | grep -c -- "$pattern"
}

has_lines() { [ "$(n_lines "$2" "$dir/$3".?)" = "$1" ]; }

host 1
host 2

# ---- a host that falls silent: each other rank learns it in about 10 s,
# whether it waits for an answer or for nothing at all

silent_jobs() {
    for mode in $modes; do
        port=$((port + 1))
        for r in 0 1 2; do
            rank $((r / 2 + 1)) "$dir/$mode" $r 3 198.18.0.1:$port \
                "$probe" $mode
        done
    done
    for mode in $modes; do
        await 60 has_lines 3 ': up$' $mode ||
            fail "$mode: the job did not form" "$dir/$mode".?
    done
    sleep 1 # the questions of the beginning have been answered
    : > "$CUT"
    ip link set p2 down
    for mode in $modes; do
        await 60 has_lines 3 "$mode: status" $mode
        for r in 0 1; do
            line=$(grep "$mode: status" "$dir/$mode.$r")
            after=$(echo "$line" | sed 's/.* after \([0-9]*\)\..*/\1/')
            case $line in
            *"status -4 "*"rank 2 (pid "*"fallen silent"*)
                ok "$mode: a silent host is noticed by rank $r after $after s" ;;
            *) fail "$mode: rank $r: not a silent host" "$dir/$mode".? ;;
            esac
        done
    done
    for mode in $modes; do
        if await 30 has_lines 3 ' end: status' $mode; then
            ok "$mode: the communicator ends"
        else
            fail "$mode: the communicator does not end" "$dir/$mode".?
        fi
    done
    ip link set p2 up
}

# ---- one who says a byte a second to who awaits others; beside the silence,
# since it takes as long

say_slowly() {
    rank 1 "$dir/slow" 0 2 127.0.0.1:6200 "$probe" split
    on 1 bash -c 'until exec 3<> /dev/tcp/127.0.0.1/6200; do sleep 0.1; done
        for c in C O L L v 0 0 1 x x x x x x x x x x x x; do
            printf $c >&3 || exit; sleep 1; done' 2> /dev/null &
    slow=$!
}

# Rank 0 comes after 10 s and more: rank 1 says meanwhile what it waits for.
wait_for_late() { rank 1 "$dir/late" 1 2 127.0.0.1:6250 "$probe" split; }

come_late() {
    await 60 has_lines 1 'still trying to connect to rank 0' late
    rank 1 "$dir/late" 0 2 127.0.0.1:6250 "$probe" split
    if await 60 has_lines 2 'all is well' late &&
        has_lines 1 'still trying to connect to rank 0 (127.0.0.1:6250: connection refused)' \
            late; then
        ok "rank 0 comes late"
    else
        fail "rank 0 comes late" "$dir"/late.?
    fi
}

one_byte_a_second() {
    wait $slow
    rank 1 "$dir/slow" 1 2 127.0.0.1:6200 "$probe" split
    if await 60 has_lines 2 'all is well' slow &&
        has_lines 1 'it took too long to prove itself' slow; then
        ok "one byte a second does no harm"
    else
        fail "one byte a second" "$dir"/slow.?
    fi
}

# ---- an interface that goes away while a job is on it: an error, not silence

interface_goes() {
    : > "$CUT"
    on 1 ip link add v0 type veth peer name v1
    on 1 ip address add 198.18.7.1/24 dev v0
    on 1 ip link set v0 up
    on 1 ip link set v1 up
    for r in 0 1; do
        rank 1 "$dir/gone" $r 2 198.18.7.1:6100 \
            env COLL_NET_INTERFACE=v0 "$probe" idle
    done
    await 60 has_lines 2 ': up$' gone ||
        fail "the job on v0 did not form" "$dir"/gone.?
    on 1 ip link del v0
    if await 60 has_lines 2 'idle: status -4' gone; then
        ok "an interface that goes away is noticed"
    else
        fail "an interface that goes away" "$dir"/gone.?
    fi
    on 1 env COLL_NET_INTERFACE=v0 timeout $((30 * patience)) "$top/tools/collrun" -n 4 \
        "$probe" split > "$dir/none.0" 2>&1
    if ! has_lines 0 'COLL_NET_INTERFACE=v0: no such interface' none; then
        ok "an interface that is not there is an error at once"
    else
        fail "an interface that is not there" "$dir"/none.?
    fi
}

# ---- a host without IPv4, and one whose loopback interface is down

only_six() {
    unshare -n sh -c '
        ip link set lo up
        ip address del 127.0.0.1/8 dev lo
        grep -q "^0*1 " /proc/net/if_inet6 || exit 77
        timeout 60 "$0/tools/collrun" -n 3 "$0/tests/support/host_probe" split &&
        for r in 1 0; do
            COLL_RANK=$r COLL_SIZE=2 COLL_ROOT=localhost:6300 timeout 60 \
                "$0/tests/support/host_probe" split &
        done
        wait' "$top" > "$dir/six.0" 2>&1
    status=$?
    if [ $status = 77 ]; then
        echo "left out: no IPv6 here"
    elif has_lines 5 'all is well' six; then
        ok "a host without IPv4"
    else
        fail "a host without IPv4: status $status" "$dir"/six.?
    fi
}

one_family() {
    for family in ip4 ip6; do
        [ $family = ip4 ] || grep -q "^0*1 " /proc/net/if_inet6 2> /dev/null ||
            { echo "left out: no IPv6 here"; continue; }
        COLL_NET_FAMILY=$family COLL_TRANSPORTS=self,tcp COLL_LOG=tcp:info \
            timeout 60 "$top/tools/collrun" -n 2 "$probe" split \
            > "$dir/$family.0" 2>&1
        at=127.0.0.1:
        [ $family = ip4 ] || at='\[::1\]:'
        if has_lines 2 'all is well' $family &&
            has_lines 0 'not at' $family &&
            [ "$(n_lines 'rank [01] is at' "$dir/$family.0")" -gt 0 ] &&
            [ "$(n_lines 'rank [01] is at' "$dir/$family.0")" = \
                "$(n_lines "rank [01] is at $at" "$dir/$family.0")" ]; then
            ok "COLL_NET_FAMILY=$family"
        else
            fail "COLL_NET_FAMILY=$family" "$dir/$family.0"
        fi
    done
    COLL_NET_FAMILY=ip5 timeout 60 "$top/tools/collrun" -n 2 "$probe" split \
        > "$dir/five.0" 2>&1
    if has_lines 0 'all is well' five && ! has_lines 0 'COLL_NET_FAMILY' five; then
        ok "COLL_NET_FAMILY=ip5 is an error"
    else
        fail "COLL_NET_FAMILY=ip5" "$dir"/five.0
    fi
}

# down NAME COMMAND...: fails at once, and says what to do.
down() {
    name=$1
    shift
    unshare -n sh -c "ip link set lo up; ip link set lo down; $*" \
        > "$dir/down.0" 2>&1
    if grep -q 'ip link set lo up' "$dir/down.0" &&
        ! grep -q 'all is well' "$dir/down.0"; then
        ok "lo is down: $name"
    else
        fail "lo is down: $name" "$dir/down.0"
    fi
}
# ---- what needs host 1 alone goes on while the others wait for the silent host

beside() {
    CUT=$dir/cut.beside
    interface_goes
    only_six
    one_family
    down collrun "$top/tools/collrun" -n 3 "$probe" split
    down "rank 0 by hand" env COLL_RANK=0 COLL_SIZE=2 COLL_ROOT=127.0.0.1:6400 \
        "$probe" split
    down "rank 1 by hand" env COLL_RANK=1 COLL_SIZE=2 COLL_ROOT=localhost:6400 \
        "$probe" split
    exit $n_bad
}

port=5000
modes="idle busy"
(beside) > "$dir/beside" 2>&1 &
beside=$!
say_slowly
wait_for_late
silent_jobs
one_byte_a_second
come_late
wait $beside || n_bad=$((n_bad + $?))
cat "$dir/beside"

# ---- a name that means several addresses, of which the first leads nowhere:
# h1 sends what is for 198.18.9.9 to h2, which drops it

several_addresses() {
    printf '127.0.0.1 localhost\n198.18.9.9 root\n198.18.0.1 root\n' \
        > "$dir/etc-hosts"
    mount --bind "$dir/etc-hosts" /etc/hosts 2> /dev/null || {
        echo "left out: no mounts here"
        return
    }
    on 1 ip route add 198.18.9.0/24 via 198.18.0.2
    rank 1 "$dir/several" 0 2 root:6000 "$probe" split
    rank 1 "$dir/several" 1 2 root:6000 "$probe" split
    if await 60 has_lines 2 'all is well' several; then
        ok "an address that leads nowhere is passed over"
    else
        fail "several addresses" "$dir"/several.?
    fi
    umount /etc/hosts
}
several_addresses

# ---- bridges as containers have them: the same address on both hosts, addresses
# that lead nowhere, and more of them than a rank tells

bridges() {
    for h in 1 2; do
        for b in 0 1 2 3 4; do
            on $h ip -batch - << END
link add a$b type bridge
address add 172.$((17 + b)).0.1/16 dev a$b
link set a$b up
END
        done
        # it has the main interface's traffic in its hands, and swallows it
        on $h ip link add b9 type veth peer name c9
        on $h ip address add 10.$h.0.1/16 dev b9
        on $h ip link set b9 up
        on $h ip link set c9 up
        on $h ip route add 10.0.0.0/8 dev b9
    done
    for r in 0 1 2; do
        rank $((r / 2 + 1)) "$dir/bridges" $r 3 198.18.0.1:6150 \
            env COLL_LOG=tcp:info "$probe" split
    done
    if await 60 has_lines 3 'all is well' bridges &&
        [ "$(n_lines 'rank 2 is at .*198.18.0.2:.*, by eth0' "$dir"/bridges.0)" -gt 0 ]
    then
        ok "bridges and dead ends are passed over"
    else
        fail "bridges and dead ends" "$dir"/bridges.?
    fi
    for h in 1 2; do
        for b in a0 a1 a2 a3 a4 b9; do on $h ip link del $b; done
    done
}
bridges

# family NAME FIRST SECOND: a rank on each of two hosts, with a family each; both end.
family() {
    port=$((port + 1))
    COLL_NET_FAMILY=$2 rank 1 "$dir/$1" 0 2 198.18.0.1:$port "$probe" split
    first=$!
    COLL_NET_FAMILY=$3 rank 2 "$dir/$1" 1 2 198.18.0.1:$port "$probe" split
    wait $first $!
}

# A word that is no family is named, whatever a rank needs before it can say so; hosts
# that no family joins are told which one it is that has no address.
two_families() {
    family four 4 4
    if has_lines 2 'COLL_NET_FAMILY=4 is not valid' four; then
        ok "COLL_NET_FAMILY=4 is an error between hosts"
    else
        fail "COLL_NET_FAMILY=4 between hosts" "$dir"/four.?
    fi
    grep -q "^0*1 " /proc/net/if_inet6 2> /dev/null ||
        { echo "left out: no IPv6 here"; return; }
    on 2 ip -6 address flush dev eth0 # by link-local ones they would be joined
    family both ip4 ip6
    if has_lines 2 'rank 1 cannot be reached.*no other address, or COLL_NET_FAMILY' both; then
        ok "COLL_NET_FAMILY=ip4 and ip6"
    else
        fail "COLL_NET_FAMILY=ip4 and ip6" "$dir"/both.?
    fi
}
two_families

# ---- GPU buffers: within a host from GPU to GPU, or by way of the hosts' memory

# device_buffers RANKS GPUS PROGRAM ARGUMENTS...: two ranks on a host.
device_buffers() {
    n=$1 gpus=$2 program=$3
    shift 3
    driver=$(cd "$top/tests/fake_cuda/.libs" 2> /dev/null && pwd) ||
        { echo "left out: device buffers, configure found no cuda.h"; return; }
    rm -f "$dir"/cuda.?
    port=$((port + 1)) # who has printed its last line may still listen
    for r in $(seq 0 $((n - 1))); do
        rank $((r / 2 + 1)) "$dir/cuda" "$r" "$n" 198.18.0.1:$port \
            env LD_LIBRARY_PATH="$driver" FAKE_CUDA_DEVICES="$gpus" \
            "$top/benchmarks/$program" -d cuda -b 4 -e 256K -f 256 -n 5 "$@"
    done
    if await 60 has_lines 3 ' [a-z_]* *0$' cuda &&
        has_lines 1 "$n ranks on 2 hosts" cuda &&
        has_lines 1 'device cuda (fake_cuda 0)' cuda; then
        ok "device buffers on two hosts: $program, $n ranks, $gpus GPUs a host $*"
    else
        fail "device buffers on two hosts: $program $*" "$dir"/cuda.?
    fi
}
device_buffers 3 1 allreduce_bw
for collective in allreduce broadcast reduce allgather allgatherv reduce_scatter \
    reduce_scatterv alltoall alltoallv gather gatherv scatter scatterv scan p2p; do
    device_buffers 4 2 ${collective}_bw --graph=3
done

if [ $n_bad -gt 0 ]; then
    echo "$n_bad checks failed"
    exit 1
fi
echo "all checks passed"
