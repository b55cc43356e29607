/* SPDX-License-Identifier: MIT */
/* The keys and columns of top, in words. */
#include "tools/screen.h"

const char *const help_lines[] = {
    "numaslab top: keys",
    "",
    "  Up Down PgUp PgDn Home End   move           Enter   into: nodes, size classes",
    "  Esc Backspace Left           back           Space Z pause",
    "  F6 > <   sort by the next, the one before   I       reverse the order",
    "  F4 \\     filter by name or pid              t       per second, or totals",
    "  m        the map of slabs; Enter on a class: of it (c n  all classes, nodes)",
    "  x        exited processes, too              + -     faster, slower",
    "  F1 h ?   this text                          F10 q   quit",
    "",
    "  USED   out to the program, or ready in a thread",
    "  HELD   populated and not returned        FRAG%  1 - used/held",
    "  MISPL  slabs not where they were wanted  PART   slabs on their node's list",
    "  R.IN   frees by threads of other slabs   R.OUT  frees into others' slabs",
    "  Refills, in the order tried: OWN the heap's own slabs, N.PART a partial",
    "  slab of the node, N.NEW a new one there, A.PART and A.NEW on any node.",
    "  The map: a active, p partial, f full, e empty kept; capitals: misplaced",
    NULL,
};
