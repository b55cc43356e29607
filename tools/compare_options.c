/* SPDX-License-Identifier: MIT */
#include "tools/compare_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"

#define NAME	 "compare"
#define DEFAULTS "time=5%,rss=5%"

static const char help[] =
    "Usage: numaslab compare [options] -- COMMAND [argument...]\n"
    "Runs COMMAND under glibc's malloc and under libnumaslab.so, in turn, and tells with\n"
    "statistics that hold on noisy machines which is better at what.\n\n"
    "What is compared:\n"
    "  -r, --pairs N        pairs of runs until the first look (10); a third run in each pair\n"
    "                       is glibc's again, as a control\n"
    "      --max-pairs N    go on while undecided, to at most N pairs (4 times --pairs)\n"
    "      --warmup N       runs of each before anything counts (1)\n"
    "      --against A      the allocator before: glibc, jemalloc, mimalloc, tcmalloc, tbbmalloc\n"
    "                       or a library's path, or NAME=PATH (glibc).  Given again: one more,\n"
    "                       run beside it and shown, not judged\n"
    "      --with A         the allocator after (numaslab)\n"
    "      --base FILE      compare with what an earlier --json recorded for the same command\n"
    "      --replay FILE    judge the samples of an earlier --json again; runs nothing\n"
    "      --metric RE[,higher|lower]\n"
    "                       compare also the last number that the regular expression RE (its\n"
    "                       group, if it has one) finds in the output; lower is better;\n"
    "                       may be given four times (metric, metric2, metric3, metric4)\n"
    "      --same-output    the outputs must be the same\n"
    "  -i, --ignore-failure an exit status other than 0 is fine if both have the same\n"
    "      --timeout S      a run that takes longer has failed (none)\n"
    "      --pin CPUS       run on these CPUs, as in 0-3,8\n"
    "      --numa           run on all nodes' CPUs; needs more than one node\n\n"
    "How it is judged:\n"
    "      --fail-over LIST limits, as in time=5%,rss=64M,hint_faults=0; 'none' judges nothing\n"
    "                       (" DEFAULTS ", and metric=5% with --metric)\n"
    "      --seed N         of the bootstrap (1)\n\n"
    "How it is shown (each may be given FILE as --json=FILE; else it goes to standard output):\n"
    "      --table          for people (default)\n"
    "      --markdown       for a job's summary\n"
    "      --json           everything, raw samples too\n"
    "      --junit FILE     for a CI server ('-': standard output)\n"
    "  -q, --quiet          no progress\n"
    "  -h, --help           show this text\n\n"
    "Exit status: 0 within the limits, 1 a regression, 6 undecided or too noisy, 7 the command\n"
    "failed or differs between the allocators, 2 wrong usage, 4 a file cannot be written,\n"
    "5 FILE is not understood, 77 the machine cannot do this.\n";

enum {
	OPT_MAX = 256,
	OPT_WARMUP,
	OPT_AGAINST,
	OPT_WITH,
	OPT_BASE,
	OPT_REPLAY,
	OPT_METRIC,
	OPT_SAME,
	OPT_TIMEOUT,
	OPT_PIN,
	OPT_NUMA,
	OPT_FAIL,
	OPT_SEED,
	OPT_FORMAT /* + enum cmp_format; the last */
};

static const struct option options[] = {
    {"pairs", required_argument, NULL, 'r'},
    {"max-pairs", required_argument, NULL, OPT_MAX},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"against", required_argument, NULL, OPT_AGAINST},
    {"with", required_argument, NULL, OPT_WITH},
    {"base", required_argument, NULL, OPT_BASE},
    {"replay", required_argument, NULL, OPT_REPLAY},
    {"metric", required_argument, NULL, OPT_METRIC},
    {"same-output", no_argument, NULL, OPT_SAME},
    {"ignore-failure", no_argument, NULL, 'i'},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"pin", required_argument, NULL, OPT_PIN},
    {"numa", no_argument, NULL, OPT_NUMA},
    {"fail-over", required_argument, NULL, OPT_FAIL},
    {"seed", required_argument, NULL, OPT_SEED},
    {"table", optional_argument, NULL, OPT_FORMAT + CMP_TABLE},
    {"markdown", optional_argument, NULL, OPT_FORMAT + CMP_MARKDOWN},
    {"json", optional_argument, NULL, OPT_FORMAT + CMP_JSON},
    {"junit", required_argument, NULL, OPT_FORMAT + CMP_JUNIT},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int number(const char *option, const char *text, double low, double high, double *out)
{
	char *end, shown[64];

	errno = 0;
	*out = strtod(text, &end);
	if (*text && !*end && !errno && *out >= low && *out <= high)
		return -1;
	printable(shown, sizeof shown, text);
	return cmd_usage(NAME, "%s takes a number from %g to %g, not '%s'", option, low, high,
			 shown);
}

static int whole(const char *option, const char *text, double low, double high, size_t *out)
{
	double v;
	int status = number(option, text, low, high, &v);

	if (status < 0 && v != floor(v))
		return cmd_usage(NAME, "%s takes a whole number", option);
	*out = status < 0 ? (size_t)v : 0;
	return status;
}

/* `--json FILE` without the equals sign, where a -- further on shows that FILE is not the command.
 */
static const char *file_operand(int argc, char **argv)
{
	if (optarg)
		return optarg;
	if (optind >= argc || argv[optind][0] == '-')
		return NULL;
	for (int i = optind + 1; i < argc; i++)
		if (!strcmp(argv[i], "--"))
			return argv[optind++];
	return NULL;
}

