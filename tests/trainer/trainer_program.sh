# SPDX-License-Identifier: BSD-3-Clause
# trainer_program.sh - read by tests of coll_train from the outside: where the
# programs are, an empty folder to work in, and what is expected of a command.
# Names of checks begin with the row of the table of tutorials that they check.
. "${srcdir:-.}/tests/support/patience.sh"
build=$PWD
# shellcheck disable=SC2034
source=$(cd "${srcdir:-.}" && pwd)
train=$build/trainer/coll_train
collrun=$build/tools/collrun
[ -x "$train" ] || { echo "built without oneDNN"; exit 77; }
[ -x "$collrun" ] || { echo "collrun was not built" >&2; exit 1; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset COLL_DATA RANK WORLD_SIZE COLL_RANK COLL_SIZE COLL_PROFILE COLL_TIMELINE
unset COLL_ALGO COLL_TRANSPORTS COLL_REPRODUCIBLE
CUDA_VISIBLE_DEVICES= # --device auto finds no GPU
export CUDA_VISIBLE_DEVICES

fail() {
    echo "FAILED: $*" >&2
    tail -n 20 out err >&2
    exit 1
}

# refuse STATUS WORDS COMMAND...: it ends with STATUS and says WORDS on stderr.
refuse() {
    status=$1 words=$2
    shift 2
    timeout 300 "$@" > out 2> err
    got=$?
    [ $got = "$status" ] || fail "$*: exit status $got, not $status"
    grep -q -- "$words" err || fail "$*: does not say '$words'"
}

# accept COMMAND...: it ends well; what it printed is in out.
accept() {
    timeout 300 "$@" > out 2> err || fail "$*: exit status $?"
}

# says WORDS: the last command printed them.
says() {
    grep -q -- "$1" out || fail "no '$1' in the output"
}

# crc: the parameters' check sum in the last command's JSON.
crc() {
    sed -n 's/.*"param_crc32":"\([0-9a-f]*\)".*/\1/p' out
}

# have_mpirun: Open MPI's, which this build can join.
have_mpirun() {
    command -v mpirun > /dev/null && mpirun --version 2>&1 | grep -q 'Open MPI' &&
        grep -q 'define COLL_HAVE_PMIX 1' "$build/config.h"
}

# mpirun RANKS COMMAND...
mpirun_here() {
    n=$1
    shift
    OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo timeout 300 \
        mpirun --allow-run-as-root --oversubscribe -np "$n" "$@"
}

# shellcheck disable=SC2034
small="--dataset synthetic --limit-train 192 --limit-test 64 --batch-size 16"
# the same with a model that takes a tenth of the time, where any will do
# shellcheck disable=SC2034
tiny="--model net $small"
