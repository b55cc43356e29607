/* SPDX-License-Identifier: MIT */
/* The keys and columns of top, in words. */
#include <ncursesw/curses.h>

#include "tools/screen.h"

#define WIDE 78 /* columns that the one takes, and the other does not need */

static const char *const wide[] = {
    "numaslab top: keys",
    "",
    "  Up Down PgUp PgDn Home End   move           Enter   into: nodes, size classes",
    "  Esc Backspace Left           back           Space Z pause",
    "  F6 > <   sort by the next, the one before   I       reverse the order",
    "  F4 \\     filter by name or pid              t       per second, or totals",
    "  m        the map of slabs; Enter on a class: of it (c n  all classes, nodes)",
    "  i        hint faults of the process         + -     faster, slower",
    "  x        exited processes, too",
    "  F1 h ?   this text                          F10 q   quit",
    "",
    "  USED   out to the program, or ready in a thread",
    "  HELD   populated and not returned        FRAG%  1 - used/held",
    "  MISPL  slabs not where they were wanted  PART   slabs on their node's list",
    "  R.IN   frees by threads of other slabs   R.OUT  frees into others' slabs",
    "  LARGE  blocks above the largest class, not part of USED and HELD",
    "  HINTS  NUMA hint faults on the heap      H.REM  those from another node",
    "  Refills, in the order tried: OWN the heap's own slabs, N.PART a partial",
    "  slab of the node, N.NEW a new one there, A.PART and A.NEW on any node.",
    "  The map: a active, p partial, f full, e empty kept; capitals: misplaced",
    "",
    "  Columns that do not fit are left out; the one sorted by never is.",
    NULL,
};

static const char *const narrow[] = {
    "numaslab top: keys",
    "Up Down PgUp PgDn Home End  move",
    "Enter    into: nodes, size classes",
    "Esc      back",
    "F6 > <   sort by next, by the one before",
    "I        reverse the order",
    "F4 \\     filter by name or pid",
    "t        per second, or totals",
    "m        the map of slabs",
    "c n      in it: all classes, all nodes",
    "i        hint faults of the process",
    "x        exited processes, too",
    "Space Z  pause",
    "+ -      faster, slower",
    "F1 h ?   this text",
    "F10 q    quit",
    "",
    "USED   out to the program, or ready",
    "HELD   populated and not returned",
    "FRAG%  1 - used/held",
    "PART   slabs on their node's list",
    "MISPL  slabs not where wanted",
    "R.IN   frees by threads of other slabs",
    "R.OUT  frees into others' slabs",
    "LARGE  blocks above the largest class,",
    "       not part of USED and HELD",
    "HINTS  NUMA hint faults on the heap",
    "H.REM  those from another node",
    "Refills, in the order tried:",
    "OWN    the heap's own slabs",
    "N.PART a partial slab of the node",
    "N.NEW  a new slab there",
    "A.PART a partial slab of another",
    "A.NEW  a new slab of another",
    "The map: a active, p partial, f full,",
    "e empty kept; capitals: misplaced",
    "Columns that do not fit are left out;",
    "the one sorted by never is.",
    NULL,
};

void draw_help(struct screen *s)
{
	const char *const *line = COLS < WIDE ? narrow : wide;
	size_t count = 0, room = LINES > 1 ? (size_t)LINES - 1 : 0;

	while (line[count])
		count++;
	s->help_scrolls = count > room;
	if (!s->help_scrolls)
		s->help_top = 0;
	else if (s->help_top > count - room)
		s->help_top = count - room;
	paint(s, PLAIN);
	for (size_t i = 0; i < room && s->help_top + i < count; i++)
		put((int)i, 0, COLS, line[s->help_top + i]);
}
