# Operation sequences against the allocator (fuzz_ops.c) on a machine to order.  `make check` replays the
# corpus and inputs made from it; `make fuzz` lets libFuzzer look for more.
FZ := $(BUILD)/tests/fuzz
FZ_SECONDS ?= 60
FZ_CLANG := $(shell command -v clang)
FZ_FLAGS = $(UT_FLAGS) -DCHECK_FAILED=abort -O1 -fsanitize=fuzzer-no-link
FZ_SRC := $(filter-out allocator/os.c,$(UT_SRC)) preload/preload.c tests/unit/os_fake.c tests/unit/os_fake_rest.c tests/unit/audit.c \
	  tests/fuzz/fuzz_ops.c
FZ_OBJ := $(FZ_SRC:%.c=$(FZ)/obj/%.o)
FZ_CORPUS := $(sort $(wildcard tests/fuzz/corpus/*))

TEST_BINS += $(FZ)/replay
$(eval $(call ut_suite,fuzz,$(FZ)/replay 200 $(FZ_CORPUS)))
$(eval $(call ut_suite,fuzz_checked,env NUMASLAB_CHECK=1 $(FZ)/replay 80 $(FZ_CORPUS)))

$(FZ)/%.o: tests/fuzz/%.c tests/fuzz/fuzz.mk
	@mkdir -p $(@D)
	$(CC) $(UT_FLAGS) -MMD -MP -c -o $@ $<
$(FZ)/replay: $(FZ)/replay.o $(FZ)/fuzz_ops.o $(UT_FAKE)
	$(CC) $(UT_FLAGS) -o $@ $^ -ldl

$(FZ)/obj/preload/preload.o: FZ_FLAGS += $(UT_RENAME)
$(FZ)/obj/%.o: %.c tests/fuzz/fuzz.mk
	@mkdir -p $(@D)
	$(FZ_CLANG) $(FZ_FLAGS) -MMD -MP -c -o $@ $<
$(FZ)/fuzz_ops: $(FZ_OBJ)
	$(FZ_CLANG) $(FZ_FLAGS) -fsanitize=fuzzer -o $@ $^ -ldl

.PHONY: fuzz
fuzz: $(FZ)/fuzz_ops ## look for failing operation sequences (clang; FZ_SECONDS=60)
	@mkdir -p $(FZ)/found
	$(FZ)/fuzz_ops -max_total_time=$(FZ_SECONDS) -max_len=4096 -timeout=30 -rss_limit_mb=4096 \
		-artifact_prefix=$(FZ)/ $(FZ)/found tests/fuzz/corpus

-include $(wildcard $(FZ)/*.d $(FZ)/obj/*/*.d $(FZ)/obj/*/*/*.d)
