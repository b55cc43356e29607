# numaslab.  `make help` lists the targets.
BUILD   ?= build
ifeq ($(origin CC),default)
CC      := gcc
endif
PREFIX  ?= /usr/local
VERSION := 0.1.0
WERROR  ?= $(if $(CI),-Werror)
OPT     ?= -O2 -g
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
CFLAGS_ALL = -std=gnu11 -D_GNU_SOURCE -DNUMASLAB_VERSION='"$(VERSION)"' $(OPT) $(WARN) -I. $(CFLAGS)

# make V=1 shows the commands.
ifndef V
.SILENT:
endif

.PHONY: all help check check-fresh demo lint clean
all: ## build the library and the command

# have HEADER: yes if the compiler finds it
hash := \#
have = $(shell echo '$(hash)include <$(1)>' | $(CC) $(CFLAGS) -E -o /dev/null - 2>/dev/null && echo yes)
# A build that cannot succeed says in one line what to install.  (These targets set up what they
# need themselves, or need nothing.)
ifneq ($(filter-out help clean uninstall demo check check-fresh lint,$(or $(MAKECMDGOALS),all)),)
ABSENT := $(if $(shell command -v $(firstword $(CC)) 2>/dev/null),$(foreach h,stdlib.h numaif.h \
	urcu/uatomic.h,$(if $(call have,$h),,<$h>)),the compiler '$(firstword $(CC))')
ifneq ($(strip $(ABSENT)),)
$(error $(strip $(ABSENT)): not found.  $(or $(shell SETUP= tests/setup -n build 2>&1), \
	packages.txt lists what the build needs and dpkg says that it is installed: $(CC) does not look there))
endif
endif

include preload/preload.mk
include tools/tools.mk
include tests/tests.mk
# Last: the guests' kernels are there then.
SUITES += tests/tools/test_leaves.sh

# Without a -j of its own, make uses every core.
ALL_CORES = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
# Both commands of the README set up what they need; a second make reads the files that the
# packages brought.
demo: ## run a real server under the library and show its heap
	@tests/setup build demo
	@$(MAKE) $(ALL_CORES) --no-print-directory all
	@tests/demo

check: ## all tests; ends with "N passed, N failed, N skipped"
	@tests/setup build test bench vm
	@tests/building $(sort $(TEST_BINS)) -- $(MAKE) $(ALL_CORES) --no-print-directory check-bins
	@$(MAKE) --no-print-directory check-built

.PHONY: check-bins check-built
check-bins: all $(TEST_BINS)
check-built: check-bins
	@tests/run $(SUITES)

check-fresh: ## make demo and make check in bare Debian roots (root, an hour; FRESH="demo check")
	@tests/setup fresh
	@tests/run --timeout 9000 "tests/fresh/run $(FRESH)"

lint: ## format, static analysis, the order of includes
	@tests/setup lint
	@tests/lint $(CC)

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

clean: ## remove what was built (caches of guest kernels stay)
	rm -rf $(BUILD)
