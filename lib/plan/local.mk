libcore_la_SOURCES += \
	%D%/book.c %D%/book.h \
	%D%/bounds.c %D%/bounds.h \
	%D%/check.c \
	%D%/cost.c \
	%D%/dump.c \
	%D%/flow.c %D%/flow.h \
	%D%/judge.c %D%/judge.h \
	%D%/link.c \
	%D%/list_order.c \
	%D%/load.c %D%/load.h \
	%D%/load_step.c \
	%D%/memory.c %D%/memory.h \
	%D%/number.c %D%/number.h \
	%D%/pass_forward.c \
	%D%/pass_fuse.c \
	%D%/pass_split.c \
	%D%/plan.c %D%/plan.h \
	%D%/plans.c %D%/plans.h \
	%D%/scan.c %D%/scan.h \
	%D%/select.c %D%/select.h \
	%D%/prove.c %D%/prove.h \
	%D%/sim.c %D%/sim.h \
	%D%/sim_queue.c %D%/sim_queue.h \
	%D%/sim_steps.c %D%/sim_steps.h \
	%D%/view_fabric.c \
	%D%/sets.c %D%/sets.h \
	%D%/trees.c %D%/trees.h \
	%D%/tune.c %D%/tune.h \
	%D%/view.c %D%/view.h \
	%D%/waits.h \
	%D%/words.h
