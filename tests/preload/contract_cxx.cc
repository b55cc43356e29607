/* SPDX-License-Identifier: MIT */
/* C++ operators as libstdc++ has them, or the library's own: a failing new throws. */
#include "harness.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <malloc.h>
#include <map>
#include <memory>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace
{
/* Static objects are built before main and destroyed after it. */
struct early {
	std::string text{std::string(1000, 'x')};
	std::map<int, std::string> numbers;
	early()
	{
		for (int i = 0; i < 100; i++)
			numbers[i] = std::to_string(i);
	}
	~early()
	{
		if (text.size() != 1000 || numbers.size() != 100 || numbers[77] != "77")
			abort();
	}
} early_object;

volatile size_t huge = SIZE_MAX / 2;

template <typename F> bool throws_bad_alloc(F f)
{
	try {
		opaque(f());
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

void operators()
{
	for (size_t n = 0; n < 70000; n = n * 5 / 4 + 1) {
		void *a = ::operator new(n), *b = ::operator new[](n);
		void *c = ::operator new(n, std::nothrow), *d = ::operator new[](n, std::nothrow);

		CHECK(a && b && c && d && a != b);
		CHECK((((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d) & 15) == 0);
		CHECK(malloc_usable_size(a) >= n);
		memset(a, 1, n);
		memset(d, 1, n);
		::operator delete(a);
		::operator delete[](b);
		::operator delete(c, std::nothrow);
		::operator delete[](d, std::nothrow);
	}
	::operator delete(nullptr);
}

void aligned_and_sized()
{
	for (size_t align = 1; align <= 1 << 20; align *= 2) {
		for (size_t n = 1; n < 200000; n *= 9) {
			auto al = std::align_val_t(align);
			void *a = ::operator new(n, al), *b = ::operator new[](n, al, std::nothrow);
			void *c = ::operator new(n);

			CHECK(a && b && (((uintptr_t)a | (uintptr_t)b) & (align - 1)) == 0);
			memset(a, 1, n);
			::operator delete(a, n, al);
			::operator delete[](b, al);
			::operator delete(c, n);
		}
	}
}

/* new and free, malloc and delete: wrong, common, and fine under glibc. */
void mixed()
{
	for (int i = 0; i < 1000; i++) {
		free(::operator new(i));
		::operator delete(opaque(malloc(i)));
		::operator delete(opaque(strdup("text")));
	}
}

void failing_new()
{
	CHECK(throws_bad_alloc([] { return ::operator new(huge); }));
	CHECK(throws_bad_alloc([] { return ::operator new(huge * 2); }));
	CHECK(throws_bad_alloc([] { return ::operator new[](huge); }));
	CHECK(throws_bad_alloc([] { return ::operator new(huge, std::align_val_t(64)); }));
	CHECK(throws_bad_alloc([] { return (void *)new int[huge]; }));
	CHECK(!opaque(::operator new(huge, std::nothrow)));
	CHECK(!opaque(::operator new[](huge, std::nothrow)));
	CHECK(!opaque(::operator new(huge, std::align_val_t(4096), std::nothrow)));
	CHECK(throws_bad_alloc([] {
		std::vector<char> v(huge - 1);
		return (void *)v.data();
	}));
}

int handler_calls;

void handler()
{
	if (++handler_calls == 3)
		std::set_new_handler(nullptr);
}

void new_handler()
{
	std::set_new_handler(handler);
	CHECK(throws_bad_alloc([] { return ::operator new(huge); }));
	CHECK_EQ(handler_calls, 3);
}

void limit_memory()
{
	struct rlimit r = {256ul << 20, 256ul << 20};

	setrlimit(RLIMIT_AS, &r);
}

/* Exhausted for real: the exception itself needs memory, and the program goes on. */
void exhausted()
{
	for (int round = 0; round < 3; round++) {
		std::vector<std::unique_ptr<char[]>> blocks;
		bool thrown = false;

		blocks.reserve(1 << 20);
		try {
			for (;;) {
				blocks.emplace_back(new char[5000]);
				memset(blocks.back().get(), 1, 5000);
			}
		} catch (const std::bad_alloc &) {
			thrown = true;
		}
		CHECK(thrown && blocks.size() > 10000);
	}
}

void *throw_often(void *unused)
{
	for (int i = 0; i < 3000; i++) {
		try {
			throw std::runtime_error(std::string(i % 300, 'e'));
		} catch (const std::exception &e) {
			CHECK(strlen(e.what()) == (size_t)(i % 300));
		}
	}
	return unused;
}

void exceptions_in_threads()
{
	pthread_t threads[4];

	for (auto &t : threads)
		CHECK_EQ(pthread_create(&t, nullptr, throw_often, nullptr), 0);
	for (auto &t : threads)
		pthread_join(t, nullptr);
}

struct late {
	std::string text = std::string(500, 't');
	~late()
	{
		std::string more(5000, 'm'); /* after the thread's function has ended */
		if (text[499] != 't' || more[4999] != 'm')
			abort();
	}
};

void *use_thread_local(void *unused)
{
	static thread_local late object;
	static thread_local std::vector<std::string> list;

	object.text += "x";
	for (int i = 0; i < 50; i++)
		list.push_back(std::string(i * 20, 'l'));
	return unused;
}

void thread_local_objects()
{
	size_t before = 0;

	for (int i = 0; i < 2000; i++) {
		pthread_t thread;

		CHECK_EQ(pthread_create(&thread, nullptr, use_thread_local, nullptr), 0);
		pthread_join(thread, nullptr);
		if (i == 200)
			before = anon_kib();
	}
	if (anon_kib() > before + 1024)
		fail("1800 threads cost %zu KiB", anon_kib() - before);
}

void containers()
{
	std::map<std::string, std::vector<std::string>> index;

	for (int i = 0; i < 100000; i++)
		index[std::to_string(i % 5000)].push_back(std::string(i % 70, 'a'));
	for (auto it = index.begin(); it != index.end();)
		it = it->second.size() % 2 ? index.erase(it) : std::next(it);
	for (auto &entry : index)
		for (auto &s : entry.second)
			for (char c : s)
				CHECK(c == 'a');
}

/* libstdc++'s operators call malloc; should the library bring operators, all must be its own. */
void one_allocator()
{
	Dl_info a, b;

	CHECK(dladdr(dlsym(RTLD_DEFAULT, "_Znwm"), &a) &&
	      dladdr(dlsym(RTLD_DEFAULT, "_ZdlPv"), &b));
	if (strcmp(a.dli_fname, b.dli_fname))
		fail("new is of %s, delete of %s", a.dli_fname, b.dli_fname);
	CHECK(early_object.numbers.size() == 100);
}
} // namespace

static test named(const char *name, void (*run)(void), void (*before)(void) = nullptr)
{
	test t = {};

	t.name = name;
	t.run = run;
	t.before = before;
	return t;
}

const test tests[] = {
    named("operators", operators),
    named("aligned_and_sized", aligned_and_sized),
    named("mixed", mixed),
    named("failing_new", failing_new),
    named("new_handler", new_handler),
    named("exhausted", exhausted, limit_memory),
    named("exceptions_in_threads", exceptions_in_threads),
    named("thread_local_objects", thread_local_objects),
    named("containers", containers),
    named("one_allocator", one_allocator),
    named(nullptr, nullptr),
};
