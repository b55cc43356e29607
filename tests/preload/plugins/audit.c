/* SPDX-License-Identifier: MIT */
/* An LD_AUDIT library that allocates in every callback. */
#include <link.h>
#include <stdlib.h>
#include <string.h>

static __thread char scratch[200];
static char *names;
static size_t length;

static void remember(const char *name)
{
	size_t n = strlen(name) + 1;

	names = realloc(names, length + n);
	memcpy(names + length, name, n);
	length += n;
	scratch[n % sizeof(scratch)] = 1;
}

unsigned int la_version(unsigned int version)
{
	free(malloc(1000));
	return version;
}

unsigned int la_objopen(struct link_map *map, Lmid_t ns, uintptr_t *cookie)
{
	(void)ns;
	(void)cookie;
	remember(map->l_name);
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
	(void)cookie;
	(void)flag;
	remember(name);
	return (char *)name;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int index, uintptr_t *from, uintptr_t *to,
		       unsigned int *flags, const char *name)
{
	(void)index;
	(void)from;
	(void)to;
	(void)flags;
	remember(name);
	return symbol->st_value;
}

unsigned int la_objclose(uintptr_t *cookie)
{
	(void)cookie;
	remember("close");
	return 0;
}
