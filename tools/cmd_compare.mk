# numaslab compare, and the small program in it that starts the command
COMPARE_SRC := tools/cmd_compare.c $(sort $(filter-out %_launcher.c,$(wildcard tools/compare_*.c)))
TOOLS_SRC  += $(COMPARE_SRC)
TOOLS_LIBS += -lm

COMPARE_LAUNCHER := $(BUILD)/tool-obj/compare-launcher

$(COMPARE_LAUNCHER): tools/compare_launcher.c tools/compare_launcher.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 $(WARN) -Wno-missing-prototypes -I. -ffreestanding -fno-stack-protector -fno-pic \
		-static -nostdlib -Wl,--build-id=none,-z,noexecstack -s $< -o $@

$(BUILD)/tool-obj/tools/compare_embed.o: $(COMPARE_LAUNCHER)
$(BUILD)/tool-obj/tools/compare_embed.o: CFLAGS_ALL += -DCOMPARE_LAUNCHER='"$(COMPARE_LAUNCHER)"'
