# numaslab stat, and the reader of telemetry files, a library of its own (liburcu: headers only)
READER_SRC := tools/reader.c tools/reader_data.c tools/reader_slabs.c tools/reader_find.c tools/reader_set.c \
	tools/reader_json.c tools/reader_text.c tools/map_picture.c tools/map_text.c
TOOLS_SRC  += tools/cmd_stat.c $(READER_SRC)
