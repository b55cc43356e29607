# White-box tests: the allocator's own sources, linked beside libc's malloc (rename.h), over the real
# system (UT_REAL) or over a machine to order (UT_FAKE: os_fake.c stands for allocator/os.c).
UT := $(BUILD)/tests/unit
UT_FLAGS = $(CFLAGS_ALL) -fvisibility=hidden -fno-builtin-malloc -fno-builtin-calloc -fno-strict-aliasing \
	   -Wno-shadow -Wno-missing-prototypes -pthread
UT_RENAME = -include tests/unit/rename.h

UT_SRC := $(filter-out preload/%,$(LIB_SRC))
UT_ALLOC := $(UT_SRC:%.c=$(UT)/lib/%.o) $(UT)/lib/preload/preload.o
UT_REAL := $(UT_ALLOC)
UT_FAKE := $(filter-out $(UT)/lib/allocator/os.o,$(UT_ALLOC)) $(UT)/obj/os_fake.o $(UT)/obj/os_fake_rest.o $(UT)/obj/audit.o

UT_PURE := test_sizeclass test_link test_layout test_slab test_slab_steps test_tunables
UT_MACHINE := test_span test_large test_salvage test_looks test_topology test_ladder test_placement test_random test_faults \
	test_observe test_observe_bind
UT_CMOCKA := $(UT_PURE:%=$(UT)/%) $(UT_MACHINE:%=$(UT)/%)

TEST_BINS += $(UT_CMOCKA)
SUITES += $(UT_CMOCKA)

$(UT)/lib/preload/preload.o: preload/preload.c tests/unit/rename.h tests/unit/unit.mk
	@mkdir -p $(@D)
	$(CC) $(UT_FLAGS) $(UT_RENAME) -MMD -MP -c -o $@ $<

$(UT)/lib/%.o: %.c tests/unit/unit.mk
	@mkdir -p $(@D)
	$(CC) $(UT_FLAGS) -MMD -MP -c -o $@ $<

$(UT)/obj/%.o: tests/unit/%.c tests/unit/unit.mk
	@mkdir -p $(@D)
	$(CC) $(UT_FLAGS) -MMD -MP -c -o $@ $<

$(UT)/test_sizeclass $(UT)/test_layout: $(UT)/%: $(UT)/obj/%.o
$(UT)/test_link: $(UT)/%: $(UT)/obj/%.o $(UT)/lib/allocator/link.o
$(UT)/test_tunables: $(UT)/%: $(UT)/obj/%.o $(UT)/lib/allocator/tunables.o
$(UT)/test_slab $(UT)/test_slab_steps: $(UT)/%: $(UT)/obj/%.o $(UT)/lib/allocator/slab.o $(UT)/lib/allocator/link.o $(UT)/lib/allocator/alone.o
$(UT_MACHINE:%=$(UT)/%): $(UT)/%: $(UT)/obj/%.o $(UT_FAKE)
$(UT_CMOCKA):
	$(CC) $(UT_FLAGS) -o $@ $^ -lcmocka -ldl

# T1, T4 and stress under the real library; T1 also under a build whose ladder is wrong.
UT_PRELOADED := t1 t4 stress
UT_MUTANT := $(BUILD)/mutant/libnumaslab.so
TEST_BINS += $(UT_PRELOADED:%=$(UT)/%) $(UT_MUTANT)

$(UT_PRELOADED:%=$(UT)/%): $(UT)/%: tests/unit/%.c preload/numaslab.h tests/unit/unit.mk
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -fno-builtin -pthread -o $@ $<

$(BUILD)/mutant/%.o: %.c Makefile preload/preload.mk
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) -DNUMASLAB_MUTANT_SWAP -MMD -MP -c -o $@ $<
$(UT_MUTANT): $(LIB_SRC:%.c=$(BUILD)/mutant/%.o) preload/exports.map
	$(CC) $(LIB_CFLAGS) $(LIB_LDFLAGS) -o $@ $(LIB_SRC:%.c=$(BUILD)/mutant/%.o)
-include $(LIB_SRC:%.c=$(BUILD)/mutant/%.d)

