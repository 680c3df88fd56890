#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# bundle.sh FILE: one tar file from which check.sh builds libcoll on a bare machine: this
# libcoll's sources with their configure script, and the Debian packages that it needs
# but for the compiler, make and CUDA's toolkit.  Run in a build folder; FILE is then
# taken along with the sources:
#
#     BUNDLE=FILE tests/gpu/check.sh REPORTS
#
# Needs apt-get; nothing is installed.
file=${1:?a file for the bundle}
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
[ -x config.status ] || { echo "bundle.sh: run it in a build folder" >&2; exit 2; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
mkdir "$scratch/debs"

# What libcoll includes and links, what that links, and what finds it.
packages="libucx-dev libucx0 libhwloc-dev libhwloc15 libibverbs-dev libibverbs1
    ibverbs-providers librdmacm1 libnl-3-200 libnl-route-3-200 libnl-3-dev
    libnl-route-3-dev libnuma1 libnuma-dev libltdl7 libltdl-dev libudev1
    libdnnl-dev libdnnl2 libgomp1 ocl-icd-libopencl1
    libjansson-dev libjansson4 libsodium-dev libsodium23 zlib1g-dev zlib1g
    check libsubunit-dev libsubunit0 pkgconf-bin libpkgconf3"
# shellcheck disable=SC2086
(cd "$scratch/debs" && apt-get download -qq $packages 2> ../apt.txt) ||
    { cat "$scratch/apt.txt" >&2; exit 1; }
make -s dist distdir=libcoll-bundle > "$scratch/make.txt" 2>&1 ||
    { tail "$scratch/make.txt" >&2; exit 1; }
mv libcoll-bundle.tar.gz "$scratch/sources.tar.gz" || exit 1
tar -C "$scratch" -cf "$file" debs sources.tar.gz || exit 1
size=$(($(stat -c %s "$file") / 1048576))
[ $size -lt 60 ] || { echo "bundle.sh: $file has $size MiB, over 60" >&2; exit 1; }
echo "$file: $(ls "$scratch/debs" | wc -l) packages and the sources, $size MiB"
