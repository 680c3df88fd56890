#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# clones.sh - hosts that are clones of one snapshot: their boot id, their namespaces'
# numbers and their names are the same, and so may be the numbers of processes.  They are
# told apart, and nobody takes a rank for dead whose process is on the other host.
. "${srcdir:-.}/tests/net/world.sh"
hosts_up 2
collrun=$PWD/tools/collrun
hello=$PWD/examples/hello
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"

# run JOB PORT SKIPPED COMMAND...: two ranks on each host, whose processes have numbers of
# their own there; on h2 so many numbers are skipped, so that h1 has no such process.
run() {
    job=$1 port=$2 skipped=$3
    shift 3
    for h in h1 h2; do
        on $h unshare --pid --fork --kill-child --mount-proc sh -c '
            n=$1
            while [ $n -gt 0 ]; do /bin/true; n=$((n - 1)); done
            shift
            exec "$@"' - $([ $h = h1 ] && echo 0 || echo "$skipped") \
            env LD_PRELOAD="$PWD/tests/.libs/libsame_ids.so" "$collrun" --nnodes 2 \
            --nproc-per-node 2 --rdzv-endpoint "198.18.0.1:$port" "$@" \
            > "$dir/$job.$h" 2>&1 &
        ranks="$ranks $!"
    done
    have_ended
}

# hellos JOB: is each of 4 ranks there once, two on each of two hosts?
hellos() {
    [ "$(grep -h -o 'Hello.*' "$dir/$1".h[12] | sort)" = "$(
        printf 'Hello from: %s\n' '0 of 4, rank 0 of 2 on host 0 of 2' \
            '1 of 4, rank 1 of 2 on host 0 of 2' \
            '2 of 4, rank 0 of 2 on host 1 of 2' \
            '3 of 4, rank 1 of 2 on host 1 of 2')" ]
}

port=3100
for skipped in 0 200; do
    name="clones, $skipped process numbers apart"
    if run hello$skipped $port $skipped "$hello" && hellos hello$skipped; then
        ok "$name: two hosts"
    else
        fail "$name: two hosts" "$dir/hello$skipped".h?
    fi
    if run split$skipped $((port + 1)) $skipped "$probe" split &&
        [ "$(cat "$dir/split$skipped".h? | grep -c 'all is well')" = 4 ]; then
        ok "$name: they compute"
    else
        fail "$name: they compute" "$dir/split$skipped".h?
    fi
    port=$((port + 2))
done
the_end
