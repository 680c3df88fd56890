#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The README's first program compiles against the public header alone, links with
# -lcoll, and gives what it should.
set -eu
readme=${srcdir:-.}/README.md
header=$(cd "${srcdir:-.}" && pwd)/include
build=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

sed -n '/^```c$/,/^```$/{/^```/!p}' "$readme" > "$scratch/first.c"
grep -q coll_allreduce "$scratch/first.c"
# shellcheck disable=SC2086
${CC:-cc} -Wall -Wextra -Werror ${TEST_LDFLAGS:-} -I"$header" "$scratch/first.c" \
    -L"$build/.libs" -Wl,-rpath,"$build/.libs" -lcoll -o "$scratch/first"
timeout 60 ./tools/collrun -n 3 "$scratch/first" > "$scratch/out"
for rank in 0 1 2; do
    grep -q "rank $rank of 3: the sum is 3\$" "$scratch/out" ||
        { cat "$scratch/out"; exit 1; }
done
[ "$(wc -l < "$scratch/out")" = 3 ]
