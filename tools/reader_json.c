/* SPDX-License-Identifier: MIT */
#include "tools/reader_json.h"
#include "tools/map_text.h"

#include <string.h>

/* --- The form. --- */

static void put_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void put_key(struct json *j, const char *key)
{
	if (j->comma)
		fputc(',', j->out);
	j->comma = true;
	if (key) {
		put_string(j->out, key);
		fputc(':', j->out);
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	put_key(j, key);
	fputc(bracket, j->out);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->out);
	j->comma = true;
}

void json_number(struct json *j, const char *key, uint64_t n)
{
	put_key(j, key);
	fprintf(j->out, "%llu", (unsigned long long)n);
}

void json_int(struct json *j, const char *key, int64_t n)
{
	put_key(j, key);
	fprintf(j->out, "%lld", (long long)n);
}

void json_real(struct json *j, const char *key, double n)
{
	char text[32];

	put_key(j, key);
	snprintf(text, sizeof text, "%.6g", n);
	/* A locale's decimal comma is none of JSON's. */
	for (char *c = text; *c; c++)
		if (*c == ',')
			*c = '.';
	fputs(text, j->out);
}

void json_text(struct json *j, const char *key, const char *text)
{
	put_key(j, key);
	put_string(j->out, text);
}

void json_null(struct json *j, const char *key)
{
	put_key(j, key);
	fputs("null", j->out);
}

void json_bool(struct json *j, const char *key, bool truth)
{
	put_key(j, key);
	fputs(truth ? "true" : "false", j->out);
}

/* --- The schema. --- */

static void put_counts(struct json *j, const struct reader_counts *c)
{
	const uint64_t *n = c->counter;

	json_number(j, "slabs",
		    n[COUNT_active] + n[COUNT_partial] + n[COUNT_full] + n[COUNT_empty]);
	json_number(j, "active", n[COUNT_active]);
	json_number(j, "partial", n[COUNT_partial]);
	json_number(j, "full", n[COUNT_full]);
	json_number(j, "empty", n[COUNT_empty]);
	json_number(j, "objects", n[COUNT_used]);
	json_number(j, "slots", n[COUNT_slots]);
	json_number(j, "capacity_bytes", c->capacity_bytes);
	json_number(j, "used_bytes", c->used_bytes);
	json_number(j, "cached_bytes", c->cached_bytes);
	if (c->asked_bytes || c->used_bytes == 0)
		json_number(j, "asked_estimate", c->asked_bytes);
	else
		json_null(j, "asked_estimate"); /* the history does not say */
	json_number(j, "held_bytes", n[COUNT_held]);
	json_real(j, "fragmentation", reader_fragmentation(c));
	json_open(j, "refill", '{');
	json_number(j, "own", n[COUNT_own]);
	json_number(j, "node_partial", n[COUNT_node_partial]);
	json_number(j, "node_new", n[COUNT_node_new]);
	json_number(j, "any_partial", n[COUNT_any_partial]);
	json_number(j, "any_new", n[COUNT_any_new]);
	json_close(j, '}');
	json_number(j, "remote_frees_in", n[COUNT_remote_in]);
	json_number(j, "remote_frees_out", n[COUNT_remote_out]);
	json_number(j, "misplaced_slabs", n[COUNT_misplaced]);
	json_number(j, "released_bytes", n[COUNT_released]);
}

