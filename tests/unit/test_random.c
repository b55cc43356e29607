/* SPDX-License-Identifier: MIT */
/*
 * Random use of the whole allocator on small machines, so that nodes fill up, slabs land elsewhere
 * and memory comes back; contents checked at each free, every equation by the audit in between.
 */
#include "tests/unit/machine.h"

#define SLOTS 6000u

struct plan {
	const char *name, *variable;
	unsigned nodes, mib;
	uint64_t seed;
	bool truth;	/* the simulated topology has no machine to compare with */
	int overcommit; /* 2: what is given back is unmapped */
};

static void *block[SLOTS];
static uint32_t length[SLOTS];
static uint64_t seed;

static unsigned pick(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % below);
}

static size_t pick_size(void)
{
	switch (pick(10)) {
	case 0:
		return pick(65537);
	case 1:
		return 1024 + pick(7169);
	case 2:
		return pick(40) ? 65537 + pick(100000) : pick(3000000);
	case 3:
		return pick(1025);
	default:
		return 16 * (1 + pick(6)) * (1 + pick(3));
	}
}

/* Each byte depends on the slot and the place; a few places only of large ones. */
static void fill(unsigned slot, size_t from, size_t n)
{
	unsigned char *p = block[slot];

	for (size_t i = from; i < n; i += i < 256 ? 1 : 251)
		p[i] = (unsigned char)(slot * 31 + i);
	if (n)
		p[n - 1] = (unsigned char)(slot * 31 + n - 1);
}

static void check(unsigned slot, size_t n)
{
	const unsigned char *p = block[slot];

	for (size_t i = 0; i < n && i < length[slot]; i += i < 256 ? 1 : 251)
		CHECK(p[i] == (unsigned char)(slot * 31 + i), "slot %u byte %zu of %u", slot, i,
		      length[slot]);
}

static void take(unsigned slot)
{
	size_t size = pick_size(), align = 16;
	void *p = NULL;

	switch (pick(12)) {
	case 0:
		p = ns_calloc(1, size);
		for (size_t i = 0; p && i < size; i++)
			CHECK(((char *)p)[i] == 0, "calloc of %zu, byte %zu", size, i);
		break;
	case 1:
		align = (size_t)1 << pick(18);
		if (ns_posix_memalign(&p, max_size(align, 8), size))
			p = NULL;
		break;
	case 2:
		p = alloc_on_node(size, topology.number[pick(topology.count)], pick(2));
		break;
	default:
		p = ns_malloc(size);
	}
	block[slot] = p;
	length[slot] = (uint32_t)size;
	if (!p)
		return;
	CHECK((uintptr_t)p % max_size(align, 16) == 0, "align");
	CHECK(ns_malloc_usable_size(p) >= size);
	fill(slot, 0, size);
}

static void resize(unsigned slot)
{
	size_t size = 1 + pick_size(), have = length[slot];
	void *p = ns_realloc(block[slot], size);

	if (!p)
		return; /* the old one is whole: checked when it is freed */
	block[slot] = p;
	check(slot, min_size(have, size));
	length[slot] = (uint32_t)size;
	fill(slot, 0, size);
}

static void release(unsigned slot)
{
	check(slot, length[slot]);
	ns_free(block[slot]);
	block[slot] = NULL;
}

static void move_about(const struct plan *p)
{
	if (topology.simulated)
		heap_set_sim_cpu((int)pick(p->nodes));
	else
		run_on((int)pick(p->nodes));
	if (pick(3) == 0)
		fake.now_ms += pick(500);
	if (pick(20) == 0)
		ns_malloc_trim(0);
}

static void machine_breathes(const struct plan *p)
{
	unsigned i = pick(p->nodes);
	long free = fake.node[i].pages - fake.node[i].used - fake.node[i].cache;

	if (pick(2))
		node_grow(i, (long)pick(500));
	else if (free > 0)
		fake.node[i].pages -= (long)pick((unsigned)free + 1);
}

static void use(const struct plan *p, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		/* Waves: nearly empty, then full. */
		unsigned slot = pick(i / 8000 % 2 ? SLOTS : SLOTS / 16);

		if (!block[slot])
			take(slot);
		else if (pick(6) == 0)
			resize(slot);
		else
			release(slot);
		if (pick(300) == 0)
			move_about(p);
		if (p->truth && pick(300) == 0)
			machine_breathes(p);
		if (i % 2500 == 0)
			audit(&(struct audit_live){block, SLOTS}, p->truth);
	}
}

static void random_use(const void *arg)
{
	const struct plan *p = arg;

	seed = p->seed;
	fake_machine(p->nodes, p->mib);
	fake.overcommit = p->overcommit;
	machine_boot(p->variable);
	use(p, 60000);
	for (unsigned i = 0; i < SLOTS; i++)
		if (block[i])
			release(i);
	audit(&(struct audit_live){block, 0}, p->truth);
	/* Heaps of other nodes are given up as the thread goes there; then nothing is left. */
	for (unsigned i = 0; i < p->nodes; i++) {
		run_on((int)i);
		if (topology.simulated)
			heap_set_sim_cpu((int)i);
		ns_malloc_trim(0);
	}
	audit(&(struct audit_live){block, 0}, p->truth);
	audit_all_returned();
	for (unsigned i = 0; i < p->nodes; i++)
		CHECK(fake_used(i) == 0, "node %u: %ld pages", i, fake_used(i));
}

static void sim_is_whole_again(const void *arg)
{
	static const uint64_t bytes = (uint64_t)6 << 20;

	random_use(arg);
	for (unsigned i = 0; i < topology.count; i++)
		CHECK(sim_free_bytes(i) == bytes, "node %u: %lu of %lu", i, sim_free_bytes(i),
		      bytes);
}

static const struct plan plans[] = {
    {"one node", NULL, 1, 512, 11, true, 0},
    {"one node, checked", "NUMASLAB_CHECK=1", 1, 512, 12, true, 0},
    {"one node, short of memory", NULL, 1, 10, 13, true, 0},
    {"two nodes", NULL, 2, 256, 14, true, 0},
    {"three nodes, short of memory", NULL, 3, 5, 15, true, 0},
    {"four nodes, short of memory, checked", "NUMASLAB_CHECK=1", 4, 4, 16, true, 0},
    {"four nodes, nothing retained", "NUMASLAB_RETAIN=0", 4, 64, 17, true, 0},
    {"two nodes, strict overcommit", NULL, 2, 64, 19, true, 2},
    {"one node, strict overcommit, checked", "NUMASLAB_CHECK=1", 1, 64, 20, true, 2},
    {"three nodes, placement kernel", "NUMASLAB_PLACEMENT=kernel", 3, 8, 18, false, 0},
};

static const struct plan sim[] = {
    {"simulated", "NUMASLAB_TOPOLOGY=0:6M@0;1:6M@1;2:6M@2;3:6M@3", 4, 4096, 21, false, 0},
    {"simulated", "NUMASLAB_TOPOLOGY=0:6M@0;1:6M@1", 2, 4096, 22, false, 0},
};

static void random_use_keeps_every_equation(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof plans / sizeof *plans; i++) {
		print_message("# %s\n", plans[i].name);
		assert_child(random_use, &plans[i]);
	}
}

static void the_simulated_machine_gets_all_back(void **state)
{
	(void)state;
	assert_child(sim_is_whole_again, &sim[0]);
	assert_child(sim_is_whole_again, &sim[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_use_keeps_every_equation),
    cmocka_unit_test(the_simulated_machine_gets_all_back),
};

TAP_MAIN(tests)
