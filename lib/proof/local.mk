libcore_la_SOURCES += \
	%D%/plan_set.c %D%/plan_set.h \
	%D%/bounds.c %D%/bounds.h \
	%D%/check.c \
	%D%/judge.c %D%/judge.h \
	%D%/symbolic.c %D%/symbolic.h \
	%D%/build_plans.c %D%/proof.h \
	%D%/sets.c %D%/sets.h \
	%D%/trees.c %D%/trees.h
libstudy_la_SOURCES += \
	%D%/list_order.c \
	%D%/prove.c %D%/prove.h
