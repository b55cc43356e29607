#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hint faults in numaslab top, on its screen as tmux has it and in its lines: how many, whose, why none."""
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = HERE, os.path.dirname(HERE)
from tap import ok, plan, skip  # noqa: E402
from test_hints import BALANCING, LIB, NOBODY, SWEEP, TOOL, Balancing, Sweeper, programs, run  # noqa: E402
import test_hints as hints  # noqa: E402

server = 0


def tmux(*args):
    return subprocess.run(["tmux", "-L", f"numaslab-hints-{os.getpid()}-{server}", *args], text=True,
                          capture_output=True).stdout


class Screen:
    def __init__(self, directory, args="", prefix="", tool=TOOL):
        global server
        tmux("kill-server")
        server += 1
        tmux("-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50",
             f"exec 3>&1; {prefix} env NUMASLAB_DIR={directory} LC_ALL=C.UTF-8 {tool} top -d 0.3 {args}; "
             "echo ended $?; exec cat")

    def keys(self, *names):
        tmux("send-keys", *names)

    def shows(self, pattern, name, seconds=30):
        end = time.monotonic() + seconds
        while True:
            text = tmux("capture-pane", "-p")
            if re.search(pattern, text, re.M) or time.monotonic() > end:
                break
            time.sleep(0.05)
        ok(re.search(pattern, text, re.M), name, f"wanted: {pattern}", text)
        return text


def batch(directory, *args, form="--json"):
    """What it printed: objects, rows of CSV, lines."""
    r = subprocess.run([TOOL, "top", "-b", "-d", "0.3", *args, *([form] if form else [])], text=True,
                       capture_output=True, timeout=hints.LIMIT, env=dict(os.environ, NUMASLAB_DIR=directory))
    lines = r.stdout.splitlines()
    ok(r.returncode == 0 and not r.stderr and lines, f"top {' '.join([*args, form])}: ends well", r)
    return [json.loads(x) for x in lines] if form == "--json" else list(csv.DictReader(lines)) if form else lines


def cell(pid, word):
    """The two columns of a process, at their places: two words and the number of large blocks before the name."""
    return rf"^ +{pid} .* {word} +[-\d.]+k? sweeper$"


def off(directory):
    sweeper = Sweeper(NUMASLAB_DIR=directory)
    s = Screen(directory)
    s.shows(cell(sweeper.pid, "off"), "balancing is off: so says the column")
    s.shows("NUMA balancing is off .*sysctl kernel.numa_balancing=1", "and the line above, what to do")
    s.keys("i")
    s.shows(r"^hint faults are not seen: NUMA balancing is off", "and the view of its own")
    s.keys("Escape")
    s.shows("COMMAND", "Escape is back")
    with Balancing():
        s.shows("hint faults by tier|hint faults are not seen: (?!NUMA)", "it begins when balancing comes on", 60)
    s = Screen(directory, "--tier none")
    text = s.shows(f"{sweeper.pid} ", "--tier none: it runs")
    ok("HINTS" not in text and "hint faults" not in text, "--tier none: no column", text)
    sweeper.end()


