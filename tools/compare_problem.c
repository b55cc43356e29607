/* SPDX-License-Identifier: MIT */
/* Whether a run of the command went as its first run did, and in words what was different. */
#include <stdio.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/compare_live.h"

size_t cmp_first_difference(const char *a, const char *b, char *shown_a, char *shown_b, size_t size)
{
	size_t line = 1, start = 0, i = 0;
	char copy[512];

	for (; a[i] && a[i] == b[i]; i++) {
		if (a[i] == '\n') {
			line++;
			start = i + 1;
		}
	}
	if (a[i] == b[i])
		return 0;
	snprintf(copy, sizeof copy, "%.*s", (int)strcspn(a + start, "\n"), a + start);
	printable(shown_a, size, copy);
	snprintf(copy, sizeof copy, "%.*s", (int)strcspn(b + start, "\n"), b + start);
	printable(shown_b, size, copy);
	return line;
}

/* The last lines of stderr, tabs as blanks. */
static void keep_output(struct cmp_problem *p, const struct cmp_output *err)
{
	const char *from, *end;
	int lines = 0;

	if (!err->data)
		return;
	from = err->data;
	end = from + err->len;
	if (err->len >= sizeof p->output)
		from = end - sizeof p->output + 1;
	for (const char *c = end - 1; c > from && lines < 16; c--) {
		lines += c[-1] == '\n';
		if (lines == 16)
			from = c;
	}
	snprintf(p->output, sizeof p->output, "%s", from);
	for (char *c = p->output; *c; c++)
		*c = *c == '\t' ? ' ' : *c;
}

static void explain_how(struct cmp_live *l, int side, struct cmp_problem *p)
{
	char command[500], library[PATH_MAX];

	cmp_command_text(l->doc, command, sizeof command);
	if (side == CMP_AFTER && !strcmp(l->options->with, "numaslab"))
		snprintf(p->how, sizeof p->how, "numaslab run -- %s", command);
	else if (l->allocator[side].library[0])
		snprintf(p->how, sizeof p->how, "LD_PRELOAD=%s %s",
			 printable(library, sizeof library, l->allocator[side].library), command);
	else
		snprintf(p->how, sizeof p->how, "%s", command);
}

static void ended_text(char *buf, size_t size, int status, const struct cmp_outcome *o)
{
	if (o->signal)
		snprintf(buf, size, "was killed by signal %d (%s%s)", o->signal,
			 strsignal(o->signal), o->core ? ", core dumped" : "");
	else
		snprintf(buf, size, "ended with exit status %d", status);
}

/* Says what happened to which side, and whether the other side is innocent. */
static void problem_ended(struct cmp_live *l, int side, int status, const struct cmp_outcome *o,
			  struct cmp_problem *p)
{
	const char *who = l->allocator[side].name, *other = l->allocator[CMP_BEFORE].name;
	char ended[100];

	ended_text(ended, sizeof ended, status, o);
	if (o->spawn_errno)
		snprintf(p->what, sizeof p->what, "the command could not be started: %s",
			 strerror(o->spawn_errno));
	else if (o->timed_out && side && l->have_reference)
		snprintf(p->what, sizeof p->what,
			 "under %s the command did not end within %g s; under %s it did", who,
			 l->options->timeout, other);
	else if (o->timed_out)
		snprintf(p->what, sizeof p->what, "under %s the command did not end within %g s",
			 who, l->options->timeout);
	else if (o->no_figure && !o->signal && !status)
		snprintf(p->what, sizeof p->what,
			 "under %s the output holds no figure that --metric '%s' matches", who,
			 l->doc->figure[o->no_figure - 1]);
	else if (!l->have_reference)
		snprintf(
		    p->what, sizeof p->what,
		    "under %s, in its first run, the command %s, so there is nothing to compare",
		    who, ended);
	else
		snprintf(p->what, sizeof p->what,
			 "under %s the command %s; under %s it ended with exit status %d", who,
			 ended, side ? other : "the same, earlier,", l->reference_status);
}

static void problem_output(struct cmp_live *l, int side, const struct cmp_outcome *o,
			   struct cmp_problem *p)
{
	char a[100] = "", b[100] = "";
	size_t line = cmp_first_difference(l->reference.data ? l->reference.data : "",
					   o->out.data ? o->out.data : "", a, b, sizeof a);
	char place[300];

	if (line)
		snprintf(place, sizeof place, ", first in line %zu: \"%s\" became \"%s\"", line, a,
			 b);
	else
		snprintf(place, sizeof place, ", beyond its first %u MiB", CMP_OUTPUT_MAX >> 20);
	if (side != CMP_BEFORE)
		snprintf(p->what, sizeof p->what,
			 "the output under %s differs from that under %s%s",
			 l->allocator[side].name, l->allocator[CMP_BEFORE].name, place);
	else
		snprintf(p->what, sizeof p->what,
			 "the output differs from run to run under %s itself, so --same-output "
			 "cannot be asked for%s",
			 l->allocator[CMP_BEFORE].name, place);
}

bool cmp_check_run(struct cmp_live *l, int side, int status, struct cmp_outcome *o, bool measured,
		   struct cmp_problem *p)
{
	bool good = measured && !o->signal && (l->options->ignore_failure || !status);

	if (good && l->have_reference)
		good = status == l->reference_status;
	good = good && !o->no_figure;
	if (!good) {
		problem_ended(l, side, status, o, p);
	} else if (!l->have_reference) {
		l->have_reference = true;
		l->reference_status = status;
		l->reference = o->out;
		memset(&o->out, 0, sizeof o->out);
	} else if (l->options->same_output &&
		   (o->out.total != l->reference.total || o->out.hash != l->reference.hash)) {
		problem_output(l, side, o, p);
	}
	if (!p->what[0])
		return true;
	explain_how(l, side, p);
	keep_output(p, &o->err);
	return false;
}
