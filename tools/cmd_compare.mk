# numaslab compare
TOOLS_SRC += tools/cmd_compare.c $(sort $(wildcard tools/compare_*.c))
TOOLS_LIBS += -lm
