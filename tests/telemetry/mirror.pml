/* SPDX-License-Identifier: MIT */
/*
 * telemetry_store() of telemetry/pub_tick.c: two threads change a counter and each stores what it
 * sees to the file, through a store buffer.  When all is done the file has the truth.  Mutants, each
 * of which must be found out: -DNO_FENCE, -DNO_LOOK.
 */
byte truth, file;
byte pending[2];
bool is_pending[2];
byte finished;

active proctype memory()
{
end:
	do
	:: atomic { is_pending[0] -> file = pending[0]; is_pending[0] = false }
	:: atomic { is_pending[1] -> file = pending[1]; is_pending[1] = false }
	od
}

proctype adder(byte me)
{
	byte value, stored, rounds;

	do
	:: rounds == 2 -> break
	:: else ->
		rounds++;
		truth = truth + 1 + 4 * me; /* locked: one step, and the buffer is empty */
		value = truth;
		do
		:: true ->
			stored = value;
			!is_pending[me];
			atomic { pending[me] = stored; is_pending[me] = true }
#ifndef NO_FENCE
			!is_pending[me];
#endif
			value = truth;
#ifdef NO_LOOK
			break
#else
			if
			:: value == stored -> break
			:: else
			fi
#endif
		od;
		!is_pending[me] /* the next locked change drains it */
	od;
	finished++
}

init
{
	run adder(0);
	run adder(1);
	finished == 2 && !is_pending[0] && !is_pending[1];
	assert(file == truth)
}
