libcore_la_SOURCES += \
	%D%/agree.c %D%/agree.h \
	%D%/ctrl.c %D%/ctrl.h %D%/ctrl_int.h \
	%D%/ctrl_card.h \
	%D%/ctrl_agree.c \
	%D%/ctrl_ask.c \
	%D%/ctrl_connect.c \
	%D%/ctrl_gather.c \
	%D%/ctrl_part.c \
	%D%/ctrl_round.c \
	%D%/ctrl_watch.c
