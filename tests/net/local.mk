# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/net/test_forbidden
tests_net_test_forbidden_SOURCES = %D%/test_forbidden.c tests/support/forbid.c tests/support/forbid.h
tests_net_test_forbidden_CFLAGS = $(check_cflags)
tests_net_test_forbidden_LDADD = $(check_lib)
unit_tests += tests/net/test_net
tests_net_test_net_SOURCES = %D%/test_net.c $(boot_world)
tests_net_test_net_CFLAGS = $(check_cflags)
tests_net_test_net_LDADD = $(check_lib)
unit_tests += tests/net/test_seal
tests_net_test_seal_CFLAGS = $(check_cflags)
tests_net_test_seal_LDADD = libworld.la $(check_lib)
unit_tests += tests/net/test_listener
listener_post = %D%/listener_post.c %D%/listener_post.h $(boot_world)
tests_net_test_listener_SOURCES = %D%/test_listener.c $(listener_post)
tests_net_test_listener_CFLAGS = $(check_cflags)
tests_net_test_listener_LDADD = $(check_lib)
unit_tests += tests/net/test_in_flight
tests_net_test_in_flight_CFLAGS = $(check_cflags)
tests_net_test_in_flight_LDADD = $(check_lib)
unit_tests += tests/net/test_connector
tests_net_test_connector_SOURCES = %D%/test_connector.c $(listener_post)
tests_net_test_connector_CFLAGS = $(check_cflags)
tests_net_test_connector_LDADD = $(check_lib)
unit_tests += tests/net/test_link
tests_net_test_link_CFLAGS = $(check_cflags)
tests_net_test_link_LDADD = libworld.la $(check_lib)

# tests/net/clones.sh: hosts that cannot be told apart by their ids
check_LTLIBRARIES += tests/libsame_ids.la
tests_libsame_ids_la_SOURCES = %D%/same_ids.c
tests_libsame_ids_la_CFLAGS = $(AM_CFLAGS) -fno-sanitize=all
tests_libsame_ids_la_LDFLAGS = -module -avoid-version -rpath /nowhere \
	-XCClinker -fno-sanitize=all
endif
check_PROGRAMS += tests/net/enemy tests/net/wire
scripts += %D%/hosts.sh %D%/net.sh %D%/clones.sh %D%/collrun.sh %D%/diagnose.sh \
	%D%/elastic.sh %D%/gpus.sh %D%/links.sh \
	%D%/names.sh %D%/nodes.sh %D%/ports.sh %D%/scale.sh %D%/vanish.sh %D%/strangers.sh
EXTRA_DIST += %D%/hosts %D%/rsh %D%/run %D%/slurm-up %D%/world.sh
