/* SPDX-License-Identifier: MIT */
/* The terminal: whether it can show a screen, and given back whatever happens.  (term.h of ncurses
 * has macros with the names of everyday: it is included in screen_terminal.c alone.) */
#ifndef NUMASLAB_SCREEN_TERMINAL_H
#define NUMASLAB_SCREEN_TERMINAL_H

#include <signal.h>
#include <stdbool.h>

/* The signal that asked us to end; 0: none did. */
extern volatile sig_atomic_t terminal_ended;

/* Those that end set terminal_ended; those of a crash give the terminal back first. */
void terminal_catch_signals(void);

bool terminal_can_draw(void);

#endif
