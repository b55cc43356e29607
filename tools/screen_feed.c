/* SPDX-License-Identifier: MIT */
#include "tools/screen_feed.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/cmd.h"
#include "tools/reader.h"
#include "tools/reader_text.h"

#define LOOK_MIN    0.25 /* seconds; each look reads all tables of the kernel */
#define LOOK_MAX    2.0
#define TEXT_WIDTH  80
#define WAKE_SIGNAL SIGUSR1

/* All under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static struct feed *newest;
static bool stopping, woken;
static uint64_t wanted = FEED_NOBODY;
static int wanted_pid;
static double delay;

static pthread_t thread;
static bool running;
static const struct top_options *options;
static void (*on_fresh)(void);

/* --- Views. --- */

struct feed *feed_get(void)
{
	pthread_mutex_lock(&lock);
	struct feed *f = newest;
	if (f)
		f->users++;
	pthread_mutex_unlock(&lock);
	return f;
}

void feed_put(struct feed *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&lock);
	bool last = --f->users == 0;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	free(f->row);
	free(f->text);
	free(f);
}

const struct feed_row *feed_find(const struct feed *f, uint64_t id)
{
	for (size_t i = 0; f && i < f->count; i++)
		if (f->row[i].id == id)
			return &f->row[i];
	return NULL;
}

/* The view goes to whoever asks from now on. */
static void publish(struct feed *f)
{
	pthread_mutex_lock(&lock);
	struct feed *old = newest;
	bool fresh = f && (!old || old->state != f->state || old->text_id != f->text_id);
	newest = f;
	pthread_mutex_unlock(&lock);
	feed_put(old);
	if (fresh)
		on_fresh();
}

static struct feed *feed_new(enum feed_state state)
{
	struct feed *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->users = 1;
	f->state = state;
	pthread_mutex_lock(&lock);
	f->text_id = wanted;
	f->text_pid = wanted_pid;
	woken = false;
	pthread_mutex_unlock(&lock);
	return f;
}

/* Without a session: why. */
static void publish_state(enum feed_state state, const char *why)
{
	struct feed *f = feed_new(state);
	size_t size = 0;
	FILE *out = f ? open_memstream(&f->text, &size) : NULL;

	if (!out) {
		feed_put(f);
		return;
	}
	snprintf(f->line, sizeof f->line, "hint faults are not seen: %s", why);
	print_wrapped(out, f->line, 0, 0, TEXT_WIDTH);
	fclose(out);
	publish(f);
}

/* --- From the model. --- */

static bool is_shown(const struct hints_process *p)
{
	return p->id && p->state == HINTS_LIVE;
}

static bool take_rows(struct feed *f, const struct hints *h, const struct feed *before)
{
	double seconds = before ? (double)(f->time_ms - before->time_ms) / 1000 : 0;

	f->row = calloc(h->process_count + 1, sizeof *f->row);
	for (size_t i = 0; f->row && i < h->process_count; i++) {
		const struct hints_process *p = &h->process[i];
		const struct feed_row *old = feed_find(before, p->id);
		struct feed_row *row = &f->row[f->count];
		struct hints_counts heap;

		if (!is_shown(p))
			continue;
		hints_sum(h, p, HINTS_KINDS, HINTS_CLASS_NONE, HINTS_ANY, HINTS_ANY, &heap);
		*row = (struct feed_row){
		    .id = p->id, .masked = p->masked, .faults = heap.faults, .remote = heap.remote};
		/* Less than before: it executed another program. */
		if (old && seconds < LOOK_MIN / 2) { /* too short to tell */
			row->fault_rate = old->fault_rate;
			row->remote_rate = old->remote_rate;
		} else if (old && old->faults <= row->faults && old->remote <= row->remote) {
			row->fault_rate = (double)(row->faults - old->faults) / seconds;
			row->remote_rate = (double)(row->remote - old->remote) / seconds;
		}
		f->count++;
	}
	return f->row != NULL;
}

/* A process that ended is still told of. */
static const struct hints_process *find_process(const struct hints *h, uint64_t id)
{
	for (size_t i = 0; id != FEED_ALL && i < h->process_count; i++)
		if (h->process[i].id == id)
			return &h->process[i];
	return NULL;
}

