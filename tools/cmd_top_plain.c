/* SPDX-License-Identifier: MIT */
/* numaslab top where ncursesw was not there to build with: its lines are all there is. */
#include "tools/cmd.h"
#include "tools/cmd_top.h"

int top_screen(const struct top_options *o)
{
	struct top_options text = *o;

	cmd_fail(0, "top", "built without ncursesw: lines instead of the screen");
	text.form = TOP_TEXT;
	return top_batch(&text);
}
