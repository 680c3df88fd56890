#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# COLL_PROFILE and COLL_TIMELINE (rows 17 and 18 of what tutorials teach): the
# files of whole jobs and of killed ones, and what is said of files that cannot
# be written.
. "${srcdir:-.}/tests/trace/traced.sh"

# judge FILE: the file is a whole timeline; out has its allreduces and their time.
judge() {
    "$probe" check "$1" > out 2> err || fail "$1 is no timeline"
}

row17_profile() {
    COLL_PROFILE=1 job 2 "$probe" run 500 || fail "a profiled job"
    for rank in 0 1; do
        [ -s coll_profile.$rank ] || fail "no profile of rank $rank"
        grep -q "^coll_allreduce  *500  *4000.0 " coll_profile.$rank ||
            fail "not 500 allreduces of 4000 bytes"
        for line in '^coll_send  *1  *20.0 ' '^coll_recv  *1  *20.0 ' \
            '^coll_barrier  *1  *' '^coll_allgather  *2  *40.0 ' \
            '^max resident set size ' '^total elapsed time ' 'busbw(GB/s)'; do
            grep -q "$line" coll_profile.$rank || fail "no line '$line'"
        done
    done
    # No more than the program measured.
    outside=$(sed -n 's/^outside //p' out)
    inside=$(awk '$1 == "coll_allreduce" && $2 == 500 {print $4}' coll_profile.0)
    awk "BEGIN {exit !($inside > 0 && $inside <= $outside)}" ||
        fail "$inside s of allreduces, $outside s outside"
    COLL_PROFILE=$scratch/mine job 2 "$probe" run 2 || fail "a named profile"
    [ -s mine.0 ] && [ -s mine.1 ] || fail "the profile has not its name"
    rm -f coll_profile.*
    COLL_PROFILE=0 job 2 "$probe" run 2 || fail "no profile"
    [ ! -e coll_profile.0 ] || fail "COLL_PROFILE=0 writes one"
}

row18_timeline() {
    COLL_TIMELINE=t.json COLL_PROFILE=1 job 2 "$probe" run 500 ||
        fail "a traced job"
    judge t.json
    grep -q "^allreduces 500 " out || fail "not 500 allreduces in the timeline"
    for text in '"name": "ALLREDUCE"' '"name": "COLL_ALLREDUCE"' \
        '"name": "FORWARD"' '"dtype": "float32", "shape": "\[1000\]"' \
        'start_time_since_epoch_in_micros' '"sort_index": 1' '"user_tag": 6}' \
        '"name": "PAST"' '"name": "one"' '"name": "PAST (2)"' '"name": "two"'; do
        grep -q "$text" t.json || fail "no $text in the timeline"
    done
    ! grep -q never t.json || fail "a span that ends before it begins"
    ! grep -q CHILD t.json || fail "a child's span is in its parent's file"
    # The two tell the same time; the timeline's is cut to microseconds.
    profiled=$(awk '$1 == "coll_allreduce" && $2 == 500 {print $4}' \
        coll_profile.0)
    awk -v p="$profiled" '{d = $4 - p; exit !(d < 0.002 && d > -0.002)}' out ||
        fail "the timeline says $(cat out), the profile $profiled s"
    HOROVOD_TIMELINE=h.json job 2 "$probe" run 5 || fail "HOROVOD_TIMELINE"
    judge h.json
    COLL_TIMELINE=r%r.json job 3 "$probe" run 5 || fail "a timeline a rank"
    for rank in 0 1 2; do
        judge r$rank.json
    done
}

# Whenever the program is killed, the file is whole, but for its bracket if the kernel cut
# the last write, which it does between two pages alone.  One that still runs would write
# between two reads, so it is one of which we know when it is gone.
row18_killed() {
    COLL_TIMELINE=p.json "$probe" run 200 > out 2> err || fail "200 allreduces"
    for page in 1 2 3 4 5 6 7 8; do
        head -c $((4096 * page)) p.json > cut.json
        echo ']' >> cut.json
        judge cut.json
    done
    for delay in 0.01 0.05 0.1 0.2 0.3; do
        mkfifo begun
        COLL_TIMELINE=k.json "$probe" endless > begun 2> err &
        pid=$!
        read -r _ < begun
        sleep $delay
        kill -KILL $pid
        wait $pid 2>> err
        rm begun
        "$probe" check k.json > out 2> err || { echo ']' >> k.json; judge k.json; }
        [ "$(sed -n 's/^allreduces \([0-9]*\) .*/\1/p' out)" -gt 0 ] ||
            fail "nothing in the file of a killed program"
    done
}

wrong() {
    for name in COLL_PROFILE COLL_TIMELINE HOROVOD_TIMELINE; do
        ! env $name=nowhere/x "$collrun" -n 2 "$probe" run 1 > out 2> err ||
            fail "$name of a folder that is not there"
        grep -q "$name: cannot write nowhere/x" err ||
            fail "$name: no sentence"
    done
    # A full disk ends the file, and nothing else.
    ! COLL_TIMELINE=/dev/full "$probe" run 1 > out 2> err ||
        fail "a full disk at the start"
    grep -q "cannot write /dev/full: No space" err || fail "no word of it"
    ln -s /dev/full full.0
    COLL_PROFILE=full "$probe" run 1 > out 2> err || fail "a full disk"
    grep -q "COLL_PROFILE ends here: No space" err || fail "no word of a full disk"
    (
        ulimit -f 8
        trap '' XFSZ
        COLL_TIMELINE=cut.json "$probe" run 500 > out 2> err
    ) || fail "a file that is as large as it may be"
    grep -q "COLL_TIMELINE ends here: File too large" err ||
        fail "no word of a file that grew too large"
    judge cut.json
}

row17_profile
row18_timeline
row18_killed
wrong
echo "all checks passed"
