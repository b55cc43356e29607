/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_COUNTERS_H
#define NUMASLAB_COUNTERS_H

/*
 * The counters of one node and one class.  To add one, add one line.  All are exact at every slab
 * transition (allocator/slab.h); between two transitions of a slab its `used` may lag by local
 * frees (a quarter of its capacity, three eighths after it was used up; any of a slab that a heap
 * allocates from, or lately did), by blocks that others freed into an owned slab until the owner
 * takes them, or into one that nobody owns (less than an eighth of its capacity; full: and than
 * 16).
 *
 * `own`, `node_partial`, `remote_in`, `asked` and `looked` may lag by 256 refills of steps 1 and 2,
 * until another step is taken, or by 4,096 slow mallocs; `remote_out` by 1,024 frees.
 * `asked` of a block that grows is what realloc gives it, not what was asked.
 * `cached` follows a bin that gets shorter from refill to refill only by 32 blocks and more.
 *
 *	slabs = active + partial + full + empty
 *	used  = out to the program + cached
 *
 * Class 0 stands for no class: empty (span kept ready), and what they hold.
 *
 * X(name, unit, help)
 */
/* clang-format off */
#define COUNTERS(X)                                                                             \
	X(active, "slabs", "owned by a thread's heap")                                          \
	X(partial, "slabs", "with room, on the node's list for whoever needs one")              \
	X(full, "slabs", "every block handed out, but for a few freed since")                   \
	X(empty, "slabs", "kept ready after their last free")                                   \
	X(slots, "objects", "that the slabs have room for")                                     \
	X(used, "objects", "out to the program, or ready in a thread's heap")                   \
	X(cached, "objects", "ready in a thread's heap, at its last refill")                    \
	X(held, "bytes", "populated by the allocator and not returned")                         \
	X(own, "refills", "step 1: from the heap's own slabs")                                  \
	X(node_partial, "refills", "step 2: a partial slab of the node")                        \
	X(node_new, "refills", "step 3: a new slab on the node")                                \
	X(any_partial, "refills", "step 4: another node's partial slab")                        \
	X(any_new, "refills", "step 5: a new slab on another node")                             \
	X(remote_in, "objects", "freed into the node's slabs by threads that do not own them")  \
	X(remote_out, "objects", "freed by the node's threads into slabs of others")            \
	X(misplaced, "slabs", "whose memory is not where it was wanted")                        \
	X(released, "bytes", "returned to the system, ever")                                    \
	X(asked, "bytes", "asked for by the slow mallocs, which stand for all of a class")      \
	X(looked, "objects", "slow mallocs whose size was added to asked")
/* clang-format on */

enum counter {
#define X(name, unit, help) COUNT_##name,
	COUNTERS(X)
#undef X
	    COUNTER_COUNT
};

#endif
