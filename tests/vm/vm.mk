# Guests with several nodes (tests/vm/README.md).  `make check-vm` alone, or as a part of `make check`.
VM_PROGRAMS := t1 t2 t4 danger actor hog seccomp watched hints hinted
VM_BINS     := $(addprefix $(BUILD)/tests/vm/,$(VM_PROGRAMS))

TEST_BINS += $(VM_BINS)
SUITES    += tests/vm/run

$(VM_BINS): $(BUILD)/tests/vm/%: tests/vm/%.c tests/vm/guest.c tests/vm/guest.h preload/numaslab.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -fno-builtin -o $@ $(filter %.c,$^) -pthread

$(BUILD)/tests/vm/t2 $(BUILD)/tests/vm/watched: tests/vm/trace.c tests/vm/trace.h telemetry/ring.h
$(BUILD)/tests/vm/hints $(BUILD)/tests/vm/hinted: tests/vm/companion.c tests/vm/companion.h

.PHONY: check-vm
check-vm: $(BUILD)/libnumaslab.so $(BUILD)/mutant/libnumaslab.so $(BUILD)/numaslab $(VM_BINS) ## prove NUMA placement in Linux guests with several nodes
	BUILD=$(BUILD) tests/vm/run
