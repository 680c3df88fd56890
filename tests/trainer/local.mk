# SPDX-License-Identifier: BSD-3-Clause

# the trainer: layers, data, state, and several ranks
if HAVE_CHECK
if HAVE_ONEDNN
trainer_tests = tests/trainer/test_trainer_layers tests/trainer/test_trainer_network \
	tests/trainer/test_trainer_data tests/trainer/test_trainer_batches \
	tests/trainer/test_trainer_state \
	tests/trainer/test_trainer_ranks tests/trainer/test_trainer_finite \
	tests/trainer/test_trainer_torch tests/trainer/test_trainer_resnet \
	tests/trainer/test_trainer_loader tests/trainer/test_trainer_augment \
	tests/trainer/test_trainer_rate tests/trainer/test_trainer_config \
	tests/trainer/test_trainer_rules tests/trainer/test_trainer_loss \
	tests/trainer/test_trainer_args tests/trainer/test_trainer_optim \
	tests/trainer/test_trainer_sampler \
	tests/trainer/test_trainer_cuda_kernels tests/trainer/test_trainer_cuda_layers
check_PROGRAMS += $(trainer_tests)
TESTS += $(trainer_tests)
tests_trainer_test_trainer_layers_SOURCES = %D%/test_trainer_layers.c \
	%D%/trainer_layer.c %D%/trainer_layer.h
tests_trainer_test_trainer_layers_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_layers_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_loss_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_loss_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_network_SOURCES = %D%/test_trainer_network.c \
	%D%/trainer_layer.c %D%/trainer_layer.h
tests_trainer_test_trainer_network_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_network_LDADD = libtrainer.la $(CHECK_LIBS) -lm
# the kernels for CUDA, on the host
trainer_kernel = %D%/trainer_kernel.c %D%/trainer_kernel.h
tests_trainer_test_trainer_cuda_kernels_SOURCES = %D%/test_trainer_cuda_kernels.c \
	$(trainer_kernel)
nodist_EXTRA_tests_trainer_test_trainer_cuda_kernels_SOURCES = cxx.cc
tests_trainer_test_trainer_cuda_kernels_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_cuda_kernels_LDADD = tests/fake_cuda/libkernels.la libtrainer.la \
	$(CHECK_LIBS) -lm
tests_trainer_test_trainer_cuda_layers_SOURCES = %D%/test_trainer_cuda_layers.c \
	$(trainer_kernel) %D%/trainer_layer.c %D%/trainer_layer.h
nodist_EXTRA_tests_trainer_test_trainer_cuda_layers_SOURCES = cxx.cc
tests_trainer_test_trainer_cuda_layers_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_cuda_layers_LDADD = tests/fake_cuda/libkernels.la libtrainer.la \
	$(CHECK_LIBS) -lm
tests_trainer_test_trainer_loader_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_loader_LDADD = libtrainer.la $(CHECK_LIBS) -lpthread -lm
tests_trainer_test_trainer_data_CFLAGS = $(check_cflags) $(ZLIB_CFLAGS)
tests_trainer_test_trainer_data_LDADD = libtrainer.la $(CHECK_LIBS) $(ZLIB_LIBS) -lm
tests_trainer_test_trainer_batches_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_batches_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_augment_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_augment_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_config_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_config_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_rate_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_rate_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_args_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_args_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_optim_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_optim_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_sampler_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_sampler_LDADD = libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_state_CFLAGS = $(check_cflags) $(ZLIB_CFLAGS)
tests_trainer_test_trainer_state_LDADD = libtrainer.la $(CHECK_LIBS) $(ZLIB_LIBS) -lm
trainer_job = %D%/trainer_job.c %D%/trainer_job.h
tests_trainer_test_trainer_ranks_SOURCES = %D%/test_trainer_ranks.c %D%/trainer_ranks.c \
	%D%/trainer_ranks.h %D%/trainer_ranks_split.c $(trainer_job)
