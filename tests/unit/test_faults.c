/* SPDX-License-Identifier: MIT */
/*
 * Each system call of os.h fails in turn: at its n-th call once, or from then on until it is
 * mended, with each of the errors, wholly or half way.  The program gets NULL or goes on, contents
 * hold, and afterwards nothing is lost: memory comes back, and all of it can be given back.
 */
#include "tests/unit/machine.h"

#include <sys/mman.h>

#define SLOTS 400u
#define NODES 3u

struct fault {
	enum fake_call call;
	long from, n;
	int error;
	bool partial;
};

static void *block[SLOTS];
static uint32_t length[SLOTS];
static uint64_t seed = 99;
static struct fake_call_state *seen; /* of the run without a fault, from its child */

static unsigned pick(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % below);
}

static size_t pick_size(void)
{
	static const size_t sizes[] = {16, 100, 208, 1000, 2000, 4096, 8000, 20000, 65536};

	if (pick(12) == 0)
		return 70000 + pick(600000);
	return sizes[pick(9)];
}

static void check(unsigned i, size_t n)
{
	const unsigned char *p = block[i];

	for (size_t k = 0; k < n; k += 97)
		CHECK(p[k] == (unsigned char)(i + k), "block %u byte %zu", i, k);
}

static void fill(unsigned i)
{
	unsigned char *p = block[i];

	for (size_t k = 0; k < length[i]; k += 97)
		p[k] = (unsigned char)(i + k);
}

static void drop(unsigned i)
{
	if (block[i])
		check(i, length[i]);
	ns_free(block[i]);
	block[i] = NULL;
}

static void take(unsigned i)
{
	size_t size = pick_size();
	void *p;

	switch (pick(8)) {
	case 0:
		p = ns_calloc(1, size);
		for (size_t k = 0; p && k < size; k++)
			CHECK(((char *)p)[k] == 0, "calloc");
		break;
	case 1:
		p = ns_aligned_alloc(4096, size);
		break;
	case 2:
		p = alloc_on_node(size, topology.number[pick(topology.count)], pick(2));
		break;
	default:
		p = ns_malloc(size);
	}
	block[i] = p;
	length[i] = (uint32_t)size;
	if (p)
		fill(i);
}

static void resize(unsigned i)
{
	size_t size = pick(3) ? pick_size() : 600000 + pick(3000000);
	void *p = ns_realloc(block[i], size);

	if (!p)
		return;
	block[i] = p;
	check(i, min_size(size, length[i]));
	length[i] = (uint32_t)size;
	fill(i);
}

/* Whole chunks of 2 MiB are full for a while. */
static void fill_chunks(void)
{
	static char *page[1900];
	enum { N = sizeof page / sizeof *page };

	run_on(0);
	for (unsigned i = 0; i < N; i++)
		if ((page[i] = ns_malloc(4096)) != NULL)
			memset(page[i], (int)i, 4096);
	for (unsigned i = 0; i < N; i++) {
		CHECK(!page[i] || page[i][4095] == (char)i);
		ns_free(page[i]);
	}
}

static void work(unsigned rounds)
{
	fill_chunks();
	for (unsigned k = 0; k < rounds; k++) {
		unsigned i = pick(k / 300 % 2 ? SLOTS : SLOTS / 4);

		if (k % 97 == 0)
			run_on((int)pick(NODES));
		if (k % 253 == 250)
			ns_malloc_trim(0);
		if (k % 40 == 0)
			fake.now_ms += 7;
		if (!block[i])
			take(i);
		else if (pick(5) == 0)
			resize(i);
		else
			drop(i);
	}
}

static void give_all_back(void)
{
	for (unsigned i = 0; i < SLOTS; i++)
		drop(i);
	for (unsigned i = 0; i < NODES; i++) {
		run_on((int)i);
		ns_malloc_trim(0);
	}
	ns_malloc_trim(0);
}

/* Some calls happen at the start alone: a machine that never starts says NULL, cleanly. */
static bool start(void)
{
	static char *const envp[] = {"NUMASLAB_WINDOW=64M", "NUMASLAB_TELEMETRY=0", NULL};

	fake.envp = envp;
	fake_here = 0;
	if (alloc_boot()) {
		alloc_open_fast_paths();
		if (topology.guarded)
			layout.where_offset =
			    (const char *)&fake_here - (const char *)__builtin_thread_pointer();
		return true;
	}
	CHECK(!ns_malloc(100) && errno == ENOMEM && !ns_malloc(1 << 20));
	ns_free(NULL);
	return false;
}

