#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The README's first program compiles against what make install gives, links with
# -lcoll, and prints what it should.
. "${srcdir:-.}/tests/patience.sh"
set -eu
readme=${srcdir:-.}/README.md
prefix=$(sed -n 's/^prefix=//p' libcoll.pc)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

sed -n '/^```c$/,/^```$/{/^```/!p}' "$readme" > "$scratch/first.c"
grep -q coll_allreduce "$scratch/first.c"
env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s install DESTDIR="$scratch/root" \
    > "$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
installed=$scratch/root$prefix
# shellcheck disable=SC2086
${CC:-cc} -Wall -Wextra -Werror ${TEST_LDFLAGS:-} -I"$installed/include" \
    "$scratch/first.c" -L"$installed/lib" -Wl,-rpath,"$installed/lib" -lcoll \
    -o "$scratch/first"
timeout 60 ./tools/collrun -n 3 "$scratch/first" > "$scratch/out"
for rank in 0 1 2; do
    grep -q "rank $rank of 3: the sum is 3\$" "$scratch/out" ||
        { cat "$scratch/out"; exit 1; }
done
[ "$(wc -l < "$scratch/out")" = 3 ]
