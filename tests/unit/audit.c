/* SPDX-License-Identifier: MIT */
#include "tests/unit/audit.h"
#include "tests/unit/child.h"
#include "tests/unit/os_fake.h"

#define NODES 8

/* What the walk found, to be compared with the counters. */
struct sums {
	int64_t count[NODES + 1][CLASS_COUNT][COUNTER_COUNT];
	int64_t late[NODES][CLASS_COUNT];
	int64_t held, dirty, idle;
	size_t bin_units[2]; /* free clean, free dirty */
	uint32_t listed[NODES][CLASS_COUNT];
	uint32_t *out; /* live blocks by the unit their slab starts in */
};

static struct heap *heap_of_owner(const struct slab *s)
{
	uintptr_t tag = (uintptr_t)atomic_load(&s->owner);

	return (struct heap *)(tag & ~(uintptr_t)1);
}

static unsigned list_length(const struct slab *s, uintptr_t first)
{
	unsigned n = 0;

	for (; slab_has(s, first); first = link_read((void *)first)) {
		CHECK((first - slab_addr(s)) % s->size == 0, "a link into a block");
		CHECK(n++ < s->extended, "a list longer than its slab");
	}
	CHECK(first == slab_end(s), "a list that does not end");
	return n;
}

static bool on_heap(const struct heap *h, const struct slab *s)
{
	const struct class_heap *c = &h->cls[s->cls];

	if (c->current == s || c->room == s)
		return true;
	for (const struct slab *at = s->spent ? c->spent.first : c->partial.first; at;
	     at = at->next)
		if (at == s)
			return true;
	return false;
}

static unsigned in_bin(const struct heap *h, const struct slab *s)
{
	uintptr_t first = h->bin[s->cls];

	if (h->cls[s->cls].current != s || first == bin_empty())
		return 0;
	return list_length(s, first);
}

static void audit_queue(const struct slab_queue *q, unsigned cls, bool spent)
{
	const struct slab *last = NULL;
	uint32_t n = 0;

	for (const struct slab *at = q->first; at; at = at->next, n++) {
		CHECK(at->prev == last && at->spent == spent, "a heap's list is torn");
		CHECK(!spent || (at->left > 0 && (uint32_t)at->left <= slab_used(at)),
		      "a spent slab is looked at before nothing of it is out");
		last = at;
	}
	CHECK(q->last == last && q->count == n, "class %u", cls);
}

static void audit_heap_lists(const struct heap *h, unsigned cls)
{
	const struct class_heap *c = &h->cls[cls];

	audit_queue(&c->partial, cls, false);
	audit_queue(&c->spent, cls, true);
	CHECK(h->bin[cls] == bin_empty() || c->current, "a bin without a slab, class %u", cls);
}

static void audit_remote(const struct slab *s, uint64_t word)
{
	uintptr_t first = slab_end(s);

	if (remote_first(word) != REMOTE_NONE)
		first = slab_addr(s) + ((uintptr_t)remote_first(word) << 4);
	CHECK(list_length(s, first) == remote_count(word), "the remote list's length");
}

static void audit_slab(const struct slab *s, struct sums *sum, bool known)
{
	uint64_t word = atomic_load(&s->remote);
	struct heap *h = heap_of_owner(s);
	unsigned used = slab_used(s), local = list_length(s, s->free), cached = 0;
	unsigned hidden = (unsigned)__builtin_popcountll(s->hidden);
	int64_t(*count)[COUNTER_COUNT] = sum->count[s->node];

	CHECK(s->units == class_slab_units(s->cls) && s->size == class_size(s->cls), "class");
	CHECK(s->capacity == slab_bytes(s) / s->size && s->extended <= s->capacity, "capacity");
	CHECK(s->extended == used + local + hidden, "extended %u used %u free %u hidden %u",
	      s->extended, used, local, hidden);
	audit_remote(s, word);
	switch (remote_state(word)) {
	case SLAB_OWNED:
		CHECK(h && on_heap(h, s), "an owned slab that its heap does not know");
		audit_heap_lists(h, s->cls);
		cached = in_bin(h, s);
		count[s->cls][COUNT_active]++;
		break;
	case SLAB_FULL:
		/* Hidden blocks may be there: their memory could not be had. */
		CHECK(!h && local == 0, "FULL with free blocks of its own");
		CHECK(remote_count(word) < remote_used(word) && remote_used(word) <= slab_few(s),
		      "FULL, with %u freed of %u", remote_count(word), remote_used(word));
		CHECK(used > remote_count(word), "FULL with nothing out");
		count[s->cls][COUNT_full]++;
		break;
	case SLAB_LISTED:
		CHECK(!h && remote_used(word) == used, "LISTED, used");
		CHECK(!remote_is_empty(word), "LISTED with nothing out");
		count[s->cls][COUNT_partial]++;
		sum->listed[s->node][s->cls]++;
		break;
	}
	if (known)
		CHECK(used == sum->out[s - slab_of(layout.base)] + cached + remote_count(word),
		      "used %u, out %u, in the bin %u, remote %u, size %u", used,
		      sum->out[s - slab_of(layout.base)], cached, remote_count(word), s->size);
	CHECK(s->tallied >= used || s->tallied <= s->capacity, "tallied");
	CHECK(s->late <= s->capacity / 4 && s->late <= s->tallied - used, "late");
	CHECK(s->late == 0 || remote_state(word) == SLAB_OWNED, "late, and nobody's");
	sum->late[s->node][s->cls] += s->late;
	count[s->cls][COUNT_slots] += s->capacity;
	count[s->cls][COUNT_used] += s->tallied;
	/* Pushes onto a LISTED slab are counted as they happen, in whole steps. */
	if (remote_state(word) == SLAB_LISTED)
		count[s->cls][COUNT_used] -= remote_count(word) / s->step * s->step;
	CHECK(s->step <= max_size(s->capacity / 8u, 1), "a step");
	count[s->cls][COUNT_misplaced] += s->misplaced;
	count[s->cls][COUNT_held] += (int64_t)mem_resident(s);
	sum->held += (int64_t)mem_resident(s);
	sum->idle += s->idle * (int64_t)GRANULE;
}

