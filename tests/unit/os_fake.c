/* SPDX-License-Identifier: MIT */
#include "tests/unit/os_fake_internal.h"

#include <errno.h>
#include <numaif.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct fake fake;
size_t os_page_size = 4096;
__thread int32_t fake_here;

const char *const fake_call_name[FAKE_CALL_COUNT] = {
#define X(name) #name,
    FAKE_CALLS(X)
#undef X
};

/* One reserved range, with a byte for each page: its node's position + 1, 0: not there. */
static struct {
	char *at;
	size_t pages;
	uint8_t *place, *policy; /* .policy: preferred position + 1 */
	uint16_t *mode;		 /* of the policy, MPOL_* with its flags */
	uint8_t *mapped;
} range;

#define BALANCING (1 << 13) /* MPOL_F_NUMA_BALANCING */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

void fake_machine(unsigned n, unsigned mib)
{
	memset(&fake, 0, sizeof fake);
	fake.count = n;
	fake.now_ms = 1000;
	fake.random = 0x9e3779b97f4a7c15;
	for (unsigned i = 0; i < n; i++) {
		fake.node[i].number = (int)i;
		fake.node[i].pages = (long)mib << 8;
		for (unsigned j = 0; j < n; j++)
			fake.distance[i][j] = i == j ? 10 : 20;
	}
}

void fake_fail(enum fake_call call, long from, long n, int error, bool partial)
{
	struct fake_call_state *c = &fake.call[call];

	*c = (struct fake_call_state){
	    .fail_from = from, .fail_n = n, .error = error, .partial = partial};
}

void fake_heal(void)
{
	for (unsigned i = 0; i < FAKE_CALL_COUNT; i++)
		fake.call[i].fail_n = 0;
}

bool fake_fails(enum fake_call call)
{
	struct fake_call_state *c = &fake.call[call];

	c->calls++;
	if (c->calls < c->fail_from || c->calls - c->fail_from >= c->fail_n)
		return false;
	c->failed++;
	return true;
}

static bool page_of(const void *at, size_t *page)
{
	*page = (size_t)((const char *)at - range.at) / os_page_size;
	return range.at && (const char *)at >= range.at && *page < range.pages;
}

int fake_position(int number)
{
	for (unsigned i = 0; i < fake.count; i++)
		if (fake.node[i].number == number)
			return (int)i;
	return -1;
}

static void page_drop(size_t page)
{
	if (range.place[page])
		fake.node[range.place[page] - 1].used--;
	range.place[page] = 0;
}

static long room(unsigned i)
{
	return fake.node[i].pages - fake.node[i].used - fake.node[i].cache;
}

long fake_free(unsigned i)
{
	pthread_mutex_lock(&guard);
	long free = room(i);
	pthread_mutex_unlock(&guard);
	return free;
}

/* As PREFERRED: there, else the nearest with free memory, else the nearest's cache goes. */
static int place_for(unsigned want)
{
	int best = -1;

	for (unsigned pass = 0; pass < 2 && best < 0; pass++)
		for (unsigned i = 0; i < fake.count; i++) {
			bool can = pass ? fake.node[i].cache > 0 : room(i) > 0;

			if (can && (best < 0 || fake.distance[want][i] < fake.distance[want][best]))
				best = (int)i;
		}
	if (best >= 0 && room((unsigned)best) <= 0)
		fake.node[best].cache--;
	return best;
}

static bool page_bring(size_t page)
{
	unsigned want =
	    range.policy[page] ? range.policy[page] - 1u : (unsigned)fake_position(fake_here);

	if (range.place[page])
		return true;
	fake.bound += range.mode[page] == (MPOL_BIND | BALANCING);
	int at = place_for(want);
	if (at < 0)
		return false;
	range.place[page] = (uint8_t)(at + 1);
	fake.node[at].used++;
	return true;
}

/* --- os.h --- */

void os_init(struct os_start *start)
{
	start->envp = fake.envp;
	start->secure = false;
	start->random = fake.random;
	start->rseq_feature_size = 24;
}

