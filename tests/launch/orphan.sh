#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# orphan.sh - the process that started the ranks is killed, as torchrun's agent or
# Slurm's step daemon may be: the ranks end by themselves, and say why.  Those that a
# user started by hand outlive whoever did.
set -u
. "${srcdir:-.}/tests/support/patience.sh"
probe=$PWD/tests/support/host_probe
dir=$(mktemp -d) || exit 99
agent=
finish() {
    [ -z "$agent" ] || kill -KILL "$agent" 2> /dev/null
    for file in "$dir"/pid.*; do
        [ ! -s "$file" ] || kill -KILL "$(cat "$file")" 2> /dev/null
    done
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM
unset COLL_BOOTSTRAP COLL_RANK COLL_SIZE COLL_ROOT PMIX_NAMESPACE TORCHELASTIC_RUN_ID
export COLL_JOB_SECRET=orphan COLL_TIMEOUT=$((100 * patience)) CUT="$dir/cut" dir probe

fail() {
    echo "FAILED: $*" >&2
    cat "$dir"/out.? >&2
    exit 1
}

# What a rank is: its number and its program's are kept to be found again.
cat > "$dir/rank" << 'END'
#!/bin/sh
echo $$ > "$dir/pid.$NUMBER"
exec "$probe" "$@"
END
# Behind a program of the user's that stays.
cat > "$dir/behind" << 'END'
#!/bin/sh
"$dir/rank" "$@"
exit $?
END
chmod +x "$dir/rank" "$dir/behind"

# until_up: both ranks have met.
until_up() {
    tries=$((100 * patience))
    until [ "$(cat "$dir"/out.? 2> /dev/null | grep -c '^rank .: up')" = 2 ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "$1: the ranks do not meet"
        sleep 0.1
    done
}

# left: how many ranks there are still.
left() {
    n=0
    for file in "$dir"/pid.*; do
        ! kill -0 "$(cat "$file")" 2> /dev/null || n=$((n + 1))
    done
    echo $n
}

# until_joining NAME: the only rank has a thread for its connections, and waits for
# the other.
until_joining() {
    tries=$((100 * patience))
    until [ "$(ls "/proc/$(cat "$dir"/pid.? 2> /dev/null)/task" 2> /dev/null |
        wc -l)" -gt 1 ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "$1: the rank does not begin to join"
        sleep 0.1
    done
}

# start NAME MODE VARIABLES PROGRAM [NUMBERS] [UNTIL]: an agent with both ranks, or
# those, which is killed when all are up, or UNTIL; $NUMBER is a rank's where VARIABLES
# are looked at.
start() {
    rm -f "$dir"/out.? "$dir"/pid.* "$dir"/cut*
    # shellcheck disable=SC2016
    sh -c 'for NUMBER in $4; do
            eval "env NUMBER=$NUMBER $2" "$3" "$1" "> $dir/out.$NUMBER 2>&1 &"
        done
        wait' - "$2" "$3" "$4" "${5:-0 1}" &
    agent=$!
    "${6:-until_up}" "$1"
    kill -KILL $agent
    wait $agent 2> /dev/null
    agent=
}

# ends NAME VARIABLES PROGRAM [NUMBERS UNTIL]: its ranks end in time.
ends() {
    start "$1" busy "$2" "$3" "${4:-}" "${5:-}"
    tries=$((50 * patience))
    while [ "$(left)" != 0 ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "$1: $(left) ranks stay behind"
        sleep 0.1
    done
    cat "$dir"/out.? | grep -q "the launcher has gone (process [0-9]*.*nobody is left" ||
        fail "$1: nobody says why"
    echo "ok: $1"
}

port=$((20000 + $$ % 20000))
elastic="RANK=\$NUMBER WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port"
slurm="SLURM_PROCID=\$NUMBER SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2
    SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=here"
ends "torchrun" "TORCHELASTIC_RUN_ID=none $elastic" "$dir/rank"
ends "torchrun, ranks behind a script" "TORCHELASTIC_RUN_ID=none $elastic" "$dir/behind"
ends "srun" "$(echo $slurm)" "$dir/rank"
ends "torchrun, rank 0 alone" "TORCHELASTIC_RUN_ID=none $elastic" "$dir/rank" 0 until_joining
ends "torchrun, rank 1 alone" "TORCHELASTIC_RUN_ID=none $elastic" "$dir/rank" 1 until_joining

start "by hand" work "$elastic" "$dir/rank"
sleep 1
[ "$(left)" = 2 ] || fail "by hand: ranks do not outlive who started them"
: > "$dir/cut"
: > "$dir/cut.end"
tries=$((50 * patience))
while [ "$(left)" != 0 ]; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || fail "by hand: the job does not end"
    sleep 0.1
done
! grep -q 'status -' "$dir"/out.? || fail "by hand: the job failed"
echo "ok: by hand"
