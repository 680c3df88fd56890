#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The wheel of `make wheel`: its name, its licences, and that pip installs and removes it;
# that in an empty virtual environment, on a machine without the libraries that the wheel
# brings along, the first program of doc/python.md runs over each transport, also on two
# hosts, and the programs run.  And the sdist, which loads another libcoll.so.
# shellcheck disable=SC2086
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/python.sh"
set -u
source=$(cd "${srcdir:-.}" && pwd)
[ -n "$python" ] || { echo "$no_python"; exit 77; }
for package in patchelf dpkg; do
    command -v $package > /dev/null || { echo "no $package"; exit 77; }
done
missing="no python3 with setuptools, wheel and venv (Debian: apt-get install \
python3-setuptools python3-wheel python3-venv)"
for candidate in "$python" /usr/bin/python3; do
    "$candidate" -c 'import ensurepip, numpy, setuptools, wheel' 2> /dev/null && missing= &&
        python=$candidate && break
done
[ -z "$missing" ] || { echo "$missing"; exit 77; }
dir=$(mktemp -d) || exit 99
hosts=$source/tests/net/hosts
folder=
finish() {
    [ -z "$folder" ] || "$hosts" down "$folder"
    rm -rf "$dir"
}
trap finish EXIT
unset COLL_BOOTSTRAP COLL_LOG COLL_LIBRARY COLL_TRANSPORTS LD_LIBRARY_PATH PYTHONPATH
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
venv=$dir/venv
status=0

wrong() {
    echo "FAILED: $*"
    cat "$dir/out"
    status=1
}

# try WHAT COMMAND...: it has to end well.
try() {
    what=$1
    shift
    timeout 60 "$@" > "$dir/out" 2>&1 < /dev/null || wrong "$what: exit status $?"
}

# ---- what it is ------------------------------------------------------------------------

try "make wheel" "${MAKE:-make}" -s wheel PYTHON="$python"
version=$(sed -n 's/^AC_INIT(\[libcoll\], \[\([^]]*\)\].*/\1/p' "$source/configure.ac")
glibc=$(getconf GNU_LIBC_VERSION | sed 's/.* //; s/\./_/')
dist=$PWD/bindings/python/dist
wheel=$dist/libcoll-$version-py3-none-manylinux_${glibc}_$(uname -m).whl
[ -e "$wheel" ] || { ls "$dist" > "$dir/out"; wrong "no $wheel"; exit 1; }

try venv "$python" -m venv "$venv"
find "$venv" | sort > "$dir/before"
try "pip install" "$venv/bin/pip" install --no-index --no-deps "$wheel"
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
bundle=$site/libcoll_bundle

for name in libcoll libhwloc15 libucx0 libnuma1 LGPL-2.1; do
    [ -s "$site/libcoll-$version.dist-info/licenses/$name.txt" ] || wrong "no licence of $name"
