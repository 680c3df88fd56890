libcore_la_SOURCES += \
	%D%/algo.h \
	%D%/allgather_bruck.c \
	%D%/allgather_ring.c \
	%D%/allreduce_binomial.c \
	%D%/allreduce_one_shot.c \
	%D%/allreduce_rabenseifner.c \
	%D%/allreduce_recursive_doubling.c \
	%D%/allreduce_ring.c \
	%D%/allreduce_two_shot.c \
	%D%/barrier_dissemination.c \
	%D%/broadcast_binomial.c \
	%D%/broadcast_chain.c \
	%D%/combine.c \
	%D%/combine.h \
	%D%/halves.c \
	%D%/halves.h \
	%D%/list.c \
	%D%/nest.c \
	%D%/reduce_binomial.c \
	%D%/reduce_direct.c \
	%D%/reduce_rabenseifner.c \
	%D%/reduce_scatter_direct.c \
	%D%/reduce_scatter_halving.c \
	%D%/reduce_scatter_pat.c \
	%D%/reduce_scatter_ring.c \
	%D%/spans.c
