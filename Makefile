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

.PHONY: all help setup check demo lint clean
all: ## build the library and the command

include preload/preload.mk
include tools/tools.mk
include tests/tests.mk

# Both commands of the README set up what they need; a second make reads the files that the
# packages brought.
demo: ## run a real server under the library and show its heap
	@tests/setup build demo
	@$(MAKE) --no-print-directory all
	@tests/demo

check: ## all tests; ends with "N passed, N failed, N skipped"
	@tests/setup build test bench vm
	@$(MAKE) --no-print-directory check-built

.PHONY: check-built
check-built: all $(TEST_BINS)
	@tests/run $(SUITES)

lint: ## format, static analysis, the order of includes
	@tests/setup lint
	@tests/lint $(CC)

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

clean: ## remove what was built (caches of guest kernels stay)
	rm -rf $(BUILD)
