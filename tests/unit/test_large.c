/* SPDX-License-Identifier: MIT */
/* Large blocks: what is kept for the next one, and for whom. */
#include "tests/unit/machine.h"

#define KIB(n) ((size_t)(n) << 10)

static struct numaslab_node_stats large_stats(void)
{
	struct numaslab_node_stats stats;

	CHECK(alloc_stats_at((int)topology.count, &stats));
	return stats;
}

static bool is_dirty(const void *p)
{
	return slab_of((uintptr_t)p)->dirty;
}

static void pairs_cost_no_calls(const void *arg)
{
	void *first;

	(void)arg;
	machine_start(1, 64);
	ns_free(first = ns_malloc(KIB(300)));
	long maps = fake.call[FAKE_map_at].calls, discards = fake.call[FAKE_discard].calls;
	for (unsigned i = 0; i < 1000; i++) {
		void *p = ns_malloc(KIB(300) - i % 4000);

		CHECK(p == first, "turn %u", i);
		CHECK(large_stats().large_count == 1 && large_stats().large_bytes >= KIB(296));
		audit(&(struct audit_live){&p, 1}, false);
		ns_free(p);
		CHECK(large_stats().large_count == 0 && large_stats().large_bytes == 0);
		CHECK(large_stats().held_bytes >= KIB(296), "kept is held");
		audit(NULL, false);
	}
	CHECK(fake.call[FAKE_map_at].calls == maps && fake.call[FAKE_discard].calls == discards);
	ns_malloc_trim(0);
	CHECK(!large_kept() && large_stats().held_bytes == 0);
	audit_all_returned();
}

static void another_size_is_not_the_kept_one(const void *arg)
{
	void *p, *q;

	(void)arg;
	machine_start(1, 64);
	ns_free(p = ns_malloc(KIB(100)));
	q = ns_malloc(KIB(150));
	CHECK(q != p && large_kept());
	ns_free(q); /* now this one is kept, the other is free */
	CHECK(large_kept() == slab_of((uintptr_t)q) && is_dirty(p));
	audit(NULL, false);
	char *z = ns_calloc(1, KIB(100));
	for (size_t i = 0; i < KIB(100); i += 512)
		CHECK(z[i] == 0, "calloc of memory used before");
	memset(z, 1, KIB(100));
	ns_free(z);
	z = ns_calloc(1, KIB(100));
	for (size_t i = 0; i < KIB(100); i += 512)
		CHECK(z[i] == 0, "calloc of the kept block");
}

static void no_node_gets_anothers_memory(const void *arg)
{
	void *p[3];

	(void)arg;
	machine_start(2, 64);
	run_on(0);
	for (unsigned i = 0; i < 3; i++)
		p[i] = ns_malloc(KIB(100));
	void *wall = ns_malloc(KIB(100)); /* keeps them from the frontier */
	for (unsigned i = 0; i < 3; i++)
		ns_free(p[i]); /* the last one is kept */
	run_on(1);
	char *q = ns_malloc(KIB(100));
	CHECK(q != p[0] && q != p[1] && q != p[2], "touched by the other node");
	ns_free(q);
	run_on(0);
	q = ns_malloc(KIB(100));
	CHECK(q == p[0] || q == p[1] || q == p[2], "its own comes back");
	ns_free(q);
	ns_free(wall);
	audit(NULL, false);
}

/* Spans of two nodes merge: the mixture goes back to the system before it is used again. */
static void a_mixed_span_goes_back(const void *arg)
{
	void *p[2];

	(void)arg;
	machine_start(2, 64);
	run_on(0);
	p[0] = ns_malloc(KIB(100));
	run_on(1);
	p[1] = ns_malloc(KIB(100));
	void *wall = ns_malloc(KIB(100));
	ns_free(p[1]);
	run_on(0);
	ns_free(p[0]);
	large_trim(); /* the two are one span now, dirty */
	CHECK(slab_of((uintptr_t)p[0])->units == 4 && is_dirty(p[0]));
	long discards = fake.call[FAKE_discard].calls;
	void *q = ns_malloc(KIB(200));
	CHECK(q == p[0] && fake.call[FAKE_discard].calls == discards + 1);
	CHECK(large_stats().held_bytes == 0, "nothing of it is held");
	ns_free(q);
	ns_free(wall);
	audit(NULL, false);
}

static void growth_takes_what_is_kept_behind(const void *arg)
{
	(void)arg;
	machine_start(1, 64);
	char *p = ns_malloc(KIB(100)), *behind = ns_malloc(KIB(300)), *wall = ns_malloc(KIB(100));
	memset(p, 7, KIB(100));
	ns_free(behind);
	large_trim();
	CHECK(is_dirty(behind));
	long discards = fake.call[FAKE_discard].calls;
	char *grown = ns_realloc(p, KIB(256));
	CHECK(grown == p && fake.call[FAKE_discard].calls == discards);
	for (size_t i = 0; i < KIB(100); i++)
		CHECK(p[i] == 7);
	audit(&(struct audit_live){(void *[]){p, wall}, 2}, false);
	ns_free(p);
	ns_free(wall);
	ns_malloc_trim(0);
	audit_all_returned();
}

