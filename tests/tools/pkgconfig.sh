#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# libcoll.pc gives whole arguments, also where the prefix has a space (a tree that was
# installed and moved there).
set -u
if ! command -v pkg-config > /dev/null; then
    echo "skipped: pkg-config is missing"
    exit 77
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
prefix="$scratch/a b"
mkdir -p "$prefix/lib/pkgconfig"
sed -e "s|@prefix@|$prefix|; s|@exec_prefix@|\${prefix}|" \
    -e 's|@libdir@|${exec_prefix}/lib|; s|@includedir@|${prefix}/include|' \
    -e 's|@PACKAGE_VERSION@|1|; /^Requires/d' \
    "${srcdir:-.}/libcoll.pc.in" > "$prefix/lib/pkgconfig/libcoll.pc"

PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs libcoll) || exit 1
eval "set -- $flags"
if [ $# != 3 ] || [ "$1" != "-I$prefix/include" ] || [ "$2" != "-L$prefix/lib" ]; then
    echo "pkg-config gives '$flags'"
    exit 1
fi
