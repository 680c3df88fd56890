include %D%/cuda/local.mk

# coll_train; links libcoll.la only.  libtrainer.la is all of it but main(), for
# the unit tests.
if HAVE_ONEDNN
noinst_LTLIBRARIES += libtrainer.la
libtrainer_la_CFLAGS = $(AM_CFLAGS) -fno-math-errno $(ONEDNN_CFLAGS) \
	$(JANSSON_CFLAGS) $(ZLIB_CFLAGS)
libtrainer_la_LIBADD = libprogram.la libcoll.la $(ONEDNN_LIBS) $(JANSSON_LIBS) $(ZLIB_LIBS) \
	-ldl -lm
if HAVE_CUDNN
libtrainer_la_LIBADD += libtraincuda.la
endif
libtrainer_la_SOURCES = \
	%D%/alike.c %D%/alike.h \
	%D%/args.c %D%/args.h \
	%D%/bench.c %D%/bench.h \
	%D%/blocks.c %D%/blocks.h \
	%D%/build.c %D%/build.h \
	%D%/checkpoint.c %D%/checkpoint.h \
	%D%/choices.c %D%/choices.h \
	%D%/cifar.c \
	%D%/clock.h \
	%D%/copies.c %D%/copies.h \
	%D%/config_file.c %D%/config_file.h \
	%D%/data.c %D%/data.h \
	%D%/data_file.c %D%/data_file.h \
	%D%/data_share.c \
	%D%/ddp.c %D%/ddp.h %D%/ddp_memory.c %D%/ddp_ranks.c \
	%D%/device.c %D%/device.h \
	%D%/device_cpu.c \
	%D%/elastic.c \
	%D%/epoch.h \
	%D%/error.c %D%/error.h \
	%D%/finite.c %D%/finite.h \
	%D%/flags.c %D%/flags.h \
	%D%/folder.c %D%/folder.h \
	%D%/hints.c %D%/hints.h \
	%D%/idx.c \
	%D%/layers.h \
	%D%/layers_conv.c \
	%D%/layers_conv_image.c \
	%D%/layers_conv_point.c \
	%D%/layers_dense.c \
	%D%/layers_dropout.c \
	%D%/layers_mean.c \
	%D%/layers_norm.c \
	%D%/layers_pool.c \
	%D%/layers_pool_any.c \
	%D%/layers_relu.c \
	%D%/layers_softmax.c \
	%D%/loader.c %D%/loader.h \
	%D%/model.c %D%/model.h \
	%D%/models.c %D%/models.h \
	%D%/onednn.c %D%/onednn.h \
	%D%/optim.c %D%/optim.h \
	%D%/phase.c %D%/phase.h \
	%D%/rate.c %D%/rate.h \
	%D%/replay.c \
	%D%/report.c %D%/report.h \
	%D%/report_json.c %D%/report_json.h \
	%D%/rng.h \
	%D%/sampler.c %D%/sampler.h \
	%D%/simd.h \
	%D%/smaller.h \
	%D%/gradient_plan.c %D%/gradient_plan.h \
	%D%/step.c \
	%D%/stop.c %D%/stop.h \
	%D%/synthetic.c %D%/synthetic.h %D%/synthetic_look.h \
	%D%/test.c \
	%D%/threads.c %D%/threads.h tools/common/cores.h \
	%D%/train.c %D%/train.h \
	%D%/train_divide.c \
	%D%/train_state.c %D%/train_state.h \
	%D%/watch.c %D%/watch.h \
	%D%/wire.c %D%/wire.h

bin_PROGRAMS += %D%/coll_train
trainer_coll_train_SOURCES = %D%/main.c
trainer_coll_train_LDADD = libtrainer.la libcoll.la
endif

# pictures of what the trainer, collrun and a timeline leave behind
dist_doc_DATA += %D%/slurm.sbatch %D%/get_data.sh
bin_PROGRAMS += %D%/coll_plot
trainer_coll_plot_SOURCES = %D%/plot.c %D%/plot.h %D%/plot_curves.c \
	%D%/plot_timeline.c tools/common/gnuplot.h
trainer_coll_plot_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
trainer_coll_plot_LDADD = libprogram.la libcoll.la $(JANSSON_LIBS)

# for programs that do the same by PyTorch: benchmarks/train_torch.py, tests/trainer
EXTRA_DIST += %D%/rng.py
