/* SPDX-License-Identifier: MIT */
/*
 * The protocol of telemetry/ring.h: one writer, two readers, a ring of two slots.  Stores go to a
 * buffer for each variable and reach memory at any time in any order (weaker than x86; a full or
 * a write barrier drains them).  A reader may die at any step: whatever it pinned stays so.
 *
 *	plain        pins are honoured.  A reader past step 3 reads its entry whole, at any time.
 *	-DSTUCK      the writer may take any pin for stuck.  What passes step 5 was read whole.
 *
 * Mutants, each of which must be found out: -DNO_C, -DNO_2, -DNO_3, -DNO_D, -DNO_WMB, and
 * with STUCK also -DNO_5 and -DNO_B.
 */
#define SLOTS	2
#define ENTRIES 4
#define READERS 2

/* Variables of the writer: generation, two words of data for each slot, the head. */
#define GEN(s)	(s)
#define WORD0(s) (SLOTS + (s))
#define WORD1(s) (2 * SLOTS + (s))
#define HEAD	(3 * SLOTS)
#define VARS	(3 * SLOTS + 1)

byte mem[VARS], pending[VARS];
bool is_pending[VARS];
byte pin[READERS], pin_pending[READERS];
bool pin_is_pending[READERS];

#define STORE(v, x)                                                                                \
	atomic                                                                                     \
	{                                                                                          \
		pending[v] = x;                                                                    \
		is_pending[v] = true                                                               \
	}
#define DRAIN                                                                                      \
	(!is_pending[0] && !is_pending[1] && !is_pending[2] && !is_pending[3] && !is_pending[4] && \
	 !is_pending[5] && !is_pending[6])
#define PINNED(n) ((pin[0] && pin[0] % SLOTS == (n) % SLOTS) || (pin[1] && pin[1] % SLOTS == (n) % SLOTS))

#ifdef STUCK
#define HONOURED(n, yes)                                                                           \
	if                                                                                         \
	:: PINNED(n) -> yes = true                                                                 \
	:: true -> yes = false                                                                     \
	fi
#else
#define HONOURED(n, yes) yes = PINNED(n)
#endif

active proctype memory()
{
	byte i;

end:
	do
	:: atomic { is_pending[0] -> mem[0] = pending[0]; is_pending[0] = false }
	:: atomic { is_pending[1] -> mem[1] = pending[1]; is_pending[1] = false }
	:: atomic { is_pending[2] -> mem[2] = pending[2]; is_pending[2] = false }
	:: atomic { is_pending[3] -> mem[3] = pending[3]; is_pending[3] = false }
	:: atomic { is_pending[4] -> mem[4] = pending[4]; is_pending[4] = false }
	:: atomic { is_pending[5] -> mem[5] = pending[5]; is_pending[5] = false }
	:: atomic { is_pending[6] -> mem[6] = pending[6]; is_pending[6] = false }
	:: atomic { pin_is_pending[0] -> pin[0] = pin_pending[0]; pin_is_pending[0] = false }
	:: atomic { pin_is_pending[1] -> pin[1] = pin_pending[1]; pin_is_pending[1] = false }
	od
}

active proctype writer()
{
	byte n = 1, before[SLOTS];
	bool held;

	do
	:: n > ENTRIES -> break
	:: else ->
		HONOURED(n, held); /* a */
		if
		:: held -> goto next
		:: else
		fi;
#ifndef NO_B
		STORE(GEN(n % SLOTS), 0); /* b */
#endif
#ifndef NO_C
		DRAIN; /* c */
#endif
#ifndef NO_D
		HONOURED(n, held); /* d */
		if
		:: held ->
			STORE(GEN(n % SLOTS), before[n % SLOTS]);
			goto next
		:: else
		fi;
#endif
		STORE(WORD0(n % SLOTS), n); /* e */
		STORE(WORD1(n % SLOTS), n);
#ifndef NO_WMB
		DRAIN;
#endif
		STORE(GEN(n % SLOTS), n); /* f */
		before[n % SLOTS] = n;
#ifndef NO_WMB
		DRAIN;
#endif
		STORE(HEAD, n);
next:
		n++
	od
}

proctype reader(byte me)
{
	byte n, a, b;
	byte rounds = 0;

	do
	:: rounds == 2 -> break
	:: rounds < 2 ->
		rounds++;
		n = mem[HEAD];
		if
		:: n == 0 -> goto again
		:: n > 0
		:: n > 1 -> n-- /* an older one */
		fi;
		atomic { pin_pending[me] = n; pin_is_pending[me] = true } /* 1 */
#ifndef NO_2
		!pin_is_pending[me]; /* 2 */
#endif
		if
#ifdef NO_3
		:: true
#else
		:: mem[GEN(n % SLOTS)] == n /* 3 */
#endif
			-> a = mem[WORD0(n % SLOTS)]; /* 4 */
			b = mem[WORD1(n % SLOTS)];
#ifdef STUCK
#ifdef NO_5
			assert(a == n && b == n)
#else
			if
			:: mem[GEN(n % SLOTS)] == n -> assert(a == n && b == n) /* 5 */
			:: else
			fi
#endif
#else
			assert(a == n && b == n)
#endif
#ifndef NO_3
		:: else
#endif
		fi;
		atomic { pin_pending[me] = 0; pin_is_pending[me] = true } /* 6 */
again:
		skip
	:: true -> goto dies /* between two; within one, it is not run again */
	od;
dies:
	skip
}

init
{
	run reader(0);
	run reader(1)
}