static int metric_option(struct cmp_options *o, const char *text)
{
	size_t i = o->metrics;
	char *comma;

	if (i == CMP_FIGURES)
		return cmd_usage(NAME, "--metric can be given %d times", CMP_FIGURES);
	o->metric[i] = strdup(text);
	if (!o->metric[i])
		abort();
	comma = strrchr(o->metric[i], ',');
	o->metric_higher[i] = comma && !strcmp(comma, ",higher");
	if (comma && (o->metric_higher[i] || !strcmp(comma, ",lower")))
		*comma = '\0';
	o->metrics++;
	return -1;
}

static int thresholds(struct cmp_options *o, const char *text)
{
	const char *why = cmp_threshold_parse(text, o->threshold);
	char shown[256];

	o->thresholds_given = true;
	return why ? cmd_usage(NAME, "--fail-over: %s", printable(shown, sizeof shown, why)) : -1;
}

static int numeric_option(struct cmp_options *o, int got)
{
	size_t seed = 0;
	int status;

	switch (got) {
	case 'r':
		return whole("--pairs", optarg, 1, 10000, &o->pairs);
	case OPT_MAX:
		return whole("--max-pairs", optarg, 1, 40000, &o->max_pairs);
	case OPT_WARMUP:
		return whole("--warmup", optarg, 0, 1000, &o->warmup);
	case OPT_SEED:
		status = whole("--seed", optarg, 0, 4294967295.0, &seed);
		o->seed = seed;
		return status;
	default:
		return number("--timeout", optarg, 0.001, 1e6, &o->timeout);
	}
}

static int one_option(struct cmp_options *o, int got, int argc, char **argv)
{
	switch (got) {
	case OPT_AGAINST:
		if (o->nagainst == 1 + CMP_PEERS)
			return cmd_usage(NAME, "--against can be given %d times", 1 + CMP_PEERS);
		o->against[o->nagainst++] = optarg;
		break;
	case OPT_WITH:
		o->with = optarg;
		break;
	case OPT_BASE:
		o->base = optarg;
		break;
	case OPT_REPLAY:
		o->replay = optarg;
		break;
	case OPT_METRIC:
		return metric_option(o, optarg);
	case OPT_SAME:
		o->same_output = true;
		break;
	case OPT_PIN:
		o->pin = optarg;
		break;
	case OPT_NUMA:
		o->numa = true;
		break;
	case OPT_FAIL:
		return thresholds(o, optarg);
	case 'i':
		o->ignore_failure = true;
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'h':
		fputs(help, stdout);
		return STATUS_DONE;
	case '?':
	case ':':
		return cmd_option_error(NAME, argv, got, options);
	default:
		if (got < OPT_FORMAT)
			return numeric_option(o, got);
		o->wanted[got - OPT_FORMAT] = true;
		o->file[got - OPT_FORMAT] = file_operand(argc, argv);
	}
	return -1;
}

static bool to_stdout(const struct cmp_options *o, int format)
{
	return o->wanted[format] && (!o->file[format] || !strcmp(o->file[format], "-"));
}

static int check(struct cmp_options *o)
{
	int on_stdout = 0;

	for (int i = 0; i < CMP_FORMATS; i++)
		on_stdout += to_stdout(o, i);
	if (on_stdout > 1)
		return cmd_usage(NAME, "only one form can go to standard output; give files");
	if (!on_stdout && !o->wanted[CMP_TABLE])
		o->wanted[CMP_TABLE] = true;
	if (o->pin && o->numa)
		return cmd_usage(NAME, "--pin and --numa exclude each other");
	if (o->replay && o->argc)
		return cmd_usage(NAME, "--replay runs nothing, so it takes no command");
	if (!o->replay && !o->argc)
		return cmd_usage(NAME, "no command given");
	for (size_t i = o->base ? 1 : 0; i < o->nagainst; i++)
		if (!strcmp(o->against[i], o->with))
			return cmd_usage(NAME, "--against and --with name the same allocator");
	for (size_t i = 1; i < o->nagainst; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(o->against[i], o->against[k]))
				return cmd_usage(NAME, "--against names the same allocator twice");
	for (size_t i = o->metrics; i < CMP_FIGURES && !o->replay; i++)
		if (o->threshold[CMP_M_FIGURE + i].judged)
			return cmd_usage(NAME, "--fail-over %s=... needs --metric",
					 cmp_metrics[CMP_M_FIGURE + i].name);
	return -1;
}

int cmp_options_parse(struct cmp_options *o, int argc, char **argv)
{
	int got, status = -1;

	*o = (struct cmp_options){
	    .against = {"glibc"}, .with = "numaslab", .pairs = 10, .warmup = 1, .seed = 1};
	cmp_threshold_parse(DEFAULTS, o->threshold);
	opterr = 0;
	optind = 1;
	while (status < 0 && (got = getopt_long(argc, argv, "+:r:iqh", options, NULL)) != -1)
		status = one_option(o, got, argc, argv);
	if (status >= 0)
		return status;
	o->nagainst += !o->nagainst; /* glibc */
	o->argc = argc - optind;
	o->argv = argv + optind;
	for (size_t i = 0; i < o->metrics && !o->thresholds_given; i++)
		o->threshold[CMP_M_FIGURE + i] = o->threshold[CMP_M_TIME];
	if (!o->max_pairs)
		o->max_pairs = 4 * o->pairs;
	if (o->max_pairs < o->pairs)
		o->pairs = o->max_pairs;
	return check(o);
}
