/* SPDX-License-Identifier: MIT */
/* A directory that plays /sys, /proc and /dev of another machine. */
#ifndef NUMASLAB_TESTS_FAKE_TREE_H
#define NUMASLAB_TESTS_FAKE_TREE_H

/* A fresh directory below TMPDIR or /tmp. */
void fake_create(char root[64]);
void fake_remove(const char *root);

/* Writes text into root/path, making the directories on the way; the printf form. */
void fake_file(const char *root, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A node directory; distance is the kernel's line for all online nodes. */
void fake_node(const char *root, int id, unsigned long mib, const char *cpus, const char *distance);

#endif
