#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# quickstart configures when something that configure looks at has changed, and
# only then: packages that came with this run or with another, configure.ac, m4.
# A folder that was configured by hand keeps its arguments.
#
# Around a copy of quickstart stand programs that write down how they were called:
# dpkg-query and apt-get with their packages in a file, autoreconf, configure, make.
. "${srcdir:-.}/tests/support/patience.sh"
set -u
top=$(cd "${srcdir:-.}" && pwd)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
calls=$scratch/calls
export calls scratch
mkdir -p "$scratch/bin" "$tree/m4" "$tree/tests"
cp "$top/quickstart" "$tree/" && cd "$tree" || exit 1

fail() {
    echo "FAILED: $*" >&2
    sed 's/^/called: /' "$calls" >&2
    cat "$scratch/out" >&2
    exit 1
}

# program NAME: an executable with the script on stdin.
program() {
    { echo '#!/bin/sh'; cat; } > "$1"
    chmod +x "$1"
}

program "$scratch/bin/dpkg-query" << 'END'
for package; do :; done # the last argument
grep "^$package " "$scratch/packages" | sed 's/.* /install ok installed /'
END
program "$scratch/bin/apt-get" << 'END'
echo "apt-get $*" >> "$calls"
[ "$1" = install ] || exit 0
shift
for word; do
    case $word in -*) ;; *) echo "$word 1.0" >> "$scratch/packages" ;; esac
done
END
program "$scratch/bin/id" << 'END'
echo 0
END
program "$scratch/bin/autoreconf" << 'END'
echo autoreconf >> "$calls"
cp "$scratch/configure" configure
END
program "$scratch/bin/make" << 'END'
echo "make $*" >> "$calls"
END
program "$scratch/configure" << 'END'
echo "configure $*" >> "$calls"
printf '#!/bin/sh\necho "config.status $*" >> "$calls"\n' > config.status
chmod +x config.status
echo > Makefile
prefix=/there
for word; do
    case $word in --prefix=*) prefix=${word#*=} ;; esac
done
echo "prefix=$prefix" > libcoll.pc
END
program tests/run_all << 'END'
echo "run_all $*" >> "$calls"
END
PATH=$scratch/bin:$PATH
echo > configure.ac
echo > m4/libs.m4
: > "$scratch/packages"

# quick ARGUMENTS...: how many times configure ran anew and again is then in
# $news and $agains.
quick() {
    : > "$calls"
    ./quickstart "$@" > "$scratch/out" 2>&1 || fail "quickstart $*: exit status $?"
    news=$(grep -c '^configure ' "$calls")
    agains=$(grep -c '^config.status --recheck' "$calls")
}

# configures NEWS AGAINS WHEN: so many times.
configures() {
    [ "$news $agains" = "$1 $2" ] ||
        fail "$3: configured $news times anew and $agains times again"
}

quick build
configures 1 0 "a fresh tree"
grep -q "^configure --prefix=$tree/build/install" "$calls" || fail "no prefix"
grep -q '^apt-get install .*libucx-dev' "$calls" || fail "no libucx-dev"
! grep -q simgrid "$calls" || fail "tests' packages for a build"

quick build
configures 0 0 "nothing has changed"
! grep -q apt-get "$calls" || fail "apt-get for nothing"

mkdir -p build/install/bin
echo 'echo "collrun $*" >> "$calls"' | program "$scratch/collrun"
cp "$scratch/collrun" build/install/bin/
quick
grep -q '^make -s install$' "$calls" || fail "make install was not called"
[ "$(grep '^collrun' "$calls" | cut -d' ' -f1-4 | tr '\n' ' ')" = \
    "collrun -n 2 allreduce_bw collrun -n 2 coll_train " ] || fail "the main job"

quick test
configures 0 1 "packages came with this run"
grep -q '^apt-get install .*libsimgrid-dev' "$calls" || fail "no libsimgrid-dev"
[ "$(grep -n 'config.status --recheck' "$calls" | cut -d: -f1)" -lt \
    "$(grep -n '^make' "$calls" | head -n 1 | cut -d: -f1)" ] || fail "make came first"
grep -q '^run_all build$' "$calls" || fail "run_all was not called"

quick test --all
configures 0 0 "nothing has changed, for all tests"
grep -q '^run_all --all build$' "$calls" || fail "--all was not handed on"

sed -i 's/^libpmix-dev .*/libpmix-dev 2.0/' "$scratch/packages"
quick build
configures 0 1 "another version came between two runs"

touch -d '+1 minute' m4/libs.m4
quick build
grep -q '^autoreconf' "$calls" || fail "m4 has changed: no autoreconf"
configures 0 1 "m4 has changed"
touch -d '-1 minute' m4/libs.m4 configure

touch -d '+1 minute' configure.ac
quick build
grep -q '^autoreconf' "$calls" || fail "configure.ac has changed: no autoreconf"
configures 0 1 "configure.ac has changed"
touch -d '-1 minute' configure.ac configure

rm -r build && mkdir build
(cd build && ../configure --with-mine)
quick build
configures 0 1 "configured by hand, with packages nobody knows"
mkdir build/tools
cp "$scratch/collrun" build/tools/
quick
grep -q '^collrun -n 2 coll_train' "$calls" || fail "the main job of a folder by hand"
! grep -q '^make .*install' "$calls" || fail "installed in /there"
configures 0 0 "configured by hand, and nothing has changed"

rm build/config.status build/Makefile
quick build
configures 1 0 "configure did not get to its end"

# Without the right to install: the command, and status 2.
echo 'exit 1' | program "$scratch/bin/sudo"
echo 'echo 1000' | program "$scratch/bin/id"
sed -i '/^libucx-dev/d' "$scratch/packages"
./quickstart build > "$scratch/out" 2>&1
[ $? = 2 ] || fail "missing packages do not end with status 2"
grep -q 'run as root: apt-get .* libucx-dev$' "$scratch/out" || fail "no command"
for wrong in 'test --most' 'test --all more' 'build --all' '-q'; do
    # shellcheck disable=SC2086
    ./quickstart $wrong > "$scratch/out" 2>&1
    [ $? = 2 ] || fail "$wrong: not exit status 2"
    [ "$(wc -l < "$scratch/out")" = 1 ] || fail "$wrong: not one line"
    grep -q -- "'$wrong' is none of" "$scratch/out" || fail "$wrong passes for an option"
done

# Without a network: the command, and status 2; sudo keeps no variables.
program "$scratch/bin/sudo" << 'END'
[ "$1" = -n ] && shift
exec env -i PATH="$PATH" calls="$calls" scratch="$scratch" "$@"
END
program "$scratch/bin/apt-get" << 'END'
echo "apt-get $* (${DEBIAN_FRONTEND:-asks})" >> "$calls"
[ "$1" = update ] || { echo "E: Unable to fetch some archives" >&2; exit 100; }
END
: > "$calls"
./quickstart build > "$scratch/out" 2>&1
[ $? = 2 ] || fail "no network does not end with status 2"
grep -q 'apt-get failed; run as root: apt-get .* libucx-dev$' "$scratch/out" ||
    fail "without a network: no command"
grep -q '^apt-get install .*(noninteractive)$' "$calls" || fail "apt-get may ask"
