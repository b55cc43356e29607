/* SPDX-License-Identifier: MIT */
/* numaslab compare: one experiment as a document, and its forms.  All writers are pure: document
 * in, text out. */
#ifndef NUMASLAB_TOOLS_COMPARE_REPORT_H
#define NUMASLAB_TOOLS_COMPARE_REPORT_H

#include <limits.h>
#include <stdio.h>

#include "tools/compare_judge.h"
#include "tools/compare_machine.h"

#define CMP_NOTES 12

struct cmp_document {
	int argc;
	char **argv;
	char name[2][64];	       /* allocators: CMP_BEFORE, CMP_AFTER */
	char library[2][PATH_MAX];     /* empty: the C library's own */
	char rss_source[16];	       /* "cgroup", "pss" */
	char figure[CMP_FIGURES][256]; /* --metric's expressions, empty: none */
	struct cmp_machine machine;
	struct cmp_plan plan;
	struct cmp_runs runs;
	struct cmp_report report;
	const struct cmp_document *base; /* --base: the earlier experiment */
	bool all_rows;			 /* --numa: rows of zeros are shown too */
	struct {
		char what[600];		  /* what went wrong with the command; empty: nothing */
		char how[PATH_MAX + 600]; /* how to see it again */
		char output[4096];	  /* the end of what it wrote to stderr */
	} problem;
	char note[CMP_NOTES][320];
	size_t notes;
};

void cmp_note(struct cmp_document *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* 0 PASS, 1 FAIL, 6 INCONCLUSIVE or NOISY, 7 ERROR */
int cmp_exit_status(const struct cmp_document *d);
enum cmp_verdict cmp_document_verdict(const struct cmp_document *d);

/* What is compared: with --base, both columns are the "after" allocator. */
void cmp_column_names(const struct cmp_document *d, char before[96], char after[96]);
const struct cmp_runs *cmp_before_runs(const struct cmp_document *d, enum cmp_side *side);

/* Every value by name in a sentence: which metrics got better (-1), worse (+1) or neither (0). */
void cmp_tendency_text(const struct cmp_document *d, int tendency, char *buf, size_t size);
/* Is there anything to show in this row? */
bool cmp_row_shown(const struct cmp_document *d, int metric);
/* argv as a shell would take it, control characters replaced. */
void cmp_command_text(const struct cmp_document *d, char *buf, size_t size);
/* A judged effect in its scale and direction as signed text, its interval, its one-line reason. */
void cmp_effect_text(char *buf, size_t size, int metric, const struct cmp_judgement *j,
		     double effect);
void cmp_interval_text(char *buf, size_t size, int metric, const struct cmp_judgement *j);
void cmp_reason_text(char *buf, size_t size, const struct cmp_document *d, int metric);

struct cmp_style {
	bool utf8, color;
	int width; /* columns */
};

void cmp_write_table(FILE *f, const struct cmp_document *d, const struct cmp_style *style);
void cmp_write_markdown(FILE *f, const struct cmp_document *d);
void cmp_write_junit(FILE *f, const struct cmp_document *d);
void cmp_write_json(FILE *f, const struct cmp_document *d);

/* The samples of one metric on one axis, a line for each allocator. */
void cmp_write_plot(FILE *f, const struct cmp_document *d, int metric,
		    const struct cmp_style *style);
/* Pure: how many of v[n] fall into each of `width` columns between low and high. */
void cmp_plot_bins(const double *v, size_t n, double low, double high, int width, unsigned *bins);

/* Reads what cmp_write_json wrote.  NULL, or what is wrong (valid until the next call). */
const char *cmp_read_json(struct cmp_document *d, const char *text);
void cmp_document_free(struct cmp_document *d);

#endif
