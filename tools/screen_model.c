/* SPDX-License-Identifier: MIT */
#include "tools/screen_model.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <urcu.h>

#include "tools/missing.h"

static struct model *shared;
static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake, came;
static bool stopping, dead;
static uint64_t spark_id, map_id;
static double delay;
static const struct top_options *options;

static void *copy_of(const void *from, size_t size)
{
	void *to = malloc(size ? size : 1);

	if (to)
		memcpy(to, from, size);
	return to;
}

static bool copy_snapshot(struct reader_snapshot *to, const struct reader_snapshot *from)
{
	*to = *from;
	if (!from->pool)
		return true;
	to->pool = copy_of(from->pool, from->pools * sizeof *from->pool);
	to->class_size = copy_of(from->class_size, from->classes * sizeof *from->class_size);
	to->count = copy_of(from->count, (size_t)from->pools * from->classes * sizeof *from->count);
	return to->pool && to->class_size && to->count;
}

static void model_free(struct model *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->set.count; i++) {
		free((void *)m->set.process[i].info);
		reader_snapshot_free(&m->set.process[i].now);
		reader_snapshot_free(&m->set.process[i].before);
	}
	free(m->set.process);
	reader_map_free(&m->map);
	feed_put(m->feed);
	free(m);
}

static struct model *model_copy(const struct process_set *set)
{
	struct model *m = calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->set = *set;
	m->set.count = 0;
	m->set.process = calloc(set->count + 1, sizeof *m->set.process);
	for (size_t i = 0; m->set.process && i < set->count; i++) {
		const struct process *from = &set->process[i];
		struct process *to = &m->set.process[m->set.count++];

		to->id = from->id;
		to->info = copy_of(from->info, sizeof *from->info);
		if (!to->info || !copy_snapshot(&to->now, &from->now) ||
		    !copy_snapshot(&to->before, &from->before)) {
			model_free(m);
			return NULL;
		}
	}
	return m;
}

static void add_point(struct spark *s, const struct reader_pool *pool, unsigned pools)
{
	size_t i = s->count++;

	for (unsigned k = 0; k < pools; k++) {
		const struct reader_counts *c = &pool[k].sum;

		if (pool[k].node < 0)
			continue;
		s->used[i] += c->used_bytes;
		s->held[i] += c->counter[COUNT_held];
		s->made[i] += c->counter[COUNT_node_new] + c->counter[COUNT_any_new];
	}
}

/*
 * Points at even times, from the first entry to now: while a process is idle there are no entries,
 * and the last one holds.
 */
static void fill_spark(struct spark *s, const struct reader_history *h,
		       const struct reader_snapshot *now)
{
	uint64_t from = h->point[0].time_ms, to = now->live ? now->now_ms : now->last_ms;
	size_t count = h->count < SPARK_POINTS ? h->count + 1 : SPARK_POINTS;

	s->span_ms = to > from ? to - from : 0;
	for (size_t i = 0, at = 0; i + 1 < count; i++) {
		uint64_t time = from + s->span_ms * i / (count - 1);

		while (at + 1 < h->count && h->point[at + 1].time_ms <= time)
			at++;
		add_point(s, h->point[at].pool, h->pools);
	}
	add_point(s, now->pool, now->pools);
	for (size_t i = s->count; i-- > 1;)
		s->made[i] -= s->made[i - 1] < s->made[i] ? s->made[i - 1] : s->made[i];
	s->made[0] = 0;
}

/* The history of one process, also of the time before we looked. */
static void take_spark(struct spark *s, const struct process_set *set, uint64_t id)
{
	struct reader_history h = {0};
	struct process *p = NULL;

	for (size_t i = 0; i < set->count; i++)
		if (set->process[i].id == id)
			p = &set->process[i];
	if (p && reader_history(p->reader, 0, 4096, &h) == READER_OK && h.count) {
		s->id = id;
		fill_spark(s, &h, &p->now);
	}
	reader_history_free(&h);
}

/* Read into the model itself: each look has its own. */
static void take_map(struct model *m, const struct process_set *set, uint64_t id)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->process[i].id == id &&
		    reader_map(set->process[i].reader, &m->map) == READER_OK)
			m->map_id = id;
}

static bool is_shown(const struct process_set *set, int pid)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->process[i].asked == pid)
			return true;
	return false;
}

