/* SPDX-License-Identifier: MIT */
/*
 * Observation where the kernel takes BIND alone: it never stands where a page comes in or goes, not
 * under random use, faults and threads.
 */
#include "tests/unit/observe_world.h"

static size_t chunk_of(const void *p)
{
	return ((uintptr_t)p - observed_addr(0, 0)) / OBSERVE_CHUNK;
}

static void bound_ends_before_pages_move(const void *arg)
{
	(void)arg;
	start_bound("NUMASLAB_OBSERVE=1", 4, 256);
	fill_chunks(0, 0, 4);
	CHECK(settle() == 4 && how_now(NULL) == OBSERVE_BIND && chunk_mode(0, 1) == BIND);
	CHECK(fake.bound == 0);
	size_t first = chunk_of(block[IN_CHUNK * 2]);
	/* Slabs of two chunks are given back, the others left alone, and come again. */
	CHECK(first > 0 && chunk_of(block[IN_CHUNK * 2 - 64]) == first - 1);
	free_blocks(IN_CHUNK * 2 - 64, IN_CHUNK * 2 + 64);
	ns_malloc_trim(0);
	CHECK(fake.bound == 0, "%ld pages went under BIND", fake.bound);
	CHECK(count_all() == 2 && !observed_has(0, first) && !observed_has(0, first - 1));
	CHECK(settle() == 4, "with a hole, too");
	for (size_t k = IN_CHUNK * 2 - 64; k < IN_CHUNK * 2 + 64; k++)
		CHECK((block[k] = ns_malloc(BLOCK)) != NULL);
	CHECK(fake.bound == 0, "%ld pages came under BIND", fake.bound);
	CHECK(count_all() == 2);
	CHECK(settle() == 4 && observed_has(0, first));
	/* Pages inside slabs of large blocks. */
	size_t n = 3 * IN_CHUNK;
	free_blocks(n, n + 200);
	for (size_t k = n; k < n + 60; k++)
		CHECK((block[k] = ns_malloc(20000)) != NULL);
	CHECK(settle() >= 4);
	for (size_t k = n; k < n + 60; k += 2)
		free_blocks(k, k + 1);
	CHECK(fake.bound == 0, "%ld pages went under BIND", fake.bound);
	for (size_t k = n; k < n + 60; k += 2)
		CHECK((block[k] = ns_malloc(20000)) != NULL);
	CHECK(fake.bound == 0, "%ld pages came under BIND", fake.bound);
	count_all();
}

static void bound_needs_room(const void *arg)
{
	(void)arg;
	start_bound(NULL, 2, 256);
	fill_chunks(0, 0, 20);
	fill_chunks(1, 20 * IN_CHUNK, 10);
	ask(1, 1, 60000);
	size_t all = settle(), there = count_observed(1);
	CHECK(all >= 26 && there >= 8, "%zu, of which %zu", all, there);
	/* Somebody takes the node's memory: the next step ends it there. */
	node_fill(0, 2000);
	step_once();
	CHECK(count_observed(0) == 0 || count_observed(0) * 2 * 512 < 2000, "%zu",
	      count_observed(0));
	node_fill(0, 10);
	step_once();
	CHECK(count_observed(0) == 0 && count_observed(1) == there);
	CHECK(how_now(NULL) == OBSERVE_BIND);
	node_fill(1, 10);
	settle();
	CHECK(count_all() == 0 && how_now(NULL) == OBSERVE_REFUSED, "no node has room for it");
	node_grow(0, 40000);
	settle();
	CHECK(count_observed(0) >= 18 && how_now(NULL) == OBSERVE_BIND, "with room it goes on");
	/* The system says nothing of what is free. */
	fake_fail(FAKE_read_file, 1, 1 << 30, ENOENT, false);
	step_once();
	CHECK(count_all() == 0);
	settle();
	CHECK(count_all() == 0 && how_now(NULL) == OBSERVE_REFUSED && fake.bound == 0);
}

static void *step_elsewhere(void *arg)
{
	fake.now_ms += 5000;
	observe_tick(fake.now_ms);
	return arg;
}