static void audit_free_span(const struct pool *p, const struct slab *s, struct sums *sum)
{
	int64_t resident = (int64_t)mem_resident(s);
	const struct slab *after = s + s->units;

	CHECK(s->units >= 1 && s[s->units - 1].head_units == s->units - 1, "a free span's ends");
	CHECK(after == p->window.first + p->window.top || after->state != SPAN_FREE ||
		  after->dirty != s->dirty,
	      "two free spans that should be one: unit %zu, %u and %u, pool %u",
	      (size_t)(s - p->window.first), s->units, after->units, p->index);
	sum->bin_units[s->dirty] += s->units;
	if (!s->dirty) {
		CHECK(resident == 0, "a clean span holds memory");
		return;
	}
	sum->dirty += resident;
	sum->held += resident;
	sum->count[p->index][0][COUNT_held] += resident;
	sum->count[p->index][0][COUNT_empty] += s->units;
}

static size_t bins_units(const struct span_bins *b, bool dirty)
{
	size_t units = 0;

	for (unsigned i = 0; i < SPAN_BINS; i++) {
		const struct slab *last = NULL;

		CHECK(!b->head[i] == !(b->map[i / 64] >> (i % 64) & 1), "bin map");
		for (const struct slab *s = b->head[i]; s; last = s, s = s->next) {
			CHECK(s->prev == last && s->state == SPAN_FREE && s->dirty == dirty &&
				  span_bin_of(s->units) == i,
			      "a span in the wrong bin");
			units += s->units;
		}
	}
	return units;
}

static void audit_window(const struct pool *p, struct sums *sum, bool known)
{
	const struct window *w = &p->window;

	CHECK(w->top <= w->committed && w->committed <= w->units, "frontier");
	memset(sum->bin_units, 0, sizeof sum->bin_units);
	for (size_t u = 0; u < w->top;) {
		const struct slab *s = w->first + u;

		CHECK(s->state != SPAN_INNER && s->units, "unit %zu: state %u", u, s->state);
		if (s->state == SPAN_FREE)
			audit_free_span(p, s, sum);
		else if (s->state == SPAN_SLAB)
			audit_slab(s, sum, known);
		else if (s->state == SPAN_LARGE || s == large_kept())
			sum->count[p->index][0][COUNT_active]++; /* BUSY: somebody else's mapping */
		u += s->units;
		CHECK(u <= w->top, "a span beyond the frontier");
	}
	CHECK(bins_units(&w->clean, false) == sum->bin_units[0], "clean bins");
	CHECK(bins_units(&w->dirty, true) == sum->bin_units[1], "dirty bins");
}

static void audit_lists(const struct sums *sum)
{
	for (unsigned i = 0; i < topology.count; i++)
		for (unsigned cls = 0; cls < CLASS_COUNT; cls++) {
			uint32_t n = 0;

			for (const struct slab *s = pools[i].partial[cls]; s; s = s->next, n++)
				CHECK(s->node == i && s->cls == cls, "on another's list");
			CHECK(n == sum->listed[i][cls], "listed, and not on the list");
			CHECK(n == atomic_load(&pools[i].partial_count[cls]), "partial_count");
		}
}

static int64_t get(unsigned index, unsigned cls, enum counter c)
{
	return (int64_t)atomic_load(&pools[index].count[cls][c]);
}

