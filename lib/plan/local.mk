libcore_la_SOURCES += \
	%D%/check.c \
	%D%/cost.c \
	%D%/flow.c %D%/flow.h \
	%D%/link.c \
	%D%/memory.c %D%/memory.h \
	%D%/number.c %D%/number.h \
	%D%/pass_fuse.c \
	%D%/pass_split.c \
	%D%/plan.c %D%/plan.h \
	%D%/select.c %D%/select.h \
	%D%/prove.c %D%/prove.h \
	%D%/sim.c %D%/sim.h \
	%D%/sim_queue.c %D%/sim_queue.h \
	%D%/sim_steps.c %D%/sim_steps.h \
	%D%/view_fabric.c \
	%D%/sets.c %D%/sets.h \
	%D%/trees.c %D%/trees.h \
	%D%/tune.c %D%/tune.h \
	%D%/view.c %D%/view.h
