# SPDX-License-Identifier: BSD-3-Clause
libcore_la_SOURCES += \
	%D%/match.c %D%/match.h \
	%D%/tags.c %D%/tags.h %D%/tags_int.h \
	%D%/tags_recv.c %D%/tags_send.c %D%/tags_step.c