static void *real_map(void *at, size_t bytes, int flags)
{
	void *p = mmap(at, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* The windows' place is asked for first, descriptors and all: that is the range we play. */
static void range_set(uintptr_t at, size_t bytes)
{
	if (range.pages) {
		munmap(range.place, range.pages);
		munmap(range.policy, range.pages);
		munmap(range.mode, range.pages * sizeof *range.mode);
		munmap(range.mapped, range.pages);
	}
	range.at = (char *)at;
	range.pages = bytes / os_page_size;
	range.place = real_map(NULL, range.pages, 0);
	range.policy = real_map(NULL, range.pages, 0);
	range.mode = real_map(NULL, range.pages * sizeof *range.mode, 0);
	range.mapped = real_map(NULL, range.pages, 0);
}

bool os_range_is_free(uintptr_t at, size_t bytes)
{
	if (bytes >= (size_t)64 << 20)
		range_set(at, bytes);
	if (fake_fails(FAKE_range_is_free))
		return false;
	void *p = real_map((void *)at, bytes, MAP_FIXED_NOREPLACE);

	if (p)
		munmap(p, bytes);
	return p != NULL;
}

bool os_map_at(void *at, size_t bytes)
{
	size_t page;

	if (fake_fails(FAKE_map_at) || real_map(at, bytes, MAP_FIXED_NOREPLACE) != at)
		return false;
	if (page_of(at, &page))
		memset(range.mapped + page, 1, bytes / os_page_size);
	return true;
}

void *os_map(size_t bytes)
{
	return fake_fails(FAKE_map) ? NULL : real_map(NULL, bytes, 0);
}

/* Pages that go, and with a mapping its policy. */
static void range_drop(void *at, size_t bytes, bool policy, bool mapped)
{
	size_t page;

	if (!page_of(at, &page))
		return;
	pthread_mutex_lock(&guard);
	for (size_t i = 0; i < bytes / os_page_size; i++) {
		fake.bound += range.mode[page + i] == (MPOL_BIND | BALANCING);
		page_drop(page + i);
		range.mapped[page + i] = mapped;
		if (policy)
			range.policy[page + i] = 0, range.mode[page + i] = 0;
	}
	pthread_mutex_unlock(&guard);
}

bool os_unmap(void *at, size_t bytes)
{
	if (fake_fails(FAKE_unmap))
		return false;
	range_drop(at, bytes, true, false);
	return munmap(at, bytes) == 0;
}

int os_populate(void *at, size_t bytes)
{
	size_t page, n = bytes / os_page_size;
	int r = 0;

	pthread_mutex_lock(&guard);
	bool bad = fake_fails(FAKE_populate);
	if (bad)
		n = fake.call[FAKE_populate].partial ? n / 2 : 0;
	/* What is not mapped cannot come in. */
	if (msync(at, bytes, MS_ASYNC) != 0)
		r = -ENOMEM;
	if (page_of(at, &page))
		for (size_t i = 0; i < n && r == 0; i++)
			if (!page_bring(page + i))
				r = -ENOMEM;
	pthread_mutex_unlock(&guard);
	return bad ? -fake.call[FAKE_populate].error : r;
}

bool os_discard(void *at, size_t bytes)
{
	if (fake_fails(FAKE_discard))
		return false;
	range_drop(at, bytes, false, true);
	return madvise(at, bytes, MADV_DONTNEED) == 0;
}

bool os_remap_fresh(void *at, size_t bytes)
{
	if (fake_fails(FAKE_remap_fresh))
		return false;
	range_drop(at, bytes, true, true);
	return real_map(at, bytes, MAP_FIXED) == at;
}

bool os_move_range(void *from, void *to, size_t bytes)
{
	size_t a, b;
	bool bad = fake_fails(FAKE_move_range);

	if (bad && fake.call[FAKE_move_range].partial)
		os_unmap(to, bytes); /* as 6.1 and 6.12 do */
	if (bad ||
	    mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) != to)
		return false;
	if (page_of(from, &a) && page_of(to, &b))
		for (size_t i = 0; i < bytes / os_page_size; i++) {
			page_drop(b + i);
			range.place[b + i] = range.place[a + i];
			range.place[a + i] = 0;
		}
	return true;
}

bool os_no_huge(void *at, size_t bytes)
{
	(void)at;
	(void)bytes;
	return !fake_fails(FAKE_no_huge);
}

bool os_huge(void *at, size_t bytes)
{
	if ((uintptr_t)at % ((size_t)2 << 20) || bytes != (size_t)2 << 20)
		abort();
	return !fake_fails(FAKE_huge);
}

int os_set_policy(void *at, size_t bytes, int mode, int node)
{
	size_t page, n = bytes / os_page_size;
	int r = 0;

	pthread_mutex_lock(&guard);
	if (fake_fails(FAKE_set_policy))
		r = -fake.call[FAKE_set_policy].error;
	else if ((mode & BALANCING) &&
		 (mode == (MPOL_BIND | BALANCING) ? fake.refuse_bind : fake.refuse_many))
		r = -EINVAL;
	else if (page_of(at, &page)) {
		for (size_t i = 0; i < n && mode != MPOL_DEFAULT && r == 0; i++)
			r = range.mapped[page + i] ? 0 : -EFAULT;
		for (size_t i = 0; i < n && r == 0; i++) {
			range.policy[page + i] = node < 0 ? 0 : (uint8_t)(fake_position(node) + 1);
			range.mode[page + i] = (uint16_t)mode;
		}
	}
	pthread_mutex_unlock(&guard);
	return r;
}

int os_task_policy(void)
{
	return fake_fails(FAKE_task_policy) ? -fake.call[FAKE_task_policy].error : fake.task_policy;
}

int os_mems_allowed(uint64_t mask[OS_NODE_WORDS])
{
	if (fake_fails(FAKE_mems_allowed))
		return -fake.call[FAKE_mems_allowed].error;
	memset(mask, 0, OS_NODE_WORDS * sizeof *mask);
	for (unsigned i = 0; i < fake.count; i++)
		if (fake.node[i].pages)
			mask[fake.node[i].number / 64] |= 1ull << (fake.node[i].number % 64);
	return 0;
}

int os_page_node(const void *at)
{
	size_t page;
	int r = -ENOENT;

	pthread_mutex_lock(&guard);
	if (fake_fails(FAKE_page_node))
		r = -fake.call[FAKE_page_node].error;
	else if (page_of(at, &page) && page_bring(page)) /* touched, we were not told */
		r = fake.node[range.place[page] - 1].number;
	pthread_mutex_unlock(&guard);
	return r;
}

int os_move_pages(void *at, size_t bytes, int node)
{
	size_t page, n = bytes / os_page_size;
	int to = fake_position(node), r = 0;

	pthread_mutex_lock(&guard);
	bool bad = fake_fails(FAKE_move_pages);
	if (bad)
		n = fake.call[FAKE_move_pages].partial ? n / 2 : 0;
	if (page_of(at, &page) && to >= 0)
		for (size_t i = 0; i < n && r == 0; i++) {
			if (!range.place[page + i]) {
				r = -ENOENT;
				break;
			}
			if (range.place[page + i] == to + 1)
				continue;
			if (room((unsigned)to) <= 0 && fake.node[to].cache > 0)
				fake.node[to].cache--;
			if (room((unsigned)to) <= 0) {
				r = -ENOMEM;
				break;
			}
			page_drop(page + i);
			range.place[page + i] = (uint8_t)(to + 1);
			fake.node[to].used++;
		}
	pthread_mutex_unlock(&guard);
	return bad ? -fake.call[FAKE_move_pages].error : r;
}

int os_getcpu(unsigned *cpu, unsigned *node)
{
	if (fake_fails(FAKE_getcpu))
		return -fake.call[FAKE_getcpu].error;
	*cpu = *node = (unsigned)fake_here;
	return 0;
}

long fake_used(unsigned node)
{
	return fake.node[node].used;
}

long fake_used_in(const void *at, size_t bytes, int node)
{
	size_t page;
	long n = 0;

	if (page_of(at, &page))
		for (size_t i = 0; i < bytes / os_page_size; i++)
			n += range.place[page + i] == node + 1;
	return n;
}

int fake_policy(const void *at, int *node)
{
	size_t page;

	*node = -1;
	if (!page_of(at, &page))
		return -1;
	if (range.policy[page])
		*node = fake.node[range.policy[page] - 1].number;
	return range.mode[page];
}

bool fake_mapped(const void *at)
{
	size_t page;

	return page_of(at, &page) && range.mapped[page];
}
