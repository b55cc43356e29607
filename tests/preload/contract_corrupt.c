/* SPDX-License-Identifier: MIT */
/* Without NUMASLAB_CHECK: no wrong free and no corrupted byte reaches another block. */
#include "harness.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *free_in_thread(void *p)
{
	free(p);
	return NULL;
}

enum { LIVE = 64, LATER = 3000 };

struct scene {
	size_t size, usable;
	unsigned char *live[LIVE]; /* out before; they must keep their content */
	unsigned char *bad;	   /* the block that is treated wrongly */
};

static void make_scene(struct scene *s, size_t size)
{
	s->size = size;
	for (int i = 0; i < LIVE; i++) {
		s->live[i] = malloc(size);
		memset(s->live[i], i + 1, size);
	}
	s->bad = malloc(size);
	s->usable = malloc_usable_size(s->bad);
}

/*
 * The same where the slab of the block has nothing else out but `others` blocks: what is counted
 * wrongly then looks as if nothing were.
 */
static void make_lonely_scene(struct scene *s, size_t size, int others)
{
	make_scene(s, size);
	for (int i = 0; i < 5000 && (uintptr_t)s->bad % 65536 >= size; i++)
		s->bad = malloc(size);
	for (int i = 0; i < others; i++) {
		s->live[i] = malloc(size);
		memset(s->live[i], i + 1, size);
	}
}

static bool overlap(const unsigned char *a, const unsigned char *b, size_t size)
{
	return a < b + size && b < a + size;
}

static int by_address(const void *a, const void *b)
{
	const unsigned char *x = *(unsigned char *const *)a, *y = *(unsigned char *const *)b;

	return (x > y) - (x < y);
}

/*
 * Allocates many of the same size: none may touch a live block, and no two may touch each other,
 * but for the one that was treated wrongly.  Ends by _exit: 0 harmless, 9 silent corruption.
 */
static void judge_scene(const struct scene *s)
{
	static unsigned char *later[LATER];

	for (int i = 0; i < LATER; i++) {
		later[i] = malloc(s->size);
		if (!later[i])
			_exit(8);
		memset(later[i], 0xee, s->size);
	}
	for (int i = 0; i < LIVE; i++)
		for (size_t k = 0; k < s->size; k++)
			if (s->live[i][k] != i + 1)
				_exit(9);
	qsort(later, LATER, sizeof(later[0]), by_address);
	for (int i = 1; i < LATER; i++)
		if (overlap(later[i - 1], later[i], s->size) &&
		    !overlap(later[i], s->bad, s->usable) &&
		    !overlap(later[i - 1], s->bad, s->usable))
			_exit(9);
	for (int i = 0; i < LATER; i++)
		if (i == 0 || later[i] != later[i - 1])
			free(later[i]);
	for (int i = 0; i < LIVE; i++)
		free(s->live[i]);
	_exit(0);
}

static void judge_outcome(const struct outcome *out, const char *what, size_t size)
{
	int s = out->status;

	if (WIFSIGNALED(s) &&
	    (WTERMSIG(s) == SIGABRT || WTERMSIG(s) == SIGILL || WTERMSIG(s) == SIGTRAP))
		return; /* caught */
	if (s)
		fail("%s, %zu bytes: %s%s", what, size, status_text(s),
		     WIFEXITED(s) && WEXITSTATUS(s) == 9 ? ": another block was corrupted" : "");
}

static void scene_double(void *arg)
{
	struct scene *s = arg;

	free(opaque(s->bad));
	free(opaque(s->bad));
	judge_scene(s);
}

static void scene_double_apart(void *arg)
{
	struct scene *s = arg;
	void *p = malloc(s->size), *q = malloc(s->size);

	free(opaque(s->bad));
	free(p);
	free(opaque(s->bad));
	free(q);
	judge_scene(s);
}

static void scene_inner(void *arg)
{
	struct scene *s = arg;

	free(opaque(s->bad + 16));
	judge_scene(s);
}

static void scene_remote_double(void *arg)
{
	struct scene *s = arg;
	pthread_t thread;

	free(opaque(s->bad));
	pthread_create(&thread, NULL, free_in_thread, opaque(s->bad));
	pthread_join(thread, NULL);
	judge_scene(s);
}