static bool is_refused(const struct process_set *set, int pid)
{
	for (size_t i = 0; i < set->refused_count; i++)
		if (set->refused[i].pid == pid)
			return true;
	return false;
}

/* The files that cannot be shown, and the processes of -p that are not. */
static void take_notes(struct model *m, const struct process_set *set)
{
	for (size_t i = 0; i < set->refused_count && m->note_count < MODEL_NOTES; i++)
		snprintf(m->note[m->note_count++], sizeof *m->note, "%s: %s", set->refused[i].path,
			 set->refused[i].why);
	for (size_t i = 0; i < options->pid_count && m->note_count < MODEL_NOTES; i++)
		if (!is_shown(set, options->pids[i]) && !is_refused(set, options->pids[i]))
			missing_process_why("top", options->pids[i], m->note[m->note_count++],
					    sizeof *m->note);
	if (set->count == 0 && set->denied && m->note_count == 0)
		missing_all_why("top", set, m->note[m->note_count++], sizeof *m->note);
}

static void publish(struct model *m)
{
	struct model *old = shared;

	rcu_assign_pointer(shared, m);
	if (old) {
		synchronize_rcu();
		model_free(old);
	}
}

static void add_seconds(struct timespec *t, double seconds)
{
	t->tv_sec += (time_t)seconds;
	t->tv_nsec += (long)(fmod(seconds, 1) * 1e9);
	if (t->tv_nsec >= 1000000000) {
		t->tv_nsec -= 1000000000;
		t->tv_sec++;
	}
}

/* Until the next look is due, or sooner if something is wanted. */
static void wait_for(struct timespec *next)
{
	add_seconds(next, delay);
	if (!stopping && pthread_cond_timedwait(&wake, &lock, next) != ETIMEDOUT)
		clock_gettime(CLOCK_MONOTONIC, next);
}

static void *collect(void *arg)
{
	struct process_set set = {0};
	struct timespec next;
	uint64_t serial = 0;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &next);
	pthread_mutex_lock(&lock);
	while (!stopping) {
		bool want_dead = dead;
		uint64_t want_spark = spark_id, want_map = map_id;

		pthread_mutex_unlock(&lock);
		process_set_look(&set, options->pids, options->pid_count, want_dead);
		struct model *m = model_copy(&set);
		if (m) {
			m->serial = ++serial;
			m->feed = feed_get();
			if (want_spark)
				take_spark(&m->spark, &set, want_spark);
			if (want_map)
				take_map(m, &set, want_map);
			take_notes(m, &set);
			publish(m);
		}
		pthread_mutex_lock(&lock);
		pthread_cond_signal(&came);
		wait_for(&next);
	}
	pthread_mutex_unlock(&lock);
	process_set_free(&set);
	return NULL;
}

static void set_and_wake(void)
{
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

/* From the feed's thread. */
static void look_now(void)
{
	pthread_mutex_lock(&lock);
	set_and_wake();
}

bool model_start(const struct top_options *o)
{
	pthread_condattr_t attr;
	sigset_t all, old;

	options = o;
	delay = o->delay;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &attr);
	pthread_cond_init(&came, &attr);
	rcu_register_thread();
	/* Signals are the screen's. */
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	bool good = pthread_create(&thread, NULL, collect, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (good && !o->no_hints) /* top works without */
		feed_start(o, look_now);
	return good;
}

void model_stop(void)
{
	feed_stop();
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	publish(NULL);
	rcu_unregister_thread();
}

void model_wait(double seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	add_seconds(&until, seconds);
	pthread_mutex_lock(&lock);
	while (!shared && pthread_cond_timedwait(&came, &lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&lock);
}

const struct model *model_lock(void)
{
	rcu_read_lock();
	return rcu_dereference(shared);
}

void model_unlock(void)
{
	rcu_read_unlock();
}

void model_set_dead(bool want)
{
	pthread_mutex_lock(&lock);
	dead = want;
	set_and_wake();
}

void model_set_spark(uint64_t id)
{
	pthread_mutex_lock(&lock);
	spark_id = id;
	set_and_wake();
}

void model_set_map(uint64_t id)
{
	pthread_mutex_lock(&lock);
	map_id = id;
	set_and_wake();
}

void model_set_delay(double seconds)
{
	pthread_mutex_lock(&lock);
	delay = seconds;
	set_and_wake();
	feed_set_delay(seconds);
}
