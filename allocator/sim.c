/* SPDX-License-Identifier: MIT */
#include "allocator/sim.h"
#include "allocator/topology.h"

static _Atomic uint64_t room[NODE_MAX];

void sim_init_node(unsigned index, uint64_t bytes)
{
	atomic_store(&room[index], bytes);
}

static bool take(unsigned index, size_t bytes)
{
	uint64_t have = atomic_load(&room[index]);

	while (have >= bytes)
		if (atomic_compare_exchange_weak(&room[index], &have, have - bytes))
			return true;
	return false;
}

int sim_land(unsigned index, size_t bytes)
{
	for (unsigned i = 0; i < topology.count; i++)
		if (take(topology.order[index][i], bytes))
			return topology.order[index][i];
	return -1;
}

bool sim_move(unsigned from, unsigned to, size_t bytes)
{
	if (!take(to, bytes))
		return false;
	sim_leave(from, bytes);
	return true;
}

void sim_leave(unsigned index, size_t bytes)
{
	atomic_fetch_add(&room[index], bytes);
}

uint64_t sim_free_bytes(unsigned index)
{
	return atomic_load(&room[index]);
}
