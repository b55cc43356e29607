/* SPDX-License-Identifier: MIT */
#include "tools/hints_late.h"

#include <string.h>

void late_init(struct late *l)
{
	memset(l, 0, sizeof *l);
	l->seen.keys.key_size = l->found.keys.key_size = sizeof(struct hints_slab_key);
}

void late_look_up(const struct follow *f, struct hints_slab_key *key)
{
	const struct followed *item = follow_find(f, (int)key->tgid, key->image);
	struct hints_place place;

	if (!item || !item->reader || !item->geometry.span)
		return;
	reader_resolve(item->reader, &item->geometry,
		       item->geometry.base + ((uint64_t)key->unit << DECODE_UNIT_SHIFT), &place);
	key->unit = place.unit;
	key->generation = place.generation;
	if (place.decoded == DECODED_SLAB) {
		key->kind = RAW_SLAB;
		key->class = place.class;
		key->home = (int16_t)reader_pool_node(item->reader, place.pool);
	} else if (place.decoded == DECODED_FREE) {
		key->kind = RAW_FREE;
	} else if (place.decoded == DECODED_DAMAGED) {
		key->kind = RAW_DAMAGED;
	}
}

bool late_see(struct late *l, const struct follow *f, const struct hints_slab_key *key,
	      const struct hints_raw *total)
{
	struct hints_raw *last = raw_row(&l->seen, key);
	struct hints_slab_key place = *key;

	if (!last)
		return false;
	if (total->faults == last->faults)
		return true;
	late_look_up(f, &place);
	struct hints_raw *sum = raw_row(&l->found, &place);
	if (!sum)
		return false;
	sum->faults += total->faults - last->faults;
	sum->local += total->local - last->local;
	sum->remote += total->remote - last->remote;
	sum->unjoined += total->unjoined - last->unjoined;
	sum->pages += total->pages - last->pages;
	sum->migrated += total->migrated - last->migrated;
	sum->failed += total->failed - last->failed;
	*last = *total;
	return true;
}

void late_free(struct late *l)
{
	raw_free(&l->seen);
	raw_free(&l->found);
}