def live(directory, before):
    sweeper = Sweeper(NUMASLAB_DIR=directory)
    s = Screen(directory, "--tier tracepoint")
    s.shows("hint faults by tier tracepoint, an estimate; i shows them", "the line says by which tier")
    s.shows(cell(sweeper.pid, r"[\d.]+k?"), "the column has a number")
    s.keys("t")
    faults = int(sweeper.tell(f"sweep 6000 {SWEEP}"))
    if faults < 6000:
        skip("a count that grows", "the kernel's scan did not come by")
    else:
        s.shows(cell(sweeper.pid, r"([1-9]\d{3}|[\d.]+k)"), "thousands of faults, when there were thousands")
    s.keys("i")
    text = s.shows(r"^tier tracepoint, an estimate", "i: the view of its own")
    ok("not known: an estimate: page faults on live slabs" in text, "what the tier cannot know stands there", text)
    ok(re.search(rf"^{sweeper.pid} sweeper: placement kernel", text, re.M), "the process", text)
    ok("not fentry" not in text and "nothing was dropped" in text, "drops", text)
    if faults >= 6000:
        ok(re.search(r"home\\node +0", text) and re.search(r"^ +256 +([1-9]\d{3}|[\d.]+k) ", text, re.M), "matrix and classes", text)
        sweeper.send(f"sweep 6000 {SWEEP}")
        s.shows(r"^now ([1-9][\d.]*k?) hint faults on the heap per second", "live: faults of now", SWEEP)
        sweeper.process.stdout.readline()
    s.keys("q")
    s.shows("ended 0", "q ends it")
    if before is not None:
        hints.gone(before, "nothing stays loaded")
    ended = subprocess.Popen(["true"])
    ended.wait()
    r = subprocess.run([TOOL, "top", "-b", "--json", "--tier", "tracepoint", "-n", "1", "-p", f"{ended.pid},{sweeper.pid}"],
                       text=True, capture_output=True, timeout=hints.LIMIT, env=dict(os.environ, NUMASLAB_DIR=directory))
    document = json.loads(r.stdout)
    ok(r.returncode == 3 and str(ended.pid) in r.stderr, "-p: one has ended, it says", r)
    ok(document["hints"]["tier"] == "tracepoint", "which does not hide the other's faults", document["hints"])
    sweeper.end()


def off_lines(directory):
    sweeper = Sweeper(NUMASLAB_DIR=directory)
    for args, why in ([], "NUMA balancing is off ('sysctl"), (["--tier", "none"], "--tier none"):
        doc = batch(directory, "-n", "1", *args)[0]
        ok(doc["hints"]["tier"] is None and why in doc["hints"]["why"] and doc["processes"][0]["hints"] is None,
           "JSON has null, and why", doc["hints"])
    rows = batch(directory, "-n", "1", form="--csv")
    ok(all(r["hint_faults"] == r["hint_faults_remote"] == "" for r in rows), "CSV has nothing there", rows)
    said = [x for x in batch(directory, "-n", "2", form="") if "hint faults" in x]
    ok(len(said) == 1 and "NUMA balancing is off" in said[0], "lines say it once", said)
    sweeper.end()


def adds_up(p):
    h = p["hints"]
    return (h["faults"] == h["local"] + h["remote"] + h["unjoined"] == sum(c["faults"] for c in h["matrix"]) and
            not h["masked"])


