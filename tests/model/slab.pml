/* SPDX-License-Identifier: MIT */
/*
 * The life of one slab among PROCS threads: allocator/slab.h's state table with the steps of
 * slab.c, refill.c, release.c and node.c, each load and each compare-and-swap apart (memory is
 * sequentially consistent here; the barriers are ThreadSanitizer's affair, tests/unit/tsan).
 *
 * Threads 0 and 1 run on node 0, the others on node 1; the slab may be born on either.  A thread
 * does OPS things in any order: allocates (its own slab, else a partial one, else a new one), frees any
 * block that is out, gives its slab up.  Checked at each step and at the end: no block is in two
 * hands, none is lost, a slab dies only when nothing is out, lists are touched under their lock.
 * FEW: frees that a FULL slab waits for, or for all that is out of it if that is less.
 * START_OUT: thread 0 owns a slab whose blocks are all out, else there is none at first.
 *
 * Mutants (the model must find each wrong): MUTANT_FULL sets FULL without a look at the remote list;
 * MUTANT_FEW waits for more than is out;
 * MUTANT_OWNER gives the owner up after the state; MUTANT_NODE reaps without asking again on which
 * node's list the slab is.
 */
#ifndef PROCS
#define PROCS 3
#endif
#ifndef OPS
#define OPS 3
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif

#ifndef FEW
#define FEW 1
#endif

#define NONE   7 /* no block, the end of a list, no owner */
#define NODES  2
#define NODE(p) (p < 2 -> 0 : 1)

#define OWNED  0
#define FULL   1
#define LISTED 2

#define NOWHERE 0 /* the slab is free */
#define LOCAL	1 /* on .free */
#define OUT	2 /* the program's */
#define FREEING 3
#define REMOTE	4

/* The remote word. */
byte w_first = NONE, w_count, w_state, w_used, w_ver;
byte link[BLOCKS];

/* The owner's fields, plain. */
byte owner = NONE, s_free = NONE, s_used, s_node;

bool alive;	      /* SPAN_SLAB */
bool window_lock, lock[NODES], on_list[NODES];

/* Ghosts. */
byte place[BLOCKS];
byte done;

#define IS_EMPTY (w_state == LISTED && w_count == w_used)

inline take_lock(l)
{
	atomic { !l -> l = true }
}

/* A snapshot of the word. */
inline load()
{
	d_step { seen_first = w_first; seen_count = w_count; seen_state = w_state; seen_used = w_used; seen_ver = w_ver }
}

#define SAME (w_first == seen_first && w_count == seen_count && w_state == seen_state && w_used == seen_used && w_ver == seen_ver)

/* A change of state that retries until it is done: one atomic step, the list kept. */
inline turn(to, used_)
{
	w_state = to;
	w_used = used_;
	w_ver++
}

inline die()
{
	/* pool_free_slab(): it is in nobody's hands. */
	d_step {
		assert(alive && !on_list[0] && !on_list[1]);
		i = 0;
		do
		:: i < BLOCKS -> assert(place[i] != OUT && place[i] != FREEING); place[i] = NOWHERE; i++
		:: else -> break
		od;
		i = 0;
		owner = NONE;
		alive = false
	}
}

/* pool_list_slab(): the slab is in our hands and has no owner. */
inline list_slab()
{
	n = s_node;
	take_lock(lock[n]);
	d_step { assert(w_state == OWNED); turn(LISTED, s_used) }
	if
	:: IS_EMPTY ->
		d_step { turn(OWNED, 0) }
		lock[n] = false;
		die()
	:: else ->
		d_step { assert(!on_list[n] && n == s_node); on_list[n] = true; lock[n] = false }
	fi
}

/* pool_reap_slab(): it may have lived on since the push. */
inline reap_slab()
{
	n = s_node;
	take_lock(lock[n]);
	if
#ifdef MUTANT_NODE
	:: alive && IS_EMPTY ->
#else
	:: alive && s_node == n && IS_EMPTY ->
#endif
		d_step { assert(on_list[n]); on_list[n] = false }
		d_step { turn(OWNED, 0) }
		lock[n] = false;
		die()
	:: else -> lock[n] = false
	fi
}

