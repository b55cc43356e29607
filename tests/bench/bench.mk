# Benchmarks: timed by hand (`make bench`), never by `make check`, which only builds the programs,
# runs each row once in small and holds the instruction counts to their budgets.
BENCH_DIR := tests/bench
BENCH_BUILD := $(BUILD)/tests/bench
# a pair of malloc and free must stay one
BENCH_CFLAGS = $(CFLAGS_ALL) -fno-builtin-malloc -fno-builtin-free -fno-builtin-calloc \
	-fno-builtin-realloc -fno-builtin-posix_memalign

BENCH_BINS := $(addprefix $(BENCH_BUILD)/,micro count t2 t3 measure)
TEST_BINS += $(BENCH_BINS)
SUITES += $(BENCH_DIR)/check $(BENCH_DIR)/check_seeds

$(BENCH_BUILD)/micro: $(addprefix $(BENCH_DIR)/,micro.c micro_single.c micro_threads.c bench.h)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $(filter %.c,$^) -pthread

# -z now: a lazily bound call would count the dynamic linker
$(BENCH_BUILD)/count: $(addprefix $(BENCH_DIR)/,count.c count_child.c count_report.c count.h bench.h)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -Wl,-z,now -o $@ $(filter %.c,$^)

$(BENCH_BUILD)/t3: $(addprefix $(BENCH_DIR)/,t3.c bench.h) preload/numaslab.h
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $(filter %.c,$^)

$(BENCH_BUILD)/t2: $(addprefix $(BENCH_DIR)/,t2.c bench.h)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $(filter %.c,$^) -pthread

# static: its own resident set is the floor of what it can measure
$(BENCH_BUILD)/measure: $(addprefix $(BENCH_DIR)/,measure.c bench.h)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -static -o $@ $(filter %.c,$^)

# What the targets below run: the programs, the command and the library.
BENCH_NEEDS := $(BENCH_BINS) $(BUILD)/numaslab $(BUILD)/libnumaslab.so

.PHONY: bench bench-t3 bench-count bench-seeds
bench: $(BENCH_NEEDS) ## time and memory against other allocators (BENCH="--rows REGEX --rounds N"; BASE=old.json judges)
	$(BENCH_DIR)/bench --build $(BUILD) $(if $(BASE),--base $(BASE)) $(BENCH)

bench-t3: $(BENCH_NEEDS) ## fragmentation against other allocators
	$(BENCH_DIR)/bench --build $(BUILD) --only t3 $(BENCH)

bench-count: $(BENCH_NEEDS) ## instructions of malloc and free against other allocators
	$(BENCH_DIR)/bench --build $(BUILD) --only count $(BENCH)

# The guest's programs are named here, because their own makefile is read after this one.
SEEDS_NEEDS := $(addprefix $(BUILD)/tests/,unit/t1 unit/t4 vm/t1 vm/t2 vm/t4 vm/danger vm/actor vm/hog) \
	$(BUILD)/mutant/libnumaslab.so
bench-seeds: $(BENCH_NEEDS) $(SEEDS_NEEDS) ## T1 to T4 with the original figures beside ours (SEEDS="--no-guest --only T1,T3")
	$(BENCH_DIR)/seeds --build $(BUILD) $(SEEDS)
