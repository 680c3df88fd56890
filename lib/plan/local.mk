libcore_la_SOURCES += \
	%D%/double_tree.c %D%/double_tree.h \
	%D%/doubling.c %D%/doubling.h \
	%D%/flow.c %D%/flow.h \
	%D%/fold.h \
	%D%/edges.c \
	%D%/load.c %D%/load.h \
	%D%/load_step.c \
	%D%/intern.c %D%/intern.h \
	%D%/schedule.c %D%/schedule.h \
	%D%/pass_absorb.c %D%/pass_fit.c \
	%D%/pass_forward.c \
	%D%/pass_fuse.c \
	%D%/pass_split.c \
	%D%/plan.c %D%/plan.h \
	%D%/problem_op.c %D%/problem_op.h \
	%D%/all_ranks.c %D%/all_ranks.h \
	%D%/reorder.c \
	%D%/scan.c %D%/scan.h \
	%D%/view.c %D%/view.h \
	%D%/view_cost.c %D%/view_cost.h \
	%D%/view_lanes.c %D%/view_lanes.h \
	%D%/view_rounds.c %D%/view_rounds.h \
	%D%/view_tree.c %D%/view_tree.h \
	%D%/waits.c %D%/waits.h \
	%D%/words.h
libstudy_la_SOURCES += %D%/dump.c
