/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_SIM_H
#define NUMASLAB_SIM_H

/*
 * The simulated machine's answers: which node pages land on, and when a node is full.  It stands
 * where the kernel would stand, below place.c, and knows nothing of slabs or the ladder.
 */

#include "allocator/base.h"

void sim_init_node(unsigned index, uint64_t bytes);

/* As PREFERRED does: on `index`, or silently on the nearest with room; -1: the machine is full. */
int sim_land(unsigned index, size_t bytes);

/* As move_pages does: false, and nothing moved, when `to` is full. */
bool sim_move(unsigned from, unsigned to, size_t bytes);
void sim_leave(unsigned index, size_t bytes);
uint64_t sim_free_bytes(unsigned index);

#endif
