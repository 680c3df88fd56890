#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# elastic.sh - collrun --min-np over several hosts: ranks that die are replaced on their
# hosts, and hosts that vanish are done without.
. "${srcdir:-.}/tests/net/world.sh"
hosts_up 3
collrun=$PWD/tools/collrun
loop=$PWD/tests/launch/elastic_loop
unset COLL_JOB_SECRET GATE END

# elastic JOB PORT N OPTION... -- STEPS SIZE [RANK:STEP]...: the loop, 2 ranks on each of
# the first N hosts.
elastic() {
    job=$1 port=$2 n=$3
    shift 3
    options=
    while [ "$1" != -- ]; do options="$options $1" && shift; done
    shift
    for i in $(seq "$n"); do
        # shellcheck disable=SC2086
        node h"$i" "$job" "$collrun" --nnodes "$n" --nproc-per-node 2 \
            --rdzv-endpoint "h1:$port" --rdzv-id "$job" $options "$loop" "$@"
    done
}

# all_say JOB PATTERN N...: each is there so many times.
all_say() {
    job=$1
    shift
    while [ $# -gt 0 ]; do
        has_lines "$2" "$1" "$job" || { echo "not $2 lines like $1"; return 1; }
        shift 2
    done
}

# ---- ranks die

ranks_die() {
    elastic die 3100 2 --min-np 2 --max-restarts 2 -- 30 4 0:5 3:15
    all_ended
    judge "ranks of two hosts are replaced on their hosts" die all_say die \
        'rank 0 (pid [0-9]*) was killed by signal 9' 1 \
        'takes the place of rank 0 (restart 1 of 2)' 1 \
        'takes the place of rank 3 (restart 2 of 2)' 1 \
        'rank . of 4 in place . has ended, from the beginning' 2 \
        'has ended, a newcomer' 2 '^status 0' 2
    elastic few 3101 2 --min-np 4 --max-restarts 1 -- 1000000 9 1:5 2:5
    all_ended
    judge "fewer than --min-np are left on two hosts" few all_say few \
        'the job ends: the ranks left are [23], fewer than --min-np 4' 1 '^status 137' 2
}

# ---- hosts vanish

# Says which process its collrun is, and itself, and is the loop then.
cat > "$dir/rank" << END
#!/bin/sh
echo \$PPID > "$dir/\$TORCHELASTIC_RUN_ID-\$(cat /proc/sys/kernel/hostname)"
echo \$\$ > "$dir/\$TORCHELASTIC_RUN_ID-\$RANK"
exec "$loop" "\$@"
END
chmod +x "$dir/rank"

# vanish NAME JOB PORT COMMAND...: by this command a host of three vanishes; the others go
# on, and one of their ranks is replaced then.
vanish() {
    name=$1 job=$2 port=$3
    shift 3
    export END="$dir/$job-end"
    loop="$dir/rank" elastic "$job" "$port" 3 --min-np 3 --max-restarts 1 -- 10 4
    await 60 has_line 'all have begun' "$job" || fail "$name: no job" "$dir/$job".h?
    "$@"
    await 60 has_line 'node . (.*) is gone' "$job"
    await 60 has_line 'the 2 ranks of node . (.*) are done without' "$job"
    kill -KILL "$(cat "$dir/$job-1")"
    await 60 has_line 'takes the place of rank 1 (restart 1 of 1)' "$job"
    : > "$END"
    all_ended
    unset END
    judge "$name" "$job" all_say "$job" 'of 4 in place . has ended, from the beginning' 3 \
        'has ended, a newcomer' 1 '^status 0' 2
}

kill_collrun() { kill -KILL "$(cat "$dir/killed-h2")"; }
cut_off() { "$net/hosts" link "$folder" h3 down; }

ranks_die
vanish "a host's collrun is killed" killed 3102 kill_collrun
vanish "a host is cut off" cut 3103 cut_off
judge "the host that is cut off ends its ranks" cut grep -q 'node 0 (.*) is gone' "$dir/cut.h3"
the_end