static void wrong_frees_unchecked(void)
{
	static const struct {
		const char *name;
		void (*act)(void *);
	} acts[] = {{"double free", scene_double},
		    {"double free, apart", scene_double_apart},
		    {"inner pointer", scene_inner},
		    {"double free by another thread", scene_remote_double}};
	static const size_t sizes[] = {32, 48, 112, 500, 2000};
	static struct outcome out;

	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 4; k++)
			for (int others = -1; others < 4; others++) {
				struct scene s;

				if (others < 0)
					make_scene(&s, sizes[i]);
				else if (acts[k].act != scene_inner)
					make_lonely_scene(&s, sizes[i], others);
				else
					break; /* NUMASLAB_CHECK's affair */
				run_function(&out, acts[k].act, &s);
				judge_outcome(&out, acts[k].name, sizes[i]);
			}
}

struct corruption {
	struct scene scene;
	int at, value, way;
};

enum { LOCAL_TOP, LOCAL_MIDDLE, REMOTE, WAYS };

static void *free_three(void *p)
{
	for (int i = 0; i < 3; i++)
		free(((void **)p)[i]);
	return NULL;
}

static void corrupt(void *arg)
{
	struct corruption *c = arg;
	void *three[3] = {malloc(c->scene.size), opaque(c->scene.bad), malloc(c->scene.size)};
	pthread_t thread;

	switch (c->way) {
	case LOCAL_TOP:
		free(three[0]);
		free(three[2]);
		free(three[1]);
		break;
	case LOCAL_MIDDLE:
		free_three(three);
		break;
	default:
		pthread_create(&thread, NULL, free_three, three);
		pthread_join(thread, NULL);
	}
	*((volatile unsigned char *)opaque(c->scene.bad) + c->at) = (unsigned char)c->value;
	judge_scene(&c->scene);
}

static void corrupt_all(int way, size_t size)
{
	static struct outcome out;
	struct corruption c = {.way = way};
	int crashes = 0, seen = 0;

	make_scene(&c.scene, size);
	for (c.at = 0; c.at < 8; c.at++) {
		for (c.value = 0; c.value < 256; c.value += c.at < 3 ? 3 : 17) {
			char what[80];

			run_function(&out, corrupt, &c);
			snprintf(what, sizeof(what), "way %d: byte %d of the first word set to %#x",
				 way, c.at, c.value);
			seen++;
			if (WIFSIGNALED(out.status) && WTERMSIG(out.status) == SIGSEGV) {
				crashes++; /* not caught, but not silent either */
				note("%s, %zu bytes: crash", what, size);
				continue;
			}
			judge_outcome(&out, what, size);
		}
	}
	if (crashes)
		fail("way %d, %zu bytes: %d of %d values crash instead of being caught", way, size,
		     crashes, seen);
}

static void corrupt_top_32(void)
{
	corrupt_all(LOCAL_TOP, 32);
}

static void corrupt_middle_32(void)
{
	corrupt_all(LOCAL_MIDDLE, 32);
}

static void corrupt_remote_32(void)
{
	corrupt_all(REMOTE, 32);
}

static void corrupt_middle_500(void)
{
	corrupt_all(LOCAL_MIDDLE, 500);
}

static void corrupt_remote_2000(void)
{
	corrupt_all(REMOTE, 2000);
}

const struct test tests[] = {
#define CHECKED .env = {"NUMASLAB_CHECK=1"}, .numaslab = true, .timeout = 60
    {.name = "wrong_frees_unchecked", .run = wrong_frees_unchecked, .timeout = 60},
    {.name = "corrupt_top_32", .run = corrupt_top_32, .timeout = 120},
    {.name = "corrupt_middle_32", .run = corrupt_middle_32, .timeout = 120},
    {.name = "corrupt_remote_32", .run = corrupt_remote_32, .timeout = 120},
    {.name = "corrupt_middle_500", .run = corrupt_middle_500, .timeout = 120},
    {.name = "corrupt_remote_2000", .run = corrupt_remote_2000, .timeout = 120},
    {.name = NULL},
};
