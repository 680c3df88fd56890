#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Dependencies point one way: a folder includes only what it may, and each
# third-party header is included by one file (or one folder).
cd "${srcdir:-.}" || exit 1
status=0

wrong() { echo "$*"; status=1; }

# may FOLDER PREFIX...: its files include project headers of these places only.
may() {
    folder=$1
    shift
    for file in "$folder"/*.[ch]; do
        for header in $(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file"); do
            allowed=no
            for prefix in "$folder" "$@"; do
                case $header in "$prefix"/*) allowed=yes ;; esac
            done
            [ $allowed = yes ] || wrong "$file must not include $header"
        done
    done
}

base="include/coll lib/util"
most="$base lib/trace"
# shellcheck disable=SC2086
{
    may lib/util include/coll
    may lib/trace $base
    may lib/boot $most
    may lib/topo $most
    may lib/device $most lib/exec
    may transports $most lib/topo lib/device
    may lib/algo lib/plan lib/trace lib/util
    may lib/plan $most lib/algo lib/topo
    may lib/exec $most lib/plan lib/device transports
    may lib/api $most lib/algo lib/boot lib/device lib/exec lib/plan lib/topo transports
    may tools include/coll coll tools/common
    may tools/common
    may tools/plan $most lib/plan lib/algo lib/topo
    may benchmarks include/coll coll tools/common
    may benchmarks/rivals include/coll coll tools/common
    may benchmarks/plan include/coll lib/algo lib/plan lib/util
    may trainer include/coll coll
}

# once HEADER [WHERE]: who includes it?
once() {
    users=$(grep -l "^#include <$1>" lib/*/*.[ch] transports/*.[ch] trainer/*.[ch])
    [ "$(echo "$users" | grep -c .)" -le 1 ] || wrong "<$1> is included by" $users
}
for header in hwloc.h infiniband/verbs.h ucp/api/ucp.h sodium.h pmix.h dnnl.h; do
    once $header
done

[ $status = 0 ] && echo "all includes point the right way"
exit $status
