LIB_SRC  := $(wildcard allocator/*.c) $(wildcard preload/*.c) $(wildcard telemetry/pub_*.c)
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/lib/%.o)
# initial-exec TLS, no PLT for our own calls, every libc symbol bound at load time (a lazy binding
# inside malloc could call malloc).
LIB_CFLAGS  = $(CFLAGS_ALL) -fPIC -fvisibility=hidden -fno-plt -fomit-frame-pointer -fcf-protection=none \
	      -fno-stack-protector -fno-builtin-malloc -fno-builtin-calloc -fno-semantic-interposition \
	      -fno-asynchronous-unwind-tables -fno-trapping-math -fno-strict-aliasing
LIB_LDFLAGS = -shared -Wl,-soname,libnumaslab.so.0 -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,-z,defs \
	      -Wl,--version-script=preload/exports.map -Wl,--as-needed $(LDFLAGS)

all: $(BUILD)/libnumaslab.so

$(BUILD)/lib/%.o: %.c Makefile preload/preload.mk
	@mkdir -p $(@D)
	echo "  CC      $<"
	$(CC) $(LIB_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/libnumaslab.so: $(LIB_OBJ) preload/exports.map
	echo "  LINK    $@"
	$(CC) $(LIB_CFLAGS) $(LIB_LDFLAGS) -o $@ $(LIB_OBJ)

-include $(LIB_OBJ:.o=.d)
