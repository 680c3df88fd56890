#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# ports.sh - several jobs on the same hosts, also with the same few ports, and ports that
# run out: one sentence says which, and what to do.
. "${srcdir:-.}/tests/net/world.sh"
hosts_up 2

# job NAME SIZE PORT COMMAND...: half of the ranks on each host.
job() {
    name=$1 size=$2 port=$3
    shift 3
    for r in $(seq 0 $((size - 1))); do
        rank h$((r * 2 / size + 1)) "$name" "$r" "$size" "198.18.0.1:$port" "$@"
    done
}

several_jobs() {
    # each listens at its own two ports a host, of the five that both may use
    job red 4 6000 env COLL_NET_PORTS=7000-7004 COLL_JOB_SECRET=red "$probe" split
    job blue 4 6001 env COLL_NET_PORTS=7000-7004 COLL_JOB_SECRET=blue "$probe" split
    # these know the same secret, too
    job one 2 6002 "$probe" split
    job two 2 6003 "$probe" split
    for name in red:4 blue:4 one:2 two:2; do
        if await 60 has_lines "${name#*:}" 'all is well' "${name%:*}"; then
            ok "${name%:*}: beside other jobs"
        else
            fail "${name%:*}: not beside other jobs" "$dir/${name%:*}".?
        fi
    done
}

# Of four ranks on h1 and h2, those of a host share two ports with nobody, or one.
range_too_small() {
    job few 6 6010 env COLL_NET_PORTS=7100-7101 "$probe" split
    if await 60 has_lines 6 ': join: status' few &&
        has_line 'no port is free within COLL_NET_PORTS=7100-7101; give a wider range' few &&
        ! has_line 'all is well' few; then
        ok "COLL_NET_PORTS is too small"
    else
        fail "COLL_NET_PORTS is too small" "$dir"/few.?
    fi
}

# The job's own port is another one's.
port_taken() {
    rank h1 first 0 2 198.18.0.1:6020 "$probe" split
    await 30 sh -c "'$net/hosts' exec '$folder' h1 ss -Hltn | grep -q :6020" || :
    rank h1 second 0 2 198.18.0.1:6020 env COLL_JOB_SECRET=second "$probe" split
    if await 30 has_lines 1 'rank 0 cannot listen on port 6020: it is in use by another program; choose another port' second; then
        ok "rank 0's port is taken"
    else
        fail "rank 0's port is taken" "$dir"/first.? "$dir"/second.?
    fi
    rank h2 first 1 2 198.18.0.1:6020 "$probe" split
    await 60 has_lines 2 'all is well' first || fail "whose port it was" "$dir"/first.?
}

# A host with two ports to listen at or connect from, and one that may listen elsewhere.
none_left() {
    on h2 sh -c 'echo 40000 40001 > /proc/sys/net/ipv4/ip_local_port_range' || {
        echo "left out: no ip_local_port_range here"
        return
    }
    # two connections to rank 0, and there is nothing left for who listens
    job none 4 6030 "$probe" split
    if await 60 has_lines 4 ': join: status -' none &&
        has_line 'this host has no port left to listen at; widen net.ipv4.ip_local_port_range, or set COLL_NET_PORTS' none; then
        ok "no port to listen at"
    else
        fail "no port to listen at" "$dir"/none.?
    fi
    # the third has none to call from
    job from 6 6031 env COLL_NET_PORTS=7200-7220 COLL_TIMEOUT=$((5 * patience)) "$probe" split
    if await 60 has_lines 6 ': join: status -' from &&
        has_line 'this host has no port left, or no address, to connect from; widen net.ipv4.ip_local_port_range' from; then
        ok "no port to connect from"
    else
        fail "no port to connect from" "$dir"/from.?
    fi
    on h2 sh -c 'echo 32768 60999 > /proc/sys/net/ipv4/ip_local_port_range'
}

several_jobs
port_taken
range_too_small
none_left
the_end
