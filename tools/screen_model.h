/* SPDX-License-Identifier: MIT */
/*
 * What the screen draws: made by a collector thread, handed over by RCU (liburcu), never changed
 * afterwards.  The screen reads it between model_lock() and model_unlock() and never waits for the
 * collector; old models are freed after a grace period.
 */
#ifndef NUMASLAB_SCREEN_MODEL_H
#define NUMASLAB_SCREEN_MODEL_H

#include "tools/cmd_top.h"
#include "tools/reader_set.h"
#include "tools/screen_feed.h"

#define SPARK_POINTS 240
#define MODEL_NOTES  6

struct spark {
	uint64_t id; /* whose; 0: nobody's */
	size_t count;
	uint64_t span_ms; /* from the first point to the last */
	uint64_t used[SPARK_POINTS], held[SPARK_POINTS], made[SPARK_POINTS]; /* made: new slabs */
};

struct model {
	uint64_t serial;	/* of the look, from 1 */
	struct process_set set; /* copies: no reader, no path */
	struct spark spark;
	size_t note_count; /* why something is not shown */
	char note[MODEL_NOTES][READER_WHY_SIZE + 512];
	uint64_t map_id; /* whose .map is; 0: nobody's */
	struct reader_map map;
	struct feed *feed; /* hint faults; NULL: none yet, or not wanted */
};

/* Starts the collector; false: no thread, no memory. */
bool model_start(const struct top_options *o);
void model_stop(void);

/* Until there is a first model, or so many seconds have passed. */
void model_wait(double seconds);

/* The newest model, NULL before the first; between lock and unlock only. */
const struct model *model_lock(void);
void model_unlock(void);

/* What the collector shall do from its next look on. */
void model_set_dead(bool dead);	   /* show those that ended, too */
void model_set_spark(uint64_t id); /* of the process whose history to read */
void model_set_map(uint64_t id);   /* whose slab map; 0: nobody's */
void model_set_delay(double seconds);

#endif
