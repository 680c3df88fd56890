#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# COLL_METRICS: what each rank's file has at the end, at a SIGUSR2 and after a while, in
# Prometheus' text form, and what is said of files that cannot be written.
. "${srcdir:-.}/tests/trace/traced.sh"

# judge FILE: it is Prometheus' text form: each metric has one HELP, one TYPE and then its
# samples, in one place; names, labels and values are well formed; no sample comes twice.
judge() {
    awk '
    function wrong(what) { print FILENAME ":" FNR ": " what ": " $0; bad = 1; exit }
    function begins(name) {
        if (name in seen) wrong("a metric in two places")
        seen[name]
    }
    /^# HELP [a-z_]+ [^ ].*\.$/ { begins($3); metric = $3; type = ""; next }
    /^# TYPE [a-z_]+ (counter|gauge)$/ {
        if ($3 != metric || type) wrong("a type of another metric")
        type = $4
        if ((type == "counter") != (metric ~ /_total$/)) wrong("a name of another type")
        next
    }
    /^[a-z_]+\{[a-z]+="[a-z0-9_]*"(,[a-z]+="[a-z0-9_]*")*\} [0-9]+(\.[0-9]+)?$/ {
        if (!type || substr($0, 1, index($0, "{") - 1) != metric) wrong("no head")
        if ($1 in seen) wrong("twice")
        seen[$1]
        next
    }
    { wrong("neither a comment nor a sample") }
    END {
        if (!FNR) { print FILENAME " is empty"; bad = 1 }
        exit bad
    }' "$1" || fail "$1 is not in Prometheus' text form"
}

# value FILE METRIC ROUTINE: the sum over all communicators
value() {
    awk -v begin="$2{routine=\"$3\"," 'index($0, begin) == 1 { n += $2; k++ }
        END { print k ? n : "none" }' "$1"
}

# has FILE METRIC ROUTINE VALUE
has() {
    [ "$(value "$1" "$2" "$3")" = "$4" ] ||
        fail "$1: $2 of $3 is $(value "$1" "$2" "$3"), not $4"
}

at_the_end() {
    COLL_METRICS=m job 2 "$probe" run 500 || fail "a job with metrics"
    for rank in 0 1; do
        judge m.$rank
        has m.$rank coll_calls_total allreduce 500
        has m.$rank coll_bytes_total allreduce 2000000
        has m.$rank coll_calls_total allgather 2
        has m.$rank coll_calls_total send 1
        has m.$rank coll_bytes_total barrier 0
        has m.$rank coll_calls_total broadcast none
        grep -q "^coll_communicator_size{rank=\"$rank\",communicator=\"[0-9a-f]*\"} 2$" m.$rank ||
            fail "the communicator's size"
    done
    [ "$(ls -A)" = "$(printf 'err\nm.0\nm.1\nout')" ] || fail "something is left"
    # No more than the program measured.
    outside=$(sed -n 's/^outside //p' out)
    seconds=$(value m.0 coll_seconds_total allreduce)
    waited=$(value m.0 coll_wait_seconds_total allreduce)
    awk "BEGIN { exit !(0 < $waited && $waited <= $outside &&
        0 < $seconds && $seconds <= $outside) }" ||
        fail "$waited s of waiting, $seconds s, $outside s outside"
    ids=$(grep -ho 'communicator="[^"]*"' m.0 m.1 | sort -u | wc -l)
    [ "$ids" = 1 ] || fail "the communicator has not one name"
}

# lateness FILE: of the rank to its communicator's calls.
lateness() { sed -n 's/^coll_lateness_seconds{.*} //p' "$1"; }

# More communicators than have counters of their own, one after another
many() {
    COLL_METRICS=c%r.prom timeout $((60 * patience)) "$probe" hand-over > out 2> err ||
        fail "communicators one after another"
    judge c0.prom
    [ "$(grep -c '^coll_communicator_size' c0.prom)" = 32 ] || fail "not 32 communicators"
}

have_begun() { [ "$(grep -c begun out)" = 3 ]; }

is_there() { [ -s m.0 ] && [ -s m.2 ]; }