static bool take_text(struct feed *f, const struct hints *h)
{
	const struct hints_process *p = find_process(h, f->text_id);
	const struct feed_row *row = p ? feed_find(f, p->id) : NULL;
	char b[2][TEXT_NUMBER];
	size_t size = 0;
	FILE *out = f->text_id == FEED_NOBODY ? NULL : open_memstream(&f->text, &size);

	if (!out)
		return f->text_id == FEED_NOBODY;
	if (row && f->by_process && !row->masked)
		fprintf(out, "now %s hint faults on the heap per second, %s of them remote\n",
			text_count(b[0], row->fault_rate), text_count(b[1], row->remote_rate));
	if (*h->tier_unknown) {
		fputs("not known: ", out);
		print_wrapped(out, h->tier_unknown, 11, 2, TEXT_WIDTH);
	}
	if (p)
		hints_text_process(out, h, p);
	else if (f->text_id != FEED_ALL)
		fprintf(out, "\nprocess %d is not followed (yet)\n", f->text_pid);
	fputc('\n', out);
	hints_text_session(out, h);
	return fclose(out) == 0;
}

static void publish_live(const struct hints *h)
{
	struct feed *f = feed_new(FEED_LIVE), *before = feed_get();

	if (!f) {
		feed_put(before);
		return;
	}
	f->time_ms = h->now_ms;
	f->by_process = h->tier != HINTS_PROC;
	hints_tier_line(f->line, sizeof f->line, h);
	strncat(f->line, "; i shows them", sizeof f->line - strlen(f->line) - 1);
	bool good = take_rows(f, h, before && before->state == FEED_LIVE ? before : NULL) &&
		    take_text(f, h);
	feed_put(before);
	if (good)
		publish(f);
	else
		feed_put(f);
}

/* --- The thread. --- */

static int look_ms(void)
{
	double d = delay < LOOK_MIN ? LOOK_MIN : delay > LOOK_MAX ? LOOK_MAX : delay;

	return (int)(d * 1000);
}

/* For a look without a session; false: the end. */
static bool wait_a_look(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	pthread_mutex_lock(&lock);
	long ms = look_ms();
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	while (!stopping && !woken)
		if (pthread_cond_timedwait(&wake, &lock, &until))
			break;
	bool on = !stopping;
	pthread_mutex_unlock(&lock);
	return on;
}

/* Until the end. */
static void watch(struct hints_session *s)
{
	const struct hints *h = hints_poll(s, 0);
	bool on = true;

	while (h && on) {
		publish_live(h);
		pthread_mutex_lock(&lock);
		int ms = woken ? 0 : look_ms();
		on = !stopping;
		pthread_mutex_unlock(&lock);
		if (on)
			h = hints_poll(s, ms);
	}
	if (!h)
		publish_state(FEED_UNABLE, "out of memory");
}

static void *feed(void *arg)
{
	struct hints_options o = {
	    .pids = options->pids, .pid_count = options->pid_count, .tier = options->tier};
	struct hints_begun b = {0};

	(void)arg;
	while (hints_begin(&b, &o) != FEED_LIVE) {
		publish_state(b.state, b.why);
		if (!wait_a_look())
			return NULL;
	}
	watch(b.session);
	hints_close(b.session);
	return NULL;
}

/* --- From outside. --- */

static void on_wake(int number)
{
	(void)number; /* poll() has ended */
}

bool feed_start(const struct top_options *o, void (*fresh)(void))
{
	struct sigaction action = {.sa_handler = on_wake};
	pthread_condattr_t attr;
	sigset_t all, old;

	options = o;
	on_fresh = fresh;
	delay = o->delay;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &attr);
	sigaction(WAKE_SIGNAL, &action, NULL);
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, WAKE_SIGNAL);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	running = pthread_create(&thread, NULL, feed, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return running;
}

/* With the lock, which is given back.  A signal that comes just before poll() is lost: then the
 * look takes its time. */
static void wake_up(void)
{
	woken = true;
	pthread_cond_signal(&wake);
	if (running)
		pthread_kill(thread, WAKE_SIGNAL);
	pthread_mutex_unlock(&lock);
}

void feed_stop(void)
{
	struct timespec again = {.tv_nsec = 10000000};

	if (!running)
		return;
	pthread_mutex_lock(&lock);
	stopping = true;
	wake_up();
	while (pthread_tryjoin_np(thread, NULL) == EBUSY) {
		pthread_kill(thread, WAKE_SIGNAL);
		nanosleep(&again, NULL);
	}
	running = false;
	publish(NULL);
}

void feed_want(uint64_t id, int pid)
{
	pthread_mutex_lock(&lock);
	wanted = id;
	wanted_pid = pid;
	wake_up();
}

void feed_set_delay(double seconds)
{
	pthread_mutex_lock(&lock);
	delay = seconds;
	wake_up();
}