/* free_look(): is anything out?  Only the owner asks. */
inline look()
{
	if
	:: s_used == w_count -> die()
	:: else -> skip
	fi
}

/* A block goes onto .free: the owner alone. */
inline put_local()
{
	d_step {
		assert(owner == me && place[b] == FREEING);
		link[b] = s_free;
		s_free = b;
		s_used--;
		place[b] = LOCAL
	}
	look()
}

inline push_remote()
{
	do
	:: load();
	   link[b] = seen_first;
	   if
	   :: atomic { SAME ->
		w_first = b;
		w_count++;
		if
		:: seen_state == FULL && w_count >= w_used -> was_enough = true; turn(OWNED, 0)
		:: else -> skip
		fi;
		place[b] = REMOTE;
		/* What this thread saw, and no other's business later. */
		was_last = IS_EMPTY }
		break
	   :: atomic { !SAME -> skip }
	   fi
	od;
	if
	:: was_enough -> list_slab()
	:: else ->
		if
		:: was_last -> reap_slab()
		:: else -> skip
		fi
	fi;
	d_step { was_enough = false; was_last = false }
}

/* free_remote() */
inline free_other()
{
	claimed = false;
	load();
	if
	:: seen_state == FULL && s_node == NODE(me) ->
		do
		:: atomic { seen_state == FULL && SAME -> turn(OWNED, 0); claimed = true }
		   break
		:: seen_state == FULL && !SAME -> load()
		:: seen_state != FULL -> break
		od
	:: else -> skip
	fi;
	if
	:: claimed ->
		/* adopt() */
		assert(owner == NONE && s_free == NONE);
		owner = me;
		put_local()
	:: else -> push_remote()
	fi;
	claimed = false
}

inline free_one()
{
	/* Any block that is out, by whoever has it. */
	atomic {
		if
		:: place[0] == OUT -> b = 0
		:: place[1] == OUT -> b = 1
#if BLOCKS > 2
		:: place[2] == OUT -> b = 2
#endif
		:: else -> b = NONE
		fi;
		if
		:: b != NONE -> place[b] = FREEING
		:: else -> skip
		fi
	}
	if
	:: b != NONE && owner == me -> put_local()
	:: b != NONE && owner != me -> free_other()
	:: b == NONE -> skip
	fi;
	b = NONE
}

/* slab_take_remote(): the list becomes the owner's own. */
inline take_remote()
{
	do
	:: load();
	   if
	   :: seen_count == 0 -> break
	   :: atomic { seen_count != 0 && SAME ->
		w_first = NONE;
		w_count = 0;
		assert(s_free == NONE);
		s_free = seen_first;
		s_used = s_used - seen_count;
		/* The list is what was pushed, each once. */
		i = seen_first;
		do
		:: i != NONE -> assert(place[i] == REMOTE); place[i] = LOCAL; seen_count--; i = link[i]
		:: else -> break
		od;
		assert(seen_count == 0);
		i = 0 }
		break
	   :: atomic { seen_count != 0 && !SAME -> skip }
	   fi
	od
}

/* slab_retire() */
inline set_full()
{
	d_step {
		enough = FEW;
#ifndef MUTANT_FEW
		if
		:: s_used < FEW -> enough = s_used
		:: else -> skip
		fi
#endif
	}
#ifndef MUTANT_OWNER
	owner = NONE;
#endif
	do
	:: load();
	   if
#ifdef MUTANT_FULL
	   :: atomic { SAME -> turn(FULL, enough) } break
#else
	   :: seen_count >= enough -> owner = me; break
	   :: atomic { seen_count < enough && SAME -> turn(FULL, enough) } break
#endif
	   :: atomic { !SAME -> skip }
	   fi
	od;
#ifdef MUTANT_OWNER
	if
	:: seen_count < enough -> owner = NONE
	:: else -> skip
	fi
#else
	skip
#endif
}

inline hand_out()
{
	d_step {
		b = s_free;
		assert(owner == me && b != NONE && place[b] == LOCAL);
		s_free = link[b];
		s_used++;
		place[b] = OUT;
		b = NONE
	}
}

