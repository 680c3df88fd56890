#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Dependencies point one way: a folder includes only what it may, and each
# third-party header is included by one file (or one folder).
cd "${srcdir:-.}" || exit 1
status=0

wrong() { echo "$*"; status=1; }

# may FOLDER PLACE...: its files include project headers of these folders, or these
# headers, only.
may() {
    folder=$1
    shift
    for file in "$folder"/*.[ch] "$folder"/*.cu "$folder"/*.cuh; do
        [ -e "$file" ] || continue
        for header in $(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file"); do
            allowed=no
            for prefix in "$folder" "$@"; do
                case $header in "$prefix"/* | "$prefix") allowed=yes ;; esac
            done
            [ $allowed = yes ] || wrong "$file must not include $header"
        done
    done
}

base="include/coll lib/util lib/type"
most="$base lib/trace"
half=lib/type/half.h # the one conversion of 16-bit floats, for programs too
# shellcheck disable=SC2086
{
    may lib/type include/coll
    may lib/util include/coll lib/type
    may lib/trace $base
    may lib/net $most
    may lib/boot $most lib/net
    may lib/ctrl $most lib/net lib/boot
    may lib/topo $most
    may lib/device $most
    may transports $most lib/net lib/topo lib/device
    may lib/plan $most
    may lib/algo $most lib/plan
    may lib/order $most lib/plan lib/algo
    may lib/price $most lib/plan lib/algo
    may lib/proof $most lib/plan lib/price lib/algo
    may lib/exec $most lib/plan lib/device transports
    may lib/tags $most lib/plan lib/device lib/exec transports
    under="$most lib/algo lib/boot lib/ctrl lib/net lib/device lib/exec lib/plan lib/price
        lib/proof lib/topo transports"
    may lib/comm $under
    may lib/run $under lib/comm lib/tags
    may lib/stream $under lib/order lib/comm lib/run
    may lib/api $under lib/comm lib/run lib/stream
    may tools include/coll coll tools/common lib/net/auth.h lib/net/words.h
    may tools/common
    may tools/sim $most lib/plan lib/price lib/algo lib/topo
    may tools/plan $most tools/common lib/plan lib/price lib/proof lib/algo lib/topo tools/sim
    may benchmarks include/coll coll tools/common "$half"
    may benchmarks/rivals include/coll coll tools/common benchmarks
    may benchmarks/plan include/coll lib/algo lib/plan lib/util tools/common
    may trainer include/coll coll tools/common "$half"
    may trainer/cuda trainer tools/common "$half"
    may bindings/nccl include/coll coll
    may examples include/coll coll
}

# once HEADER [WHERE]: who includes it?
once() {
    users=$(grep -l "^#include <$1>" lib/*/*.[ch] transports/*.[ch] trainer/*.[ch])
    [ "$(echo "$users" | grep -c .)" -le 1 ] || wrong "<$1> is included by" $users
}
for header in cuda.h hwloc.h infiniband/verbs.h ucp/api/ucp.h sodium.h pmix.h dnnl.h; do
    once $header
done

# COLL_LOG knows everybody who speaks.
for part in $(cat lib/*/*.c tools/sim/*.c transports/*.c | tr -d '\n' |
    grep -o 'log_\(error\|warn\|info\|debug\|trace\)( *"[a-z_0-9]*"' |
    sed 's/.*"\(.*\)"/\1/' | sort -u); do
    grep -q "[ {]\"$part\"," lib/trace/log.c ||
        wrong "lib/trace/log.c does not list the part $part"
done

[ $status = 0 ] && echo "all includes point the right way"
exit $status
