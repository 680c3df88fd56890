#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# COLL_HISTORY and coll_history: what ranks write when a call fails or when they are
# asked to, and what is read in it.
. "${srcdir:-.}/tests/trace/traced.sh"

# says STATUS PATTERN FILE...: a line of what coll_history says of these
says() {
    want=$1 pattern=$2
    shift 2
    "$reader" "$@" > out 2> err
    status=$?
    [ $status = "$want" ] || fail "coll_history $*: status $status, not $want"
    cat out err | grep -q -- "$pattern" || fail "coll_history $*: no line '$pattern'"
}

# late RANKS HOW: a job in the background, $pid, of which the last rank is late until
# there is a file "go"; it ends $pid by its own limit of time.
late() {
    ranks=$1
    : > out # the shell that is to empty it may be late
    "$collrun" --timeout $((60 * patience)) -n "$ranks" "$probe" "$2" go > out 2> err &
    pid=$!
    await 30 have_begun || fail "the job does not begin"
}

have_begun() { [ "$(grep -c begun out)" = "$ranks" ]; }

# ask_until PATTERN FILE...: ask the job for its calls, by SIGUSR2, until a line of what
# coll_history says of these files matches.
ask_until() {
    pattern=$1
    shift
    await 30 is_told "$@" || fail "the job does not come to '$pattern'"
}

# One signal at a time: when the files are there, it has been taken.
is_told() {
    rm -f "$@"
    kill -USR2 $pid || fail "the job has ended"
    (await 30 are_written "$@") || fail "nothing was written"
    "$reader" "$@" 2>&1 | grep -q -- "$pattern"
}

are_written() {
    for file; do
        [ -s "$file" ] || return 1
    done
}

# A rank that does not come within the deadline; it comes when it has heard of that.
missing() {
    COLL_HISTORY=h CALL_TIMEOUT=$patience job 3 "$probe" late h.2 ||
        fail "a job with a late rank"
    # a busy machine may have it answer late
    grep -q 'allreduce #4 (1000 f32, sum) \[user tag 7[01]\] did not end' err ||
        fail "its user tag"
    grep -q "not arrived: rank 2\|no answer from rank 2" err || fail "it did not fail"
    says 1 '^  missing in allreduce #4 (1000 f32, sum): rank 2; waiting in it: rank 0 1, for [0-9.]* s$' h.*
    grep -q '^3 files of 3 ranks$' out || fail "the number of files"
    grep -q '^  it has failed: allreduce #4 .* rank 2' out || fail "the failure"
    grep -q '^  rank 2 is after allreduce #3 ' out || fail "where it is"
    says 1 "no file of rank 2: it was killed" h.0 h.1
    grep -q 'in allreduce #4 .*: all that have a file; it has not ended' out ||
        fail "who is in it"
    grep -q 'missing in' out && fail "who has no file is not known to be missing"
    says 1 '"found": "missing"' --json h.0 h.1 h.2
    tr -d '\n ' < out | grep -q '"ranks":\[0,1,2\],"no_file":\[\],' || fail "ranks in JSON"
    tr -d '\n ' < out | grep -q '"seq":4,"call":"allreduce#4(1000f32,sum)","missing":\[2\],"waiting":\[0,1\],"waited":[1-9]' ||
        fail "the call in JSON"
}

# Two ranks are in a call, and the third comes to another.
mismatch() {
    COLL_HISTORY=m%r.json COLL_STALL_WARN=0 late 3 other
    ask_until '^  missing in allreduce #4 .*: rank 2; waiting in it: rank 0 1' \
        m0.json m1.json m2.json
    : > go
    wait $pid || fail "a job of ranks that differ"
    [ -s m0.json ] && [ -s m2.json ] || fail "the files have not their names"
    says 1 '^  the ranks differ in call #4:$' m0.json m1.json m2.json
    grep -q '^    allreduce #4 (1000 f32, sum) \[user tag 70\]: 0 1$' out || fail "what 0 and 1 called"
    grep -q '^    barrier #4 \[user tag 72\]: 2$' out || fail "what 2 called"
    grep -q '^   "failure": ".* called [^;]* \[user tag 7[012]\]' m0.json ||
        fail "the failure's user tag"
    rm go
}

# Programs that exit at the failure, of which most ranks hear by another thread; in the
# background, each in a folder of its own.
leaving() {
    leavers=
    for i in 1 2 3; do
        mkdir left.$i
        (cd left.$i && one_leaves) &
        leavers="$leavers $!"
    done
}

