/* SPDX-License-Identifier: MIT */
/* replay ROUNDS FILE...: each file, then ROUNDS inputs made from them by a fixed sequence.  TAP. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define INPUT_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t input[INPUT_MAX], corpus[64][INPUT_MAX];
static size_t length[64], files;
static uint64_t seed = 20;

static unsigned pick(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % below);
}

static void load(const char *path)
{
	FILE *f = fopen(path, "rb");

	if (!f || files == 64)
		return;
	length[files] = fread(corpus[files], 1, INPUT_MAX, f);
	files += length[files] > 0;
	fclose(f);
}

/* A piece of one, a piece of another, some bytes changed. */
static size_t invent(void)
{
	size_t n = 0;

	while (n < 200 || (n < INPUT_MAX && pick(4))) {
		size_t from = pick((unsigned)files), at = pick((unsigned)length[from]);
		size_t m = 1 + pick(64);

		for (; m && at < length[from] && n < INPUT_MAX; m--)
			input[n++] = pick(8) ? corpus[from][at++] : (uint8_t)pick(256);
	}
	return n;
}

static void save(size_t n)
{
	FILE *f = fopen("build/fuzz-failed", "wb");

	if (f) {
		fwrite(input, 1, n, f);
		fclose(f);
	}
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	int status = 0;

	for (int i = 2; i < argc; i++)
		load(argv[i]);
	if (files == 0) {
		printf("not ok 1 - there is a corpus\n1..1\n");
		return 1;
	}
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < files; i++) {
			memcpy(input, corpus[i], length[i]);
			save(length[i]);
			LLVMFuzzerTestOneInput(input, length[i]);
		}
		for (unsigned i = 0; i < rounds; i++) {
			size_t n = invent();

			save(n);
			LLVMFuzzerTestOneInput(input, n);
		}
		_exit(0);
	}
	waitpid(pid, &status, 0);
	printf("%sok 1 - %zu corpus files and %u inputs made from them\n", status ? "not " : "",
	       files, rounds);
	if (status)
		printf("# status %#x, the input: build/fuzz-failed\n", status);
	printf("1..1\n");
	return 0;
}
