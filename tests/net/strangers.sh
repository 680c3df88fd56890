#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# strangers.sh - a job works on two hosts while a third one attacks every port that it
# has open: garbage, half a hello, lengths of 4 GiB, hellos and proofs that were recorded
# on the wire, and 2,000 connections that say nothing.  It works on, without an error, and
# nobody is let in.  And who has another secret is told so.
. "${srcdir:-.}/tests/net/world.sh"
enemy=$PWD/tests/net/enemy
seconds=3
[ -z "${TEST_LONG:-}" ] || seconds=30
hosts_up 3

# open_ports HOST: addresses and ports of it at which something listens.
open_ports() {
    on "$1" ss -Hltn | awk '{ print $4 }' | sed 's/.*://' | sort -un |
        sed "s/^/198.18.0.${1#h}:/"
}

under_attack() {
    command -v ss > /dev/null || { echo "left out: no ss to find the ports by"; return; }
    nsenter --target="$(cat "$folder/switch")" --net -- "$enemy" listen p1 "$dir/recorded" > "$dir/listen" 2>&1 &
    listening=$!
    await 10 grep -q '^listening' "$dir/listen" || fail "nobody listens" "$dir/listen"
    for r in 0 1 2 3; do
        rank h$((r / 2 + 1)) work $r 4 198.18.0.1:6000 "$probe" work
    done
    await 60 has_lines 4 ': up$' work || fail "the job does not form" "$dir"/work.?
    sleep 2 # it works in peace, for the comparison
    kill $listening && wait $listening
    ports="$(open_ports h1) $(open_ports h2)"
    for host in h1 h2; do
        on $host ss -Hltnp | awk -v host=$host '{ print "open on", host ":", $4, $6 }'
    done
    cat "$dir/listen"
    grep -q '^recorded [1-9]' "$dir/listen" || fail "nothing was recorded"
    # shellcheck disable=SC2086
    on h3 timeout $(((60 + 10 * seconds) * patience)) \
        "$enemy" attack $seconds 2000 "$dir/recorded" $ports > "$dir/attack.0" 2>&1 &
    attacking=$!
    await 60 has_line '^holding' attack || fail "no attack" "$dir/attack.0"
    : > "$CUT"
    wait $attacking
    status=$?
    : > "$CUT.end"
    tail -n 1 "$dir/attack.0"
    if [ $status = 0 ] && grep -q 'held [1-9][0-9]* silent.* 0 taken' "$dir/attack.0"; then
        ok "no stranger is let in"
    else
        fail "strangers are let in, or could not come: status $status" "$dir/attack.0"
    fi
    if await 60 has_lines 4 ': work: .*, 0 wrong$' work && ! has_line 'coll.* error' work; then
        sed -n 's/^rank 0: work: /     /p' "$dir/work.0"
        ok "the job works on among strangers"
    else
        fail "the job does not work on among strangers" "$dir"/work.?
    fi
    if has_line 'dropped .*connection.* from .*198.18.0.3' work; then
        ok "it says who was dropped"
    else
        fail "nothing is said of the strangers" "$dir"/work.?
    fi
    [ "$(n_lines dropped "$dir"/work.?)" -lt $((20 * (seconds + 30))) ] ||
        fail "each stranger costs a line" "$dir"/work.?
}

wrong_secret() {
    rank h1 wrong 0 2 198.18.0.1:6100 env COLL_TIMEOUT=$((8 * patience)) "$probe" split
    rank h2 wrong 1 2 198.18.0.1:6100 env COLL_JOB_SECRET=other "$probe" split
    if await 60 has_lines 1 'rank 0 rejected rank 1 (198.18.0.1:6100: it knows no such job); COLL_JOB_SECRET must be the same on every rank' wrong &&
        await 60 has_lines 1 'dropped a connection from .*198.18.0.2:.*: it does not belong to this job' wrong; then
        ok "a wrong secret is refused"
    else
        fail "a wrong secret" "$dir"/wrong.?
    fi
}

wrong_secret
under_attack
the_end
