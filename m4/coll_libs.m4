# SPDX-License-Identifier: BSD-3-Clause
# What libcoll is built on.  A library that is asked for and missing is an error
# that names the Debian package to install.

# COLL_NEED_PKG(VARIABLE, MODULE, DEBIAN-PACKAGE): a required pkg-config module.
# --with-X=DIR looks below DIR only.
AC_DEFUN([COLL_NEED_PKG], [
  PKG_CHECK_MODULES([$1], [$2], [],
    [AC_MSG_ERROR([$2 was not found; install it (Debian: apt-get install $3)])])
])

# COLL_VERSION_OF(VARIABLE, MODULE): its version, for coll_feature_list().
AC_DEFUN([COLL_VERSION_OF], [
  AC_DEFINE_UNQUOTED([COLL_$1_VERSION], ["`$PKG_CONFIG --modversion $2`"],
    [the version of $2 that this was built with])
])

# COLL_PC_BELOW(NAME, MODULE, DIR): let pkg-config find MODULE below DIR first; an
# error when it is not there.
AC_DEFUN([COLL_PC_BELOW], [
  AS_IF([test -d "$3"], [], [AC_MSG_ERROR([--with-$1=$3: no such folder])])
  coll_pc_dir=
  for coll_dir in "$3"/lib*/pkgconfig "$3"/lib/*/pkgconfig "$3"/share/pkgconfig; do
    AS_IF([test -z "$coll_pc_dir" && test -f "$coll_dir/$2.pc"],
      [coll_pc_dir=$coll_dir])
  done
  AS_IF([test -z "$coll_pc_dir"],
    [AC_MSG_ERROR([--with-$1=$3: no $2.pc in a pkgconfig folder below it])])
  PKG_CONFIG_PATH="$coll_pc_dir${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
  export PKG_CONFIG_PATH
])

# COLL_PREFIX_DIR(NAME, DESCRIPTION): --with-NAME=DIR for a required library whose
# module has the same name.
AC_DEFUN([COLL_PREFIX_DIR], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=DIR], [$2 below DIR])],
    [AS_CASE([$withval],
      [yes], [],
      [no], [AC_MSG_ERROR([libcoll cannot be built without $1])],
      [COLL_PC_BELOW([$1], [$1], [$withval])])])
])

# COLL_UCX_AT_RUN_TIME: where libucp is looked for at run time: below --with-ucx=DIR, or
# where the system has its libraries.  It is loaded, not linked.
AC_DEFUN([COLL_UCX_AT_RUN_TIME], [
  AS_CASE([$with_ucx],
    [''|yes], [coll_ucx_folder=],
    [coll_ucx_folder=`$PKG_CONFIG --variable=libdir ucx`/])
  AC_DEFINE_UNQUOTED([COLL_UCX_FOLDER], ["$coll_ucx_folder"],
    [the folder of libucp with a slash behind it, or nothing])
  # The leak sanitizer of gcc 12 crashes at times ("Tracer caught signal 11") in processes
  # that have loaded UCX at run time: there it is linked, so that it is there from the start.
  AS_CASE([$enable_sanitizers],
    [*address*], [COLL_LDFLAGS="$COLL_LDFLAGS `$PKG_CONFIG --libs-only-L ucx`"
      COLL_LDFLAGS="$COLL_LDFLAGS -Wl,--push-state,--no-as-needed,-lucp,--pop-state"])
])

AC_DEFUN([COLL_REQUIRED_LIBS], [
  COLL_PREFIX_DIR([ucx], [UCX >= 1.12])
  COLL_PREFIX_DIR([hwloc], [hwloc >= 2.5])
  COLL_NEED_PKG([UCX], [ucx >= 1.12], [libucx-dev])
  COLL_NEED_PKG([HWLOC], [hwloc >= 2.5], [libhwloc-dev])
  COLL_NEED_PKG([VERBS], [libibverbs], [libibverbs-dev])
  COLL_NEED_PKG([JANSSON], [jansson], [libjansson-dev])
  COLL_NEED_PKG([SODIUM], [libsodium], [libsodium-dev])
  COLL_NEED_PKG([ZLIB], [zlib], [zlib1g-dev])
  COLL_UCX_AT_RUN_TIME
  COLL_VERSION_OF([UCX], [ucx])
  COLL_VERSION_OF([HWLOC], [hwloc])
  COLL_VERSION_OF([VERBS], [libibverbs])
])

# COLL_OPTION(NAME, DESCRIPTION): --with-NAME, --without-NAME, --with-NAME=DIR;
# sets want_NAME to auto, yes or no and dir_NAME to DIR or nothing.
AC_DEFUN([COLL_OPTION], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-m4_translit([$1], [_], [-])@<:@=DIR@:>@], [$2 @<:@auto@:>@])],
    [], [with_$1=auto])
  dir_$1=
  AS_CASE([$with_$1],
    [auto|yes|no], [want_$1=$with_$1],
    [want_$1=yes
     dir_$1=$with_$1
     AS_IF([test -d "$dir_$1"], [],
       [AC_MSG_ERROR([--with-$1=$dir_$1: no such folder])])])
])

# COLL_HEADER_BELOW(NAME, HEADER): --with-NAME=DIR must hold include/HEADER, or the
# compiler would take another one.
AC_DEFUN([COLL_HEADER_BELOW], [
  AS_IF([test -n "$dir_$1" && test ! -f "$dir_$1/include/$2"],
    [AC_MSG_ERROR([--with-$1=$dir_$1: no include/$2 below it])])
])

# COLL_DECIDE(NAME, VARIABLE, DEBIAN-PACKAGE): take have_NAME to the Makefiles and
# to config.h, or fail when it was asked for and is missing.
AC_DEFUN([COLL_DECIDE], [
  AS_IF([test "x$want_$1" = xyes && test "x$have_$1" != xyes],
    [AC_MSG_ERROR([--with-$1: not found${dir_$1:+ below $dir_$1}; install it (Debian: apt-get install $3)])])
  AM_CONDITIONAL([HAVE_$2], [test "x$have_$1" = xyes])
  AS_IF([test "x$have_$1" = xyes],
    [AC_DEFINE([COLL_HAVE_$2], [1], [1 when $1 was found, else 0])],
    [AC_DEFINE([COLL_HAVE_$2], [0], [1 when $1 was found, else 0])])
])

# COLL_TRY_PKG(NAME, VARIABLE, MODULE): an optional pkg-config module.
AC_DEFUN([COLL_TRY_PKG], [
  have_$1=no
  AS_IF([test "x$want_$1" != xno], [
    AS_IF([test -n "$dir_$1"],
      [COLL_PC_BELOW([$1], m4_bpatsubst([$3], [ .*]), [$dir_$1])])
    PKG_CHECK_MODULES([$2], [$3], [have_$1=yes], [have_$1=no])])
])

AC_DEFUN([COLL_OPTIONAL_LIBS], [
  COLL_OPTION([cuda], [GPU buffers by CUDA's driver interface])
  COLL_HEADER_BELOW([cuda], [cuda.h])
  have_cuda=no
  CUDA_CFLAGS=
  AS_IF([test "x$want_cuda" != xno], [
    coll_saved_cppflags=$CPPFLAGS
    AS_IF([test -n "$dir_cuda"], [CUDA_CFLAGS="-I$dir_cuda/include"],
      [test -f /usr/local/cuda/include/cuda.h],
      [CUDA_CFLAGS="-I/usr/local/cuda/include"])
    CPPFLAGS="$CPPFLAGS $CUDA_CFLAGS"
    AC_CHECK_HEADER([cuda.h], [have_cuda=yes])
    AS_IF([test "x$have_cuda" = xyes], [
      AC_MSG_CHECKING([whether cuda.h is of CUDA 12.0 or later])
      AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
        #include <cuda.h>
        #if CUDA_VERSION < 12000
        #error too old
        #endif]])], [], [have_cuda=no])
      AC_MSG_RESULT([$have_cuda])])
    CPPFLAGS=$coll_saved_cppflags])
  AC_SUBST([CUDA_CFLAGS])
  COLL_DECIDE([cuda], [CUDA], [nvidia-cuda-dev, CUDA 12.0 or later])
  COLL_NVCC

  COLL_OPTION([cudnn], [the trainer computes on GPUs])
  COLL_HEADER_BELOW([cudnn], [cudnn.h])
  AS_IF([test "x$want_cudnn" = xyes && test "x$have_cuda" != xyes],
    [AC_MSG_ERROR([--with-cudnn: it needs CUDA's headers, which were not found; see --with-cuda])])
  have_cudnn=no
  # -isystem: their declarations are not ours to warn of
  CUDNN_CFLAGS=`AS_ECHO(["$CUDA_CFLAGS"]) | sed 's/-I/-isystem /g'`
  AS_IF([test "x$want_cudnn" != xno && test "x$have_cuda" = xyes], [
    AS_IF([test -n "$dir_cudnn"], [CUDNN_CFLAGS="-isystem $dir_cudnn/include $CUDNN_CFLAGS"])
    coll_saved_cppflags=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $CUDNN_CFLAGS"
    AC_CHECK_HEADER([cudnn.h], [AC_CHECK_HEADER([cublasLt.h], [have_cudnn=yes])])
    AS_IF([test "x$have_cudnn" = xyes], [
      AC_MSG_CHECKING([of which versions cuDNN and cuBLAS are])
      AC_COMPUTE_INT([CUDNN_MAJOR], [CUDNN_MAJOR], [[#include <cudnn.h>]], [CUDNN_MAJOR=0])
      AC_COMPUTE_INT([CUBLAS_MAJOR], [CUBLAS_VER_MAJOR], [[#include <cublasLt.h>]],
        [CUBLAS_MAJOR=0])
      AC_MSG_RESULT([$CUDNN_MAJOR and $CUBLAS_MAJOR])
      AS_IF([test "$CUDNN_MAJOR" -lt 9], [have_cudnn=no])])
    CPPFLAGS=$coll_saved_cppflags])
  AC_SUBST([CUDNN_MAJOR])
  AC_SUBST([CUBLAS_MAJOR])
  AC_SUBST([CUDNN_CFLAGS])
  COLL_DECIDE([cudnn], [CUDNN], [nvidia-cudnn, 9.0 or later])

  COLL_OPTION([pmix], [start under mpirun and srun --mpi=pmix])
  COLL_TRY_PKG([pmix], [PMIX], [pmix])
  COLL_DECIDE([pmix], [PMIX], [libpmix-dev])

  COLL_OPTION([onednn], [the trainer's CPU kernels by oneDNN])
  COLL_HEADER_BELOW([onednn], [dnnl.h])
  have_onednn=no
  ONEDNN_CFLAGS=
  ONEDNN_LIBS=
  AS_IF([test "x$want_onednn" != xno], [
    coll_saved_cppflags=$CPPFLAGS
    coll_saved_ldflags=$LDFLAGS
    coll_saved_libs=$LIBS
    AS_IF([test -n "$dir_onednn"],
      [ONEDNN_CFLAGS="-I$dir_onednn/include"
       ONEDNN_LIBS="-L$dir_onednn/lib -Wl,-rpath,$dir_onednn/lib"])
    CPPFLAGS="$CPPFLAGS $ONEDNN_CFLAGS"
    LDFLAGS="$LDFLAGS $ONEDNN_LIBS"
    AC_CHECK_HEADER([dnnl.h],
      [AC_CHECK_LIB([dnnl], [dnnl_convolution_forward_desc_init],
        [have_onednn=yes
         ONEDNN_LIBS="$ONEDNN_LIBS -ldnnl"])])
    CPPFLAGS=$coll_saved_cppflags
    LDFLAGS=$coll_saved_ldflags
    LIBS=$coll_saved_libs])
  AC_SUBST([ONEDNN_CFLAGS])
  AC_SUBST([ONEDNN_LIBS])
  COLL_DECIDE([onednn], [ONEDNN], [libdnnl-dev])

  COLL_OPTION([check], [the unit tests by Check])
  COLL_TRY_PKG([check], [CHECK], [check >= 0.15])
  COLL_DECIDE([check], [CHECK], [check])

  COLL_OPTION([simgrid], [a second opinion on simulations by SimGrid, in tests])
  COLL_TRY_PKG([simgrid], [SIMGRID], [simgrid >= 3.32])
  AS_IF([test "x$have_simgrid" = xyes], [
    AC_LANG_PUSH([C++])
    coll_saved_cppflags=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $SIMGRID_CFLAGS"
    AC_CHECK_HEADER([simgrid/s4u.hpp], [], [have_simgrid=no])
    CPPFLAGS=$coll_saved_cppflags
    AC_LANG_POP([C++])])
  COLL_DECIDE([simgrid], [SIMGRID], [libsimgrid-dev])
  COLL_RIVALS
])

# COLL_NVCC: CUDA's compiler, below --with-cuda=DIR or where it usually is.  Without
# it, or where it does not take this machine's C++ compiler, device code is left out;
# with sanitizers too, which do not reach it.
AC_DEFUN([COLL_NVCC], [
  AC_ARG_VAR([NVCC], [the CUDA compiler])
  have_nvcc=no
  AS_IF([test "x$have_cuda" = xyes && test "x$COLL_SANITIZERS" = xnone], [
    AS_IF([test -n "$dir_cuda"],
      [AC_PATH_PROG([NVCC], [nvcc], [], [$dir_cuda/bin])],
      [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH:/usr/local/cuda/bin])])
    AS_IF([test -n "$NVCC"], [
      AC_MSG_CHECKING([whether $NVCC works])
      echo '__global__ void empty() {}' > conftest.cu
      AS_IF([$NVCC -fatbin -o conftest.fatbin conftest.cu >&AS_MESSAGE_LOG_FD 2>&1],
        [have_nvcc=yes])
      rm -f conftest.cu conftest.fatbin
      AC_MSG_RESULT([$have_nvcc])])])
  AM_CONDITIONAL([HAVE_NVCC], [test "x$have_nvcc" = xyes])
])

# COLL_RIVAL_PKG(NAME, VARIABLE, MODULE, DEBIAN-PACKAGE): a library to compare with,
# not under sanitizers: what they find in it is not ours, nor are its figures its own.
AC_DEFUN([COLL_RIVAL_PKG], [
  COLL_OPTION([$1], [benchmarks/compare measures it])
  AS_IF([test "x$COLL_SANITIZERS" != xnone], [want_$1=no])
  COLL_TRY_PKG([$1], [$2], [$3])
  COLL_DECIDE([$1], [$2], [$4])
])

# COLL_MPI_ABI: an MPI of the standard's ABI (MPI 5), for bindings/mpi.  Its header is
# mpi.h of a folder of its own, or that which MPICH has for -DMPI_ABI.
AC_DEFUN([COLL_MPI_ABI], [
  COLL_OPTION([mpi_abi], [MPI programs of the ABI of MPI 5])
  COLL_HEADER_BELOW([mpi_abi], [mpi.h])
  AS_IF([test "x$COLL_SANITIZERS" != xnone], [want_mpi_abi=no])
  have_mpi_abi=no
  MPI_ABI_CFLAGS=-DMPI_ABI
  MPI_ABI_LIBS=-lmpi_abi
  MPI_ABI_MPIEXEC=mpiexec
  AS_IF([test -n "$dir_mpi_abi"],
    [MPI_ABI_CFLAGS="-DMPI_ABI -I$dir_mpi_abi/include"
     MPI_ABI_LIBS="-L$dir_mpi_abi/lib -Wl,-rpath,$dir_mpi_abi/lib -lmpi_abi"
     MPI_ABI_MPIEXEC=$dir_mpi_abi/bin/mpiexec])
  AS_IF([test "x$want_mpi_abi" != xno], [
    coll_saved_cppflags=$CPPFLAGS
    coll_saved_libs=$LIBS
    CPPFLAGS="$CPPFLAGS $MPI_ABI_CFLAGS"
    LIBS="$LIBS $MPI_ABI_LIBS"
    AC_MSG_CHECKING([for the ABI of MPI 5])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]],
      [[struct MPI_ABI_Comm *world = MPI_COMM_WORLD; MPI_Barrier(world);]])],
      [have_mpi_abi=yes])
    AC_MSG_RESULT([$have_mpi_abi])
    CPPFLAGS=$coll_saved_cppflags
    LIBS=$coll_saved_libs])
  AC_SUBST([MPI_ABI_CFLAGS])
  AC_SUBST([MPI_ABI_LIBS])
  AC_SUBST([MPI_ABI_MPIEXEC])
  COLL_DECIDE([mpi_abi], [MPI_ABI], [mpich, 5.0 or later])
])

AC_DEFUN([COLL_RIVALS], [
  COLL_RIVAL_PKG([openmpi], [OPENMPI], [ompi-c], [openmpi-bin libopenmpi-dev])
  COLL_RIVAL_PKG([mpich], [MPICH], [mpich], [mpich libmpich-dev])

  COLL_MPI_ABI

  COLL_OPTION([gloo], [benchmarks/compare measures it])
  COLL_HEADER_BELOW([gloo], [gloo/context.h])
  AS_IF([test "x$COLL_SANITIZERS" != xnone], [want_gloo=no])
  have_gloo=no
  GLOO_CFLAGS=
  GLOO_LIBS=
  AS_IF([test "x$want_gloo" != xno], [
    AC_LANG_PUSH([C++])
    coll_saved_cppflags=$CPPFLAGS
    coll_saved_ldflags=$LDFLAGS
    coll_saved_libs=$LIBS
    AS_IF([test -n "$dir_gloo"],
      [GLOO_CFLAGS="-I$dir_gloo/include"
       GLOO_LIBS="-L$dir_gloo/lib -Wl,-rpath,$dir_gloo/lib"])
    GLOO_LIBS="$GLOO_LIBS -lgloo"
    CPPFLAGS="$CPPFLAGS $GLOO_CFLAGS"
    LIBS="$LIBS $GLOO_LIBS"
    AC_MSG_CHECKING([for gloo])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <gloo/rendezvous/context.h>]],
      [[gloo::rendezvous::Context context(0, 1);]])], [have_gloo=yes])
    AC_MSG_RESULT([$have_gloo])
    CPPFLAGS=$coll_saved_cppflags
    LDFLAGS=$coll_saved_ldflags
    LIBS=$coll_saved_libs
    AC_LANG_POP([C++])])
  AC_SUBST([GLOO_CFLAGS])
  AC_SUBST([GLOO_LIBS])
  COLL_DECIDE([gloo], [GLOO], [libgloo-dev])

  COLL_OPTION([nccl], [benchmarks/compare measures it])
  COLL_HEADER_BELOW([nccl], [nccl.h])
  AS_IF([test "x$COLL_SANITIZERS" != xnone || test "x$have_cuda" != xyes],
    [want_nccl=no])
  have_nccl=no
  # -isystem: its declarations are not ours to warn of
  NCCL_CFLAGS=`AS_ECHO(["$CUDA_CFLAGS"]) | sed 's/-I/-isystem /g'`
  AS_IF([test "x$want_nccl" != xno], [
    AS_IF([test -n "$dir_nccl"], [NCCL_CFLAGS="-isystem $dir_nccl/include $NCCL_CFLAGS"])
    coll_saved_cppflags=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $NCCL_CFLAGS"
    AC_CHECK_HEADER([nccl.h], [have_nccl=yes])
    CPPFLAGS=$coll_saved_cppflags])
  AC_SUBST([NCCL_CFLAGS])
  COLL_DECIDE([nccl], [NCCL], [libnccl-dev, of NVIDIA's repository])
])

# COLL_PYTHON: for which Python make install installs bindings/python, if for any.
AC_DEFUN([COLL_PYTHON], [
  AC_ARG_WITH([python], [AS_HELP_STRING([--with-python@<:@=PYTHON@:>@],
      [install the package libcoll for this Python >= 3.9 (default: no)])],
    [], [with_python=no])
  AS_CASE([$with_python],
    [no], [],
    [yes], [AM_PATH_PYTHON([3.9])],
    [PYTHON=$with_python
      AM_PATH_PYTHON([3.9])])
  AM_CONDITIONAL([WITH_PYTHON], [test "x$with_python" != xno])
])

AC_DEFUN([COLL_SUMMARY], [
  AS_ECHO(["
libcoll $PACKAGE_VERSION
  compiler     $CC ($CFLAGS)
  sanitizers   $COLL_SANITIZERS
  UCX          `$PKG_CONFIG --modversion ucx`
  hwloc        `$PKG_CONFIG --modversion hwloc`
  libibverbs   `$PKG_CONFIG --modversion libibverbs`
  CUDA headers $have_cuda
  CUDA nvcc    $have_nvcc
  cuDNN        $have_cudnn
  PMIx         $have_pmix
  oneDNN       $have_onednn
  Check        $have_check
  SimGrid      $have_simgrid
  Python       $with_python
  MPI-5 ABI    $have_mpi_abi
  rivals       Open MPI $have_openmpi, MPICH $have_mpich, Gloo $have_gloo, NCCL $have_nccl
  prefix       $prefix
"])
])
