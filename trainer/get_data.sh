#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# get_data.sh - fetch a data set for coll_train, and hold it against its check sums.
#
#   get_data.sh [-u URL] mnist|fashion-mnist|cifar10 [DIR]
#
# The files are put into DIR/mnist and the like, where "coll_train --data-dir DIR" finds
# them; DIR is data unless it is given.  -u names another place that has the same files.
# A file appears whole or not at all; one that is there stays.
# Fashion-MNIST also is a Debian package, dataset-fashion-mnist, which needs no DIR.
set -u

die() {
    echo "get_data.sh: $*" >&2
    exit 1
}

usage() {
    sed -n '3,/^set -u/s/^# \{0,1\}//p' "$0"
    exit "$1"
}

# SET FILE SHA-256: for a .gz the sum of the unpacked file, since gzip may pack the same
# file in different ways; for an archive the sum of the archive itself.
sums='
mnist train-images-idx3-ubyte ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db
mnist train-labels-idx1-ubyte 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5
mnist t10k-images-idx3-ubyte 0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7
mnist t10k-labels-idx1-ubyte ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2
fashion-mnist train-images-idx3-ubyte c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888
fashion-mnist train-labels-idx1-ubyte bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9
fashion-mnist t10k-images-idx3-ubyte 5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b
fashion-mnist t10k-labels-idx1-ubyte 0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34
cifar10 cifar-10-binary.tar c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd
'

url=
case ${1:-} in
-h | --help) usage 0 ;;
-u) [ $# -gt 2 ] || usage 2 >&2
    url=${2%/}
    shift 2 ;;
esac
[ $# = 1 ] || [ $# = 2 ] || usage 2 >&2
dir=${2:-data}/$1
case $1 in
mnist) from=https://ossci-datasets.s3.amazonaws.com/mnist ;;
fashion-mnist) from=http://fashion-mnist.s3-website.eu-central-1.amazonaws.com ;;
cifar10) from=https://www.cs.toronto.edu/~kriz ;;
*) usage 2 >&2 ;;
esac
url=${url:-$from}
command -v curl > /dev/null || die "there is no curl (Debian: curl)"
mkdir -p "$dir" || exit 1
draft=$dir/.draft-$$
trap 'rm -f "$draft"' EXIT
trap 'exit 1' INT TERM

# sum_of FILE: of what has been fetched.
sum_of() {
    case $1 in
    *.tar) sha256sum < "$draft" ;;
    *) gzip -cd "$draft" 2> /dev/null | sha256sum ;;
    esac | cut -d' ' -f 1
}

# fetch FILE SHA-256
fetch() {
    file=$dir/$1.gz
    [ ! -e "$file" ] || return 0
    curl -fsSL -o "$draft" "$url/$1.gz" || die "cannot fetch $url/$1.gz; name another place by -u"
    [ "$(sum_of "$1")" = "$2" ] ||
        die "$url/$1.gz is not the original: its check sum is another; name another place by -u"
    mv "$draft" "$file" || exit 1
    echo "$file"
}

echo "$sums" | while read -r set file sum; do
    [ "$set" != "$1" ] || fetch "$file" "$sum" || exit 1
done || exit 1
[ "$1" != cifar10 ] || tar -xzf "$dir/cifar-10-binary.tar.gz" -C "$dir" --strip-components=1 ||
    die "cannot unpack $dir/cifar-10-binary.tar.gz"
