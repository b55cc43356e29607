#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""numaslab stat --map: what it says of real processes, against the counters."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from tap import ok, plan  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
LIB = os.path.abspath(f"{BUILD}/libnumaslab.so")
TOOL = os.path.abspath(f"{BUILD}/numaslab")
ACTOR = os.path.abspath(f"{BUILD}/tests/telemetry/actor")
NODES = "0:1G@0;1:1G;4:1G"


class Actor:
    def __init__(self, directory, limit=None, **env):
        def limits():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        self.process = subprocess.Popen(
            [ACTOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=limits if limit else None,
            env=dict(os.environ, LD_PRELOAD=LIB, NUMASLAB_DIR=directory,
                     NUMASLAB_PUBLISH_AFTER_MS="0", **env))
        self.pid = int(self.process.stdout.readline())

    def tell(self, *lines):
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            self.process.stdout.readline()
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()


def stat(directory, *args):
    done = subprocess.run([TOOL, "stat", *args], env=dict(os.environ, NUMASLAB_DIR=directory),
                          text=True, capture_output=True, timeout=60)
    return done.stdout, done


def process(directory, *args):
    out, done = stat(directory, "--json", "--map", *args)
    return json.loads(out)["processes"][0] if out else None


def agrees(p):
    bad = []
    for counted, mapped in zip(p["nodes"], p["map"]["nodes"]):
        for key in ("id", "slabs", "active", "partial", "full", "empty", "objects", "slots",
                    "misplaced_slabs"):
            if counted[key] != mapped[key]:
                bad.append(f"node {counted['id']}: {key} {counted[key]}, on the map {mapped[key]}")
        if sum(mapped["slabs_by_fill"]) != mapped["slabs"] - mapped["empty"]:
            bad.append(f"node {counted['id']}: slabs by fill")
    return bad


def main():
    directory = tempfile.mkdtemp(prefix="numaslab-maptools-", dir="/dev/shm")
    try:
        a = Actor(directory, NUMASLAB_TOPOLOGY=NODES)
        a.tell("node 30000 100 0", "node 4000 3000 4", "node 30 30000 1", "holes 3",
               "alloc 4 700000")
        p = process(directory, str(a.pid))
        ok(p and not agrees(p), "the map is what the counters say, node by node",
           *(agrees(p) if p else ["nothing"]))
        ok([n["id"] for n in p["map"]["nodes"]] == [0, 1, 4] and
           all(n["slabs"] for n in p["map"]["nodes"]), "of the three nodes", p["map"])
        # One that was freed may be kept aside: it is on the map, and not counted as in use.
        ok(p["map"]["large"]["count"] - p["large"]["count"] in (0, 1) and
           p["map"]["large"]["count"] >= 4 and p["map"]["large"]["longest_bytes"] >= 700000 and
           p["map"]["lost_bytes"] == 0, "and the large blocks", p["map"]["large"], p["large"])
        text, _ = stat(directory, "--map", str(a.pid))
        rows = re.findall(r"^    ([apfeAPFE]+)$", text, re.M)
        shown = sum(map(len, rows))
        ok("each a slab" in text and shown == sum(n["slabs"] for n in p["nodes"]),
           "as text: a letter for each slab", shown, text)
        ok("slab map" not in stat(directory, str(a.pid))[0] and
           "map" not in json.loads(stat(directory, "--json", str(a.pid))[0])["processes"][0],
           "without --map there is none")
        a.tell("free")
        a.tell("tick")
        p = process(directory, str(a.pid))
        ok(not agrees(p), "after free, too", *agrees(p))
        ok(sum(n["given_back_bytes"] for n in p["map"]["nodes"]) > 0,
           "what was given back is told", p["map"])
        before = p["map"]
        a.kill()
        p = process(directory, "--dead", str(a.pid))
        ok(p and p["state"] == "exited" and p["map"] == before and not agrees(p),
           "of a process that was killed its last map is read", p and p["map"], before)
        b = Actor(directory, NUMASLAB_TOPOLOGY=NODES, limit=400 << 10)
        b.tell("alloc 1000 100")
        p = process(directory, str(b.pid))
        ok(p and p["map"] is None, "where a limit leaves no room for a map it is null", p)
        text, done = stat(directory, "--map", str(b.pid))
        ok("no slab map" in text and done.returncode == 0, "and said", text)
        b.kill()
        child = Actor(directory, NUMASLAB_TOPOLOGY=NODES)
        child.tell("alloc 20000 200", "tick")
        child.process.stdin.write("fork\n")
        child.process.stdin.flush()
        pid = int(child.process.stdout.readline())
        p, c = process(directory, str(child.pid)), process(directory, str(pid))
        ok(p and c and not agrees(p) and not agrees(c), "after fork, both have a map that is right",
           p and agrees(p), c and agrees(c))
        os.kill(pid, signal.SIGKILL)
        child.kill()
        ok(stat(directory, "--gc", "--map")[1].returncode == 2, "--gc stands alone")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    sys.exit(plan())


if __name__ == "__main__":
    main()
