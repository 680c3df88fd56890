# The pages, installed with the links between them as they are here; README.md's picture.
dist_doc_DATA += README.md HACKING.md CHANGES LICENSE
nobase_dist_doc_DATA += \
	%D%/allreduce.svg \
	%D%/benchmarking.md \
	%D%/between-hosts.md \
	%D%/errors.md \
	%D%/gpu.md \
	%D%/guide.md \
	%D%/launching.md \
	%D%/limits.md \
	%D%/plans.md \
	%D%/reproducible.md \
	%D%/security.md \
	%D%/testing.md \
	%D%/trainer.md \
	%D%/tuning.md
EXTRA_DIST += %D%/allreduce.gp

# Draw the picture again, into the sources: make picture.
picture_result = benchmarks/results/2026-11-25-epyc-2-cores-quick.txt
.PHONY: picture
picture:
	$(AM_V_GEN)gnuplot -e "result='$(top_srcdir)/$(picture_result)'" \
	    $(top_srcdir)/%D%/allreduce.gp > picture.svg && \
	    mv picture.svg $(top_srcdir)/%D%/allreduce.svg
