# numaslab top
TOOLS_SRC += tools/cmd_top.c tools/cmd_top_batch.c tools/screen_rows.c
ifeq ($(if $(wildcard tools/screen_main.c),$(call have,ncursesw/curses.h)),yes)
TOOLS_SRC    += $(filter-out tools/screen_rows.c,$(wildcard tools/screen_*.c))
TOOLS_CFLAGS += -DHAVE_NCURSESW
TOOLS_LIBS   += -lncursesw -ltinfo
else
TOOLS_MISSING += libncurses-dev(no-screen-of-top)
TOOLS_SRC     += tools/cmd_top_plain.c
endif
