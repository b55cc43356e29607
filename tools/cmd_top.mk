# numaslab top; its screen wants ncursesw, and liburcu between its collector and its drawing
TOOLS_SRC += tools/cmd_top.c tools/cmd_top_batch.c tools/cmd_top_hints.c tools/screen_rows.c
ifeq ($(call have,ncursesw/curses.h)$(call have,urcu.h),yesyes)
TOOLS_SRC  += $(filter-out tools/screen_rows.c,$(wildcard tools/screen_*.c))
TOOLS_LIBS += -lncursesw -ltinfo -lurcu -lurcu-common -lm -pthread
else
TOOLS_MISSING += libncurses-dev(top-without-its-screen)
TOOLS_SRC     += tools/cmd_top_plain.c
endif
