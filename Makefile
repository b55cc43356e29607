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

.PHONY: all help clean
all:

include preload/preload.mk
-include tools/tools.mk
-include tests/tests.mk

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

clean: ## remove what was built (caches of guest kernels stay)
	rm -rf $(BUILD)
