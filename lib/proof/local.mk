libcore_la_SOURCES += \
	%D%/book.c %D%/book.h \
	%D%/bounds.c %D%/bounds.h \
	%D%/check.c \
	%D%/judge.c %D%/judge.h \
	%D%/memory.c %D%/memory.h \
	%D%/plans.c %D%/proof.h \
	%D%/sets.c %D%/sets.h \
	%D%/trees.c %D%/trees.h
libstudy_la_SOURCES += \
	%D%/list_order.c \
	%D%/prove.c %D%/prove.h