tests_trainer_test_trainer_ranks_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_ranks_LDADD = libworld.la libtrainer.la $(CHECK_LIBS) -lm
tests_trainer_test_trainer_finite_SOURCES = %D%/test_trainer_finite.c $(trainer_job)
tests_trainer_test_trainer_finite_CFLAGS = $(check_cflags)
tests_trainer_test_trainer_finite_LDADD = libworld.la libtrainer.la $(CHECK_LIBS) -lm
trainer_digest = %D%/trainer_digest.c %D%/trainer_digest.h
tests_trainer_test_trainer_resnet_SOURCES = %D%/test_trainer_resnet.c $(trainer_digest)
tests_trainer_test_trainer_resnet_CFLAGS = $(check_cflags) $(JANSSON_CFLAGS)
tests_trainer_test_trainer_resnet_LDADD = libtrainer.la $(CHECK_LIBS) $(JANSSON_LIBS) -lm
tests_trainer_test_trainer_rules_CFLAGS = $(check_cflags) $(JANSSON_CFLAGS)
tests_trainer_test_trainer_rules_LDADD = libtrainer.la $(CHECK_LIBS) $(JANSSON_LIBS) -lm
tests_trainer_test_trainer_torch_SOURCES = %D%/test_trainer_torch.c $(trainer_job) \
	$(trainer_digest)
tests_trainer_test_trainer_torch_CFLAGS = $(check_cflags) $(JANSSON_CFLAGS)
tests_trainer_test_trainer_torch_LDADD = libworld.la libtrainer.la $(CHECK_LIBS) \
	$(JANSSON_LIBS) -lm
# a coll_train with faults, and with a device apart; checkpoint_save() and the like are wrapped where they are called
check_PROGRAMS += %D%/coll_train_dying
tests_trainer_coll_train_dying_SOURCES = trainer/main.c %D%/dying.c %D%/apart.c %D%/apart.h
tests_trainer_coll_train_dying_LDADD = libtrainer.la libcoll.la
tests_trainer_coll_train_dying_LDFLAGS = -Wl,--wrap=coll_group_end -Wl,--wrap=coll_start -Wl,--wrap=coll_wait \
	-Wl,--wrap=coll_allreduce -Wl,--wrap=coll_allgather -Wl,--wrap=coll_broadcast \
	-Wl,--wrap=coll_comm_shrink -Wl,--wrap=coll_comm_grow \
	-Wl,--wrap=trainer__replay -Wl,--wrap=coll_comm_async_error -Wl,--wrap=coll_comm_create_env -Wl,--wrap=coll_comm_dup -Wl,--wrap=coll_comm_waiting -Wl,--wrap=checkpoint_save -Wl,--wrap=model_forward \
	-Wl,--wrap=optim_move -Wl,--wrap=coll_gatherv -Wl,--wrap=coll_scatterv -Wl,--wrap=device_find
# a coll_train whose kernels the driver of tests/fake_cuda has, for builds without nvcc
if HAVE_CUDNN
if !HAVE_NVCC
check_PROGRAMS += %D%/coll_train_cuda
tests_trainer_coll_train_cuda_SOURCES = trainer/main.c tests/fake_cuda/image.c
tests_trainer_coll_train_cuda_LDADD = libtrainer.la libcoll.la
tests_trainer_coll_train_dying_SOURCES += tests/fake_cuda/image.c
endif
endif
endif
endif
scripts += %D%/trainer.sh %D%/trainer_rows.sh %D%/trainer_wrong.sh %D%/trainer_run.sh \
	%D%/trainer_split.sh %D%/trainer_elastic.sh %D%/trainer_grow.sh %D%/trainer_apart.sh \
	%D%/trainer_cuda.sh %D%/trainer_precision.sh
long_scripts += %D%/mnist.test %D%/cifar.test %D%/cifar_slurm.test %D%/trainer_cuda.test \
	%D%/trainer_warmup.test %D%/trainer_killed.test
EXTRA_DIST += %D%/trainer_cifar.sh %D%/trainer_dying.sh %D%/trainer_killed.sh \
	%D%/trainer_gpus.sh %D%/trainer_program.sh %D%/record_resnet.py \
	%D%/record_rules.py %D%/record_torch.py %D%/resnet.json %D%/rules.json \
	%D%/torch.json %D%/trainer_recorded.h
