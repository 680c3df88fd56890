#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What belongs to a program stays as the program has it, whatever libcoll and the
# libraries below it do: signals, environment, streams, locale, umask, arithmetic, folder.
# And UCX, which some of that is due to, is there only where it is used.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
. "${srcdir:-.}/tests/support/program.sh"
unset UCX_HANDLE_ERRORS UCX_DEBUG_SIGNO UCX_TLS COLL_TRANSPORTS

# keeps WORDS... RANKS: the program's state stays, with these variables.
keeps() {
    n=$1
    shift
    timeout 120 env "$@" tools/collrun -n "$n" tests/api/host_state < /dev/null > "$out" 2> "$err" ||
        fail "$n ranks, $*: exit status $?"
}
keeps 1
keeps 2 COLL_TRANSPORTS=self,shm COLL_CMA=off
keeps 2 COLL_TRANSPORTS=self,shm COLL_CMA=auto
keeps 2 COLL_TRANSPORTS=self,tcp
keeps 2 COLL_TRANSPORTS=self,ucx
keeps 2 COLL_TRANSPORTS=self,ucx COLL_PROGRESS=thread

# SIGHUP ends the program, as that of any other
for list in self,shm self,ucx; do
    COLL_TRANSPORTS=$list timeout 120 tests/api/host_state hup > "$out" 2> "$err"
    status=$?
    [ $status = 129 ] || fail "$list: SIGHUP left status $status, not 129"
done

# UCX and libibverbs are loaded where they are used, and nowhere else
! ldd .libs/libcoll.so 2> /dev/null | grep -q "libuc[pst]\|libibverbs" ||
    fail "libcoll.so needs UCX or libibverbs"

# a name of 64 characters, which is too long for UCX
long=$(printf '%064d' 0 | tr 0 h)
unshare -r --uts hostname "$long" 2> /dev/null ||
    { echo "no namespace for a host name of 64 characters here"; exit 0; }
# named COMMAND...: on a host of that name
named() {
    timeout 120 unshare -r --uts sh -c 'hostname "$1"; shift; exec "$@"' sh "$long" "$@" \
        > "$out" 2> "$err"
}
for list in self,shm self,tcp self,shm,ucx,tcp; do
    named env COLL_TRANSPORTS=$list tools/collrun -n 2 tests/api/host_state < /dev/null ||
        fail "a name of 64 characters, $list: exit status $?"
done
named env COLL_TRANSPORTS=self,ucx tools/collrun -n 2 tests/api/host_state < /dev/null &&
    fail "UCX with a name of 64 characters"
grep -q "name of this host has 64 characters" "$err" || fail "no sentence about the name"
! grep -q "buffer overflow" "$err" || fail "UCX was loaded"
named tools/coll_info --transports || fail "coll_info: exit status $?"
grep -q "^ucx .*no" "$out" || fail "coll_info takes UCX for usable"
grep -q "name of this host has 64 characters" "$out" || fail "coll_info does not say why"
named tools/coll_info --check-build || fail "coll_info --check-build: exit status $?"
