/* SPDX-License-Identifier: MIT */
/* Observation: which chunks, who asks and for how long, and where it must not be. */
#include "tests/unit/observe_world.h"

/* --- Who asks, and for what. --- */

static void nobody_asks(const void *arg)
{
	(void)arg;
	start(NULL, 4, 64);
	fill_chunks(0, 0, 4);
	CHECK(observe.next_ms == UINT64_MAX, "no step is due");
	CHECK(settle() == 0 && how_now(NULL) == OBSERVE_NONE && !observed[0].map);
	observe_ask(0, 0);
	CHECK(observe.next_ms == UINT64_MAX, "asked for nothing: no step is due");
}

static void all_that_is_populated(const void *arg)
{
	(void)arg;
	start("NUMASLAB_OBSERVE=1", 4, 64);
	fill_chunks(0, 0, 4);
	fill_chunks(2, 4 * IN_CHUNK, 3);
	size_t first = settle();
	CHECK(first >= 7 && first <= 10, "%zu", first);
	CHECK(count_observed(0) >= 4 && count_observed(2) >= 3 && count_observed(1) == 0);
	CHECK(how_now(NULL) == OBSERVE_PREFERRED);
	CHECK(observe.next_ms > fake.now_ms, "and then nothing is due at once");
	long before = mbinds();
	settle();
	CHECK(mbinds() == before, "what is right is left alone");
	/* What is born later joins, what is given back leaves. */
	fill_chunks(1, 7 * IN_CHUNK, 2);
	settle();
	CHECK(count_observed(1) >= 2);
	run_on(0);
	free_blocks(0, 4 * IN_CHUNK);
	ns_malloc_trim(0);
	settle();
	CHECK(count_observed(0) <= 1, "an empty chunk is not observed");
}

/* Which of node 0's first `n` chunks are observed, a bit each. */
static uint64_t sample_now(size_t n)
{
	uint64_t set = 0;

	settle();
	for (size_t chunk = 0; chunk < n; chunk++)
		set |= (uint64_t)observed_has(0, chunk) << chunk;
	return set;
}

static void seeds_make_samples(const void *arg)
{
	uint64_t one, two, all = 0;
	int differ = 0;

	(void)arg;
	start(NULL, 2, 256);
	fill_chunks(0, 0, 60);
	ask(4, 1, 60000);
	one = sample_now(60);
	ask(4, 2, 60000);
	two = sample_now(60);
	CHECK(one && two && one != two, "%lx %lx", one, two);
	CHECK(__builtin_popcountll(one) > 4 && __builtin_popcountll(one) < 30, "a quarter: %d",
	      __builtin_popcountll(one));
	ask(4, 1, 60000);
	CHECK(sample_now(60) == one, "the same seed, the same sample");
	for (uint32_t seed = 10; seed < 40; seed++) {
		ask(4, seed, 60000);
		two = sample_now(60);
		differ += two != one;
		all |= two;
	}
	CHECK(differ == 30 && all == ((uint64_t)1 << 60) - 1, "every chunk has its turn: %lx", all);
	ask(1, 5, 60000);
	CHECK(sample_now(60) == ((uint64_t)1 << 60) - 1, "1 in 1: all of them");
}

static void a_lease_ends(const void *arg)
{
	uint64_t request;

	(void)arg;
	start(NULL, 2, 64);
	fill_chunks(0, 0, 5);
	ask(1, 9, 3000);
	for (int i = 0; i < 20; i++)
		step_once();
	CHECK(count_all() >= 5 && how_now(&request) == OBSERVE_PREFERRED);
	CHECK(request == request_of(1, 9), "acknowledged");
	/* Nobody says anything more: the companion was killed. */
	for (int i = 0; i < 12; i++)
		step_once();
	CHECK(count_all() == 0 && how_now(&request) == OBSERVE_NONE && request == 0);
	CHECK(observe.next_ms == UINT64_MAX, "and no step is due any more");
	/* A lease that is over already. */
	observe_ask(request_of(1, 9), fake.now_ms - 1);
	CHECK(settle() == 0);
	ask(1, 3, 60000);
	CHECK(settle() >= 5, "asked again");
	observe_ask(0, 0);
	CHECK(settle() == 0, "taken back");
}

