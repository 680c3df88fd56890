libcore_la_SOURCES += \
	%D%/algo.h \
	%D%/allgather_bruck.c \
	%D%/allgather_direct.c \
	%D%/allgather_pat.c \
	%D%/allgather_recursive_doubling.c \
	%D%/allgather_ring.c \
	%D%/allreduce_binomial.c \
	%D%/allreduce_recursive_doubling.c \
	%D%/allreduce_ring.c \
	%D%/alltoall_bruck.c \
	%D%/alltoall_direct.c \
	%D%/alltoall_pairwise.c \
	%D%/barrier_binomial.c \
	%D%/barrier_dissemination.c \
	%D%/blocks.c \
	%D%/broadcast_binomial.c \
	%D%/broadcast_chain.c \
	%D%/broadcast_scatter_allgather.c \
	%D%/gather_binomial.c \
	%D%/gather_direct.c \
	%D%/list.c \
	%D%/nest.c \
	%D%/p2p_direct.c \
	%D%/scatter_binomial.c \
	%D%/scatter_direct.c \
	%D%/spans.c
