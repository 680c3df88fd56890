#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Horovod's interface for TensorFlow and Keras on two and three ranks: operations, training
# beside one process, callbacks, a dead rank; and the tutorial's program.  PYTHON may name a
# python with TensorFlow.
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/python.sh"
set -u
begin_python
"$python" -c 'import tensorflow, keras; assert keras.__version__ >= "3"' > /dev/null 2>&1 ||
    { echo "$python has no tensorflow with Keras 3 (PyPI: tensorflow-cpu; PYTHON=...)"; exit 77; }

# ranks N PASSED WHAT...: the program on N ranks, of which so many come to their end
ranks() {
    n=$1 passed=$2
    shift 2
    timeout 300 tools/collrun -n "$n" "$python" -m libcoll.horovod "$@" \
        > "$dir/out" 2>&1 < /dev/null
    [ "$(grep -c 'passed$' "$dir/out")" = "$passed" ] || wrong "$* on $n ranks"
}
for n in 2 3; do
    ranks "$n" "$n" "$source/bindings/python/tests/keras_ranks.py" "$dir"
done
ranks 3 2 "$source/bindings/python/tests/keras_ranks.py" "$dir" death

timeout 300 tools/collrun -n 2 "$python" -m libcoll.horovod \
    "$source/examples/python/horovod_keras.py" --epochs 4 > "$dir/out" 2>&1 < /dev/null
grep -q 'epoch 3: loss 0\.[0-9]*, accuracy [0-9.]* %$' "$dir/out" || wrong "horovod_keras.py"
exit $status
