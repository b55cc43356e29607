# SPDX-License-Identifier: MIT
"""A row is one `numaslab compare`: all allocators in turn, in pairs with a control.  This runs it and
reads what it wrote (numaslab-compare(1), JSON)."""
import json
import os
import subprocess

from place import Failed

LIMIT = 300  # seconds that one run of a row may take


def sides(allocators):
    """(before, after, peers): glibc and numaslab where they are among them, else first and last."""
    names = {a.name: a for a in allocators}
    after = names.get("numaslab", allocators[-1])
    before = names.get("glibc", next(a for a in allocators if a is not after))
    return before, after, [a for a in allocators if a not in (before, after)]


def command(place, row, allocators, options, out):
    before, after, peers = sides(allocators)
    argv = [os.path.join(place.build, "numaslab"), "compare", f"--json={out}",
            "-r", str(options.rounds), "--timeout", str(LIMIT)]
    if options.base:
        argv += ["--base", options.base, "--fail-over", row.limits(options.limit)]
    else:
        argv += ["--max-pairs", str(options.rounds), "--fail-over", "none"]
    argv += ["--warmup", str(0 if options.quick else row.warmup)]
    argv += ["--pin", options.pin] if options.pin else []
    for a in [before] + peers:
        argv += ["--against", a.option()]
    argv += ["--with", after.option()]
    for expression in row.expressions:
        argv += ["--metric", expression]
    return argv + ["--"] + row.argv


def run(place, row, allocators, options):
    """The document.  A row that the base does not hold, or another misuse, is Failed."""
    out = os.path.join(place.directory, "compared.json")
    process = place.start(command(place, row, allocators, options, out),
                          stdout=subprocess.DEVNULL, stderr=None)
    try:
        status = process.wait()
    finally:
        place.stop(process)
    if status not in (0, 1, 6, 7):
        raise Failed(f"numaslab compare ended with status {status}")
    with open(out) as f:
        return json.load(f)


def problems(document):
    """What went wrong, in words, under any of the allocators."""
    found = [document["problem"]] + [p["problem"] for p in document["peers"]]
    return [p["what"] for p in found if p]


def samples(row, document):
    """{allocator: [{cpu, wall, rss}, ...]}, by pair; "control" is the second run of the first."""
    by_name = {"control": []}
    for peer in document["peers"]:
        by_name[peer["name"]] = peer["samples"]
    for s in document["samples"]:
        name = document[s["side"]]["name"] if s["side"] != "control" else "control"
        by_name.setdefault(name, []).append(s)
    return {name: [{key: s[metric] * factor for key, (metric, factor) in row["figures"].items()}
                   for s in sorted(rows, key=lambda s: s["pair"])]
            for name, rows in by_name.items()}


def metric(document, name, peer=None):
    """compare's own figures of numaslab against glibc or a peer; None: not measured."""
    of = next(p for p in document["peers"] if p["name"] == peer) if peer else document
    return next((m for m in of["metrics"] if m["name"] == name), None)
