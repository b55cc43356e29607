# SPDX-License-Identifier: MIT
"""The rows: which command each is, and which figures of it are told in nanoseconds, seconds and KiB.

A row runs in a folder that holds its input, with bin/ (the benchmark programs) and bench/ (this folder)
beside it, so that its command is the same in every build and checkout: a later run is judged against
an earlier one by it.
"""
import shutil

import inputs

PROGRAM = {"cpu": ("cpu", 1), "wall": ("time", 1), "rss": ("rss", 1 / 1024)}


class Skip(Exception):
    """The machine lacks the program."""


class Row:
    """`figures`: for cpu, wall and rss the metric of numaslab compare and what makes it s (of micro
    rows: ns) or KiB.  `expressions` are --metric's; the first is of what is judged."""

    def __init__(self, name, kind, argv, metric, figures, expressions=(), warmup=0, needs=(),
                 make=None, what=""):
        self.name, self.kind, self.argv, self.metric = name, kind, argv, metric
        self.figures, self.expressions, self.warmup = figures, expressions, warmup
        self.needs, self.make, self.what = needs, make, what

    def prepare(self, directory):
        for program in self.needs:
            if not shutil.which(program):
                raise Skip(f"{program} is not installed")
        if self.make:
            self.make(directory)

    def limits(self, percent):
        return f"{self.figures[self.metric][0]}={percent}%,{self.figures['rss'][0]}={percent}%"


def said(order, rss):
    """Figures and expressions of a command that says cpu=, wall= and rss= itself, the first one first."""
    figures = {key: (f"metric{i or ''}", 1) for i, key in zip(("", 2), order)}
    expressions = [f"{key}=([0-9.]+)" for key in order]
    if rss:
        expressions.append("rss=([0-9.]+)")
    figures["rss"] = ("metric3", 1) if rss else ("rss", 1 / 1024)
    return {"figures": figures, "expressions": expressions, "metric": order[0]}


def micro(name, threads, what, quick):
    argv = ["bin/micro", "-r", "3", *(["-s", "0.25"] if quick else []), name]
    order = ["cpu", "wall"] if threads == "one" else ["wall", "cpu"]
    return Row(name, "micro", argv, what=what, **said(order, False))


def program(name, argv, make=None):
    needs = [argv[2] if argv[0] == "env" else argv[0]]
    return Row(name, "real", argv, "cpu", PROGRAM, warmup=1, needs=needs, make=make)


def server(name, needs):
    """Under its load, which has an allocator of its own (serve.py)."""
    return Row(name, "real", ["sh", "bench/serve", name], needs=needs, **said(["cpu", "wall"], True))


def starts():
    """A static program starts `true` so often; sh in front, because compare refuses static ones."""
    argv = ["sh", "-c", "exec bin/measure -n 300 -- true"]
    return Row("start-up", "start", argv, **said(["wall", "cpu"], True))


PROGRAMS = [
    server("redis", ["redis-server", "redis-benchmark"]),
    server("memcached", ["memcached"]),
    program("sqlite3", ["sqlite3", "-batch", ":memory:", ".read script.sql"], inputs.sql_script),
    program("gcc", ["gcc", "-O2", "-w", "-c", "-o", "source.o", "source.c"], inputs.c_source),
    program("g++", ["g++", "-std=c++17", "-w", "-c", "-o", "source.o", "source.cc"],
            inputs.cxx_source),
    program("python3", ["/usr/bin/python3", "-I", "script.py"], inputs.python_script),
    program("python3-malloc", ["env", "PYTHONMALLOC=malloc", "/usr/bin/python3", "script.py"],
            inputs.python_script),
    program("lua", ["lua5.4", "script.lua"], inputs.lua_script),
    program("ghostscript", ["gs", "-q", "-dBATCH", "-dNOPAUSE", "-dSAFER", "-sDEVICE=png16m",
                            "-dTextAlphaBits=4", "-dGraphicsAlphaBits=4", "-r120",
                            "-sOutputFile=page%d.png", "pages.ps"], inputs.postscript),
    program("java", ["java", "-Xmx256m", "-XX:+UseSerialGC", "Work.java"], inputs.java_source),
    starts(),
]
