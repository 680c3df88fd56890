# The pages, installed with the links between them as they are here; README.md's picture.
dist_doc_DATA += README.md HACKING.md CHANGES LICENSE
nobase_dist_doc_DATA += \
	%D%/allreduce.svg \
	%D%/benchmarking.md \
	%D%/between-hosts.md \
	%D%/elastic.md \
	%D%/errors.md \
	%D%/failures.md \
	%D%/gpu.md \
	%D%/guide.md \
	%D%/keras.md \
	%D%/launching.md \
	%D%/limits.md \
	%D%/mpi.md \
	%D%/nccl.md \
	%D%/plans.md \
	%D%/python.md \
	%D%/reproducible.md \
	%D%/security.md \
	%D%/testing.md \
	%D%/torch.md \
	%D%/trainer.md \
	%D%/trainer-gpus.md \
	%D%/tuning.md
EXTRA_DIST += %D%/allreduce.gp

# The picture as this gnuplot draws it; make picture puts it into the sources.
picture_result = $(top_srcdir)/benchmarks/results/2026-11-25-epyc-2-cores-quick.txt
CLEANFILES += %D%/drawn.svg
%D%/drawn.svg: $(picture_result) %D%/allreduce.gp
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	    gnuplot -e "result='$(picture_result)'" $(top_srcdir)/%D%/allreduce.gp > $@.part && \
	    mv $@.part $@
.PHONY: picture
picture: %D%/drawn.svg
	cp %D%/drawn.svg $(top_srcdir)/%D%/allreduce.svg