/* Fork's handlers, as they are called. */
static void fork_ends_it(const void *arg)
{
	bool bound = arg != NULL;
	pthread_t t;

	if (bound)
		start_bound("NUMASLAB_OBSERVE=1", 4, 256);
	else
		start(NULL, 4, 256);
	fill_chunks(0, 0, 6);
	if (!bound)
		ask(1, 1, 60000);
	size_t before = settle();
	CHECK(before >= 4);
	for (int round = 0; round < 2; round++) {
		observe_fork_prepare();
		CHECK(bound ? observe_state.chunks == 0 : observe_state.chunks == before);
		count_all();
		/* Another thread, until the fork is done. */
		pthread_create(&t, NULL, step_elsewhere, NULL);
		pthread_join(t, NULL);
		CHECK(bound ? observe_state.chunks == 0 : observe_state.chunks == before);
		if (round == 0)
			observe_fork_parent();
		else
			observe_fork_child();
		size_t after = settle();
		if (bound || round == 0)
			CHECK(after == before, "%s: %zu", round ? "child" : "parent", after);
		else
			CHECK(after == 0, "the child was not asked: %zu", after);
	}
	CHECK(fake.bound == 0);
}

/* And that they are called. */
static void a_real_fork(const void *arg)
{
	int status;

	(void)arg;
	start_bound("NUMASLAB_OBSERVE=1", 4, 256);
	fill_chunks(0, 0, 6);
	CHECK(settle() == 6);
	pid_t pid = fork();
	CHECK(count_all() == 0, "in %s", pid ? "the parent" : "the child");
	CHECK(settle() == 6, "it goes on");
	if (pid == 0)
		_exit(0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void both_are_refused(const void *arg)
{
	(void)arg;
	fake_machine(4, 64);
	fake.refuse_many = fake.refuse_bind = true;
	machine_boot(NULL);
	fill_chunks(0, 0, 4);
	long before = mbinds();
	ask(1, 1, 60000);
	CHECK(settle() == 0 && how_now(NULL) == OBSERVE_REFUSED);
	CHECK(mbinds() - before == 2, "each was tried once: %ld", mbinds() - before);
	fake.refuse_bind = false;
	ask(1, 2, 60000);
	CHECK(settle() >= 2 && how_now(NULL) == OBSERVE_BIND, "another request tries again");
}

/* --- Random use. --- */

struct plan {
	bool bound;
	int overcommit;
	unsigned mib;
	enum fake_call call; /* fails at times */
	int error;
};

static uint64_t seed = 4;

static unsigned pick(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % below);
}

static void use(unsigned rounds, const struct plan *p)
{
	static const size_t sizes[] = {100, 512, 1000, 1024, 3000, 4096, 5120, 8192, 24576, 65536};

	for (unsigned k = 0; k < rounds; k++) {
		unsigned i = pick(k / 1000 % 2 ? 3000 : 300);

		if (block[i])
			free_blocks(i, i + 1);
		else
			block[i] =
			    pick(200) ? ns_malloc(sizes[pick(10)]) : ns_malloc(pick(2000000));
		if (k % 200 == 0)
			run_on((int)pick(3));
		if (k % 900 == 0)
			ns_malloc_trim(0);
		if (k % 17 == 0)
			step_once();
		if (p->error && k % 500 == 499)
			fake_fail(p->call, 1 + pick(20), 1 + pick(10), p->error, pick(2));
		/* A reset that failed leaves what it left. */
		if (k % 1000 == 0 && !(p->error && p->call == FAKE_set_policy))
			count_all();
	}
}

static void random_use(const void *arg)
{
	const struct plan *p = arg;
	size_t most = 0;

	fake_machine(3, p->mib);
	fake.refuse_many = p->bound;
	fake.overcommit = p->overcommit;
	machine_boot_two("NUMASLAB_PLACEMENT=observe", "NUMASLAB_OBSERVE=1");
	for (int k = 0; k < 20; k++) {
		use(2000, p);
		most = max_size(most, observe_state.chunks);
		ask(1 + pick(3), pick(3), pick(20000));
	}
	fake_heal();
	if (!p->error)
		CHECK(most > 2, "bound %d, %u MiB: it observed, at times: %zu", p->bound, p->mib,
		      most);
	if (p->error && p->call == FAKE_set_policy)
		return;
	CHECK(fake.bound == 0, "%ld pages under BIND", fake.bound);
	count_all();
	free_blocks(0, 3000);
	audit(NULL, false);
}

/* --- Threads. --- */

#define WORKERS	 4
#define SETS_MIN 100

static _Atomic bool over;
static _Atomic unsigned long sets;

static void *worker(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	void *mine[2000] = {0};
	uint64_t random = me + 1;

	fake_here = (int)(me % 2);
	for (unsigned k = 0; k < 60000 || (k < 30000000 && sets < SETS_MIN); k++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		unsigned i = (unsigned)(random >> 33) % (k / 5000 % 2 ? 2000 : 50);

		ns_free(mine[i]);
		mine[i] = random >> 60 ? ns_malloc(2048 + (random >> 40) % 4 * 2048) : NULL;
		if (k % 2000 == 0)
			ns_malloc_trim(0);
	}
	for (unsigned i = 0; i < 2000; i++)
		ns_free(mine[i]);
	return NULL;
}

static void *stepper(void *arg)
{
	while (!atomic_load(&over)) {
		size_t before = observe_state.chunks;

		atomic_store(&observe.next_ms, 0);
		lock_take(&observe_state.lock);
		observe_state.pass_ms = 0;
		lock_release(&observe_state.lock);
		observe_tick(fake.now_ms);
		sets += observe_state.chunks > before;
	}
	return arg;
}

/* Memory comes and goes in some threads while another observes what is whole. */
static void memory_against_steps(const void *arg)
{
	pthread_t t[WORKERS], s;

	(void)arg;
	start_bound("NUMASLAB_OBSERVE=1", 2, 512);
	ns_free(ns_malloc(1));
	pthread_create(&s, NULL, stepper, NULL);
	for (unsigned k = 0; k < WORKERS; k++)
		pthread_create(&t[k], NULL, worker, (void *)(uintptr_t)k);
	for (unsigned k = 0; k < WORKERS; k++)
		pthread_join(t[k], NULL);
	atomic_store(&over, true);
	pthread_join(s, NULL);
	CHECK(sets >= SETS_MIN, "it observed %lu times", sets);
	CHECK(fake.bound == 0, "%ld pages came or went under BIND", fake.bound);
	count_all();
}

/* clang-format off */
scenario(bound_ends_before_pages_move, NULL)
scenario(bound_needs_room, NULL)
scenario(fork_ends_it, NULL, "bound")
scenario(a_real_fork, NULL)
scenario(both_are_refused, NULL)
scenario(memory_against_steps, NULL)
    /* clang-format on */

    static void test_random_use(void **tap)
{
	static const struct plan plans[] = {
	    {false, 0, 256, 0, 0}, {true, 0, 256, 0, 0}, {false, 2, 256, 0, 0},
	    {true, 2, 256, 0, 0},  {true, 0, 24, 0, 0},	 {false, 0, 10, 0, 0},
	};

	(void)tap;
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
		assert_child(random_use, &plans[i]);
}

static void test_random_faults(void **tap)
{
	static const enum fake_call calls[] = {
	    FAKE_map,	      FAKE_map_at,    FAKE_unmap,     FAKE_populate,   FAKE_discard,
	    FAKE_remap_fresh, FAKE_page_node, FAKE_read_file, FAKE_move_pages, FAKE_set_policy};
	static const int errors[] = {ENOMEM, EFAULT, EINVAL};

	(void)tap;
	for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
		for (size_t e = 0; e < 3; e++)
			for (int way = 0; way < 4; way++) {
				struct plan p = {way & 1, way & 2, 64, calls[c], errors[e]};

				seed = c * 100 + e * 10 + (unsigned)way;
				assert_child(random_use, &p);
			}
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_bound_ends_before_pages_move),
    cmocka_unit_test(test_bound_needs_room),
    cmocka_unit_test(test_fork_ends_it),
    cmocka_unit_test(test_a_real_fork),
    cmocka_unit_test(test_both_are_refused),
    cmocka_unit_test(test_memory_against_steps),
    cmocka_unit_test(test_random_use),
    cmocka_unit_test(test_random_faults),
};

TAP_MAIN(tests)