class Ticks:
    """The objects of a top that runs."""

    def __init__(self, directory):
        self.process = subprocess.Popen([TOOL, "top", "--json", "-d", "0.2", "--tier", "tracepoint"], text=True,
                                        stdout=subprocess.PIPE, preexec_fn=hints.die_with_parent,
                                        env=dict(os.environ, NUMASLAB_DIR=directory))

    def next(self):
        return json.loads(self.process.stdout.readline())

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def live_lines(directory, before):
    sweeper = Sweeper(NUMASLAB_DIR=directory)
    top = Ticks(directory)
    tick = top.next()
    ok(tick["hints"]["tier"] == "tracepoint" and tick["hints"]["why"] is None and not tick["hints"]["exact"] and
       "an estimate" in tick["hints"]["unknown"] and not any(tick["hints"]["drops"].values()),
       "JSON: the tier, and what it cannot know", tick["hints"])
    sweeper.send(f"sweep 6000 {SWEEP}")
    seen, end = [tick["processes"][0]], time.monotonic() + SWEEP
    while seen[-1]["hints"]["faults"] < 2000 and time.monotonic() < end:
        seen.append(top.next()["processes"][0])
    if seen[-1]["hints"]["faults"] < 2000 and int(sweeper.process.stdout.readline()) < 6000:
        skip("JSON: counts that grow", "the kernel's scan did not come by")
    else:
        ok(seen[-1]["hints"]["faults"] >= 2000, "JSON: thousands of faults, when there were thousands", seen[-1])
        faults = [p["hints"]["faults"] for p in seen]
        ok(all(adds_up(p) for p in seen) and faults == sorted(faults), "they add up, and never fall", seen)
    ok(before is None or programs() > before, "something is loaded, so this tells")
    top.kill()
    if before is not None:
        hints.gone(before, "SIGKILL: nothing stays loaded")
    rows = batch(directory, "-n", "2", "--tier", "tracepoint", form="--csv")
    ok(all(int(r["hint_faults"]) >= int(r["hint_faults_remote"]) >= 0 for r in rows), "CSV has numbers", rows)
    lines = batch(directory, "-n", "2", "--tier", "tracepoint", form="")
    ok(sum(x == "hint faults by tier tracepoint, an estimate" for x in lines) == 1, "lines have the tier", lines)
    ok(sum(bool(re.match(rf" *{sweeper.pid}    - +\S+ hint faults so far, \S+ remote, of sweeper$", x))
           for x in lines) == 2, "and the sums, at each tick", lines)
    doc = batch(directory, "-n", "1", "--tier", "proc")[0]
    ok(doc["hints"]["tier"] == "proc" and "not which process" in doc["hints"]["unknown"] and
       doc["processes"][0]["hints"] is None, "by proc: null, and what is not known", doc["hints"])
    sweeper.end()


def others(directory):
    sweeper = Sweeper(NUMASLAB_DIR=directory, NUMASLAB_PLACEMENT="home")
    s = Screen(directory, "--tier tracepoint")
    s.shows(cell(sweeper.pid, "masked"), "placement home: masked")
    s.keys("i")
    s.shows("masked by policy", "and why, and how to see")
    rows = batch(directory, "-n", "1", "--tier", "tracepoint", form="--csv")
    ok(all(r["hint_faults"] == "" for r in rows), "CSV: nothing, not 0", rows)
    s = Screen(directory, "--tier perf")
    s.shows("hint faults by tier perf, an estimate", "by perf")
    s.keys("q")
    s.shows("ended 0", "which ends, too")
    sweeper.end()
    sweeper = Sweeper(NUMASLAB_DIR=directory)
    s = Screen(directory, "--tier proc")
    s.shows(cell(sweeper.pid, r"\?"), "by proc: whose faults is not known, it says")
    s.keys("i")
    s.shows("not known: the machine's counters", "and what else")
    if run("--tier", "kprobe", "-d", "0.1").returncode == 77:
        s = Screen(directory, "--tier kprobe")
        s.shows(cell(sweeper.pid, "unable"), "a tier that is not to be had: said in the column")
        s.shows("hint faults are not seen: ", "and above it why")
    sweeper.end()


def same_number(directory):
    """Two processes that are each number 1 of a namespace of their own, one of them masked."""
    inside = ["unshare", "--pid", "--fork", "--kill-child", "env", f"LD_PRELOAD={LIB}"]
    both = [Sweeper(prefix=inside, LD_PRELOAD="", NUMASLAB_DIR=directory, NUMASLAB_PLACEMENT=p)
            for p in ("home", "kernel")]
    ok([b.pid for b in both] == [1, 1], "two processes of one number", [b.pid for b in both])
    s = Screen(directory, "--tier tracepoint")
    s.shows(cell(1, r"[\d.]+k?"), "one has a number")
    s.shows(cell(1, "masked"), "the other is masked")
    told = []
    for key in "Home", "End":
        s.keys(key)
        s.keys("i")
        text = s.shows(r"^\d+ sweeper: .*placement (home|kernel)", f"{key}: its text")
        told += re.findall(r"placement (home|kernel)", text)
        s.keys("Escape")
        s.shows("COMMAND", "back")
    ok(sorted(told) == ["home", "kernel"], "each has its own text, and that alone", told)
    masked = {p["placement"]: p["hints"]["masked"]
              for p in batch(directory, "-n", "1", "--tier", "tracepoint")[0]["processes"]}
    ok(masked == {"home": True, "kernel": False}, "and its own in JSON", masked)
    for b in both:
        b.end()