static void a_lease_goes_before_the_variable(const void *arg)
{
	uint64_t permanent, request;

	(void)arg;
	start("NUMASLAB_OBSERVE=4", 2, 256);
	fill_chunks(0, 0, 60);
	permanent = sample_now(60);
	how_now(&request);
	CHECK(permanent && request == 0, "nobody's request");
	ask(1, 1, 4500);
	CHECK(sample_now(60) == ((uint64_t)1 << 60) - 1);
	CHECK(how_now(&request) == OBSERVE_PREFERRED && request == request_of(1, 1));
	step_once(), step_once(), step_once(), step_once(), step_once();
	CHECK(sample_now(60) == permanent, "afterwards as before");
	fake.now_ms += 60000;
	uint64_t later = sample_now(60);
	CHECK(later && later != permanent, "it rotates");
}

/* Samples out of range, or anything at all. */
static void any_request_is_safe(const void *arg)
{
	uint64_t random = 7;

	(void)arg;
	start(NULL, 2, 64);
	fill_chunks(0, 0, 6);
	observe_ask((uint64_t)(OBSERVE_SAMPLE_MAX + 1) << 32, fake.now_ms + 50000);
	CHECK(settle() == 0 && how_now(NULL) == OBSERVE_NONE);
	observe_ask(12345, UINT64_MAX);
	CHECK(settle() == 0, "a sample of 0");
	for (int i = 0; i < 3000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		observe_ask(random >> (random >> 58), fake.now_ms + random % 70000);
		fake.now_ms += random % 300;
		observe_tick(fake.now_ms);
		ns_free(ns_malloc(random % 200000));
	}
	count_all();
	observe_ask(0, 0);
	CHECK(settle() == 0);
}

static void steps_are_bounded(const void *arg)
{
	(void)arg;
	start(NULL, 2, 512);
	fill_chunks(0, 0, 150);
	ask(1, 1, 60000);
	step_once();
	CHECK(count_all() == 64, "%zu in the first step", count_all());
	step_once();
	CHECK(count_all() == 128);
	CHECK(settle() >= 150);
	fake.now_ms += 100000;
	long before = mbinds();
	observe_tick(fake.now_ms);
	CHECK(mbinds() - before <= 256);
	CHECK(settle() == 0);
}

/* --- Where not. --- */

static void nothing_to_observe(const void *arg)
{
	const char *how = arg;
	uint64_t request;

	fake_machine(how[0] == 'o' ? 1 : 4, 64);
	fake.task_policy = how[0] == 'f' ? 3 : 0;
	machine_boot(how[0] == 's'   ? "NUMASLAB_TOPOLOGY=0:64M@0;1:64M@1"
		     : how[0] == 'k' ? "NUMASLAB_PLACEMENT=kernel"
				     : NULL);
	for (unsigned k = 0; k < 4 * IN_CHUNK; k++)
		CHECK((block[k] = ns_malloc(BLOCK)) != NULL);
	long before = mbinds();
	ask(1, 1, 60000);
	step_once();
	CHECK(how_now(&request) == OBSERVE_NONE && request == request_of(1, 1), "said so");
	CHECK(settle() == 0 && mbinds() == before, "and the kernel was not asked");
	observe_ask(0, 0);
	step_once();
	how_now(&request);
	CHECK(request == 0);
}

static void a_filter_comes(const void *arg)
{
	(void)arg;
	start(NULL, 4, 64);
	fill_chunks(0, 0, 4);
	ask(1, 1, 60000);
	CHECK(settle() >= 4);
	alloc_note_filter(); /* before it: policies are reset, and then never set again */
	CHECK(count_all() == 0);
	long before = mbinds();
	ask(1, 2, 60000);
	CHECK(settle() == 0 && mbinds() == before && how_now(NULL) == OBSERVE_REFUSED);
}

/* A filter that nobody announced: the first refusal of a question ends all calls. */
static void a_filter_came(const void *arg)
{
	(void)arg;
	start(NULL, 4, 64);
	fill_chunks(0, 0, 4);
	ask(1, 1, 60000);
	CHECK(settle() >= 4);
	fake_fail(FAKE_page_node, 1, 1, EPERM, false);
	fill_chunks(0, 4 * IN_CHUNK, 1);
	CHECK(topology.silent);
	long before = mbinds();
	for (int i = 0; i < 40; i++)
		step_once();
	CHECK(mbinds() == before && how_now(NULL) == OBSERVE_REFUSED);
	CHECK(observe_state.chunks == 0 && observe_state.runs == 0, "nothing is promised");
}

