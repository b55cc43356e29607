# numaslab hints.  Its eBPF programs want clang, bpftool and libbpf-dev; without them it is built
# with the tiers that do without.
HINTS_EBPF_SRC := tools/hints_ebpf.c tools/hints_ebpf_read.c tools/hints_kernel.c
TOOLS_SRC += tools/cmd_hints.c tools/reader_address.c \
	$(filter-out $(HINTS_EBPF_SRC) %.bpf.c,$(sort $(wildcard tools/hints_*.c)))

BPF_CLANG ?= clang
BPFTOOL   ?= $(shell PATH=$$PATH:/usr/sbin:/sbin command -v bpftool)
BPF_ARCH  := $(subst aarch64,arm64,$(subst x86_64,x86,$(shell uname -m)))
BPF_FLAGS := -g -O2 -target bpf -mcpu=v2 -D__TARGET_ARCH_$(BPF_ARCH) -Wall -Wextra $(WERROR) \
	-Wno-unused-parameter -I. $(addprefix -I,$(wildcard /usr/include/$(shell uname -m)-linux-gnu))

BPF_CAN := $(shell command -v $(BPF_CLANG) >/dev/null && $(BPF_CLANG) -print-targets 2>/dev/null | grep -q bpf && echo yes)
ifneq ($(BPF_CAN)$(if $(BPFTOOL),yes)$(call have,bpf/libbpf.h),yesyesyes)
TOOLS_MISSING += clang,-bpftool,-libbpf-dev(hints-without-eBPF)
else
TOOLS_SRC    += $(HINTS_EBPF_SRC)
TOOLS_CFLAGS += -DHAVE_HINTS_BPF -I$(BUILD)/hints
TOOLS_LIBS   += -lbpf
HINTS_SKELETON := $(BUILD)/hints/hints.skel.h

$(BUILD)/hints.bpf.o: tools/hints.bpf.c $(wildcard tools/hints*.bpf.h) tools/hints_bpf.h tools/hints_decode.h
	@mkdir -p $(@D)
	echo "  BPF     $<"
	$(BPF_CLANG) $(BPF_FLAGS) -c $< -o $@.debug
	$(BPFTOOL) gen object $@ $@.debug

$(HINTS_SKELETON): $(BUILD)/hints.bpf.o
	@mkdir -p $(@D)
	{ echo '/* NOLINTBEGIN: made by bpftool */' && $(BPFTOOL) gen skeleton $< name hints_bpf && \
		echo '/* NOLINTEND */'; } >$@.new && mv $@.new $@

$(BUILD)/tool-obj/tools/hints_ebpf.o: $(HINTS_SKELETON)
endif
