#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The Python package: every operation beside numpy on 1 to 5 ranks; what fails how; GPU
# arrays; how libcoll.so is found; and that the package is as its pyproject.toml says.
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/python.sh"
set -u
begin_python

for n in 1 2 3 5; do
    timeout 60 tools/collrun -n $n "$python" "$source/bindings/python/tests/ranks.py" \
        > "$dir/out" 2>&1 < /dev/null || wrong "ranks.py on $n ranks"
    grep -q passed "$dir/out" || wrong "ranks.py on $n ranks did not come to its end"
done

# fault CASE N OKS [OPTION...]: the case on N ranks, of which so many come to their end.
fault() {
    case=$1 n=$2 oks=$3
    shift 3
    timeout 60 tools/collrun -n "$n" "$@" "$python" "$source/bindings/python/tests/faults.py" \
        "$case" "$dir/$case" > "$dir/out" 2>&1 < /dev/null
    [ "$(grep -c '^\(\[[0-9]*\] \)*ok' "$dir/out")" = "$oks" ] || wrong "$case on $n ranks"
    ! grep -q Traceback "$dir/out" || wrong "$case on $n ranks: a traceback"
}
fault mismatch 2 2
fault mismatch 3 3
fault death 3 2
fault survive 3 3 --min-np 1 --max-restarts 1
: > "$dir/exclude"
fault exclude 3 3
fault deadline 2 2
fault aborted 3 3
fault interrupt 2 2
fault interrupt_request 2 2
fault handler 2 2
fault block 3 3
fault uncaught 2 2
fault left_open 2 2

# the driver of tests/fake_cuda, where it is built
driver=$PWD/tests/fake_cuda/.libs
if [ -e "$driver/libcuda.so.1" ]; then
    timeout 60 env LD_LIBRARY_PATH="$driver" tools/collrun -n 2 "$python" \
        "$source/bindings/python/tests/gpu.py" > "$dir/out" 2>&1 < /dev/null ||
        wrong "gpu.py on 2 ranks"
fi

# says WORDS COMMAND...: it fails with the words.
says() {
    words=$1
    shift
    ! timeout 20 "$@" > "$dir/out" 2>&1 || wrong "$*: no error"
    grep -q "$words" "$dir/out" || wrong "$*: nothing of '$words'"
}
says 'set COLL_LIBRARY to its path' env COLL_LIBRARY="$dir/none.so" "$python" -c 'import libcoll'
says 'set COLL_LIBRARY to its path' env -u COLL_LIBRARY PATH=/bin:/usr/bin LD_LIBRARY_PATH= \
    "$(command -v "$python")" -c 'import ctypes, sys
real = ctypes.CDLL
def absent(name, *rest):
    if "libcoll" in name:
        raise OSError(name + ": not here")
    return real(name, *rest)
ctypes.CDLL = absent
import libcoll'

# it works where there is no numpy, with arrays of others
timeout 20 "$python" -c 'import array, sys
sys.modules["numpy"] = None
import libcoll
with libcoll.Communicator.from_env() as comm:
    mine = array.array("f", [1, 2])
    assert comm.allreduce(mine) is mine
    try:
        comm.allgather(mine)
    except ImportError as error:
        assert "pass out=" in str(error)
    else:
        raise AssertionError("an array without numpy")' > "$dir/out" 2>&1 ||
    wrong "without numpy"

version=$(sed -n 's/^AC_INIT(\[libcoll\], \[\([^]]*\)\].*/\1/p' "$source/configure.ac")
[ "$("$python" -c 'import libcoll; print(libcoll.__version__)')" = "$version" ] ||
    wrong "the version is not $version"
exit $status
