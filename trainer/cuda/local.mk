# SPDX-License-Identifier: BSD-3-Clause

# what the trainer runs on GPUs
EXTRA_DIST += %D%/kernels.h