# The allocator under ThreadSanitizer, linked in (a preloaded one would be the sanitizer's own).
# Small windows: the sanitizer leaves little address space.
UT_TSAN := $(patsubst $(UT)/lib/%,$(UT)/tsan/%,$(UT_ALLOC)) $(UT)/tsan/preload/boot.o
TEST_BINS += $(UT)/stress_tsan
# (An access relative to %fs would be checked as if its offset were an address.)
UT_TSAN_FLAGS = $(UT_FLAGS) -Wno-tsan -Wno-unknown-warning-option -fsanitize=thread -fPIE -U__SEG_FS
$(UT)/tsan/preload/preload.o: preload/preload.c tests/unit/rename.h tests/unit/unit.mk
	@mkdir -p $(@D)
	$(CC) $(UT_TSAN_FLAGS) $(UT_RENAME) -MMD -MP -c -o $@ $<
$(UT)/tsan/%.o: %.c tests/unit/unit.mk
	@mkdir -p $(@D)
	$(CC) $(UT_TSAN_FLAGS) -MMD -MP -c -o $@ $<
# Where the windows are placed the sanitizer has its shadow: they go to the low range it leaves to programs.
$(UT)/tsan/pools.c: allocator/pools.c tests/unit/unit.mk
	@mkdir -p $(@D)
	sed -e 's/^\(#define WINDOWS_LOWEST\).*/\1 ((uint64_t)64 << 30)/' \
	    -e 's/^\(#define WINDOWS_HIGHEST\).*/\1 ((uint64_t)1 << 40)/' $< >$@
$(UT)/tsan/allocator/pools.o: $(UT)/tsan/pools.c
	@mkdir -p $(@D)
	$(CC) $(UT_TSAN_FLAGS) -MMD -MP -c -o $@ $<
$(UT)/tsan/allocator/heap.o: UT_TSAN_FLAGS += -Dpthread_key_create=tsan_key_create -Dpthread_setspecific=tsan_setspecific
$(UT)/stress_tsan: tests/unit/stress.c tests/unit/tsan_exit.c tests/unit/simrun.h $(UT_TSAN)
	$(CC) $(UT_TSAN_FLAGS) -DSTRESS_LINKED -pie -o $@ tests/unit/stress.c tests/unit/tsan_exit.c $(UT_TSAN) -ldl

# Each suite is one word for tests/run: name, command line.
define ut_suite
SUITES += $(UT)/suite_$(1)
TEST_BINS += $(UT)/suite_$(1)
$(UT)/suite_$(1): tests/unit/unit.mk
	@mkdir -p $$(@D)
	@printf '#!/bin/sh\nexec %s\n' '$(2)' >$$@ && chmod +x $$@
endef
UT_LIB := $(BUILD)/libnumaslab.so
$(eval $(call ut_suite,t1,$(UT)/t1 $(UT_LIB)))
$(eval $(call ut_suite,t1_mutant,$(UT)/t1 $(UT_MUTANT) mutant))
$(eval $(call ut_suite,t1_literal,$(UT)/t1 $(UT_LIB) literal))
$(eval $(call ut_suite,t4,$(UT)/t4 $(UT_LIB)))
$(eval $(call ut_suite,t4_checked,$(UT)/t4 $(UT_LIB) check))
$(eval $(call ut_suite,stress,$(UT)/stress $(UT_LIB) 2000))
$(eval $(call ut_suite,stress_checked,$(UT)/stress $(UT_LIB) 2000 check))
$(eval $(call ut_suite,stress_nodes,$(UT)/stress $(UT_LIB) 2000 nodes))
$(eval $(call ut_suite,stress_nodes_checked,$(UT)/stress $(UT_LIB) 2000 nodes check))
$(eval $(call ut_suite,stress_fork,$(UT)/stress $(UT_LIB) 3000 fork))
$(eval $(call ut_suite,stress_fork_nodes,$(UT)/stress $(UT_LIB) 3000 fork nodes))
$(eval $(call ut_suite,stress_tsan,tests/unit/tsan $(UT)/stress_tsan))

include tests/model/model.mk

-include $(wildcard $(UT)/*/*.d $(UT)/*/*/*.d)
