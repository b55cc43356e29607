#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares this tree with the recorded figures of the last release, by numaslab compare itself and
without a clock: more than 2 % worse fails.  `test_release.py --record` records a release."""
import functools
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
LIMITS = ["2%", "2%", "1M"]  # a percentage of next to nothing means nothing
NAMES = ["metric", "metric2", "metric3"]


def measure(*more):
    figures = [word for expression in FIGURES.values() for word in ("--metric", expression)]
    limits = ",".join(f"{name}={limit}" for name, limit in zip(NAMES, LIMITS))
    return compare("-q", "-r", 8, "--warmup", 0, *figures, "--fail-over", limits, "--json", *more, "--",
                   *COMMAND, cwd=os.path.join(HERE, "../.."))


def record():
    document = json.loads(measure("--max-pairs", 8).stdout)
    assert not document["problem"], document["problem"]
    # What --base reads, and nothing of the machine on which it was recorded.
    kept = {key: document[key] for key in ("schema", "tool", "started", "command")}
    kept.update({name + end: document[name + end] for name in NAMES for end in ("", "_better")})
    kept.update(before={"name": "glibc"}, after={"name": "numaslab"})
    kept["samples"] = [{key: sample[key] for key in ("pair", "side", "order", "status", *NAMES)}
                       for sample in document["samples"] if sample["side"] != "control"]
    with open(RECORD, "w") as file:
        rows = ",\n".join(json.dumps(sample) for sample in kept.pop("samples"))
        file.write(json.dumps(kept)[:-1] + ',\n"samples": [\n' + rows + "\n]}\n")


@functools.lru_cache(maxsize=None)
def judged():
    counted = subprocess.run([os.path.join(BUILD, "tests/bench/count"), "--only", "malloc"],
                             capture_output=True, text=True)
    if counted.returncode == 77:
        raise Skip("no single-stepping here: " + counted.stderr.strip())
    with open(RECORD) as file:
        document = json.load(file)
    document["command"] = COMMAND
    with tempfile.NamedTemporaryFile("w", suffix=".json") as base:
        json.dump(document, base)
        base.flush()
        done = measure("--base", base.name)
    assert done.returncode in (0, 1, 6), (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def against(which):
    name = list(FIGURES)[which]
    row = metric(judged(), NAMES[which])
    print(f"# {name}: {row['before']['median']:.0f} -> {row['after']['median']:.0f}")
    if not row["control"]["passed"]:
        raise Skip("glibc's own figure is another one here than where the release was recorded")
    assert row["verdict"] == "PASS", row


@test
def instructions_inside_the_library():
    against(0)


@test
def bytes_held_by_t3():
    against(1)


@test
def bytes_kept_after_free_all():
    against(2)


if sys.argv[1:] == ["--record"]:
    record()
else:
    main()