/* What lies behind was another node's in part: it is not touched first by us. */
static void growth_takes_no_other_node_s(const void *arg)
{
	(void)arg;
	machine_start(2, 64);
	run_on(0);
	char *p = ns_malloc(KIB(100)), *near = ns_malloc(KIB(100));
	run_on(1);
	void *far = ns_malloc(KIB(100)), *wall = ns_malloc(KIB(100));
	ns_free(far);
	ns_free(near);
	large_trim(); /* one dirty span, of both */
	CHECK(slab_of((uintptr_t)near)->units == 4 && is_dirty(near));
	run_on(0);
	char *grown = ns_realloc(p, KIB(384));
	CHECK(grown && grown != p, "the other node's memory");
	ns_free(grown);
	ns_free(wall);
	ns_malloc_trim(0);
	audit_all_returned();
}

/* The kernel may have unmapped the place before it refuses to move pages there. */
static void a_move_that_is_refused(const void *arg)
{
	(void)arg;
	machine_start(1, 64);
	char *p = ns_malloc(KIB(1024)), *wall = ns_malloc(KIB(1024));
	memset(p, 7, KIB(1024));
	fake_fail(FAKE_move_range, 1, 1, EFAULT, true);
	char *grown = ns_realloc(p, KIB(4096));
	CHECK(fake.call[FAKE_move_range].failed == 1 && grown && grown != p);
	for (size_t at = 0; at < KIB(4096); at += 4096)
		CHECK(fake_mapped(grown + at), "a hole at %zu", at);
	CHECK(grown[KIB(1024) - 1] == 7);
	memset(grown, 8, KIB(4096));
	audit(&(struct audit_live){(void *[]){grown, wall}, 2}, false);
	void *behind = ns_malloc(KIB(2048));
	/* And if what the kernel unmapped cannot be had again. */
	fake_fail(FAKE_move_range, 1, 1, EFAULT, true);
	fake_fail(FAKE_remap_fresh, 1, 1, ENOMEM, false);
	p = ns_realloc(grown, KIB(12288));
	CHECK(fake.call[FAKE_move_range].failed == 1 && fake.call[FAKE_remap_fresh].failed == 1);
	CHECK(p && p[KIB(4096) - 1] == 8);
	memset(p, 9, KIB(12288));
	audit(&(struct audit_live){(void *[]){p, wall, behind}, 3}, false);
	ns_free(p);
	ns_free(wall);
	ns_free(behind);
	ns_malloc_trim(0);
	audit_all_returned();
}

/* Slabs: a chunk of 2 MiB may become a huge page once it is full, and never after it was cut. */
static void full_chunks_may_be_huge(const void *arg)
{
	enum { N = 6000 };
	static void *block[N];

	fake_machine(1, 64);
	machine_boot(arg);
	long none = fake.call[FAKE_no_huge].calls;
	take_many(block, 400, 4096);
	CHECK(fake.call[FAKE_huge].calls == 0, "a chunk that is not full");
	take_many(block + 400, N - 400, 4096);
	long asked = fake.call[FAKE_huge].calls, mapped = fake.call[FAKE_no_huge].calls;
	if (arg) {
		CHECK(asked == 0, "%ld, and was told not to", asked);
		return;
	}
	CHECK(asked >= 10 && asked <= 12, "%ld chunks of some 23 MiB", asked);
	CHECK(mapped > none, "and before they are full they are not");
	for (unsigned i = 0; i < N; i++)
		if (i % 16) {
			ns_free(block[i]);
			block[i] = NULL;
		}
	ns_malloc_trim(0);
	CHECK(fake.call[FAKE_no_huge].calls == mapped + asked, "%ld of %ld cut",
	      fake.call[FAKE_no_huge].calls - mapped, asked);
	take_many(block, 0, 4096);
	for (unsigned i = 0; i < N; i++)
		if (!block[i])
			take_many(block + i, 1, 4096);
	CHECK(fake.call[FAKE_huge].calls - asked <= 2, "asked again for what was cut");
	audit(&(struct audit_live){block, N}, true);
}

#define scenario(name)                                                                             \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		assert_child(name, NULL);                                                          \
	}
scenario(pairs_cost_no_calls) scenario(another_size_is_not_the_kept_one)
    scenario(no_node_gets_anothers_memory) scenario(a_mixed_span_goes_back)
	scenario(growth_takes_what_is_kept_behind) scenario(a_move_that_is_refused)
	    scenario(growth_takes_no_other_node_s)

		static void test_full_chunks_may_be_huge(void **state)
{
	(void)state;
	assert_child(full_chunks_may_be_huge, NULL);
	assert_child(full_chunks_may_be_huge, "NUMASLAB_THP=never");
	assert_child(full_chunks_may_be_huge, "NUMASLAB_THP=always");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_pairs_cost_no_calls),
    cmocka_unit_test(test_another_size_is_not_the_kept_one),
    cmocka_unit_test(test_no_node_gets_anothers_memory),
    cmocka_unit_test(test_a_mixed_span_goes_back),
    cmocka_unit_test(test_growth_takes_what_is_kept_behind),
    cmocka_unit_test(test_a_move_that_is_refused),
    cmocka_unit_test(test_growth_takes_no_other_node_s),
    cmocka_unit_test(test_full_chunks_may_be_huge),
};

TAP_MAIN(tests)
