#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# coll_info: each section and form, and what it refuses.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
fixture=${srcdir:-.}/tests/topo/two_sockets
unset COLL_TOPO_FILE COLL_TRANSPORTS COLL_JOB_SECRET COLL_TUNE_FILE

program=tools/coll_info
. "${srcdir:-.}/tests/support/program.sh"

shows '^libcoll v[0-9.]*:$' --check-build
for line in 'Devices:' '    \[X\] host' '    \[[X ]\] cuda' 'Bootstraps:' \
    '    \[X\] collrun' '    \[X\] torchrun' 'Transports:' '    \[X\] shm' \
    'Libraries:' '    \[X\] hwloc (2\.'; do
    grep -q "^$line" "$out" || fail "--check-build without '$line'"
done
box=' '
grep -q 'define COLL_HAVE_PMIX 1' config.h && box=X
grep -q "^    \[$box\] pmix" "$out" || fail "pmix is not [$box]"
shows '^    \[X\] ucx (built with [0-9.]*; loaded: [0-9.]*, /.*/libucp\.so' --check-build
# another UCX is found first
ln -s "$PWD/tests/transports/.libs/libother_ucx.so" "$scratch/libucp.so.0"
LD_LIBRARY_PATH=$scratch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
    shows ' ucx (built with [0-9.]*; loaded: 99\.9\.9, /.*/libucp\.so' --check-build
# and one that is none
echo > "$scratch/none.c"
if ${CC:-cc} -shared -o "$scratch/libucp.so.0.0" "$scratch/none.c" 2> "$err"; then
    mv "$scratch/libucp.so.0.0" "$scratch/libucp.so.0"
    LD_LIBRARY_PATH=$scratch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
        shows ' ucx (built with [0-9.]*; loaded: none: libucp.so.0 has no ucp_' --check-build
fi

shows '^shm  *yes' --transports
COLL_TRANSPORTS=self shows '^shm  *no' --transports
shows ' single copy ' --transports
COLL_CMA=off shows 'single copy does not work here: COLL_CMA is off' --transports
COLL_CMA=off shows '"note": "single copy does not work here' --transports --json
shows ' to other hosts by .*: a message takes .* us and .* ns a byte' --transports
UCX_NET_DEVICES=no_such shows 'not known: .*, but a job times two' --transports
if tests/support/without cma true; then
    program=tests/support/without
    shows 'single copy does not work here: .*seccomp' cma tools/coll_info --transports
    program=tools/coll_info
    COLL_TUNE_FILE=$(limits cma_min=12345) shows \
        'single copy works here: .* 12345 bytes and more' --transports
fi
shows '^COLL_TIMEOUT=300$' --params
COLL_TIMEOUT=5 shows '^COLL_TIMEOUT=5  (default 300)  (set)$' --params
COLL_JOB_SECRET=abracadabra shows '^COLL_JOB_SECRET=(set, not shown)' --params
! grep -q abracadabra "$out" || fail "a secret is shown"
! grep -q COLL_ROOT_FD "$out" || fail "what collrun alone sets is shown"

COLL_TOPO_FILE=$fixture.xml shows . --topology
diff "$fixture.txt" "$out" > "$err" || fail "--topology is not the machine in the file"
COLL_TOPO_FILE=$fixture.xml shows 'graph machine' --topology --dot
COLL_TOPO_FILE=$fixture.xml shows '<topology version' --xml
cp "$out" "$scratch/again.xml"
COLL_TOPO_FILE=$scratch/again.xml shows . --topology
diff "$fixture.txt" "$out" > "$err" || fail "--xml gives another machine"

shows '"version"' --json
for key in build transports params topology; do
    grep -q "^  \"$key\": \[" "$out" || fail "--json without $key"
done
shows '"transports"' --json --transports
! grep -q '"params"' "$out" || fail "--json --transports shows parameters"
COLL_PLAN_FILE=$(printf '\377') shows '"COLL_PLAN_FILE"' --json --params
shows '^Topology:'
shows 'Usage: coll_info' --help
shows 'libcoll' --version

refused 2 'unknown option --frobnicate' --frobnicate
refused 2 'unknown option -z' -z
refused 2 'unexpected argument' more
refused 2 'only one of' --xml --dot
refused 2 'form of --topology only' --params --dot
COLL_TOPO_FILE=/nonexistent refused 1 'does not exist' --topology
COLL_TOPO_FILE=$fixture.txt refused 1 'no hwloc XML' --json --topology
if [ -w /dev/full ]; then
    for form in --params --json --help; do
        tools/coll_info $form > /dev/full 2> "$err"
        [ $? = 1 ] && grep -q 'cannot write' "$err" || fail "$form: a full disk goes unnoticed"
    done
fi
