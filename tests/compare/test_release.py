#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares this tree with the recorded figures of the last release, by numaslab compare itself and
without a clock: more than 2 % worse fails.  `test_release.py --record` records a release."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from common import BUILD, Skip, compare, main, metric, test  # noqa: E402

RECORD = os.path.join(HERE, "release.json")
COMMAND = ["sh", "tests/compare/figures.sh", BUILD]
FIGURES = {"instructions": "^instructions ([0-9]+)",
           "bytes held": "^again live=[0-9]+ held=([0-9]+)",
           "bytes kept after free-all": "^trim live=0 held=([0-9]+)"}
LIMIT = {"bytes kept after free-all": "1M"}  # a percentage of next to nothing means nothing


def measure(name, *more):
    return compare("-q", "-r", 8, "--warmup", 0, "--metric", FIGURES[name],
                   "--fail-over", "metric=" + LIMIT.get(name, "2%"), "--json", *more, "--", *COMMAND,
                   cwd=os.path.join(HERE, "../.."))


def record():
    documents = {}
    for name in FIGURES:
        done = measure(name, "--max-pairs", 8)
        document = json.loads(done.stdout)
        assert not document["problem"], document["problem"]
        # What --base reads, and nothing of the machine on which it was recorded.
        documents[name] = {key: document[key] for key in
                           ("schema", "tool", "started", "command", "metric", "metric_better")}
        documents[name]["before"] = {"name": "glibc"}
        documents[name]["after"] = {"name": "numaslab"}
        documents[name]["samples"] = [
            {key: sample[key] for key in ("pair", "side", "order", "status", "metric")}
            for sample in document["samples"] if sample["side"] != "control"]
    with open(RECORD, "w") as file:
        lines = [f'{json.dumps(name)}: {json.dumps(documents[name])}' for name in documents]
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


def against(name):
    counted = subprocess.run([os.path.join(BUILD, "tests/bench/count"), "--only", "malloc"],
                             capture_output=True, text=True)
    if counted.returncode == 77:
        raise Skip("no single-stepping here: " + counted.stderr.strip())
    with open(RECORD) as file:
        document = json.load(file)[name]
    document["command"] = COMMAND
    with tempfile.NamedTemporaryFile("w", suffix=".json") as base:
        json.dump(document, base)
        base.flush()
        done = measure(name, "--base", base.name)
    out = json.loads(done.stdout)
    row = metric(out, "metric") if out["metrics"] else None
    print(f"# {name}: {row and row['before']['median']:.0f} -> {row and row['after']['median']:.0f}")
    if done.returncode == 6 and not row["control"]["passed"]:
        raise Skip("glibc's own figure is another one here than where the release was recorded")
    assert done.returncode == 0, (done.returncode, out["problem"], row, done.stderr)


@test
def instructions_inside_the_library():
    against("instructions")


@test
def bytes_held_by_t3():
    against("bytes held")


@test
def bytes_kept_after_free_all():
    against("bytes kept after free-all")


if sys.argv[1:] == ["--record"]:
    record()
else:
    main()
