# SPDX-License-Identifier: BSD-3-Clause
# COLL_COMPILER: C11 (C++17 in tests), warnings, --enable-werror,
# --enable-sanitizers=LIST, --enable-fuzzers.
AC_DEFUN([COLL_COMPILER], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [treat warnings as errors (CI does)])],
    [], [enable_werror=no])
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST],
      [build with sanitizers: address,undefined or thread])],
    [], [enable_sanitizers=no])

  COLL_CFLAGS="-std=gnu11 -Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -pthread"
  COLL_CXXFLAGS="-std=gnu++17 -Wall -Wextra -Wshadow -pthread"
  AS_IF([test "x$enable_werror" = xyes], [
    COLL_CFLAGS="$COLL_CFLAGS -Werror"
    COLL_CXXFLAGS="$COLL_CXXFLAGS -Werror"])

  # how many times longer tests may take than on a quiet machine
  COLL_PATIENCE=4
  COLL_SANITIZERS=none
  AS_CASE([$enable_sanitizers],
    [no], [],
    [thread|address|undefined|address,undefined|undefined,address], [
      COLL_SANITIZERS=$enable_sanitizers
      COLL_PATIENCE=10
      COLL_SAN_FLAGS="-fsanitize=$enable_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer -g"
      COLL_CFLAGS="$COLL_CFLAGS $COLL_SAN_FLAGS"
      COLL_CXXFLAGS="$COLL_CXXFLAGS $COLL_SAN_FLAGS"
      COLL_LDFLAGS="$COLL_SAN_FLAGS"],
    [AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers: it must be address,undefined or thread])])

  AC_ARG_ENABLE([fuzzers],
    [AS_HELP_STRING([--enable-fuzzers],
      [build the fuzzers of tests/ by libFuzzer (CC=clang)])],
    [], [enable_fuzzers=no])
  AM_CONDITIONAL([HAVE_FUZZERS], [test "x$enable_fuzzers" = xyes])
  AS_IF([test "x$enable_fuzzers" = xyes], [
    coll_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS -fsanitize=fuzzer"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
      #include <stddef.h>
      int LLVMFuzzerTestOneInput(const unsigned char *at, size_t len);
      int LLVMFuzzerTestOneInput(const unsigned char *at, size_t len)
      { return at && len > 1000 ? 0 : 0; }]])], [],
      [AC_MSG_ERROR([--enable-fuzzers needs a compiler with libFuzzer; set CC=clang])])
    CFLAGS=$coll_saved_cflags
    COLL_CFLAGS="$COLL_CFLAGS -fsanitize=fuzzer-no-link"])

  AC_SUBST([COLL_CFLAGS])
  AC_SUBST([COLL_CXXFLAGS])
  AC_SUBST([COLL_LDFLAGS])
  AC_SUBST([COLL_SANITIZERS])
  AC_SUBST([COLL_PATIENCE])
])
