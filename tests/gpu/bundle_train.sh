#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# bundle_train.sh FOLDER TESTS: does the trainer that library.sh has built in FOLDER train over
# the stand-ins for driver, cuDNN and cublasLt in TESTS, the tests' folder of another build?
# Where that has none, or no nvcc has made the kernels, the trainer has to start at least.
library=${1:?the folder of library.sh} tests=$(cd "${2:?tests of a build folder}" && pwd) || exit 1
train=$library/build/trainer/coll_train
"$library/run" "$train" --check-build || exit 1
[ -e "$tests/fake_cudnn/.libs/libcudnn.so.9" ] && [ -e "$library/build/trainer/cuda/cuda_image.c" ] ||
    exit 0
LD_LIBRARY_PATH=$tests/fake_cuda/.libs:$tests/fake_cudnn/.libs \
    "$library/run" "$library/build/tools/collrun" -n 2 "$train" --device cuda --model cnn \
    --dataset synthetic --limit-train 32 --limit-test 8 --batch-size 8 --epochs 1
