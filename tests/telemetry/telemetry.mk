# The telemetry: its format, its ring, its files, the reader, stat and top.
TM        := $(BUILD)/tests/telemetry
TM_WRITER := $(wildcard telemetry/pub_*.c) allocator/os.c allocator/tunables.c \
	allocator/slab.c allocator/link.c allocator/alone.c tests/telemetry/fake.c
TM_READER := $(READER_SRC) tools/machine.c tools/text.c
TM_HEADERS := $(wildcard telemetry/*.h tools/reader*.h tests/telemetry/*.h allocator/*.h)

TM_UNITS  := $(TM)/test_layout $(TM)/test_ring $(TM)/test_map $(TM)/test_refused $(TM)/test_picture \
	$(TM)/test_interleave $(TM)/test_overtake $(TM)/test_stress $(TM)/test_steps \
	$(TM)/test_cost $(TM)/test_control
TEST_BINS += $(TM_UNITS) $(TM)/test_stress_tsan
SUITES    += $(TM_UNITS) "$(TM)/test_stress_tsan 20000 2000" tests/telemetry/test_model.sh

$(TM)/test_%: tests/telemetry/test_%.c $(TM_WRITER) $(TM_READER) $(TM_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $< $(TM_WRITER) $(TM_READER) -pthread -o $@

$(TM)/test_stress_tsan: tests/telemetry/test_stress.c $(TM_WRITER) $(TM_READER) $(TM_HEADERS)
	@mkdir -p $(@D)
	gcc $(CFLAGS_ALL) -O1 -fsanitize=thread -Wno-tsan $< $(TM_WRITER) $(TM_READER) -pthread -o $@

TEST_BINS += $(TM)/actor
SUITES    += tests/telemetry/test_files.py
$(TM)/actor: tests/telemetry/actor.c preload/numaslab.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -O1 $< -pthread -o $@

TEST_BINS += $(TM)/test_fuzz
SUITES    += $(TM)/test_fuzz
$(TM)/test_fuzz: tests/telemetry/test_fuzz.c $(TM_WRITER) $(TM_READER) $(TM_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -fsanitize=address,undefined -fno-sanitize-recover=undefined $< $(TM_WRITER) $(TM_READER) -pthread -o $@

SUITES += tests/telemetry/test_folders.sh tests/telemetry/test_screen.py tests/telemetry/test_map_tools.py

TEST_BINS += $(TM)/test_audit $(TM)/audited
SUITES    += $(TM)/test_audit
$(TM)/audited: tests/telemetry/audited.c preload/numaslab.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -O1 -fno-builtin $< -pthread -o $@
$(TM)/test_audit: tests/telemetry/test_audit.c tests/telemetry/outside.c $(TM_READER) $(TM_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $< tests/telemetry/outside.c $(TM_READER) -pthread -o $@
