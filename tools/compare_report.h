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

/* What went wrong with the command under an allocator. */
struct cmp_problem {
	char what[600];		  /* empty: nothing */
	char how[PATH_MAX + 600]; /* how to see it again */
	char output[4096];	  /* the end of what it wrote to stderr */
};

/* An allocator beside the two that are judged.  When the command fails under it, it is left out
 * from then on. */
struct cmp_peer {
	char name[64], library[PATH_MAX];
	struct cmp_report report; /* of "after" against it */
	struct cmp_problem problem;
};

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
	struct cmp_problem problem;
	struct cmp_peer peer[CMP_PEERS];
	struct cmp_report beside; /* "before" as if it were a peer */
	size_t peers;
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

/* Fills the peers' reports from the pairs that the document's own report counts. */
void cmp_judge_peers(struct cmp_document *d);
/* The table of all allocators: row 0 is "after", then "before", then the peers.  Its cells: the
 * median, and the median change of "after" against it (behind a "~" where no difference is seen).
 */
bool cmp_peer_column(const struct cmp_document *d, int metric);
size_t cmp_peer_rows(const struct cmp_document *d);
const char *cmp_peer_name(const struct cmp_document *d, size_t row);
void cmp_peer_cell(const struct cmp_document *d, size_t row, int metric, char value[48],
		   char change[48]);

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

/* Reads what cmp_write_json wrote, or of a file {"comparisons": [...]} or {"comparisons": {...}}
 * the one with the command of `like` (NULL: none).  NULL, or what is wrong. */
const char *cmp_read_json(struct cmp_document *d, const char *text,
			  const struct cmp_document *like);
void cmp_document_free(struct cmp_document *d);

#endif
