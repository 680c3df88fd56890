/* SPDX-License-Identifier: BSD-3-Clause */
/* simd.h - the instruction sets that this compiler supports. */
#ifndef COLL_LIB_DEVICE_SIMD_H
#define COLL_LIB_DEVICE_SIMD_H

#if defined(__x86_64__)
#define SIMD_X86 1
#else
#define SIMD_X86 0
#endif

/* gcc vectorises whole loops at -O3 only, clang at -O2.  SIMD_INDEPENDENT
 * tells the compiler that no iteration of the next loop reads what another one writes.
 * A product and a sum are rounded each, so that all instruction sets give the same
 * bits. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#define SIMD_VECTORISE
#define SIMD_PREFER_512
#define SIMD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#pragma GCC optimize("fp-contract=off")
#define SIMD_INDEPENDENT _Pragma("GCC ivdep")
#define SIMD_PREFER_512 ",prefer-vector-width=512"
#define SIMD_VECTORISE __attribute__((optimize("O3")))
#endif

#endif