/* mbind is refused from now on: all of it ends, and nothing is tried in vain. */
static void the_kernel_refuses_later(const void *arg)
{
	int error = *(const int *)arg;

	start(NULL, 4, 64);
	fill_chunks(0, 0, 4);
	ask(1, 1, 60000);
	CHECK(settle() >= 4);
	fill_chunks(1, 4 * IN_CHUNK, 4);
	fake_fail(FAKE_set_policy, 1, 1, error, false);
	settle();
	CHECK(count_all() == 0 && how_now(NULL) == OBSERVE_REFUSED, "all of it ends");
	long before = mbinds();
	settle();
	CHECK(mbinds() == before, "it is not tried again for this request");
	ask(1, 2, 60000);
	CHECK(settle() >= 8, "another request tries again");
}

static void the_programs_own_policy(const void *arg)
{
	(void)arg;
	start(NULL, 2, 64);
	fill_chunks(0, 0, 4);
	ask(1, 1, 60000);
	CHECK(settle() >= 4);
	void *large = ns_malloc(1 << 20);
	alloc_note_policy(large);
	CHECK(settle() >= 4, "of a large block: that is its own");
	alloc_note_policy(block[100]);
	CHECK(count_all() == 0, "of slab memory: ours is out of its way before it");
	CHECK(settle() == 0 && how_now(NULL) == OBSERVE_REFUSED);
	ask(1, 2, 60000);
	CHECK(settle() == 0 && how_now(NULL) == OBSERVE_REFUSED, "for good");
	ns_free(large);
}

/* What lies elsewhere would be moved home. */
static void misplaced_memory(const void *arg)
{
	(void)arg;
	start(NULL, 2, 64);
	fill_chunks(0, 0, 2);
	fill_chunks(1, 2 * IN_CHUNK, 1);
	ask(1, 1, 60000);
	CHECK(settle() >= 2);
	size_t before = count_observed(0);
	/* The last chunk's slab is another node's now. */
	struct slab *s = slab_head((uintptr_t)block[2 * IN_CHUNK - 1]);
	CHECK(observed_has(0, ((uintptr_t)slab_addr(s) - observed_addr(0, 0)) / OBSERVE_CHUNK));
	slab_refile(s, 1);
	CHECK(count_observed(0) == before - 1, "at once");
	settle();
	CHECK(count_observed(0) == before - 1, "and for as long as it lies there");
	slab_refile(s, 0);
	settle();
	CHECK(count_observed(0) == before);
}

static const int eperm = EPERM, enomem = ENOMEM, einval = EINVAL;

/* clang-format off */
scenario(nobody_asks, NULL)
scenario(all_that_is_populated, NULL)
scenario(seeds_make_samples, NULL)
scenario(a_lease_ends, NULL)
scenario(a_lease_goes_before_the_variable, NULL)
scenario(any_request_is_safe, NULL)
scenario(steps_are_bounded, NULL)
scenario(nothing_to_observe, "one node", "simulated", "kernel", "follow")
scenario(a_filter_comes, NULL)
scenario(a_filter_came, NULL)
scenario(the_kernel_refuses_later, &eperm, &enomem, &einval)
scenario(the_programs_own_policy, NULL)
scenario(misplaced_memory, NULL)
    /* clang-format on */

    static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_nobody_asks),
	cmocka_unit_test(test_all_that_is_populated),
	cmocka_unit_test(test_seeds_make_samples),
	cmocka_unit_test(test_a_lease_ends),
	cmocka_unit_test(test_a_lease_goes_before_the_variable),
	cmocka_unit_test(test_any_request_is_safe),
	cmocka_unit_test(test_steps_are_bounded),
	cmocka_unit_test(test_nothing_to_observe),
	cmocka_unit_test(test_a_filter_comes),
	cmocka_unit_test(test_a_filter_came),
	cmocka_unit_test(test_the_kernel_refuses_later),
	cmocka_unit_test(test_the_programs_own_policy),
	cmocka_unit_test(test_misplaced_memory),
};

TAP_MAIN(tests)
