# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
unit_tests += tests/topo/test_spare
tests_topo_test_spare_CFLAGS = $(check_cflags)
tests_topo_test_spare_LDADD = libcore.la $(check_lib)
unit_tests += tests/topo/test_rails
tests_topo_test_rails_CFLAGS = $(check_cflags)
tests_topo_test_rails_LDADD = $(check_lib)
unit_tests += tests/topo/test_carrier
tests_topo_test_carrier_CFLAGS = $(check_cflags)
tests_topo_test_carrier_LDADD = $(check_lib) -lm
unit_tests += tests/topo/test_hosts
tests_topo_test_hosts_CFLAGS = $(check_cflags)
tests_topo_test_hosts_LDADD = $(check_lib)
unit_tests += tests/topo/test_quota
tests_topo_test_quota_CFLAGS = $(check_cflags)
tests_topo_test_quota_LDADD = $(check_lib)
unit_tests += tests/topo/test_gpus
tests_topo_test_gpus_CFLAGS = $(check_cflags)
tests_topo_test_gpus_LDADD = $(check_lib)
unit_tests += tests/topo/test_topo
tests_topo_test_topo_CFLAGS = $(check_cflags)
tests_topo_test_topo_LDADD = $(check_lib)
endif
EXTRA_DIST += %D%/README %D%/cables.topo %D%/cube_mesh.topo %D%/dgx.topo \
	%D%/dragonfly.topo %D%/expect/cables.expect %D%/expect/cube_mesh.expect \
	%D%/expect/dgx.expect %D%/expect/dragonfly.expect %D%/expect/fattree.expect \
	%D%/expect/four_numa.expect %D%/expect/gpu_pairs.expect \
	%D%/expect/gpus_nvswitch.expect %D%/expect/gpus_pcie.expect %D%/expect/mixed.expect \
	%D%/expect/nic_down.expect %D%/expect/numa4.expect %D%/expect/one_socket.expect \
	%D%/expect/pcie4.expect %D%/expect/rails.expect %D%/expect/switch.expect \
	%D%/expect/torus.expect %D%/expect/two_sockets.expect %D%/expect/vga192.expect \
	%D%/epyc.xml %D%/fattree.topo %D%/flat.topo %D%/four_numa.txt %D%/four_numa.xml \
	%D%/gpu_pairs.topo %D%/gpus_nvswitch.txt %D%/gpus_nvswitch.xml %D%/gpus_pcie.txt \
	%D%/gpus_pcie.xml %D%/hosts31.topo %D%/hosts43.topo %D%/hosts5111.topo \
	%D%/hosts8.topo %D%/ib200.topo %D%/mixed.topo %D%/nic_down.topo %D%/numa4.topo \
	%D%/one_socket.topo %D%/pcie4.topo %D%/rails.topo %D%/switch.topo %D%/torus.topo \
	%D%/two_sockets.txt %D%/two_sockets.xml %D%/two_xeons.xml %D%/vga192.xml
