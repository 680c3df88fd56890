# SPDX-License-Identifier: BSD-3-Clause
# python.sh - read by scripts: python is the first Python that can run the package's tests,
# or empty; no_python says why.  Debian's python3-numpy is for its own python3 alone, and a
# library with a sanitizer cannot be loaded by a program without.
no_python="no python3 >= 3.9 with numpy (Debian: apt-get install python3-numpy)"
for python in "${PYTHON-}" python3 /usr/bin/python3; do
    "${python:-false}" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 9))' \
        2> /dev/null && break
    python=
done
case ${TEST_LDFLAGS:-} in
*-fsanitize*) python="" no_python="python cannot load a library with a sanitizer" ;;
esac

# begin_python: end the script as skipped if there is no python; a folder $dir for files, and
# the environment in which python runs the package of the sources with the library built here
begin_python() {
    [ -n "$python" ] || { echo "$no_python"; exit 77; }
    source=$(cd "${srcdir:-.}" && pwd)
    dir=$(mktemp -d) || exit 99
    trap 'rm -rf "$dir"' EXIT
    unset COLL_BOOTSTRAP COLL_LOG
    export COLL_LIBRARY="$PWD/.libs/libcoll.so" PYTHONPATH="$source/bindings/python"
    export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
    status=0
}

# wrong WHAT: say what has failed, and what $dir/out holds
wrong() {
    echo "FAILED: $*"
    cat "$dir/out"
    status=1
}

# want_torch: let python be one that has torch, or end the script as skipped
want_torch() {
    [ -n "$python" ] || { echo "$no_python"; exit 77; }
    for candidate in "$python" /usr/bin/python3; do
        python=$candidate
        "$python" -c 'import torch.distributed as d; assert d.is_gloo_available()' \
            2> /dev/null && return
    done
    echo "no python3 with torch (Debian: apt-get install python3-torch)"
    exit 77
}