/* The ladder's first step: true alloc, or the slab is full. */
inline from_own()
{
	if
	:: s_free == NONE -> take_remote()
	:: s_free == NONE && s_used > 0 -> skip /* others have more to give */
	:: else -> skip
	fi;
	if
	:: s_free != NONE -> hand_out()
	:: else -> set_full()
	fi
}

/* pool_take_partial(), its own node's list or, at need, the other's. */
inline take_partial()
{
	if
	:: n = NODE(me)
	:: n = 1 - NODE(me)
	fi;
	take_lock(lock[n]);
	if
	:: on_list[n] ->
		d_step { assert(n == s_node && w_state == LISTED); on_list[n] = false; turn(OWNED, 0) }
		lock[n] = false;
		assert(owner == NONE);
		owner = me
	:: else -> lock[n] = false
	fi
}

/* pool_new_slab(): the memory lands where it lands. */
inline new_slab()
{
	take_lock(window_lock);
	if
	:: !alive && owner == NONE ->
		if
		:: s_node = 0
		:: s_node = 1
		fi;
		d_step {
			assert(w_state == OWNED);
			w_first = NONE;
			w_count = 0;
			turn(OWNED, 0);
			i = 0;
			do
			:: i < BLOCKS ->
				assert(place[i] == NOWHERE);
				place[i] = LOCAL;
				link[i] = (i + 1 < BLOCKS -> i + 1 : NONE);
				i++
			:: else -> break
			od;
			i = 0;
			s_free = 0;
			s_used = 0;
			owner = me;
			alive = true
		}
	:: else -> skip
	fi;
	window_lock = false
}

proctype thread(byte me)
{
	byte ops, b = NONE, n, i;
	byte seen_first, seen_count, seen_state, seen_used, seen_ver, enough;
	bool was_enough, was_last, claimed;

	do
	:: ops < OPS ->
		ops++;
		if
		:: true -> free_one()
		:: owner == me -> from_own()
		:: owner == me ->
			owner = NONE;
			list_slab()
		:: owner != me && alive ->
			take_partial();
			if
			:: owner == me -> from_own()
			:: else -> skip
			fi
		:: !alive ->
			new_slab();
			if
			:: owner == me -> from_own()
			:: else -> skip
			fi
		fi;
		d_step { n = 0; i = 0; b = NONE; seen_first = 0; seen_count = 0; seen_state = 0; seen_used = 0; seen_ver = 0; enough = 0 }
	:: else -> break
	od;
	done++
}

/* All have come to rest: nothing is lost. */
active proctype auditor()
{
	byte out, kept, remote, i;

	done == PROCS;
	d_step {
		do
		:: i < BLOCKS ->
			assert(place[i] != FREEING);
			if
			:: place[i] == OUT -> out++
			:: place[i] == LOCAL -> kept++
			:: place[i] == REMOTE -> remote++
			:: else -> skip
			fi;
			i++
		:: else -> break
		od;
		if
		:: !alive -> assert(out + kept + remote == 0 && !on_list[0] && !on_list[1])
		:: else ->
			assert(out + kept + remote == BLOCKS);
			assert(remote == w_count && s_used == out + remote);
			if
			:: w_state == OWNED -> assert(owner < PROCS && !on_list[0] && !on_list[1])
			:: w_state == FULL ->
				assert(owner == NONE && kept == 0 && out > 0 && remote < w_used);
				assert(!on_list[0] && !on_list[1])
			:: w_state == LISTED ->
				assert(owner == NONE && on_list[s_node] && !on_list[1 - s_node]);
				assert(out > 0)
			fi
		fi
	}
}

init {
	byte p;

	atomic {
#ifdef START_OUT
		/* Thread 0 has handed out all of a slab. */
		do
		:: p < BLOCKS -> place[p] = OUT; p++
		:: else -> break
		od;
		p = 0;
		alive = true;
		owner = 0;
		s_used = BLOCKS;
#endif
		do
		:: p < PROCS -> run thread(p); p++
		:: else -> break
		od
	}
}
