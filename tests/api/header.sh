#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# coll.h compiles without a warning as C99, C11 and C++11, and leaves the macros that
# the program had before it as they were.
set -eu
include=${srcdir:-.}/include
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat > "$scratch/macros.c" << 'END'
#define X 7
#define E(name) name
#define OK "no status"
#define SUM(a, b) ((a) + (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define F32 float
#define SEND 1
#define BARRIER() (void)0
#include <coll/coll.h>
#if X != 7 || SUM(1, 2) != 3 || MIN(1, 2) != 1 || MAX(1, 2) != 2 || SEND != 1
#error "coll.h has changed a macro of the program"
#endif
static const F32 number = 1;
const char *E(text)(void)
{
    BARRIER();
    return COLL_OK == 0 && COLL_MAX > COLL_MIN && number > 0 ? OK : coll_version();
}
END

warnings="-Wall -Wextra -Wpedantic -Wundef -Wshadow -Werror"
# shellcheck disable=SC2086
for standard in c99 c11; do
    ${CC:-cc} -std=$standard $warnings -Wstrict-prototypes -Wc++-compat \
        -I"$include" -fsyntax-only "$scratch/macros.c"
done
# shellcheck disable=SC2086
${CXX:-c++} -x c++ -std=c++11 $warnings -I"$include" -fsyntax-only "$scratch/macros.c"

# names that this header defines begin with COLL_
echo '#include <coll/coll.h>' |
    ${CC:-cc} -E -dD -I"$include" - |
    awk '/^# [0-9]+ "/ { ours = /coll\/coll\.h"/ }
         ours && (/^#define / || /^#undef /) && $2 !~ /^COLL_/ { print; bad = 1 }
         END { exit bad }'
