# Benchmarks: nothing here is part of `make check`, save that the programs are built and run once.
BENCH_DIR := tests/bench
# a pair of malloc and free must stay one
BENCH_CFLAGS = $(CFLAGS_ALL) -fno-builtin-malloc -fno-builtin-free -fno-builtin-calloc \
	-fno-builtin-realloc -fno-builtin-posix_memalign

BENCH_BINS := $(addprefix $(BUILD)/tests/bench/,micro)
TEST_BINS += $(BENCH_BINS)

$(BUILD)/tests/bench/micro: $(addprefix $(BENCH_DIR)/,micro.c micro_single.c micro_threads.c bench.h)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $(filter %.c,$^) -pthread
