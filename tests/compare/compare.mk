# The tests of numaslab compare: its statistics and texts, and the command itself.
TC	 := $(BUILD)/tests/compare
TC_UNITS := $(TC)/test_compare_stats $(TC)/test_compare_text
TEST_BINS += $(TC_UNITS) $(TC)/test_compare_counters $(TC)/load $(BUILD)/numaslab
SUITES	  += $(TC_UNITS) $(TC)/test_compare_counters tests/compare/test_verdicts.py tests/compare/test_live.py \
	tests/compare/test_several.py \
	tests/compare/test_ci.py tests/compare/test_release.py

$(TC)/test_compare_%: tests/compare/test_compare_%.c $(TT_OBJ)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(TOOLS_LDFLAGS) $< $(TT_OBJ) -lcmocka $(TOOLS_LIBS) -o $@

# With the real writer of telemetry files, over an allocator that is a fake.
TC_COUNTERS := tools/compare_counters.c $(wildcard telemetry/pub_*.c) allocator/os.c allocator/tunables.c \
	allocator/slab.c allocator/link.c allocator/alone.c \
	tests/telemetry/fake.c $(READER_SRC) tools/machine.c tools/text.c
$(TC)/test_compare_counters: tests/compare/test_compare_counters.c $(TC_COUNTERS) \
		tools/compare_counters.h tools/compare_metrics.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(filter %.c,$^) -pthread -o $@

$(TC)/load: tests/compare/load.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $< -o $@