one_leaves() {
    COLL_HISTORY=h CALL_TIMEOUT=$patience job 4 "$probe" leave h.3 ||
        fail "a job that leaves"
    for r in 0 1 2 3; do
        grep -q '^   "failure": "allreduce #2001' h.$r || fail "rank $r has not written"
    done
}

have_left() {
    for i in $leavers; do
        wait "$i" || exit 1
    done
}

# What is not whole yet has a name that FILE.* does not take in.
half() {
    mkdir half half/h.0.new half/h.1.new
    COLL_HISTORY=half/h job 2 "$probe" other - || fail "a name that is another's"
    [ -s half/h.0 ] && [ -s half/h.1 ] || fail "the files are not there"
    [ "$(ls -A half | wc -l)" = 4 ] || fail "something is left"
}

# A program that goes to another folder.
elsewhere() {
    COLL_HISTORY=e job 2 "$probe" away - || fail "a job that goes away"
    says 1 'the ranks differ in call #4' e.0 e.1
}

# Ranks that start again keep what was written of the run before.
restarted() {
    mkdir again
    echo old > again/run0.m1
    COLL_HISTORY=again/m%r job 2 --max-restarts 2 sh -c '
        [ $TORCHELASTIC_RESTART_COUNT != 2 ] || exec "$1" late -
        "$1" other -
        exit 1' sh "$probe" || fail "a job that starts again"
    for run in 0 1; do
        says 1 'the ranks differ in call #4' again/run$run.m0 again/run$run.m1
    done
    [ ! -e again/m0 ] || fail "the last run ended well"
}

# SIGUSR2 to collrun, which passes it on; the job goes on
asked() {
    rm -f h.*
    COLL_HISTORY=h COLL_STALL_WARN=0 late 2 late
    ask_until '^  missing in allreduce #4 .*: rank 1; waiting in it: rank 0' h.0 h.1
    : > go
    wait $pid || fail "the job failed"
    rm go
    says 1 '^  missing in allreduce #4 .*: rank 1; waiting in it: rank 0' h.0 h.1
    ! grep -q 'it has failed' out || fail "nothing has failed"
}

# The last rank comes to each call but the last three after the others.
slow() {
    rm -f h.*
    COLL_HISTORY=h COLL_STALL_WARN=0 late 3 slow
    ask_until '^  missing in allreduce #21 .*: rank 2; waiting in it: rank 0 1' h.0 h.1 h.2
    : > go
    wait $pid || fail "the job failed"
    rm go
    says 0 '^  the latest is rank 2 on .*: last in [0-9]* of 20 calls, [0-9.]* ms after' --slow h.?
    [ "$(sed -n 's/.* last in \([0-9]*\) of .*/\1/p' out)" -ge 17 ] || fail "it is not always last"
    says 0 '"times_last"' --slow --json h.?
    says 0 '^  no file of rank 1: it was killed' --slow h.0 h.2
    says 0 '^  there is no other rank' --slow h.0
}

# written RANK HOST AHEAD RANKS COLLECTIVE: a file of a rank whose clock is so far ahead and
# 10 ppm fast, and whose wall clock is 1 s ahead on host b.  Of 100 calls, one each
# second, the last rank is 2 ms late to each, 50 ms to the seventh; they end together.
written() {
    awk -v rank="$1" -v host="$2" -v ahead="$3" -v size="$4" -v what="$5" '
    function on_clock(t) { return ahead + t * (host == "b" ? 1.00001 : 1) }
    BEGIN {
        printf "{\"libcoll_history\": 1, \"rank\": %d, \"size\": %d, \"pid\": 1,", rank, size
        printf "\"host\": \"%s\", \"time\": %.3f, \"clock\": %.6f, \"communicators\": [",
            host, 1e9 + 200 + (host == "b"), on_clock(200)
        printf "{\"id\": \"abc\", \"rank\": %d, \"size\": %d, \"ranks\": [", rank, size
        for (r = 0; r < size; r++) printf "%s%d", (r ? "," : ""), r
        printf "], \"where\": \"\", \"failure\": \"\", \"calls\": [{\"series\": \"host\", "
        printf "\"started\": 100, \"ended\": 100, \"last\": ["
        for (k = 1; k <= 100; k++) {
            late = rank < size - 1 ? rank * 1e-6 : k == 7 ? 0.05 : 0.002
            printf "%s{\"seq\": %d, \"what\": \"%s #%d\", \"collective\": \"%s\", ",
                (k > 1 ? "," : ""), k, what, k, what
            printf "\"count\": 1, \"root\": 0, \"way\": 0, \"called\": %.6f, \"ended\": %.6f}",
                on_clock(k + late), on_clock(k + 0.06)
        }
        print "]}]}]}"
    }'
}

