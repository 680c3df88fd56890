#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# diagnose.sh - COLL_DIAGNOSE=1: rank 0 names the links of a host whose cable is slow, with
# their figures, and says of one host how its links are.
. "${srcdir:-.}/tests/net/world.sh"
hosts_up 4
in_switch() { nsenter --target="$(cat "$folder/switch")" --net -- "$@"; }

COLL_DIAGNOSE=1
export COLL_DIAGNOSE

# The kernel cuts what is longer than the bucket, so that no message passes at full speed.
slow_cable() {
    limit="tbf rate 2mbit burst 10kb latency 500ms"
    # shellcheck disable=SC2086
    in_switch tc qdisc replace dev p4 root $limit && on h4 tc qdisc replace dev eth0 root $limit
}

# A job of one rank on each host: does rank 0 name every link to h4?
names_slow_links() {
    for r in 0 1 2 3; do
        rank h$((r + 1)) slow $r 4 198.18.0.1:$port "$probe" split
    done
    have_ended || fail "a job with a slow cable" "$dir"/slow.?
    port=$((port + 1))
    others="median of 6 links of level network: $figures; their price: $figures"
    for r in 0 1 2; do
        link="the link of rank $r (h$((r + 1))) and rank 3 (h4)"
        grep -q "^coll 0/4 comm: $link is slow: $figures; $others$" "$dir/slow.0" || return 1
    done
}

# On a busy machine the links that are to be the median may seem slow, too: then again.
slow_host() {
    if ! slow_cable 2> "$dir/tc"; then
        echo "left out: a slow cable, no tbf here"
        cat "$dir/tc"
        return
    fi
    port=6100 figures='[0-9.e+-]* us, [0-9.e+-]* GB/s'
    for try in 1 2 3 4 5 6; do
        ! names_slow_links || break
        echo "     try $try: too busy"
    done
    has_lines 3 'and rank 3 (h4) is slow: ' slow ||
        fail "the links to h4 are not named" "$dir"/slow.?
    [ "$(n_lines 'is slow' "$dir/slow.1" "$dir/slow.2" "$dir/slow.3")" = 0 ] ||
        fail "not rank 0 alone says so" "$dir"/slow.?
    ! has_line 'links is slow' slow || fail "and none is slow" "$dir"/slow.?
    ok "a slow cable"
}

# Ranks of two hosts: links of two levels.  How they compare is chance here.
several_ranks() {
    COLL_LOG=info
    export COLL_LOG
    for r in 0 1 2 3 4; do
        rank h$((r / 3 + 1)) levels $r 5 198.18.0.1:6001 "$probe" split
    done
    unset COLL_LOG
    have_ended || fail "a job of two hosts" "$dir"/levels.?
    [ "$(n_lines '^coll 0/5 comm: the link of rank .* of level ' "$dir/levels.0")" = 5 ] ||
        fail "not five links" "$dir"/levels.0
    has_line 'rank 0 (h1) and rank 3 (h2).*: .* median of 1 links of level network: ' levels ||
        fail "the link between the hosts" "$dir"/levels.0
    ok "two hosts"
}

# Communicators made from others are not tested again.
one_host() {
    for r in 0 1 2; do
        rank h1 one $r 3 198.18.0.1:6002 "$probe" split
    done
    have_ended || fail "a job of one host" "$dir"/one.?
    n=$(n_lines 'comm: none of 3 links is slow; median of level host: ' "$dir/one.0")
    [ "$n" = 1 ] || { [ "$n" = 0 ] && has_line 'is slow: .* of level host: ' one; } ||
        fail "not one summary" "$dir"/one.?
    [ "$(n_lines 'links is slow' "$dir/one.1" "$dir/one.2")" = 0 ] ||
        fail "not rank 0 alone says so" "$dir"/one.?
    ok "one host"
}

unlike() {
    for r in 0 1; do
        COLL_DIAGNOSE=$((1 - r))
        rank h1 unlike $r 2 198.18.0.1:6003 "$probe" split
    done
    COLL_DIAGNOSE=1
    ! have_ended || fail "ranks that differ" "$dir"/unlike.?
    has_line "COLL_DIAGNOSE is '1' on rank 0 and '0' on rank 1; set it to the same" unlike ||
        fail "no word of it" "$dir"/unlike.?
    ok "ranks that differ"
}

slow_host
several_ranks
one_host
unlike
the_end
