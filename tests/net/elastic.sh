#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# elastic.sh - collrun --min-np over several hosts, with a collrun on each or with one that
# starts the others: ranks that die are replaced on their hosts, hosts that vanish are done
# without, and a script names hosts that come and go.
. "${srcdir:-.}/tests/net/world.sh"
hosts_up 3
collrun=$PWD/tools/collrun
loop=$PWD/tests/launch/elastic_loop
unset COLL_JOB_SECRET GATE ALL MEETING END

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

a_newcomer_dies() {
    export MEETING=dies
    elastic meet 3104 2 --min-np 2 --max-restarts 2 -- 30 4 3:5
    all_ended
    unset MEETING
    judge "a newcomer on another host dies after it is let in" meet all_say meet \
        'rank [012]: no growth: rank 3, a newcomer, has gone before it joined' 3 \
        'takes the place of rank 3 (restart 2 of 2)' 1 \
        'rank 3 of 4 in place . has ended, a newcomer' 1 '^status 0' 2
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

# ---- one collrun starts those of the other hosts

# start JOB OPTION... -- STEPS SIZE [RANK:STEP]...: the loop, by a collrun on h1.
start() {
    job=$1
    shift
    options=
    while [ "$1" != -- ]; do options="$options $1" && shift; done
    shift
    # shellcheck disable=SC2086
    node h1 "$job" "$collrun" --rdzv-id "$job" --rsh-agent "$dir/ssh" -x LD_LIBRARY_PATH \
        $options "$dir/rank" "$@"
}

# As ssh does it: nothing goes along but what is told.  These collruns are descendants of the
# first one, and by their environment nothing says that they are not of its job.
cat > "$dir/ssh" << END
#!/bin/sh
exec env -i TEST_HOSTS="$folder" HOME=/root PATH=/usr/bin:/bin:/usr/sbin:/sbin "$net/rsh" "\$@"
END
cat > "$dir/hosts" << END
#!/bin/sh
echo >> "$dir/asked"
cat "$dir/list"
END
chmod +x "$dir/ssh" "$dir/hosts"

agents() {
    start agents -H h2:2,h1:2,h3:1 --min-np 3 --max-restarts 3 -- 30 5 0:5 2:10 4:15
    all_ended
    judge "--hosts: ranks are replaced on their hosts" agents all_say agents \
        'takes the place of rank 0' 1 'takes the place of rank 2' 1 \
        'takes the place of rank 4' 1 'takes the place of rank . (restart 3 of 3)' 1 \
        '^\[[013]\] rank . of 5 in place [01] has ended, from the beginning' 2 \
        'has ended, a newcomer' 3 'is gone' 0 '^status 0' 1
    export END="$dir/lost-end"
    start lost -H h1:2,h2:2,h3:1 --min-np 2 -- 10 3
    await 60 has_line 'all have begun' lost
    await 60 test -s "$dir/lost-h2"
    kill -KILL "$(cat "$dir/lost-h2")"
    await 60 has_line 'the 2 ranks of node 1 (.*) are done without' lost
    : > "$END"
    all_ended
    judge "--hosts: a host's collrun is killed" lost all_say lost \
        'of 3 in place . has ended, from the beginning' 3 '^status 0' 1
    unset END
}

# list LINE...: what the script prints from now on.
list() { printf '%s\n' "$@" > "$dir/list.new" && mv "$dir/list.new" "$dir/list"; }

come() {
    list h1:2
    start come --host-discovery-script "$dir/hosts" --min-np 2 --max-np 5 -- 10 5
    await 60 has_line 'all have begun' come
    list h1:2 h2:2 'h3 slots=2'
    all_ended
    judge "new hosts get ranks up to --max-np" come all_say come \
        'h2 is a new host, for 2 ranks' 1 'h3 is a new host, for 2 ranks' 1 \
        'a newcomer (pid [0-9]*) takes the new place' 3 \
        'rank . of 5 in place . has ended, from the beginning' 2 \
        'rank . of 5 in place . has ended, a newcomer' 3 '^status 0' 1
}

go() {
    list h1:2 h2:2
    export END="$dir/go-end"
    start go --host-discovery-script "$dir/hosts" --min-np 2 --max-restarts 9 -- 10 3
    await 60 has_line 'all have begun' go
    list h1:2
    await 60 has_line 'h2 is no longer among the hosts' go
    kill -KILL "$(cat "$dir/go-3")"
    await 60 has_line 'rank 3 (pid [0-9]*) was killed' go
    : > "$END"
    all_ended
    unset END
    judge "nothing is started on a host that is gone from the list" go all_say go \
        'takes the place' 0 'rank . of 3 in place . has ended, from the beginning' 3 \
        '^status 0' 1
}

# was_asked N: has the script run so often?
was_asked() { [ "$(wc -l < "$dir/asked")" -ge "$1" ]; }

back() {
    list h1:2 h2:1
    export END="$dir/back-end"
    start back --host-discovery-script "$dir/hosts" --min-np 2 -- 10 3
    await 60 has_line 'all have begun' back
    await 60 test -s "$dir/back-h2"
    kill -KILL "$(cat "$dir/back-h2")"
    await 60 has_line 'the 1 rank of node 1 (.*) is done without' back
    list h1:2
    await 60 was_asked $(($(wc -l < "$dir/asked") + 3))
    list h1:2 h2:1
    await 60 has_line 'takes the new place 3' back
    : > "$END"
    all_ended
    unset END
    judge "a lost host comes back" back all_say back 'h2 is a new host, for 1 rank' 1 \
        'rank . of 3 in place . has ended, from the beginning' 2 \
        'rank 2 of 3 in place 0 has ended, a newcomer' 1 '^status 0' 1
}

# The host of a newcomer is cut off after this was let in.
meet() {
    list h1:2
    export MEETING=stops
    start halt --host-discovery-script "$dir/hosts" -x MEETING --min-np 2 -- 10 3
    await 60 has_line 'all have begun' halt
    list h1:2 h3:1
    await 60 has_line 'meets the ranks' halt
    cut_off
    await 60 has_line 'no growth' halt
    list h1:2 h2:1
    all_ended
    unset MEETING
    "$net/hosts" link "$folder" h3 up
    judge "the host of a newcomer is cut off after it is let in" halt all_say halt \
        'the 1 rank of node . (.*) is done without' 1 \
        'rank [01]: no growth: rank 2, a newcomer, has gone before it joined' 2 \
        'rank 2 of 3 in place . has ended, a newcomer' 1 '^status 0' 1
}

# wrong PATTERN STATUS OPTION...: collrun says so, at its deadline of $limit s at the latest.
wrong() {
    pattern=$1 status=$2
    shift 2
    node h1 wrong env COLL_TIMEOUT="$limit" "$collrun" --min-np 2 "$@" true
    all_ended
    judge "wrong: $pattern" wrong all_say wrong "$pattern" 1 "^status $status" 1
}

wrongs() {
    limit=$((20 * patience))
    : > "$dir/plain"
    for what in 'exit 3' 'echo hello world' 'echo h1:many' 'echo h1:1' 'true' 'echo h3:2' \
        'kill -9 $$'; do
        name=$(echo "$what" | tr -dc 'a-z0-9')
        printf '#!/bin/sh\n%s\n' "$what" > "$dir/$name"
        chmod +x "$dir/$name"
    done
    wrong 'host-discovery-script /none: No such file' 2 --host-discovery-script /none
    wrong 'it is not executable; chmod +x it' 2 --host-discovery-script "$dir/plain"
    wrong 'it is no file' 2 --host-discovery-script "$dir"
    wrong 'exit3: it exited with status 3' 1 --host-discovery-script "$dir/exit3"
    wrong 'kill9: it was killed by signal 9' 1 --host-discovery-script "$dir/kill9"
    wrong 'line 1 of what it prints is not HOST or HOST:SLOTS' 1 \
        --host-discovery-script "$dir/echohelloworld"
    wrong 'line 1 of what it prints is not HOST or HOST:SLOTS' 1 \
        --host-discovery-script "$dir/echoh1many"
    wrong 'collrun runs on one of the hosts, and h1 is none' 2 \
        --host-discovery-script "$dir/echoh32"
    wrong 'leave all but one out' 2 --host-discovery-script "$dir/true" -H h1:2
    wrong 'no collrun could be started on h2: .* status 1' 1 -H h1:1,h2:1 --rsh-agent false
    wrong 'cannot run /none: No such file' 1 -H h1:1,h2:1 --rsh-agent /none
    wrong 'each must be no larger than the next' 2 -H h1:1
    limit=$((1 + patience))
    wrong "named hosts only for 1 of 2 ranks within $limit s" 1 \
        --host-discovery-script "$dir/echoh11"
    wrong "it named no hosts for 0 of 2 ranks within $limit s" 1 \
        --host-discovery-script "$dir/true"
}

ranks_die
a_newcomer_dies
vanish "a host's collrun is killed" killed 3102 kill_collrun
agents
come
go
back
meet
wrongs
vanish "a host is cut off" cut 3103 cut_off
judge "the host that is cut off ends its ranks" cut grep -q 'node 0 (.*) is gone' "$dir/cut.h3"
the_end
