#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# names.sh - hosts whose names and addresses are of a kind that misleads: a name that is
# 127.0.1.1 on the host itself (as Debian's installer writes it), one with upper case and
# dots, the same name on both hosts, and addresses of IPv6 alone.  Ranks find each other
# by what launchers tell them, and the sums are right.
. "${srcdir:-.}/tests/net/world.sh"
hosts_up 2
pid_of() { cat "$folder/$1.pid"; }

# named A B: the hosts' names; each is 127.0.1.1 to itself.
named() {
    for host in h1 h2; do
        own=$1 other=$2 n=2
        [ $host = h1 ] || { own=$2 other=$1 n=1; }
        {
            echo "127.0.0.1 localhost"
            echo "127.0.1.1 $own"
            echo "198.18.0.$n $other"
        } > "$dir/$host.hosts"
        nsenter --target="$(pid_of $host)" --uts -- hostname "$own"
    done
}

# meet NAME VARIABLE...: a rank on each host, which $R numbers; "@" is that in a variable.
n_jobs=0
meet() {
    name=$1 n_jobs=$((n_jobs + 1))
    job=job-$n_jobs
    shift
    for r in 0 1; do
        # shellcheck disable=SC2046,SC2086
        "$net/hosts" exec "$folder" h$((r + 1)) env $(echo "$@" | sed "s/@/$r/g") \
            "$probe" split > "$dir/$job.$r" 2>&1 &
        ranks="$ranks $!"
    done
    if have_ended && [ "$(cat "$dir/$job".? | grep -c ': up$')" = 2 ]; then
        ok "$name"
    else
        fail "$name" "$dir/$job".?
    fi
}

# by_all NAME HOST LIST: by what three launchers tell.
by_all() {
    meet "$1, collrun's variables" COLL_RANK=@ COLL_SIZE=2 "COLL_ROOT=$2:$((6200 + n_jobs))"
    meet "$1, torchrun's" RANK=@ WORLD_SIZE=2 "MASTER_ADDR=$2" MASTER_PORT=$((7000 + 100 * n_jobs))
    meet "$1, srun's" SLURM_PROCID=@ SLURM_JOB_ID=$n_jobs SLURM_STEP_ID=0 \
        SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 "SLURM_STEP_NODELIST=$3"
}

named h1 h2
for host in h1 h2; do
    nsenter --target="$(pid_of $host)" --mount -- mount --bind "$dir/$host.hosts" /etc/hosts
done
by_all "a host that is 127.0.1.1 to itself" h1 'h[1-2]'
named Node-A.Cluster.Example Node-B.Cluster.Example
by_all "upper case and dots" Node-A.Cluster.Example \
    Node-A.Cluster.Example,Node-B.Cluster.Example
for host in h1 h2; do nsenter --target="$(pid_of $host)" --uts -- hostname same; done
meet "two hosts of one name" COLL_RANK=@ COLL_SIZE=2 COLL_ROOT=198.18.0.1:6300

if on h1 sh -c '[ -d /proc/sys/net/ipv6 ]'; then
    for n in 1 2; do
        on h$n sh -c 'echo 0 > /proc/sys/net/ipv6/conf/all/disable_ipv6
            echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6' 2> /dev/null
        on h$n ip address flush dev eth0
        on h$n ip address add fd00:18::$n/64 dev eth0 nodad
    done
    meet "IPv6 alone" COLL_RANK=@ COLL_SIZE=2 'COLL_ROOT=[fd00:18::1]:6301'
    meet "IPv6 alone, torchrun's" RANK=@ WORLD_SIZE=2 MASTER_ADDR=fd00:18::1 MASTER_PORT=9900
    # as two hosts with a cable between them
    for n in 1 2; do
        on h$n ip address flush dev eth0
        on h$n ip address add fe80::18:$n/64 dev eth0 nodad
    done
    meet "link-local alone" COLL_RANK=@ COLL_SIZE=2 'COLL_ROOT=[fe80::18:1%eth0]:6302'
    meet "link-local alone, its interface named" COLL_RANK=@ COLL_SIZE=2 \
        COLL_NET_INTERFACE=eth0 'COLL_ROOT=[fe80::18:1%eth0]:6303'
else
    echo "left out: IPv6, which is not here"
fi
the_end