# Clocks of two hosts are compared by the calls that end together.
clocks() {
    written 0 a 50 4 allreduce > w.0
    written 1 a 50 4 allreduce > w.1
    written 2 b 9000 4 allreduce > w.2
    written 3 b 9000 4 allreduce > w.3
    says 0 '^  2 clocks, compared by the ends of 100 calls$' --slow w.?
    grep -q '^  the latest is rank 3 on b: last in 100 of 100 calls, 2.4[78][0-9] ms after' out ||
        fail "the late rank"
    grep -q '^  worst in allreduce #7, by \(49.[89]\|50.0\)[0-9]* ms$' out || fail "the worst call"
    grep -q '^ *0  a  *100 *0 *0.00[0-9] ms$' out || fail "the first rank's row"
    says 0 '"worst_call": "allreduce #7"' --slow --json w.?
    tr -d '\n ' < out | grep -q '"latest_first":\[{"rank":3,"host":"b","calls":100,"times_last":100,' ||
        fail "the late rank in JSON"
    # Broadcasts need not end together: the wall clocks are believed, one 1 s wrong.
    written 0 a 50 2 broadcast > w.0
    written 1 b 9000 2 broadcast > w.1
    says 0 '^  2 clocks, compared by the hosts. wall clocks$' --slow w.0 w.1
    grep -q '^  the latest is rank 1 on b: last in 100 of 100 calls, 100[0-9]\.' out ||
        fail "by wall clocks"
    # All are on one host.
    written 0 a 50 2 broadcast > w.0
    written 1 a 50 2 broadcast > w.1
    says 0 '^  the latest is rank 1 on a: last in 100 of 100 calls, 2.480 ms' --slow w.0 w.1
    ! grep -q clocks out || fail "there is one clock"
    sed -i 's/"called": [0-9.]*/"called": 0/g' w.0
    says 0 '^  no call is in the files of all ranks with its time' --slow w.0 w.1
}

# The signal is taken and left with the process's communicators.
signals() {
    rm -f h.*
    COLL_HISTORY=h timeout $((60 * patience)) "$probe" hand-over > out 2> err ||
        fail "communicators one after another"
    rm -f h.*
    TSAN_OPTIONS=${TSAN_OPTIONS-}:die_after_fork=0 COLL_HISTORY=h \
        timeout $((60 * patience)) "$probe" child > out 2> err ||
        fail "a child's signal"
    grep -q 'left out' out || says 0 '^1 files of 1 ranks' h.0
}

# A job that ends well writes nothing, and takes an older one's file away.
none() {
    echo old > h.0
    COLL_HISTORY=h job 2 "$probe" late - || fail "a job that ends well"
    [ ! -e h.0 ] && [ ! -e h.1 ] || fail "it wrote a file"
    ! COLL_HISTORY=nowhere/h job 2 "$probe" late - || fail "a folder that is not there"
    grep -q 'COLL_HISTORY: cannot write nowhere/h.[01]: No such file' err || fail "no word of it"
}

wrong_files() {
    says 2 'which files?'
    says 2 'unknown option --jsn' --jsn
    says 2 'cannot read nothing: ' nothing
    echo '{' > bad
    says 2 'cannot read bad: ' bad
    echo '{"a": 1}' > bad
    says 2 'bad is not what COLL_HISTORY writes' bad
    says 2 'another file is of that rank' h.0 h.0
    sed 's/"size": 2/"size": 1/' h.0 > bad
    says 2 'one of its communicators is none' bad
    for number in 9223372036854775807 9007199254740993 -1; do
        sed 's/"started": 4,/"started": '$number',/' h.0 > bad
        says 2 'bad: one of its communicators is none' bad
        sed 's/"seq": 4,/"seq": '$number',/' h.0 > bad
        says 2 'bad: one of its communicators is none' bad
    done
    sed 's/"started": [0-9]*/"started": 50000003/; s/"seq": /&5000000/' h.1 > far
    timeout 10 "$reader" h.0 far > out 2> err
    [ $? = 0 ] || fail "files of very different moments"
    says 0 '^Usage: ' --help
    says 0 '^coll_history (libcoll) ' --version
    ! "$reader" h.0 > /dev/full 2> err || fail "a full disk"
    grep -q 'cannot write the output: No space' err || fail "no word of a full disk"
}

leaving
missing
mismatch
have_left
half
elsewhere
restarted
asked
wrong_files
slow
clocks
signals
none
echo "all checks passed"
