#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# benchmarks/compare: a table and JSON with whichever rivals are there, without
# them, and with one that misbehaves; the gate; what is refused; what is left.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
program=benchmarks/compare
. "${srcdir:-.}/tests/support/program.sh"
build=$PWD
json=$scratch/result.json
unset COLL_ALGO COLL_TRANSPORTS COLL_BOOTSTRAP
mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp
export TMPDIR
small="-n 2 -r 1 -t 0.005"

# run STATUS ARGUMENTS...
run() {
    wanted=$1
    shift
    timeout 120 "$program" "$@" > "$out" 2> "$err"
    status=$?
    [ $status = "$wanted" ] || fail "$*: exit status $status, not $wanted"
    [ -z "$(ls "$TMPDIR")" ] || fail "$*: left in TMPDIR: $(ls "$TMPDIR")"
}

# a PATH without launchers, so that what is not there is told apart
mkdir "$scratch/bin" "$scratch/bare"
for folder in /usr/bin /bin; do
    ln -sf $folder/* "$scratch/bare/"
done
rm -f "$scratch"/bare/mpi* "$scratch"/bare/gnuplot*
full_path=$PATH

# ---- rivals that do not answer, in the place of Open MPI: each is waited for in the
# background, with a folder of its own
mkdir "$scratch/mute"
printf '#!/bin/sh\nexec "%s" -n 2 "%s"\n' "$build/tools/collrun" \
    "$build/tests/bench/compare_fake" > "$scratch/mute/mpirun.openmpi"
printf '#!/bin/sh\n' > "$scratch/mute/compare_openmpi" # where it was not built
chmod +x "$scratch"/mute/*

# waits_for HOW: how it does not answer; what compare says is in $err then.
waits_for() {
    mkdir "$scratch/tmp.$1"
    TMPDIR=$scratch/tmp.$1 out=$scratch/out.$1 err=$scratch/err.$1 FAKE=$1
    PATH=$scratch/mute:$scratch/bare
    export FAKE
    run 0 $small -s 8 -c barrier --only openmpi --patience $((2 * patience))
}
(
    waits_for hang
    grep -q 'openmpi with 2 ranks: it hung' "$err" || fail "it did not hang"
) &
hangs=$!
(
    waits_for stop
    [ "$(grep -c 'openmpi with 2 ranks: it did not start in time' "$err")" = 3 ] ||
        fail "half a hello is not given up three times"
) &
stops=$!

# ---- the table, the JSON, the gate
run 0 $small -s 8,1K --json "$json" --gate 0
[ "$(grep -c '"collective":' "$json")" = 11 ] || fail "not 5 x 2 + 1 cells"
[ "$(grep -c '^    2  [a-z_]* ' "$out")" = 11 ] || fail "not 11 rows"
grep '"wrong":' "$json" | grep -qv '"wrong": 0,' && fail "wrong results"
[ "$(grep -c '"libcoll": {' "$json")" = 11 ] || fail "libcoll lacks a cell"
[ "$(grep -c '"coll-mem": {' "$json")" = 11 ] || fail "coll-mem lacks a cell"
grep '^ranks\|^    2 ' "$out" | grep '.\{150\}' && fail "rows are too wide"
for key in cpu kernel transparent_huge_pages flag_exchange_ns rounds_us \
    yield_round_trip_ns copy_nt_GBps share_of_limit single_p99_us version; do
    grep -q "\"$key\": " "$json" || fail "no $key in the JSON"
done
if grep -q '"ratio": [0-9]' "$json"; then
    run 1 $small -s 8 -c allreduce --gate 1e6
    grep -q 'below the gate of 1e+06' "$err" || fail "not a word of the gate"
    grep -q 'allreduce, 8: .* by ' "$out" || fail "the cell is not listed"
else
    echo "no rival is installed: the gate is not tried"
fi
if command -v gnuplot > /dev/null; then
    run 0 $small -s 8,1K -c barrier,alltoall --plot "$scratch/plot.svg"
    grep -q 'alltoall, 2 ranks' "$scratch/plot.svg" || fail "no plot"
    grep -q 'coll-mem' "$scratch/plot.svg" && fail "a rival that is none"
fi

# ---- nothing but libcoll
PATH=$scratch/bare
run 0 $small -s 8 -c allreduce --only libcoll,openmpi,openmpi-sm,mpich
grep -q 'openmpi is absent: mpirun.openmpi was not found (Debian: openmpi-bin' \
    "$out" || fail "Open MPI is not missed"
grep -q 'mpich is absent: .*Debian: mpich' "$out" || fail "MPICH is not missed"
grep -q 'no rival to compare with' "$out" || fail "it has a rival"
run 1 $small -s 8 -c barrier --only libcoll --plot "$scratch/plot.svg"
grep -q 'gnuplot was not found' "$err" || fail "gnuplot is not missed"

# ---- libcoll's own memory: no rival, but verified, and libcoll's to answer for
run 0 $small -s 8,1M --only coll-mem --json "$json" --gate 1e6
grep -q 'no rival to compare with' "$out" || fail "coll-mem is a rival"
[ "$(grep -c '"best_rival": null' "$json")" = 11 ] || fail "it is the best one"
[ "$(grep -c '"coll-mem": {' "$json")" = 11 ] || fail "coll-mem lacks a cell"
grep -q 'compare_coll --own-memory"' "$json" || fail "it has other memory"
[ "$(grep -c '"is_rival": false' "$json")" = 4 ] || fail "who is a rival?"
grep -q '^    2  allreduce .*% *[0-9]*%' "$out" || fail "no share of the limit"
mkdir "$scratch/own"
cp "$build/$program" "$scratch/own/"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$build/tools/collrun" > "$scratch/own/collrun"
program=$scratch/own/compare
# own COMMAND: what stands in for compare_coll where it gets an argument
own() {
    printf '#!/bin/sh\n[ $# = 0 ] || exec %s\nexec "%s"\n' "$1" \
        "$build/benchmarks/compare_coll" > "$scratch/own/compare_coll"
    chmod +x "$scratch"/own/*
}
own "$build/tests/bench/compare_fake"
run 1 $small -s 1K -c allreduce --only coll-mem
grep -q 'over 2 ranks: coll-mem has .* wrong elements' "$err" ||
    fail "wrong results in coll-mem are not found"
own "$build/tests/bench/compare_fake \"\$@\""
run 1 $small -s 1K -c allreduce --only coll-mem
grep -q 'coll-mem with 2 ranks: .*this library has no allocator' "$err" ||
    fail "memory from nowhere"
grep -q '^    2  allreduce  *1K  *[0-9.]*  *n/a ' "$out" || fail "libcoll is gone"
run 0 $small -s 1K -c allreduce --only libcoll
program=benchmarks/compare

# ---- a rival that misbehaves, in the place of Open MPI
printf '#!/bin/sh\nexec "%s" -n 2 "%s"\n' "$build/tools/collrun" \
    "$build/tests/bench/compare_fake" > "$scratch/bin/mpirun.openmpi"
printf '#!/bin/sh\n' > "$scratch/bin/compare_openmpi" # where it was not built
chmod +x "$scratch"/bin/*
PATH=$scratch/bin:$scratch/bare
export FAKE
FAKE=wrong
run 1 $small -s 1K --only openmpi --json "$json"
grep -q 'broadcast of 1024 bytes over 2 ranks: openmpi has .* wrong elements' \
    "$err" || fail "wrong results are not found"
grep -q '^    2  allreduce .* WRONG ' "$out" || fail "the table shows nothing"
grep -q '^    2  alltoall .* n/a ' "$out" || fail "alltoall from nowhere"
FAKE=die
run 0 $small -s 8 -c allreduce --only openmpi
grep -q 'openmpi with 2 ranks: rank . died: .*exited with status 3' "$err" ||
    fail "its last words are lost"
grep -q '^    2  allreduce .* failed ' "$out" || fail "it did not fail"
FAKE=refuse
run 0 $small -s 8 -c allreduce --only openmpi
grep -q 'rank .: it is out of order' "$err" || fail "its error is lost"
printf '#!/bin/sh\necho no such luck >&2\nexit 1\n' > "$scratch/bin/mpirun.openmpi"
run 0 $small -s 8 -c barrier --only openmpi
[ "$(grep -c 'it ended while starting: no such luck' "$err")" = 3 ] ||
    fail "not started three times"
printf '#!/bin/sh\necho first words\nseq 999\necho last words\nexit 1\n' \
    > "$scratch/bin/mpirun.openmpi"
run 0 $small -s 8 -c barrier --only openmpi
grep -q ': first words 1 2 3 .* \.\.\. .* 998 999 last words$' "$err" ||
    fail "its first or last words are lost"
printf '#!/bin/sh\n[ -e "%s" ] || { : > "%s"; exit 1; }\nexec "%s" -n 2 "%s"\n' \
    "$scratch/began" "$scratch/began" "$build/tools/collrun" \
    "$build/benchmarks/compare_coll" > "$scratch/bin/mpirun.openmpi"
run 0 $small -s 8 -c barrier --only openmpi --json "$json"
grep -q 'it ended while starting' "$err" || fail "nobody is told of its first start"
[ "$(grep -c '"openmpi": {' "$json")" = 1 ] || fail "its second start is lost"
# Open MPI 5 does not start with the loopback for an argument; 4 hears by the environment
cat > "$scratch/bin/mpirun.openmpi" << END
#!/bin/sh
case "\$*" in *if_include*) echo "No network interfaces were found"; exit 1 ;; esac
[ "\$OMPI_MCA_oob_tcp_if_include" = lo ] || { echo "it goes over the network"; exit 1; }
exec "$build/tools/collrun" -n 2 "$build/benchmarks/compare_coll"
END
run 0 $small -s 8 -c barrier --only openmpi --json "$json"
[ ! -s "$err" ] || fail "Open MPI 5 did not start"
PATH=$full_path
wait $hangs || exit 1
wait $stops || exit 1

# ---- a signal: nothing stays.  What an earlier run said goes first: a signal that the
# child gets before it is this program may be lost to a trap that it lets go of.
: > "$out"
command timeout $((60 * patience)) "$program" $small -t 10 > "$out" 2> "$err" &
child=$!
while ! grep -q limits "$out"; do
    kill -0 $child || fail "it ended by itself"
    sleep 0.1
done
kill -TERM $child
wait $child
[ $? = 143 ] || fail "not ended by the signal"
[ -z "$(ls "$TMPDIR")" ] || fail "a signal leaves $(ls "$TMPDIR")"
# left: the processes of it; who was killed may take a moment to be gone
left() {
    for file in /proc/[0-9]*/environ; do
        pid=${file#/proc/}
        ! { tr '\0' '\n' < "$file"; } 2> /dev/null |
            grep -q "^COLL_COMPARE_SOCKET=$scratch" || echo "${pid%/environ}"
    done
}
tries=0
while [ -n "$(left)" ]; do
    [ $tries -lt $((20 * patience)) ] || fail "left: process $(left)"
    tries=$((tries + 1))
    sleep 0.1
