# SPDX-License-Identifier: MIT
"""What the suites of numaslab compare share: TAP, the command, synthetic experiments."""
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
import traceback

BUILD = os.environ.get("BUILD", "build")
NUMASLAB = os.path.join(os.path.abspath(BUILD), "numaslab")
LOAD = os.path.join(os.path.abspath(BUILD), "tests/compare/load")
TESTS = []


class Skip(Exception):
    pass


def test(function):
    TESTS.append(function)
    return function


def main():
    failed = 0
    for number, function in enumerate(TESTS, 1):
        name = function.__name__
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} - {name}")
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)
    print(f"1..{len(TESTS)}")
    sys.exit(failed > 0)


def compare(*arguments, env=None, timeout=300, **more):
    """Runs numaslab compare; returns the finished process, output as text."""
    return subprocess.run([NUMASLAB, "compare", *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="surrogateescape",
                          timeout=timeout, env={**os.environ, **(env or {})}, **more)


def status(process, expected):
    assert process.returncode == expected, \
        f"exit status {process.returncode}, not {expected}\n{process.stdout}\n{process.stderr}"


@functools.lru_cache(maxsize=None)
def peer():
    for name in ("jemalloc", "mimalloc", "tcmalloc"):
        if compare("--with", name, "-r", 1, "--warmup", 0, "--fail-over", "none", "-q", "--",
                   "true").returncode == 0:
            return name
    raise Skip("no peer allocator is installed (libjemalloc2)")


def measured(*arguments, expect=None):
    done = compare("--with", peer(), "--json", *arguments)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    if expect is not None:
        status(done, expect)
    return document


@functools.lru_cache(maxsize=None)
def library():
    return measured("-r", 1, "--warmup", 0, "--fail-over", "none", "--", "true")["after"]["library"]


def side(document, name, key):
    return [s[key] for s in document["samples"] if s["side"] == name]


def failing(script, *arguments):
    done = compare("--with", peer(), "-r", 2, *arguments, "--", "sh", "-c", script)
    status(done, 7)
    assert done.stdout.startswith("ERROR: "), done.stdout
    return done.stdout


def experiment(before, after, control, metric="time", **more):
    """A document as --json writes it, with only what a reader needs."""
    samples = []
    for side, values in (("before", before), ("after", after), ("control", control)):
        for pair, value in enumerate(values):
            row = value if isinstance(value, dict) else {"rss": 1e6, metric: value}
            samples.append({"pair": pair, "side": side, "order": 3 * pair, "status": 0, **row})
    return {"schema": 1, "command": ["true"], "machine": {"cpu": "x", "kernel": "y"},
            "before": {"name": "glibc"}, "after": {"name": "numaslab"}, "samples": samples, **more}


def replay(document, *arguments, raw=False):
    """Judges a synthetic experiment; returns (exit status, the document that came out)."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(document, file)
        file.flush()
        done = compare("--replay", file.name, *([] if raw else ["--json"]), *arguments)
    if raw:
        return done.returncode, done.stdout
    assert done.returncode in (0, 1, 6, 7), done.stderr
    return done.returncode, json.loads(done.stdout)


def metric(document, name="time"):
    return next(m for m in document["metrics"] if m["name"] == name)


def noisy(rng, n, centre, spread):
    return [centre * (1 + rng.gauss(0, spread)) for _ in range(n)]


def three(seed, n, before, after, control, spread, drift=0.0):
    """Paired samples in whole nanoseconds, as compare measures; `drift` is common to the runs of a pair, as a machine that warms up makes."""
    rng = random.Random(seed)
    shared = [1 + drift * rng.gauss(0, 1) for _ in range(n)]
    return [[round(s * v, 9) for s, v in zip(shared, noisy(rng, n, centre, spread))]
            for centre in (before, after, control)]