# The rank that comes last waits least: its time in allreduces is the shortest.
late() {
    for how in signal while; do
        rm -f m.?
        : > out
        COLL_METRICS=m "$collrun" --timeout $((60 * patience)) -n 3 "$probe" late go > out 2> err &
        pid=$!
        await 30 have_begun || fail "the job does not begin"
        # One signal at a time: the file is there when it has been taken.
        [ $how = while ] || kill -USR2 $pid || fail "the job has ended"
        await 60 is_there || fail "nothing was written ($how)"
        judge m.0
        has m.0 coll_calls_total allreduce 3
        [ -z "$(lateness m.0)" ] || fail "it is known too early"
        : > go
        wait $pid || fail "a job with a late rank"
        rm go
    done
    has m.0 coll_calls_total allreduce 4
    a=$(value m.0 coll_seconds_total allreduce)
    b=$(value m.2 coll_seconds_total allreduce)
    awk "BEGIN { exit !($b < $a) }" || fail "rank 0: $a s, the late one $b s"
    a=$(lateness m.0) b=$(lateness m.2)
    awk "BEGIN { exit !($a < $b) }" || fail "rank 0 is $a s late, the late one $b s"
}

# counted RANK CALLS SECONDS: a rank's file.
counted() {
    echo "# HELP coll_calls_total Operations that have ended."
    for routine in allreduce broadcast; do
        echo "coll_calls_total{routine=\"$routine\",rank=\"$1\",communicator=\"abc\"} $2"
        echo "coll_seconds_total{routine=\"$routine\",rank=\"$1\",communicator=\"abc\"} $3"
    done
}

# told PATTERN FILE...: what coll_history --slow says of these
told() {
    pattern=$1
    shift
    "$reader" --slow "$@" > out 2>&1
    grep -q -- "$pattern" out || fail "coll_history --slow $*: no line '$pattern'"
}

# Who is late, by all files: of 4 ranks, of which one has written earlier
slow() {
    counted 0 1000 3.0 > s.0
    counted 1 500 0.5 > s.1
    counted 2 1000 3.1 > s.2
    counted 3 1000 2.9 > s.3
    told '^  the latest is rank 1: 2.000 ms after the median$' s.?
    grep -q '^communicator abc, allreduce$' out || fail "the routine"
    ! grep -q broadcast out || fail "broadcasts end when they like"
    grep -q '^ *3  *1000  *0.100 ms$' out || fail "the next rank's row"
    told '"routine": "allreduce"' --json s.?
    tr -d '\n ' < out | grep -q '"latest_first":\[{"rank":1,"calls":500,"lateness":0.002' ||
        fail "the late rank in JSON"
    told '^  there is no other rank' s.0
    told 's.0: another file is of that rank' s.0 s.0
    told 'out is not what COLL_METRICS writes' s.0 out
    sed 's/allreduce/send/' s.0 > s.4
    told 'no file counts a call that needs all ranks' s.4
    ! "$reader" s.0 > out 2>&1 || fail "files of metrics without --slow"
    grep -q 's.0 is of COLL_METRICS; say coll_history --slow' out || fail "no word of --slow"
    told '^  the latest is rank [012]: ' m.?
}

# A program that goes to another folder, and whose communicator fails
elsewhere() {
    COLL_METRICS=e job 2 "$probe" away - || fail "a job that goes away"
    judge e.1
    has e.1 coll_calls_total allreduce 3
}

cannot() {
    ! COLL_METRICS=nowhere/m job 2 "$probe" late - || fail "a folder that is not there"
    grep -q 'COLL_METRICS: cannot write nowhere/m.[01]: No such file' err || fail "no word of it"
    mkdir gone
    COLL_METRICS=gone/m "$collrun" --timeout $((60 * patience)) -n 3 "$probe" late go > out 2> err &
    pid=$!
    await 30 have_begun || fail "the job does not begin"
    rm -r gone
    : > go
    wait $pid || fail "a job whose folder is gone"
    grep -q 'cannot write .*/gone/m.0: No such file.* set COLL_METRICS to another file' err ||
        fail "no word of the folder"
}

at_the_end
many
late
slow
elsewhere
cannot
echo "all checks passed"
