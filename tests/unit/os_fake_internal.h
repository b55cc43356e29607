/* SPDX-License-Identifier: MIT */
#ifndef TEST_OS_FAKE_INTERNAL_H
#define TEST_OS_FAKE_INTERNAL_H

/* Inside the machine to order. */

#include "tests/unit/os_fake.h"

/* Counts the call; whether it is one that fails. */
bool fake_fails(enum fake_call call);

/* Of the node with the number, in fake.node; -1: there is none. */
int fake_position(int number);

/* Pages. */
long fake_free(unsigned node);

#endif
