# SPDX-License-Identifier: BSD-3-Clause

# the library as programs load it that know it only when they run
if HAVE_CHECK
unit_tests += tests/api/test_dlopen
tests_api_test_dlopen_CFLAGS = $(check_cflags)
tests_api_test_dlopen_LDADD = libworld.la $(check_lib) -ldl
unit_tests += tests/api/test_coll
tests_api_test_coll_CFLAGS = $(check_cflags)
tests_api_test_coll_LDADD = libworld.la $(check_lib)
unit_tests += tests/api/test_nomem
tests_api_test_nomem_CFLAGS = $(check_cflags)
tests_api_test_nomem_LDADD = libworld.la $(check_lib)
unit_tests += tests/api/test_locale
tests_api_test_locale_CFLAGS = $(check_cflags)
tests_api_test_locale_LDADD = libworld.la $(check_lib)
unit_tests += tests/api/test_memory
tests_api_test_memory_CFLAGS = $(check_cflags)
tests_api_test_memory_LDADD = libworld.la $(check_lib)

unit_tests += tests/api/test_op
tests_api_test_op_CFLAGS = $(check_cflags)
tests_api_test_op_LDADD = libworld.la $(check_lib)
unit_tests += tests/api/test_types
tests_api_test_types_CFLAGS = $(check_cflags)
tests_api_test_types_LDADD = libworld.la $(check_lib) -lm
unit_tests += tests/api/test_repro
tests_api_test_repro_CFLAGS = $(check_cflags)
tests_api_test_repro_LDADD = libworld.la $(check_lib)
unit_tests += tests/api/test_float_state
tests_api_test_float_state_CFLAGS = $(check_cflags)
tests_api_test_float_state_LDADD = libworld.la $(check_lib) -lm
endif
check_PROGRAMS += tests/api/host_state
tests_api_host_state_LDADD = libcoll.la -lm
scripts += %D%/header.sh %D%/host_state.sh
long_scripts += %D%/abi.sh
EXTRA_DIST += %D%/libcoll-0.1.0.abi %D%/libcoll.abignore
