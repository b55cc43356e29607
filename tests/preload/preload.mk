# The drop-in contract: programs that run under LD_PRELOAD=$LIB, their helpers and plugins.
PT := $(BUILD)/tests/preload
PT_FLAGS := $(filter-out -flto%,$(CFLAGS_ALL)) -fno-builtin -pthread -Wno-deprecated-declarations

PT_SUITES := $(patsubst tests/preload/%.c,$(PT)/%,$(wildcard tests/preload/contract_*.c))
PT_HELPERS := $(patsubst tests/preload/helpers/%.c,$(PT)/%,$(wildcard tests/preload/helpers/*.c))
PT_PLUGINS := $(patsubst tests/preload/plugins/%.c,$(PT)/%.so,$(wildcard tests/preload/plugins/*.c))
PT_CXX := $(PT)/contract_cxx
PT_COMMON := $(patsubst %,$(PT)/common-%.o,harness util exhaust forks)

TEST_BINS += $(PT_SUITES) $(PT_CXX) $(PT_HELPERS) $(PT_PLUGINS)
SUITES += $(PT_SUITES) $(PT_CXX)

$(PT)/contract_%: tests/preload/contract_%.c $(PT_COMMON) tests/preload/harness.h
	@mkdir -p $(@D)
	$(CC) $(PT_FLAGS) $< $(PT_COMMON) -o $@ -ldl

CXX ?= g++
PT_CXXFLAGS := -std=gnu++17 -D_GNU_SOURCE -O2 -g -Wall -Wextra -I. -pthread -fno-builtin

$(PT)/common-%.o: tests/preload/%.c tests/preload/harness.h
	@mkdir -p $(@D)
	$(CC) $(PT_FLAGS) -c $< -o $@

$(PT)/contract_cxx: tests/preload/contract_cxx.cc $(PT_COMMON)
	$(CXX) $(PT_CXXFLAGS) $< $(PT_COMMON) -o $@ -ldl

$(PT)/%: tests/preload/helpers/%.c
	@mkdir -p $(@D)
	$(CC) $(PT_FLAGS) $< -o $@ -ldl

$(PT)/%.so: tests/preload/plugins/%.c
	@mkdir -p $(@D)
	$(CC) $(PT_FLAGS) -fPIC -shared $< -o $@ -ldl

# outer.so finds libinner.so by its RUNPATH and no other way.
TEST_BINS += $(PT)/inner/libinner.so
$(PT)/outer.so: PT_FLAGS += -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/inner'
$(PT)/inner/libinner.so: tests/preload/plugins/tls_plugin.c
	@mkdir -p $(@D)
	$(CC) $(PT_FLAGS) -fPIC -shared $< -o $@
SUITES += tests/preload/programs
SUITES += tests/preload/mutants
