#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# nodes.sh - one collrun on each host, as torchrun is started: they find each other in
# any order, know each other's job from another's, and end and start again together.
. "${srcdir:-.}/tests/net/world.sh"
hosts_up 3
collrun=$PWD/tools/collrun
hello=$PWD/examples/hello
train=$PWD/trainer/coll_train
unset COLL_JOB_SECRET

torchrun="--nnodes=2 --nproc_per_node=2 --rdzv_id=12345 --rdzv_backend=c10d"
torchrun="$torchrun --rdzv_endpoint=h1:3000"

# hellos NAME: is each of 4 ranks there once, two on each host?
hellos() {
    [ "$(grep -h -o 'Hello.*' "$dir/$1".h[12] | sort)" = "$(
        printf 'Hello from: %s\n' '0 of 4, rank 0 of 2 on host 0 of 2' \
            '1 of 4, rank 1 of 2 on host 0 of 2' \
            '2 of 4, rank 0 of 2 on host 1 of 2' \
            '3 of 4, rank 1 of 2 on host 1 of 2')" ] && has_lines 2 '^status 0' "$1"
}

# The tutorial's line on both hosts, on the second one later; and one of another job.
# shellcheck disable=SC2086
row33_meet() {
    node h1 first "$collrun" $torchrun "$hello"
    await 30 sh -c "'$net/hosts' exec '$folder' h1 ss -Hltn | grep -q ':3000 '"
    node h3 other "$collrun" $torchrun --rdzv_id=other "$hello"
    await 30 has_line '^status' other
    # strangers: one that says nothing and stays, and one that says too much
    on h3 bash -c 'exec 3<> /dev/tcp/h1/3000; sleep 3' &
    strangers=$!
    on h3 bash -c 'exec 3<> /dev/tcp/h1/3000; head -c 4096 /dev/urandom >&3' 2> /dev/null || :
    node h2 first "$collrun" $torchrun "$hello"
    all_ended
    wait $strangers
    judge "row 33: two collruns meet, among strangers" first hellos first
    judge "row 33: another id is refused" other has_line \
        'refused at h1:3000: .* another --rdzv-id' other
    judge "row 33: which the other end says" first has_line \
        'node at .*198.18.0.3 was refused: .* --rdzv-id' first
}

# The other way round, with what keeps strangers out; and one secret that is another.
# shellcheck disable=SC2086
row33_secret() {
    node h2 secret env COLL_JOB_SECRET=a "$collrun" $torchrun "$hello"
    sleep 1
    node h1 secret env COLL_JOB_SECRET=a "$collrun" $torchrun "$hello"
    all_ended
    judge "row 33: the first comes last" secret hellos secret
    has_lines 0 'set COLL_JOB_SECRET' secret || fail "it has a secret" "$dir"/secret.h?
    node h1 wrong env COLL_TIMEOUT=3 COLL_JOB_SECRET=a "$collrun" $torchrun "$hello"
    node h2 wrong env COLL_TIMEOUT=3 COLL_JOB_SECRET=b "$collrun" $torchrun "$hello"
    all_ended
    judge "row 33: who lacks the secret stays out" wrong has_lines 0 'Hello' wrong
    judge "row 33: nobody waits for ever" wrong has_line \
        '1 of 2 nodes did not come to h1:3000 within 3 s' wrong
}

# With ranks of nodes given, and a third one that finds all seats taken.
row33_node_ranks() {
    for r in 0 1; do
        node h$((r + 1)) ranks "$collrun" --nnodes 2 --node-rank $r --master-addr h1 \
            --master-port 3001 --nproc-per-node 2 sh -c \
            "$hello; until [ -e $dir/full ]; do sleep 0.1; done"
    done
    await 30 has_lines 4 Hello ranks
    node h3 late "$collrun" --nnodes 2 --node-rank 1 --master-addr h1 --master-port 3001 \
        --nproc-per-node 2 "$hello"
    await 30 has_line '^status' late
    : > "$dir/full"
    all_ended
    judge "row 33: nodes that are numbered" ranks hellos ranks
    judge "row 33: no seat is left" late has_line 'has all its nodes' late
}

# A link-local address of h1, which means something with the interface alone; an IPv6
# address in the brackets of a URL, for collrun and for torchrun's ranks.
# shellcheck disable=SC2086
row33_addresses() {
    link=$(on h1 ip -6 -o address show dev eth0 scope link | sed -n 's/.*inet6 \(.*\)\/.*/\1/p;q')
    for h in h1 h2; do
        number=${h#h}
        on $h ip address add fd00::$number/64 dev eth0 nodad
        node $h link "$collrun" --nnodes=2 --nproc_per_node=2 \
            --rdzv_endpoint="[$link%eth0]:3002" "$hello"
        node $h master "$collrun" --nnodes=2 --nproc_per_node=2 \
            --node-rank $((number - 1)) --master-addr "[fd00::1]" --master-port 3003 "$hello"
        node $h variables env RANK=$((number - 1)) WORLD_SIZE=2 LOCAL_RANK=0 \
            MASTER_ADDR="[fd00::1]" MASTER_PORT=3004 \
            COLL_TIMEOUT=$((20 * patience)) "$hello"
    done
    all_ended
    judge "a link-local endpoint with its interface" link hellos link
    judge "--master-addr in brackets" master hellos master
    judge "MASTER_ADDR in brackets" variables has_lines 2 '^status 0' variables
}

# A rank of one node dies: all start again, and end alike.
# shellcheck disable=SC2016,SC2086
row33_restart() {
    for h in h1 h2; do
        node $h again "$collrun" $torchrun --max-restarts 1 sh -c '
            [ $RANK$TORCHELASTIC_RESTART_COUNT != 30 ] || kill -9 $$
            [ $TORCHELASTIC_RESTART_COUNT = 1 ] || sleep 60
            exec "$@"' - "$hello"
    done
    all_ended
    judge "row 33: all start again" again hellos again
    judge "row 33: both say so" again has_lines 2 'all 4 ranks again (restart 1 of 1)' again
    for h in h1 h2; do
        node $h ends "$collrun" $torchrun sh -c '[ $RANK != 2 ] || exit 7; sleep 60'
    done
    all_ended
    judge "row 33: both end with a rank's status" ends has_lines 2 '^status 7' ends
}

# A host's collrun is killed: so is what it has started, and the other one ends.
# shellcheck disable=SC2016,SC2086
row33_gone() {
    node h1 gone "$collrun" $torchrun --max-restarts 3 sleep 60
    node h2 gone "$collrun" $torchrun --max-restarts 3 sh -c \
        '[ $LOCAL_RANK = 0 ] || kill -9 $PPID; sleep 60'
    all_ended
    judge "row 33: a node that is gone ends the job" gone has_line 'node 1 (.*) is gone' gone
    judge "row 33: and nothing starts again" gone has_lines 0 'again' gone
    judge "row 33: with an error" gone grep -q 'status 1$' "$dir/gone.h1"
}

# shellcheck disable=SC2086
row33_trainer() {
    [ -x "$train" ] || { echo "left out: coll_train, built without oneDNN"; return; }
    for h in h1 h2; do
        node $h train "$collrun" $torchrun "$train" --dataset synthetic --model net \
            --limit-train 192 --limit-test 64 --batch-size 16 --epochs 1
    done
    all_ended
    judge "row 33: the trainer on two nodes" train has_line '4 procs on 2 nodes' train
    judge "row 33: it ends well" train has_lines 2 '^status 0' train
}

row33_meet
row33_secret
row33_node_ranks
row33_addresses
row33_restart
row33_gone
row33_trainer
the_end
