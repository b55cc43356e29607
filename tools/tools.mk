# build/numaslab.  A new subcommand: a line in commands.h, its sources in TOOLS_SRC, and where it
# needs a library the flags of the next paragraph.  Missing optional packages are named once.
TOOLS_SRC := tools/numaslab.c tools/text.c tools/tunables_doc.c tools/library.c tools/program.c \
	tools/machine.c tools/machine_numa.c tools/facts.c tools/probe.c tools/checks_system.c \
	tools/checks_process.c tools/cmd_run.c tools/cmd_doctor.c tools/missing.c allocator/tunables.c \
	allocator/topology_text.c

LIBDIR  ?= $(PREFIX)/lib
MANDIR  ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions

# PACKAGE,-PACKAGE(what-is-left-out-without-them) of what is not there; `have` is the Makefile's.
TOOLS_MISSING :=
TOOLS_ABSENT   = $(subst $(comma)-, ,$(foreach m,$(TOOLS_MISSING),$(firstword $(subst $(open), ,$(m)))))
open := (
comma := ,
TOOLS_CFLAGS   = -DNUMASLAB_LIBDIR='"$(LIBDIR)"'
ifeq ($(call have,numa.h),yes)
TOOLS_CFLAGS += -DHAVE_LIBNUMA
TOOLS_LIBS   += -ldl
else
TOOLS_MISSING += libnuma-dev(doctor-reads-sysfs-itself)
endif
ifeq ($(call have,cjson/cJSON.h),yes)
TOOLS_CFLAGS += -DHAVE_CJSON
TOOLS_LIBS   += -lcjson
else
TOOLS_MISSING += libcjson-dev(no-compare,-no-doctor---json)
TOOLS_LEFT_OUT += tools/cmd_compare.mk
TOOLS_SRC += tools/cmd_absent.c
endif
-include $(sort $(filter-out $(TOOLS_LEFT_OUT),$(wildcard tools/cmd_*.mk)))

TOOLS_OBJ = $(TOOLS_SRC:%.c=$(BUILD)/tool-obj/%.o)

all: $(BUILD)/numaslab $(BUILD)/man/libnumaslab.7

$(BUILD)/tool-obj/%.o: %.c
	@mkdir -p $(@D)
	echo "  CC      $<"
	$(CC) $(CFLAGS_ALL) $(TOOLS_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/numaslab: $(TOOLS_OBJ)
	echo "  LINK    $@"
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) $^ $(TOOLS_LIBS) -o $@
	@$(if $(TOOLS_MISSING),echo "numaslab is built without optional packages: $(TOOLS_MISSING)"; \
		echo "as root: apt-get install $(sort $(TOOLS_ABSENT)); then make again")

-include $(TOOLS_OBJ:.o=.d)

# The directory that `run` falls back to is compiled in, so another LIBDIR compiles it again.
$(BUILD)/tool-obj/libdir: FORCE
	@mkdir -p $(@D)
	@echo '$(LIBDIR)' | cmp -s - $@ || echo '$(LIBDIR)' >$@
$(BUILD)/tool-obj/tools/library.o: $(BUILD)/tool-obj/libdir
.PHONY: FORCE
FORCE:

$(BUILD)/man/libnumaslab.7: tools/man/libnumaslab.7.in $(BUILD)/numaslab
	@mkdir -p $(@D)
	$(BUILD)/numaslab run --help-tunables=man >$@.tunables
	sed -e '/^@TUNABLES@$$/{r $@.tunables' -e 'd}' $< >$@.new && mv $@.new $@

include tools/install.mk
include tests/tools/tools.mk
