/* SPDX-License-Identifier: MIT */
/* A plugin with thread-local storage. */
#include <stdlib.h>
#include <string.h>

int plugin_touch(void);
void *plugin_alloc(size_t size);
void plugin_free(void *p);
char *plugin_dup(const char *text);
void *plugin_grow(void *p, size_t size);

static __thread char area[1500];
static __thread void *mine;

int plugin_touch(void)
{
	area[7]++;
	free(mine);
	mine = malloc(100);
	return area[7];
}

void *plugin_alloc(size_t size)
{
	return malloc(size);
}

void plugin_free(void *p)
{
	free(p);
}

char *plugin_dup(const char *text)
{
	return strdup(text);
}

void *plugin_grow(void *p, size_t size)
{
	return realloc(p, size);
}

__attribute__((constructor)) static void begin(void)
{
	free(malloc(50));
}

__attribute__((destructor)) static void end(void)
{
	free(malloc(70));
}
