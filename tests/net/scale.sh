#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# scale.sh - 64 ranks on eight hosts come up, and say how long that took, which is
# nothing that a busy machine could be judged by.
. "${srcdir:-.}/tests/net/world.sh"
hosts_up 8
size=64
begin=$(date +%s.%N)
for r in $(seq 0 $((size - 1))); do
    rank h$((r * 8 / size + 1)) up "$r" $size 198.18.0.1:6000 "$probe" split
done
started=$(date +%s.%N)
if await 60 has_lines $size ': up$' up; then
    echo "$begin $started $(date +%s.%N)" |
        awk '{ printf "ok   64 ranks on 8 hosts are up %.1f s after the first began, %.1f s after the last did\n", $3 - $1, $3 - $2 }'
else
    fail "64 ranks do not come up" "$dir"/up.0 "$dir"/up.63
fi
if await 60 has_lines $size 'all is well' up && have_ended; then
    ok "and reduce"
else
    fail "64 ranks do not reduce" "$dir"/up.0 "$dir"/up.63
fi
the_end