static void put_nodes(struct json *j, const struct reader_pool *pool, unsigned pools)
{
	json_open(j, "nodes", '[');
	for (unsigned i = 0; i < pools; i++) {
		if (pool[i].node < 0)
			continue;
		json_open(j, NULL, '{');
		json_int(j, "id", pool[i].node);
		put_counts(j, &pool[i].sum);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* Whether anything was ever counted in it. */
static bool is_touched(const struct reader_counts *c)
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		if (c->counter[i])
			return true;
	return false;
}

static void put_classes(struct json *j, const struct reader_snapshot *s)
{
	json_open(j, "classes", '[');
	for (unsigned cls = 0; cls < s->classes; cls++) {
		bool open = false;

		for (unsigned i = 0; i < s->pools; i++) {
			const struct reader_counts *c = &s->count[(size_t)i * s->classes + cls];

			if (s->pool[i].node < 0 || !is_touched(c))
				continue;
			if (!open) {
				json_open(j, NULL, '{');
				json_number(j, "size", s->class_size[cls]);
				json_open(j, "nodes", '[');
				open = true;
			}
			json_open(j, NULL, '{');
			json_int(j, "id", s->pool[i].node);
			put_counts(j, c);
			json_close(j, '}');
		}
		if (open) {
			json_close(j, ']');
			json_close(j, '}');
		}
	}
	json_close(j, ']');
}

static void put_large(struct json *j, const struct reader_pool *pool, unsigned pools)
{
	for (unsigned i = 0; i < pools; i++) {
		if (pool[i].node >= 0)
			continue;
		struct reader_large large = reader_large(&pool[i].sum);

		json_open(j, "large", '{');
		json_number(j, "count", large.count);
		json_number(j, "bytes", large.bytes);
		json_number(j, "kept_bytes", large.kept_bytes);
		json_number(j, "released_bytes", large.released_bytes);
		json_close(j, '}');
	}
}

static void put_history(struct json *j, const struct reader_history *h, uint64_t now_ms)
{
	json_open(j, "history", '[');
	for (size_t i = 0; i < h->count; i++) {
		const struct reader_point *p = &h->point[i];

		json_open(j, NULL, '{');
		json_number(j, "age_ms", now_ms > p->time_ms ? now_ms - p->time_ms : 0);
		put_nodes(j, p->pool, h->pools);
		put_large(j, p->pool, h->pools);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static bool has_pool(const struct reader_snapshot *s, int node)
{
	for (unsigned i = 0; i < s->pools; i++)
		if (s->pool[i].node == node)
			return true;
	return false;
}

size_t excluded_nodes(const struct reader_info *info, const struct reader_snapshot *s,
		      const struct machine *machine, struct excluded *out, size_t max)
{
	size_t n = 0;

	if (!machine || info->simulated)
		return 0;
	for (size_t i = 0; i < machine->count && n < max; i++) {
		if (has_pool(s, machine->nodes[i].id))
			continue;
		out[n].node = machine->nodes[i].id;
		if (node_is_empty(&machine->nodes[i]))
			node_reason(machine, i, out[n].reason, sizeof out[n].reason);
		else
			snprintf(out[n].reason, sizeof out[n].reason, "not allowed to the process");
		n++;
	}
	return n;
}

static void put_excluded(struct json *j, const struct reader_info *info,
			 const struct reader_snapshot *s, const struct machine *machine)
{
	struct excluded list[64];
	size_t n = excluded_nodes(info, s, machine, list, 64);

	json_open(j, "excluded_nodes", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(j, NULL, '{');
		json_int(j, "id", list[i].node);
		json_text(j, "reason", list[i].reason);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_process(struct json *j, const struct reader_info *info,
			const struct reader_snapshot *s, const struct machine *machine,
			bool classes)
{
	json_int(j, "pid", info->pid);
	json_text(j, "comm", info->comm);
	json_text(j, "state", s->live ? "live" : "exited");
	json_number(j, "age_ms", s->now_ms > s->last_ms ? s->now_ms - s->last_ms : 0);
	json_text(j, "placement", info->placement);
	put_nodes(j, s->pool, s->pools);
	if (classes)
		put_classes(j, s);
	put_large(j, s->pool, s->pools);
	put_excluded(j, info, s, machine);
}

void json_process(struct json *j, const struct reader_info *info, const struct reader_snapshot *s,
		  const struct machine *machine, const struct reader_map *map,
		  const struct reader_history *history)
{
	json_open(j, NULL, '{');
	put_process(j, info, s, machine, true);
	if (map)
		map_put_json(j, map, s->pool);
	if (history)
		put_history(j, history, s->now_ms);
	json_close(j, '}');
}

void json_process_open(struct json *j, const struct reader_info *info,
		       const struct reader_snapshot *s, const struct machine *machine)
{
	json_open(j, NULL, '{');
	put_process(j, info, s, machine, false);
}
