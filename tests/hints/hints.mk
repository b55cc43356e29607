# numaslab hints: its model, addresses against hostile files, and the command on this machine.
TH := $(BUILD)/tests/hints
TH_MODEL := tools/hints_model.c tools/hints_ask.c tools/hints_advice.c tools/hints_table.c

TEST_BINS += $(TH)/test_model $(TH)/test_address $(TH)/sweeper
SUITES    += $(TH)/test_model $(TH)/test_address tests/hints/test_hints.py tests/hints/test_top.py

$(TH)/test_model: tests/hints/test_model.c $(TH_MODEL) tools/hints.h tools/hints_table.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(filter %.c,$^) -o $@

$(TH)/test_address: tests/hints/test_address.c tools/reader_address.c $(READER_SRC) tools/machine.c tools/text.c \
	tools/reader_address.h tools/reader_internal.h tools/hints_decode.h telemetry/ring.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -fsanitize=address,undefined -fno-sanitize-recover=undefined $(filter %.c,$^) -pthread -o $@

$(TH)/sweeper: tests/hints/sweeper.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -O1 -fno-builtin $< -o $@
