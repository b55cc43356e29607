/* SPDX-License-Identifier: MIT */
/*
 * An input is a program for the allocator, on a small machine to order: take, free, resize, move to
 * another node, trim, let a system call fail.  Checked: contents, overlap (by contents),
 * alignment, usable sizes, zeroes of calloc, and after each input every equation of the audit.
 * Built with libFuzzer (fuzz.mk), or with a main of its own that replays files.
 */
#include "tests/unit/machine.h"

#define SLOTS 256u

struct block {
	unsigned char *at;
	uint32_t size;
	uint8_t tag;
};

static struct block block[SLOTS];
static void *live[SLOTS];

struct input {
	const uint8_t *at, *end;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* Small ones often; up to 1 MiB. */
static size_t pick_size(struct input *in)
{
	unsigned a = byte(in), b = byte(in);

	switch (a >> 5) {
	case 0:
		return (a & 31) * 2048 + b * 8;
	case 1:
		return (a & 31) * 32768 + b * 128;
	case 2:
		return 1024 + (a & 31) * 256 + b;
	case 3: /* next to a boundary */
		return ((size_t)8 << (a & 15)) + b % 5 - 2 * (b > 128);
	default:
		return (a & 31) * 16 + b % 33;
	}
}

/* Every byte of small blocks, the edges and some of large ones. */
static size_t next_place(size_t i, size_t size)
{
	return i < 512 || i + 64 >= size ? i + 1 : i + 509;
}

static void fill(unsigned slot)
{
	struct block *b = &block[slot];

	for (size_t i = 0; i < b->size; i = next_place(i, b->size))
		b->at[i] = (unsigned char)(b->tag + i);
}

static void check(unsigned slot, size_t until)
{
	const struct block *b = &block[slot];

	for (size_t i = 0; i < until; i = next_place(i, b->size))
		CHECK(b->at[i] == (unsigned char)(b->tag + i), "slot %u, byte %zu of %u", slot, i,
		      b->size);
}

static void put(unsigned slot, void *p, size_t size, size_t align, uint8_t tag)
{
	block[slot] = (struct block){p, (uint32_t)size, tag};
	if (!p)
		return;
	CHECK((uintptr_t)p % max_size(align, 16) == 0, "%p aligned to %zu", p, align);
	size_t usable = ns_malloc_usable_size(p);
	CHECK(usable >= size, "usable %zu of %zu", usable, size);
	/* All that is usable may be used. */
	block[slot].size = (uint32_t)(tag & 1 ? usable : size);
	fill(slot);
}

static void drop(unsigned slot)
{
	if (block[slot].at)
		check(slot, block[slot].size);
	ns_free(block[slot].at);
	block[slot].at = NULL;
}

static void take(struct input *in, unsigned op, unsigned slot)
{
	size_t size = pick_size(in), align = 16;
	uint8_t tag = (uint8_t)byte(in);
	void *p = NULL;

	drop(slot);
	switch (op & 3) {
	case 0:
		p = ns_calloc(1, size);
		for (size_t i = 0; p && i < size; i++)
			CHECK(((char *)p)[i] == 0, "calloc of %zu, byte %zu", size, i);
		break;
	case 1:
		align = (size_t)1 << byte(in) % 21;
		if (ns_posix_memalign(&p, max_size(align, 8), size))
			p = NULL;
		break;
	case 2:
		p = alloc_on_node(size, (int)byte(in) % 3, tag & 2);
		break;
	default:
		p = ns_malloc(size);
	}
	put(slot, p, size, align, tag);
}

static void resize(struct input *in, unsigned slot)
{
	size_t size = pick_size(in) + 1, have = block[slot].size;
	void *p = ns_realloc(block[slot].at, size);

	if (!p)
		return;
	if (block[slot].at) {
		block[slot].at = p;
		block[slot].size = (uint32_t)have;
		check(slot, min_size(size, have));
	}
	put(slot, p, size, 16, block[slot].tag);
}

static void disturb(struct input *in, unsigned what)
{
	unsigned n = byte(in);

	switch (what & 7) {
	case 0:
		ns_malloc_trim(0);
		break;
	case 1:
		fake.now_ms += n * 8;
		break;
	case 2: /* any but range_is_free: what it says is believed */
		fake_fail((enum fake_call)(1 + n % (FAKE_CALL_COUNT - 1)), 1 + n % 3, 1 + n % 7,
			  n & 8 ? ENOMEM : EAGAIN, n & 16);
		break;
	case 3: /* the node fills up, or has room again */
		fake.node[n % 3].pages = fake.node[n % 3].used + (n & 64 ? 16384 : n / 8);
		break;
	case 4:
		fake_heal();
		break;
	default:
		run_on((int)n % 3);
	}
}

static void step(struct input *in)
{
	unsigned op = byte(in), slot = byte(in);

	if (op < 96)
		take(in, op, slot);
	else if (op < 160)
		drop(slot);
	else if (op < 192)
		resize(in, slot);
	else if (op < 216) /* a range of them */
		for (unsigned i = slot; i < SLOTS; i += 1 + (op & 7))
			drop(i);
	else if (op < 236) /* many of one size */
		for (unsigned i = 0; i < 24; i++) {
			struct input again = *in;

			take(&again, 3, (slot + i) % SLOTS);
		}
	else
		disturb(in, op);
}

static bool closely; /* FUZZ_CLOSELY: the audit after each step, to find the one that is at fault */

static void look(const uint8_t *data, const struct input *in)
{
	for (unsigned i = 0; i < SLOTS; i++)
		live[i] = block[i].at;
	if (closely)
		printf("# at byte %zu\n", (size_t)(in->at - data));
	audit(&(struct audit_live){live, SLOTS}, false);
}

static void start_once(void)
{
	static bool started;

	if (!started) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		fake_machine(3, 64);
		machine_boot(getenv("NUMASLAB_CHECK") ? "NUMASLAB_CHECK=1" : NULL);
		closely = getenv("FUZZ_CLOSELY") != NULL;
		started = true;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};

	start_once();
	while (in.at < in.end) {
		step(&in);
		if (closely)
			look(data, &in);
	}
	fake_heal();
	look(data, &in);
	for (unsigned i = 0; i < SLOTS; i++)
		drop(i);
	for (unsigned i = 0; i < 3; i++) {
		fake.node[i].pages = fake.node[i].used + 16384;
		run_on((int)i);
		ns_malloc_trim(0);
	}
	fake.now_ms += 60000;
	audit(&(struct audit_live){live, 0}, false);
	audit_all_returned();
	return 0;
}
