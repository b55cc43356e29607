# The tests of build/numaslab: units of its parts, and the command itself.
export BUILD
TT     := $(BUILD)/tests/tools
TT_OBJ  = $(filter-out %/numaslab.o,$(TOOLS_OBJ))

TT_UNITS := $(TT)/test_text $(TT)/test_machine $(TT)/test_findings
TEST_BINS += $(TT_UNITS) $(TT)/helper $(BUILD)/numaslab
SUITES += $(TT_UNITS) tests/tools/test_run.sh tests/tools/test_doctor.sh tests/tools/test_install.sh \
	tests/tools/test_first.sh

$(TT)/test_%: tests/tools/test_%.c tests/tools/fake_tree.c tests/tools/fake_tree.h $(TT_OBJ)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(TOOLS_LDFLAGS) $< tests/tools/fake_tree.c $(TT_OBJ) -lcmocka $(TOOLS_LIBS) -o $@

$(TT)/helper: tests/tools/helper.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $< -o $@

# Where the unit tests have no fragment of their own yet.
ifeq ($(wildcard tests/unit/unit.mk),)
TEST_BINS += $(BUILD)/tests/unit/test_tunables
SUITES += $(BUILD)/tests/unit/test_tunables
$(BUILD)/tests/unit/test_tunables: tests/unit/test_tunables.c allocator/tunables.c allocator/tunables.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(filter %.c,$^) -lcmocka -o $@
endif