static void audit_counters(const struct sums *sum)
{
	static const enum counter exact[] = {COUNT_active, COUNT_partial,  COUNT_full,
					     COUNT_empty,  COUNT_slots,	   COUNT_used,
					     COUNT_held,   COUNT_misplaced};
	static const char *const name[] = {"active", "partial", "full", "empty",
					   "slots",  "used",	"held", "misplaced"};

	for (unsigned i = 0; i < topology.count; i++)
		for (unsigned cls = 0; cls < CLASS_COUNT; cls++)
			for (unsigned k = 0; k < sizeof exact / sizeof *exact; k++)
				CHECK(get(i, cls, exact[k]) == sum->count[i][cls][exact[k]],
				      "node %u class %u %s: counter %ld, walk %ld", i, cls, name[k],
				      (long)get(i, cls, exact[k]),
				      (long)sum->count[i][cls][exact[k]]);
	for (unsigned i = 0; i < topology.count; i++)
		for (unsigned cls = 0; cls < CLASS_COUNT; cls++)
			CHECK((int64_t)atomic_load(&pools[i].late[cls]) == sum->late[i][cls],
			      "node %u class %u late", i, cls);
	CHECK(get(topology.count, 0, COUNT_active) == sum->count[topology.count][0][COUNT_active],
	      "large blocks");
	const struct slab *kept = large_kept();
	CHECK(get(topology.count, 0, COUNT_cached) == (kept ? (int64_t)kept->bytes : 0),
	      "the large block kept aside");
	CHECK(get(topology.count, 0, COUNT_held) == sum->count[topology.count][0][COUNT_held],
	      "large held");
	CHECK((int64_t)mem.held == sum->held, "mem.held %zd, walk %ld", mem.held, (long)sum->held);
	CHECK((int64_t)mem.dirty == sum->dirty, "mem.dirty %zd, walk %ld", mem.dirty,
	      (long)sum->dirty);
	CHECK((int64_t)mem.idle == sum->idle, "mem.idle %zd, walk %ld", mem.idle, (long)sum->idle);
}

int64_t audit_counter(unsigned index, enum counter c)
{
	int64_t sum = 0;

	for (unsigned cls = 0; cls < CLASS_COUNT; cls++)
		sum += get(index, cls, c);
	return sum;
}

/* The unit's pages on fake node `node` (-1: on any), a bit each. */
static unsigned pages_there(const struct slab *s, int node)
{
	unsigned there = 0;

	for (unsigned n = 0; n < fake.count; n++)
		for (unsigned i = 0; i < 16 && (node < 0 || node == (int)n); i++)
			there |= (unsigned)fake_used_in((char *)slab_addr(s) + i * GRANULE, GRANULE,
							(int)n)
				 << i;
	return there;
}

static int fake_position(int number)
{
	int at = 0;

	while (fake.node[at].number != number)
		at++;
	return at;
}

/* Each page that is there is known, and where it is said to be. */
static void audit_truth(void)
{
	for (unsigned i = 0; i < topology.count; i++) {
		const struct slab *head = NULL;

		for (size_t u = 0; u < pools[i].window.top; u++) {
			const struct slab *s = pools[i].window.first + u;
			unsigned any = pages_there(s, -1);

			if (!head || s >= head + head->units)
				head = s;
			CHECK(any == s->resident, "unit %zu: pages %x, resident %x", u, any,
			      s->resident);
			unsigned node = head->state == SPAN_SLAB ? head->node : i;
			if (any && !(head->state == SPAN_SLAB && head->misplaced))
				CHECK(pages_there(s, fake_position(topology.number[node])) == any,
				      "unit %zu is not all on node %u, state %u", u, node,
				      head->state);
		}
	}
}

static void count_live(const struct audit_live *live, struct sums *sum)
{
	for (size_t i = 0; i < live->count; i++) {
		uintptr_t at = (uintptr_t)live->block[i];

		if (at && layout_owns(&layout, at))
			sum->out[slab_head(at) - slab_of(layout.base)]++;
	}
}

void audit(const struct audit_live *live, bool truth)
{
	struct sums *sum = calloc(1, sizeof *sum);

	CHECK(topology.count <= NODES, "nodes");
	sum->out = calloc(layout.span >> UNIT_SHIFT, sizeof *sum->out);
	if (live)
		count_live(live, sum);
	for (unsigned i = 0; i <= topology.count; i++)
		audit_window(&pools[i], sum, live != NULL);
	audit_lists(sum);
	audit_counters(sum);
	if (truth)
		audit_truth();
	free(sum->out);
	free(sum);
}

void audit_all_returned(void)
{
	for (unsigned i = 0; i <= topology.count; i++) {
		CHECK(audit_counter(i, COUNT_active) == 0, "node %u", i);
		CHECK(audit_counter(i, COUNT_partial) == 0, "node %u", i);
		CHECK(audit_counter(i, COUNT_full) == 0, "node %u", i);
		CHECK(audit_counter(i, COUNT_empty) == 0, "node %u", i);
		CHECK(audit_counter(i, COUNT_held) == 0, "node %u", i);
		CHECK(audit_counter(i, COUNT_used) == 0, "node %u", i);
	}
	CHECK(mem.held == 0 && mem.dirty == 0 && mem.idle == 0, "held %zu dirty %zu idle %zu",
	      mem.held, mem.dirty, mem.idle);
}
