# The tests of numaslab compare: its statistics and texts, and the command itself.
TC	 := $(BUILD)/tests/compare
TC_UNITS := $(TC)/test_compare_stats $(TC)/test_compare_text
TEST_BINS += $(TC_UNITS) $(TC)/load $(BUILD)/numaslab
SUITES	  += $(TC_UNITS) tests/compare/test_verdicts.py tests/compare/test_live.py \
	tests/compare/test_ci.py

$(TC)/test_compare_%: tests/compare/test_compare_%.c $(TT_OBJ)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(TOOLS_LDFLAGS) $< $(TT_OBJ) -lcmocka $(TOOLS_LIBS) -o $@

$(TC)/load: tests/compare/load.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $< -o $@
