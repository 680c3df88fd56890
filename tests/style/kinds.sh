#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each test has one kind in tests/kinds, so that no variant forgets it; and what is
# listed there exists.  "again", "first" and "ucx" are choices of tests that have another
# kind.  And each row of what tutorials teach has a check.
kinds=${srcdir:-.}/tests/kinds
status=0

# names SED-COMMANDS: the tests of the lines that are left
names() { sed "/^#/d;$1" "$kinds" | awk '{ for (i = 2; i <= NF; i++) print $i }' | sort; }
listed=$(names '/^again /d;/^first /d;/^ucx /d')
tests=$(env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s list-tests | tr ' ' '\n' | sort)
[ -n "$tests" ] || { echo "make list-tests lists nothing"; exit 1; }

for test in $tests; do
    n=$(echo "$listed" | grep -cx "$test")
    [ "$n" = 1 ] || { echo "$test has $n kinds in tests/kinds, not one"; status=1; }
done
# one that this build leaves out, for want of a library, has its source
for test in $listed; do
    [ -f "${srcdir:-.}/$test" ] || [ -f "${srcdir:-.}/$test.c" ] ||
        { echo "tests/kinds lists $test, which is no test"; status=1; }
done
for choice in again first ucx; do
    for test in $(names "/^$choice /!d"); do
        echo "$listed" | grep -qx "$test" ||
            { echo "tests/kinds has $test under $choice, but not under its kind"; status=1; }
    done
done

# each row of the table of tutorials has a check with its number; 19 is background alone
for row in $(seq 18) $(seq 20 34); do
    grep -rq --include='*.sh' --include='*.test' --include='*.c' \
        "row0*$row[_: ]\|row $row[: ]" "${srcdir:-.}/tests" ||
        { echo "row $row of the table of tutorials has no check"; status=1; }
done
exit $status