done
for file in "$bundle"/bin/* "$bundle"/lib/lib* "$bundle"/lib/ucx/*; do
    # shellcheck disable=SC2016
    case $(patchelf --print-rpath "$file") in
    '$ORIGIN' | '$ORIGIN/../lib' | '$ORIGIN:$ORIGIN/..') ;;
    *) wrong "$file looks for libraries elsewhere" ;;
    esac
done

# ---- a machine without these libraries -------------------------------------------------

# $hidden COMMAND...: where the folder of libraries lacks what the wheel has, and what is left
# to machines with RDMA and to launchers.
libraries=$(dirname "$(ldd .libs/libcoll.so | sed -n 's/.*libhwloc.* => \(.*\) (.*/\1/p')")
mkdir "$dir/real" "$dir/shown"
for file in "$libraries"/*; do ln -s "$dir/real/${file##*/}" "$dir/shown/"; done
for name in "$bundle"/lib/lib* libibverbs. librdmacm. libmlx4. libmlx5. libnl- libpmix. libcuda.; do
    name=${name##*/}
    rm -f "$dir/shown/${name%%.so*}"*
done
rm -f "$dir/shown/ucx" "$dir/shown/libibverbs" "$dir/shown/hwloc"
cat > "$dir/hide" << END
mount --bind "$libraries" "$dir/real" && mount --bind "$dir/shown" "$libraries" && exec "\$@"
END
hidden="unshare -rm sh $dir/hide"
if $hidden true 2> /dev/null; then
    ! $hidden tools/coll_info > "$dir/out" 2>&1 || wrong "the libraries are not hidden"
else
    echo "the libraries cannot be hidden: no namespaces here"
    hidden=
fi

# the environment has no numpy, and there may be no network to install it from
mkdir "$dir/numpy"
numpy=$("$python" -c 'import numpy, os; print(os.path.dirname(numpy.__file__))')
for name in "$numpy" "$numpy.libs"; do [ ! -e "$name" ] || ln -s "$name" "$dir/numpy/"; done

awk '/^```/ { if (is_in) exit; is_in = 1; next } is_in' "$source/doc/python.md" > "$dir/first.py"
cat >> "$dir/first.py" << 'END'
print({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line})
END
PATH=$venv/bin:$PATH
export PATH

# first WHAT N COMMAND...: the program on N ranks, with the libraries of the wheel alone.
first() {
    name=$1 n=$2
    shift 2
    try "$name" env PYTHONPATH="$dir/numpy" "$@"
    # ranks without a launcher write into each other's lines
    [ "$(grep -o "rank [0-9] of $n: \[" "$dir/out" | wc -l)" = "$n" ] ||
        wrong "$name: not from $n ranks"
    for library in "$bundle"/lib/lib*; do
        ! grep -o "'[^']*/${library##*/}[^']*'" "$dir/out" | grep -qv "'$bundle/" ||
            wrong "$name: another ${library##*/}"
    done
}
if [ "$(id -u)" = 0 ]; then
    folder=$("$hosts" up 2 2> "$dir/out") || { cat "$dir/out"; echo "without two hosts"; }
fi
for COLL_TRANSPORTS in self,shm,tcp self,tcp self,ucx; do
    export COLL_TRANSPORTS
    for n in 1 3; do
        first "$n ranks by $COLL_TRANSPORTS" $n $hidden collrun -n $n python3 "$dir/first.py"
    done
    [ -z "$folder" ] || first "two hosts by $COLL_TRANSPORTS" 3 \
        "$hosts" ranks "$folder" 2+1 $hidden python3 "$dir/first.py"
done
unset COLL_TRANSPORTS
grep -q "$bundle/lib/ucx/libuct_cma" "$dir/out" || wrong "UCX does not find its modules"

for program in "$bundle"/bin/*; do
    try "${program##*/}" $hidden "$venv/bin/${program##*/}" --version
done
try "a benchmark" $hidden collrun -n 2 allreduce_lat -e 64
try "signals" collrun -n 1 sh -c 'grep SigIgn: /proc/self/status'
timeout 60 grep SigIgn: /proc/self/status | cmp -s - "$dir/out" ||
    wrong "collrun ignores other signals"
! COLL_LIBRARY=$dir/none "$venv/bin/python" -c 'import libcoll' > "$dir/out" 2>&1 ||
    wrong "COLL_LIBRARY is not used first"

try "pip uninstall" "$venv/bin/pip" uninstall -y libcoll
find "$venv" | sort | diff "$dir/before" - > "$dir/out" || wrong "files are left"

# ---- the sdist -------------------------------------------------------------------------

try "a venv for the sdist" "$python" -m venv --system-site-packages "$dir/pure"
try "pip install of the sdist" "$dir/pure/bin/pip" install --no-index --no-deps \
    --no-build-isolation "$dist/libcoll-$version.tar.gz"
try "the sdist" env LD_LIBRARY_PATH="$PWD/.libs" "$dir/pure/bin/python" "$dir/first.py"
grep -q "'$PWD/.libs/libcoll.so" "$dir/out" || wrong "the sdist loads another libcoll"
exit $status