done

# ---- what is refused
shows 'Usage: ' --help
shows 'libcoll' --version
refused 2 "'x' is no number of ranks" --ranks 2,x
refused 2 "'1' is no number of ranks" --ranks 1
refused 2 "'3x' is no size" --sizes 8,3x
refused 2 "'2' is no size" --sizes 2
refused 2 "there is no collective 'gather'" --collectives gather
refused 2 'there are: libcoll, coll-mem, openmpi' --only lam
refused 2 'a number from 0' --gate high
refused 2 'a whole number from 1 to 25' --rounds 0
refused 2 'a number from 0 to 60' --time -1
refused 2 'must end in .svg or .png' --plot plot.pdf
refused 2 'needs a value' --json
refused 2 'unknown option --frobnicate' --frobnicate
refused 2 'unknown option -z' -z
refused 2 'unexpected argument' 8
# at once, not when all is measured
for place in '--json /nowhere/x' '--plot /nowhere/x.svg'; do
    # shellcheck disable=SC2086
    refused 1 'cannot write /nowhere/x' $small -s 8 -c barrier --only libcoll $place
    [ ! -s "$out" ] || fail "it measures before it says so: $place"
done
TMPDIR=/nowhere
refused 1 'set TMPDIR' $small
TMPDIR=$scratch/tmp
if [ -w /dev/full ]; then
    "$program" --help > /dev/full 2> "$err"
    [ $? = 1 ] && grep -q 'cannot write' "$err" || fail "a full disk goes unnoticed"
fi

# ---- installed
[ -z "${TEST_QUICK:-}" ] || exit 0
. "${srcdir:-.}/tests/support/installing.sh"
install_in "$scratch/root" > "$out" 2>&1 || fail "make install"
prefix=$(sed -n 's/^prefix=//p' libcoll.pc)
program=$scratch/root$prefix/bin/coll_compare
LD_LIBRARY_PATH=$scratch/root$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
run 0 $small -s 8 -c barrier
grep -q '^    2  barrier  *-  *[0-9]' "$out" || fail "no figure when installed"
