#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The library has every function, struct and enumerator of the last release, as it was;
# what is new is no fault.  libcoll-VERSION.abi is what abidw wrote of that release:
#
#   abidw --exported-interfaces-only --headers-dir include/coll --drop-private-types \
#       --no-corpus-path --no-comp-dir-path --no-show-locs --out-file FILE .libs/libcoll.so
if ! command -v abidiff > /dev/null; then
    echo "skipped: abidiff is missing; install abigail-tools"
    exit 77
fi
# what a sanitizer adds is not the library's
if grep -q fsanitize config.log; then
    echo "skipped: built with sanitizers"
    exit 77
fi
release=${srcdir:-.}/tests/api/libcoll-0.1.0.abi
if ! abidiff --no-added-syms --drop-private-types --hd2 "${srcdir:-.}/include/coll" \
    --suppressions "${srcdir:-.}/tests/api/libcoll.abignore" \
    "$release" .libs/libcoll.so; then
    echo "the interface has changed since $release; HACKING.md says what that means"
    exit 1
fi
