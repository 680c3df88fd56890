#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# libcoll.horovod.torch.elastic: ranks are killed in a step and while others sync(), and
# newcomers of collrun join; the training ends as if nothing had happened.
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/python.sh"
set -u
want_torch
begin_python

# elastic CASE N RESTARTS LEFT: of N ranks and so many newcomers so many are left
elastic() {
    timeout 300 tools/collrun -n "$2" --min-np 1 --max-restarts "$3" "$python" \
        -m libcoll.horovod "$source/bindings/python/tests/elastic_ranks.py" "$dir" "$1" "$4" \
        > "$dir/out" 2>&1 < /dev/null || wrong "$1 on $2 ranks: a failure"
    [ "$(grep -c "passed with $4 ranks" "$dir/out")" = "$4" ] || wrong "$1 on $2 ranks"
}
elastic deaths 4 3 4
elastic alone 2 0 1

# the program of the page, and the tutorial's, of which a rank is killed from outside
awk '/^```/ { if (is_in) exit; is_in = 1; next } is_in' "$source/doc/elastic.md" > "$dir/page.py"
timeout 300 tools/collrun -n 2 "$python" "$dir/page.py" > "$dir/out" 2>&1 < /dev/null ||
    wrong "the page's program"

trained() { grep -q "^\(\[0\] \)*epoch $1: [12] ranks, accuracy [0-9.]* %$" "$dir/out"; }
: > "$dir/out"
timeout 300 tools/collrun -n 2 --min-np 1 --max-restarts 1 \
    sh -c 'echo $$ > "$0.$LOCAL_RANK"; exec "$@"' "$dir/pid" "$python" -m libcoll.horovod \
    "$source/examples/python/horovod_elastic.py" --epochs 12 > "$dir/out" 2>&1 < /dev/null &
job=$!
await 300 trained 1 && kill -9 "$(cat "$dir/pid.1")"
wait "$job" || wrong "the tutorial's program fails"
trained 11 || wrong "the tutorial's program does not come to its end"
exit $status
