/* SPDX-License-Identifier: MIT */
/* A command with a known shape for numaslab compare: load MIB [CHILDREN] touches MIB MiB in this
 * process and in each child, all at the same time, keeps them for a second after every one has
 * them, and prints the number of pages. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	   4096
#define PLATEAU_MS 1000

/* Every process says over `ready` that its memory is there, and ends when `go` closes. */
static void hold(size_t pages, int ready, int go)
{
	volatile char *memory = malloc(pages * PAGE);
	char c = 'r';

	if (!memory)
		_exit(1);
	for (size_t i = 0; i < pages; i++)
		memory[i * PAGE] = (char)(i | 1);
	if (write(ready, &c, 1) != 1 || read(go, &c, 1) < 0)
		_exit(1);
	free((void *)memory);
}

int main(int argc, char **argv)
{
	size_t pages = (size_t)(argc > 1 ? atoi(argv[1]) : 1) * 256;
	int children = argc > 2 ? atoi(argv[2]) : 0, ready[2], go[2];
	volatile char *memory = malloc(pages * PAGE + 1);
	char c;

	if (!memory || pipe(ready) || pipe(go))
		return 1;
	for (int i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid) {
			close(go[1]);
			hold(pages, ready[1], go[0]);
			_exit(0);
		}
	}
	for (size_t i = 0; i < pages; i++)
		memory[i * PAGE] = (char)(i | 1);
	for (int i = 0; i < children; i++)
		if (read(ready[0], &c, 1) != 1)
			return 1;
	/* The plateau: a sampler that looks every 10 to 100 ms sees it. */
	if (children)
		poll(NULL, 0, PLATEAU_MS);
	close(go[1]);
	while (wait(NULL) > 0)
		;
	printf("%zu pages\n", pages * (size_t)(children + 1));
	free((void *)memory);
	return 0;
}
