# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2034,SC2154
# trainer_gpus.sh - read by tests of coll_train on GPUs, over the driver of tests/fake_cuda
# and the libraries of tests/fake_cudnn: where these are, and the same run on processors and
# on GPUs.
. "${srcdir:-.}/tests/trainer/trainer_program.sh"
set -u
[ -e "$build/tests/fake_cudnn/.libs/libcudnn.so.9" ] ||
    { echo "configure found no headers of CUDA or cuDNN"; exit 77; }
[ -e "$build/trainer/cuda/cuda_image.c" ] || train=$build/tests/trainer/coll_train_cuda
driver=$build/tests/fake_cuda/.libs
gpus=$driver:$build/tests/fake_cudnn/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
lines="--progress plain --log-interval 1 --json -"
unset CUDA_VISIBLE_DEVICES FAKE_CUDA_FAULT FAKE_CUDA_MEMORY FAKE_CUDA_DEVICES

# on DEVICE RANKS ARGUMENTS...: what it printed is in the file DEVICE.
on() {
    device=$1 ranks=$2
    shift 2
    libraries=
    [ "$device" = cpu ] || libraries=$gpus
    LD_LIBRARY_PATH=$libraries accept "$collrun" -n "$ranks" "$train" --device "$device" "$@"
    cp out "$device"
}

# losses FILE: the losses of its steps, and of its last test by its JSON, which has all digits.
losses() {
    sed -n 's/^Train Epoch.*Loss: //p; s/.*"test_loss":\([0-9.]*\).*/\1/p' "$1"
}

# alike: the last runs on cpu and cuda had the same losses.
alike() {
    losses cpu > cpu.losses
    losses cuda > cuda.losses
    [ -s cpu.losses ] || fail "no losses"
    paste cpu.losses cuda.losses | awk '
        NF != 2 || $1 - $2 > 1e-4 || $2 - $1 > 1e-4 { bad = 1 }
        END { exit bad }' || fail "other losses: $(paste cpu.losses cuda.losses | tr '\n' ';')"
}

# both RANKS ARGUMENTS...: on processors and on GPUs, with the same losses.
both() {
    # shellcheck disable=SC2086
    on cpu "$@" $lines
    # shellcheck disable=SC2086
    on cuda "$@" $lines
    alike
}
