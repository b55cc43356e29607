#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hint faults on the screen of numaslab top, looked at in tmux: the column, the view, why there is nothing."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from test_hints import BALANCING, LIB, NOBODY, SWEEP, TOOL, Balancing, Sweeper, programs, run  # noqa: E402
import test_hints as hints  # noqa: E402

ok, skip = hints.ok, hints.skip
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
    sweeper.end()


def others(directory):
    sweeper = Sweeper(NUMASLAB_DIR=directory, NUMASLAB_PLACEMENT="home")
    s = Screen(directory, "--tier tracepoint")
    s.shows(cell(sweeper.pid, "masked"), "placement home: masked")
    s.keys("i")
    s.shows("masked by policy", "and why, and how to see")
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
        if run("--tier", "tracepoint", "-d", "0.1").returncode == 77:
            skip("tiers", "raw tracepoints are refused here")
        else:
            with Balancing():
                live(directory, before)
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
    print(f"1..{hints.count}")
    return hints.failed != 0


if __name__ == "__main__":
    sys.exit(main())
