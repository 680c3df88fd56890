#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# benchmarks/compare --hosts: hosts are made and removed, every library that is here runs
# over them, results are right, ranks are where they were placed, a slow link is slow.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
program=benchmarks/compare
. "${srcdir:-.}/tests/support/program.sh"
json=$scratch/result.json
unset COLL_ALGO COLL_TRANSPORTS COLL_BOOTSTRAP COLL_NET_INTERFACE COLL_NET_PORTS
mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp
export TMPDIR

# ---- what is refused, hosts or not
refused 2 "'x' is no hosts" --hosts x
refused 2 "'1' is no hosts" --hosts 1
refused 2 "'17' is no hosts" --hosts 17
refused 2 "'3+' is no hosts" --hosts 3+
refused 2 "'3+0' is no hosts" --hosts 3+0
refused 2 "'-2' is no hosts" --hosts -2
refused 2 "'fast' is no rate" --hosts 2 --rate fast
refused 2 "'1' is no rate" --hosts 2 --rate 1
refused 2 'give --hosts too' --rate 1gbit
refused 2 '3 ranks are not as many on each of 2 hosts' --hosts 2 --ranks 3
refused 2 '70 ranks are too many' --hosts 40+30
refused 2 'is not what --hosts places' --hosts 3+1 --ranks 2
shows 'COLL_NET_ENCRYPT' --help

[ "$(id -u)" = 0 ] || { echo "hosts from namespaces want root"; exit 77; }
for tool in ip tc nsenter unshare; do
    command -v $tool > /dev/null || { echo "no $tool (Debian: iproute2 util-linux)"; exit 77; }
done
folder=$(tests/net/hosts up -r 1gbit 2) || { echo "no namespaces here"; exit 77; }
tests/net/hosts down "$folder"

# run STATUS ARGUMENTS...
run() {
    wanted=$1
    shift
    timeout 300 "$program" "$@" --json "$json" > "$out" 2> "$err"
    status=$?
    [ $status = "$wanted" ] || fail "$*: exit status $status, not $wanted"
    [ -z "$(ls "$TMPDIR")" ] || fail "$*: left in TMPDIR: $(ls "$TMPDIR")"
    left=$(grep -o 'coll-hosts\.[A-Za-z0-9]*' "$json" | sort -u)
    [ "$left" ] || fail "$*: no hosts in the commands"
    [ ! -e "/run/$left" ] || fail "$*: left: /run/$left"
    grep '"wrong":' "$json" | grep -qv '"wrong": 0,' && fail "$*: wrong results"
}

# ---- all that are here; libcoll, with and without encryption, and sockets always are
run 0 --hosts 2 -n 2 -r 1 -t 0.005 -s 8,100K -c allreduce,broadcast,alltoall
[ "$(grep -c '^    2  [a-z_]* ' "$out")" = 6 ] || fail "not 6 rows"
for name in libcoll encrypt sockets; do
    [ "$(grep -c "\"$name\": {" "$json")" = 6 ] || fail "$name lacks a cell"
done
grep -q '"best_rival": "\(sockets\|encrypt\)"' "$json" && fail "a rival that is none"
for name in openmpi openmpi-ucx mpich gloo; do
    grep -q "^# $name is absent" "$out" && continue
    grep -q "^# $name: it hung" "$out" && continue # a rival may, on a busy machine
    [ "$(grep -c "\"$name\": {" "$json")" = 6 ] || fail "$name lacks a cell"
done
# two processes, and a core too few for both: nothing but time
run 0 --hosts 2+1 -r 1 -t 0.005 -s 8,1M --only libcoll,sockets,encrypt
[ "$(grep -c '^    3  [a-z_]* ' "$out")" = 11 ] || fail "not 11 rows"
[ "$(grep -c '"sockets": {' "$json")" = 11 ] || fail "sockets lack a cell"
grep -q 'hosts ranks coll-hosts[^ ]* 2+1 ' "$json" || fail "not placed 2+1"

# ---- a link of 200 Mbit takes no more, whoever sends
run 0 --hosts 2 -n 2 --rate 200mbit -r 1 -t 0.01 -s 8M -c allreduce,broadcast --only sockets
grep -q 'link 200mbit' "$out" || fail "the rate is not told"
share=$(awk '/^ +2 +(allreduce|broadcast)/ { n = split($0, word, " +"); for (i = 1; i <= n; i++)
    if (word[i] ~ /%$/) { sub(/%/, "", word[i]); last = word[i] }
    most = last > most ? last : most } END { print int(most) }' "$out")
[ "$share" -gt 0 ] && [ "$share" -le 106 ] || fail "$share % of what the link can take"
