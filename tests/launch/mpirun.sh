#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The benchmark and the trainer under Open MPI's mpirun, found by PMIx.
. "${srcdir:-.}/tests/launch/launch.sh"

command -v mpirun > /dev/null ||
    { echo "mpirun is not installed (Debian: openmpi-bin)"; exit 77; }
mpirun --version 2>&1 | grep -q 'Open MPI' ||
    { echo "mpirun is not Open MPI's"; exit 77; }
grep -q 'define COLL_HAVE_PMIX 1' config.h ||
    { echo "built without PMIx"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
build=$PWD
cd "$scratch" && ln -s "$build/benchmarks" "$build/trainer" . || exit 1

# Open MPI 5, which calls this otherwise, takes the loopback of itself
export OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
check_launcher 4 mpirun --allow-run-as-root --oversubscribe -np 4
check_children mpirun --allow-run-as-root --oversubscribe -np 2

# A rank that ends before it joins is named at once; one that has closed its output, or
# that leaves its program in the background, has not ended.
# early NAME COMMANDS: rank 1 begins with these
early() {
    COLL_TIMEOUT=1000 timeout 60 mpirun --allow-run-as-root --oversubscribe -np 3 sh -c "
        small='$build/benchmarks/allreduce_bw -b 4 -e 4 -n 1 -w 0'
        [ \$PMIX_RANK != 1 ] || { $2; }
        exec \$small" > out 2>&1 || [ "$1" = fails ] || fail "rank 1 begins with $2"
}
early fails 'exit 0'
grep -q 'rank 1 ended before it joined' out || fail "a rank that ends early"
early works 'exec > early 2>&1; sleep 5'
early works '(sleep 5; exec $small) & exit 0'

# mpirun is killed: its ranks end, too, and say why
cat > orphan << END
#!/bin/sh
echo \$\$ > $scratch/pid.\$PMIX_RANK
exec $build/benchmarks/allreduce_bw -b 1M -e 1M -n 3000000 -w 1 -c off \\
    > $scratch/out.\$PMIX_RANK 2> $scratch/err.\$PMIX_RANK
END
chmod +x orphan
mpirun --allow-run-as-root --oversubscribe -np 2 ./orphan > /dev/null 2>&1 &
launcher=$!
until grep -q 'size\[B\]' out.0; do sleep 0.1; kill -0 $launcher || exit 1; done 2> /dev/null
kill -KILL $launcher
n_left=$((200 * patience))
while kill -0 "$(cat pid.0)" || kill -0 "$(cat pid.1)"; do
    n_left=$((n_left - 1))
    [ $n_left -gt 0 ] || break
    sleep 0.1
done 2> /dev/null
if [ $n_left = 0 ]; then
    kill -KILL "$(cat pid.0)" "$(cat pid.1)"
    echo "ranks outlive their mpirun"
    exit 1
fi
grep -q 'the launcher has gone' err.0 err.1 || { echo "nobody says that mpirun has gone:"; cat err.0 err.1; exit 1; }
echo "without mpirun: $(grep -h 'the launcher has gone' err.0 err.1 | head -n 1)"