def killed(directory, before):
    tmux("kill-server")
    hints.gone(before, "those of before are gone")
    sweeper = Sweeper(NUMASLAB_DIR=directory)
    s = Screen(directory, "--tier tracepoint")
    s.shows("hint faults by tier tracepoint", "one that is live")
    ok(programs() > before, "something is loaded, so this tells")
    pid = int(tmux("list-panes", "-F", "#{pane_pid}").strip())
    top = int(subprocess.run(["pgrep", "-P", str(pid), "-x", "numaslab"], text=True, capture_output=True).stdout)
    os.kill(top, signal.SIGKILL)
    s.shows("ended 137", "SIGKILL ends it")
    hints.gone(before, "nothing stays loaded")
    sweeper.end()


def denied():
    if not shutil.which("setpriv"):
        return skip("without privileges", "setpriv is not installed")
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        shutil.copy(TOOL, tmp)
        shutil.copy(LIB, tmp)
        shutil.copy(hints.SWEEPER, tmp)
        os.mkdir(f"{tmp}/shm", 0o700)
        os.chown(f"{tmp}/shm", NOBODY, NOBODY)
        nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
        kept, hints.SWEEPER, lib, hints.LIB = hints.SWEEPER, f"{tmp}/sweeper", hints.LIB, f"{tmp}/libnumaslab.so"
        sweeper = Sweeper(prefix=nobody, NUMASLAB_DIR=f"{tmp}/shm")
        hints.SWEEPER, hints.LIB = kept, lib
        s = Screen(f"{tmp}/shm", prefix=" ".join(nobody), tool=f"{tmp}/numaslab")
        s.shows(cell(sweeper.pid, "denied"), "without privileges: said in the column")
        s.keys("i")
        text = s.shows("CAP_BPF and CAP_PERFMON", "and in the view, what would do")
        ok("sudo" in text, "with the command", text)
        r = subprocess.run([*nobody, f"{tmp}/numaslab", "top", "--json", "-n", "1"], text=True, capture_output=True,
                           timeout=hints.LIMIT, env=dict(os.environ, NUMASLAB_DIR=f"{tmp}/shm"))
        doc = json.loads(r.stdout) if r.returncode == 0 else {}
        ok(doc and "CAP_BPF and CAP_PERFMON" in doc["hints"]["why"] and doc["processes"][0]["hints"] is None,
           "JSON: null and why, all else goes on", r)
        sweeper.end()


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, hints.on_signal)
    if not shutil.which("tmux") or os.geteuid() != 0 or not os.path.exists(BALANCING):
        print("1..0 # SKIP wants tmux, root, and a kernel with NUMA balancing")
        return False
    directory = tempfile.mkdtemp(prefix="numaslab-hints-", dir="/dev/shm")
    before = programs() if shutil.which("bpftool") else None
    with open(BALANCING) as f:
        balancing = f.read()
    try:
        with open(BALANCING, "w") as f:
            f.write("0")
        off(directory)
        off_lines(directory)
        if run("--tier", "tracepoint", "-d", "0.1").returncode == 77:
            skip("tiers", "raw tracepoints are refused here")
        else:
            with Balancing():
                live(directory, before)
                live_lines(directory, before)
                others(directory)
                same_number(directory)
                if before is not None:
                    killed(directory, before)
                else:
                    skip("top is killed", "bpftool is not installed")
                denied()
    finally:
        tmux("kill-server")
        with open(BALANCING, "w") as f:
            f.write(balancing)
        shutil.rmtree(directory, ignore_errors=True)
    return plan()


if __name__ == "__main__":
    sys.exit(main())
