/* SPDX-License-Identifier: MIT */
#include "tools/screen_terminal.h"

#include <termios.h>
#include <unistd.h>

#include <ncursesw/curses.h>
#include <ncursesw/term.h>

volatile sig_atomic_t terminal_ended;
static struct termios terminal;

static void on_end(int number)
{
	terminal_ended = number;
}

/* Raw: nothing of ncurses may be called here.  The normal screen, the cursor, no attributes. */
static void on_crash(int number)
{
	static const char back[] = "\033[?1049l\033[?25h\033[0m\033[?1l\033>";

	if (write(1, back, sizeof back - 1) < 0)
		_exit(128 + number);
	tcsetattr(0, TCSANOW, &terminal);
	signal(number, SIG_DFL);
	raise(number);
}

void terminal_catch_signals(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	static const int crashes[] = {SIGSEGV, SIGABRT, SIGFPE, SIGILL};
	struct sigaction end = {.sa_handler = on_end}, crash = {.sa_handler = on_crash};

	tcgetattr(0, &terminal);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		sigaction(ends[i], &end, NULL);
	for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
		sigaction(crashes[i], &crash, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* As lines on paper a screen would be noise. */
bool terminal_can_draw(void)
{
	int error;

	return setupterm(NULL, 1, &error) == OK && cursor_address && clear_screen;
}