static void with_fault(const void *arg)
{
	const struct fault *f = arg;

	fake_machine(NODES, 8);
	fake_fail(f->call, f->from, f->n, f->error, f->partial);
	if (!start())
		return;
	work(1200);
	/* Places are not known to us where nothing could be asked, or pages were touched in. */
	bool touched = f->call == FAKE_populate && f->error != ENOMEM && f->error != EFAULT;
	bool truth = !topology.silent && topology.count == NODES && f->call != FAKE_page_node &&
		     f->call != FAKE_move_pages && !touched;
	audit(&(struct audit_live){block, SLOTS}, truth);
	fake_heal();
	for (unsigned i = 0; i < NODES; i++)
		node_grow(i, 8192);
	time_passes();
	for (unsigned i = 0; i < SLOTS; i++) {
		if (block[i])
			continue;
		length[i] = 3000;
		block[i] = ns_malloc(3000);
		CHECK(block[i], "memory is there again");
		fill(i);
	}
	work(500);
	give_all_back();
	audit(&(struct audit_live){block, 0}, truth);
	audit_all_returned();
	for (unsigned i = 0; i < NODES; i++)
		CHECK(fake_used(i) == 0, "node %u: %ld pages lost", i, fake_used(i));
}

static void without_fault(const void *arg)
{
	static const struct fault none = {FAKE_map, 0, 0, 0, false};

	(void)arg;
	with_fault(&none);
	memcpy(seen, fake.call, sizeof fake.call);
}

static void try_fault(const struct fault *f)
{
	if (child_run(with_fault, f) != 0)
		fail_msg("%s fails from call %ld, %ld times, errno %d%s", fake_call_name[f->call],
			 f->from, f->n, f->error, f->partial ? ", half way" : "");
}

/* The call's first ones, and then some all over the run. */
static void try_call(enum fake_call call, int error, bool partial)
{
	long calls = seen[call].calls, step = calls > 8 ? calls / 4 : 1;

	for (long n = 1; n <= calls; n += n < 3 ? 1 : step) {
		struct fault once = {call, n, 1, error, partial};
		struct fault ever = {call, n, 1 << 30, error, partial};

		try_fault(&once);
		try_fault(&ever);
	}
}

static void every_call_is_made(void **state)
{
	(void)state;
	seen =
	    mmap(NULL, sizeof fake.call, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_child(without_fault, NULL);
	for (unsigned c = 0; c < FAKE_CALL_COUNT; c++)
		print_message("# %s: %ld calls\n", fake_call_name[c], seen[c].calls);
	/* The workload reaches what it is to break (unmap: where the system counts mappings). */
	for (unsigned c = 0; c < FAKE_CALL_COUNT; c++)
		if (c != FAKE_unmap)
			assert_true(seen[c].calls > 0);
}

/* Calls that only say yes or no need no more than one error. */
static bool has_errors(enum fake_call call)
{
	return call == FAKE_populate || call == FAKE_set_policy || call == FAKE_task_policy ||
	       call == FAKE_mems_allowed || call == FAKE_page_node || call == FAKE_move_pages ||
	       call == FAKE_getcpu || call == FAKE_read_file;
}

static void try_errors(enum fake_call call)
{
	try_call(call, ENOMEM, false);
	if (!has_errors(call))
		return;
	try_call(call, EPERM, false);
	try_call(call, EAGAIN, false);
}

#define fault_test(name)                                                                           \
	static void name##_fails(void **state)                                                     \
	{                                                                                          \
		(void)state;                                                                       \
		try_errors(FAKE_##name);                                                           \
	}

#define X(name) fault_test(name)
FAKE_CALLS(X)
#undef X

static void populate_stops_half_way(void **state)
{
	(void)state;
	try_call(FAKE_populate, ENOMEM, true);
	try_call(FAKE_populate, EAGAIN, true);
	try_call(FAKE_populate, EFAULT, true);
}

static void move_pages_stops_half_way(void **state)
{
	(void)state;
	try_call(FAKE_move_pages, ENOMEM, true);
	try_call(FAKE_move_pages, EAGAIN, true);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_call_is_made),
#define X(name) cmocka_unit_test(name##_fails),
    FAKE_CALLS(X)
#undef X
	cmocka_unit_test(populate_stops_half_way),
    cmocka_unit_test(move_pages_stops_half_way),
};

TAP_MAIN(tests)
