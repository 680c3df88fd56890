#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The manual pages: mandoc finds nothing wrong with them, each function, program and
# variable has its place, man shows them as installed, and make html gives the same.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
status=0
fail() { echo "$*"; status=1; }
make_here() { env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s "$@"; }

make_here install-data-local mandir="$scratch/man" || exit 1
cd "$scratch/man" || exit 1

for symbol in $(nm -D --defined-only "$OLDPWD/.libs/libcoll.so" | sed -n 's/.* T coll_/coll_/p'); do
    [ -e "man3/$symbol.3" ] || fail "$symbol has no page"
done
for program in $(cd "$OLDPWD" && make_here list-installed); do
    grep -q '^\.Nd ..' "man1/$(basename "$program").1" || fail "$program has no page"
done
for variable in $("$OLDPWD/tools/coll_info" --params | sed -n 's/^\(COLL_[A-Z_]*\)=.*/\1/p'); do
    grep -q "^\.It Ev \"$variable\"" man7/coll-variables.7 ||
        fail "coll-variables(7) does not have $variable"
done
grep -q '^One caller at a time' man3/coll_allreduce.3 ||
    fail "coll_allreduce(3) does not say what its section says of threads"
awk '/^\.It Xr coll_send 3/ && !/Xr coll_recv 3/ { exit 1 }' man7/libcoll.7 ||
    fail "libcoll(7) does not refer to coll_recv(3) beside coll_send(3)"
[ "$(grep -c '^\.Nm$' man1/coll_plan.1)" = 3 ] && ! grep -q '^or:' man1/coll_plan.1 ||
    fail "coll_plan(1) does not show its three forms on lines of their own"
for heading in Actions Operation Output; do
    grep -q "^\.Sy \"$heading\" :" man1/coll_plan.1 ||
        fail "coll_plan(1) does not have the options' heading '$heading:'"
done
grep -A1 '^\.Sh EXIT STATUS' man1/coll_train.1 | grep -q '^0 when' ||
    fail "coll_train(1) does not begin its exit status with the values"

if man --version > /dev/null 2>&1; then
    for page in coll_allreduce coll_recv coll_train coll-variables libcoll; do
        MANPATH=$PWD MANPAGER=cat man $page < /dev/null > ../text 2>&1
        grep -q '^S.*E.*E.*A.*L.*S.*O' ../text || fail "man $page shows no page"
    done
fi

if ! command -v mandoc > /dev/null; then
    echo "skipped: mandoc is missing, so nobody looks for faults in the pages"
    [ $status = 0 ] && exit 77
    exit $status
fi
# of the pages that others refer to mandoc knows those of the system alone
mandoc -Tlint man?/* > ../lint
sed -n 's/.*referenced manual not found: Xr \([^ ]*\) \([0-9]\).*/man\2\/\1.\2/p' ../lint |
    sort -u | while read -r page; do
    [ -e "$page" ] || echo "a page refers to $page, which is not there"
done > ../missing
grep -v 'referenced manual not found' ../lint >> ../missing
[ ! -s ../missing ] || fail "$(head -n 20 ../missing)"

cd "$OLDPWD" || exit 1
make_here html > "$scratch/log" 2>&1 || fail "make html: $(cat "$scratch/log")"
for page in "$scratch"/man/man?/*; do
    name=${page##*/}.html
    [ -s "doc/html/$name" ] && grep -q "href=\"$name\"" doc/html/index.html ||
        fail "make html has no $name"
done
exit $status
