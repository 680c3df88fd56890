#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# scale.sh - 64 ranks on eight hosts come up, and say how long that took, which is
# nothing that a busy machine could be judged by; and no rank has more connections
# then than one up and two down the control tree, and the one between the two that have
# measured the network.
. "${srcdir:-.}/tests/net/world.sh"
hosts_up 8
size=64
begin=$(date +%s.%N)
for r in $(seq 0 $((size - 1))); do
    rank h$((r * 8 / size + 1)) up "$r" $size 198.18.0.1:6000 "$probe" meet
done
started=$(date +%s.%N)
if await 60 has_lines $size ': up$' up; then
    echo "$begin $started $(date +%s.%N)" |
        awk '{ printf "ok   64 ranks on 8 hosts are up %.1f s after the first began, %.1f s after the last did\n", $3 - $1, $3 - $2 }'
else
    fail "64 ranks do not come up" "$dir"/up.0 "$dir"/up.63
fi

# How many ranks there are, the most connections of one, and the most bytes, in and out,
# of one that has measured nothing.
connections() {
    for h in 1 2 3 4 5 6 7 8; do
        on h$h ss -HOtinp state established |
            awk '{
                if (!match($0, /pid=[0-9]+/)) next
                pid = substr($0, RSTART + 4, RLENGTH - 4); n[pid]++
                for (i = 1; i <= NF; i++)
                    if ($i ~ /^bytes_(sent|received):/) { sub(/.*:/, "", $i); sum[pid] += $i }
            } END { for (pid in n) print pid, n[pid], sum[pid] + 0 }'
    done | sort -rnk 3 > "$dir/connections"
    awk '{ if ($2 > most) most = $2; if (NR == 3) bytes = $3 }
        END { print NR, most + 0, bytes + 0 }' "$dir/connections"
}

# has_few: the rendezvous has ended and there is the tree alone.
has_few() {
    counts=$(connections)
    echo "$counts" | awk -v size=$size '{ exit !($1 == size && $2 <= 4) }'
}

if ! command -v ss > /dev/null; then
    echo "left out: no ss to count connections by"
elif await 10 has_few; then
    echo "$counts" | awk '{ print "ok   of", $1, "ranks none has more than", $2, "connections, nor but for two", $3, "bytes" }'
else
    fail "not $size ranks with 4 connections at most: $counts" "$dir/connections"
fi
: > "$CUT"
if await 60 has_lines $size 'all is well' up && have_ended; then
    ok "and reduce"
else
    fail "64 ranks do not reduce" "$dir"/up.0 "$dir"/up.63
fi
the_end
