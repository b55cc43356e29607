#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The screen of numaslab top, looked at in tmux: 80x24 and 200x60, keys, colours, endings."""
import difflib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from tap import ok, plan  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
LIB = os.path.abspath(f"{BUILD}/libnumaslab.so")
TOOL = os.path.abspath(f"{BUILD}/numaslab")
ACTOR = os.path.abspath(f"{BUILD}/tests/telemetry/actor")
server = 0


def tmux(*args):
    return subprocess.run(["tmux", "-L", f"numaslab-test-{os.getpid()}-{server}", *args], text=True, capture_output=True).stdout


class Screen:
    def __init__(self, directory, width=80, height=24, args="", env=""):
        self.command = f"env NUMASLAB_DIR={directory} {env} {TOOL} top -d 0.3 {args}"
        global server
        tmux("kill-server")
        server += 1  # the old one may still be at its end
        tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height),
             f"{self.command}; echo ended $?; stty -a; exec cat")

    def keys(self, *names):
        tmux("send-keys", *names)

    def text(self, *args):
        return tmux("capture-pane", "-p", *args)

    def wait(self, pattern, seconds=10):
        """The capture in which the pattern shows; the last one if it does not."""
        end = time.monotonic() + seconds
        while True:
            text = self.text()
            if re.search(pattern, text, re.M) or time.monotonic() > end:
                return text
            time.sleep(0.05)

    def shows(self, pattern, name):
        text = self.wait(pattern)
        return ok(re.search(pattern, text, re.M), name, f"wanted: {pattern}", text)

    def pid(self):
        pids = subprocess.run(["pgrep", "-f", f"^{TOOL} top -d 0.3"], text=True,
                              capture_output=True).stdout.split()
        tty = tmux("display-message", "-p", "#{pane_tty}").strip()
        for pid in pids:
            try:
                if os.readlink(f"/proc/{pid}/fd/0") == tty:
                    return int(pid)
            except OSError:
                pass
        return None


class Terminal:
    """A terminal that nobody draws: what is written to it, byte by byte."""

    def __init__(self, directory, *args, **env):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [TOOL, "top", *args], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env=dict(os.environ, NUMASLAB_DIR=directory, TERM="xterm", **env))
        os.close(slave)
        self.seen = b""

    def read(self, *patterns, seconds=20):
        """Until one of the patterns was written."""
        end = time.monotonic() + seconds
        while not any(re.search(p, self.seen) for p in patterns) and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        return self.seen

    def close(self):
        os.close(self.master)
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait() and None


class Actor:
    def __init__(self, directory, **env):
        self.process = subprocess.Popen(
            [ACTOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, LD_PRELOAD=LIB, NUMASLAB_DIR=directory, **env))
        self.pid = int(self.process.stdout.readline())

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def load(self):
        self.process.stdin.write("tick\n" * 200)
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()


def small(directory):
    s = Screen(directory)
    s.shows("No process publishes yet", "without a process it waits, and says for what")
    s.shows(f"looked in {directory} alone: NUMASLAB_DIR", "and where")
    a = Actor(directory)
    a.tell("alloc 20000 100")
    a.load()
    s.shows(rf"^ +{a.pid} .*actor$", "a process that comes is shown")
    text = s.text()
    lines = text.splitlines()
    ok(lines[0].startswith("numaslab top") and "per second" in lines[0] and
       lines[2].startswith("     PID") and lines[23].startswith("F1 Help") and
       all(len(line) <= 80 for line in lines), "80x24: title, heads, keys at the bottom", text)
    s.shows(rf"^ +{a.pid} +[\d.]+M +[\d.]+M ", "what it holds")
    s.keys("h")
    s.shows("numaslab top: keys", "h is help")
    ok(all(len(line) < 80 for line in s.text().splitlines()), "which fits 80 columns")
    s.keys("h")
    s.wait("PID")
    s.keys("Enter")
    s.shows(rf"^{a.pid} actor +live +placement home", "Enter goes to its nodes")
    s.shows(r"^ +held max [\d.]+M", "with the history of the time before, too")
    s.shows(r"Slabs by state", "and a map of its slabs")
    s.keys("Enter")
    s.shows(r"size classes of node 0", "Enter again: its size classes")
    s.shows(r"^ +112 ", "among them the one of 100 bytes")
    s.keys("Escape")
    s.wait("NODE")
    s.keys("Escape")
    s.shows(r"^ +PID", "Escape twice is back")
    s.keys("t")
    s.shows("totals", "t shows totals")
    s.keys("t")
    s.keys("F4")
    s.wait("Filter:")
    s.keys("zzz")
    text = s.wait("Filter: zzz")
    ok("Filter: zzz" in text and str(a.pid) not in text, "a filter hides what it does not match",
       text)
    s.keys("Escape")
    s.shows(rf"{a.pid}", "Escape clears it")
    s.keys("F6")
    s.shows(r"\*FRAG%", "F6 sorts by the next column")
    s.keys("Z")
    first = s.wait("PAUSED")
    time.sleep(1)
    ok("PAUSED" in first and s.text().splitlines()[1:] == first.splitlines()[1:],
       "Z pauses: nothing moves", first, s.text())
    s.keys("Z")
    a.kill()
    s.shows("No process publishes yet", "a process that is killed goes")
    s.keys("x")
    s.shows(rf"{a.pid} .*\(exited\)", "x shows it as exited")
    s.keys("q")
    s.shows("ended 0", "q ends with 0")
    ok(re.search(r"(?<!-)\becho\b", s.wait("echo")) and not re.search("-icanon", s.text()),
       "and the terminal is as before", s.text())


def wide(directory):
    actors = [Actor(directory) for _ in range(3)]
    actors.append(Actor(directory, NUMASLAB_TOPOLOGY="0:1G@0;1:1G@1;5:1G"))
    for a in actors:
        a.tell("alloc 5000 200")
        a.load()
    s = Screen(directory, 200, 60)
    s.shows(r"4 processes", "four processes")
    text = s.wait("A.NEW")
    ok(all(c in text for c in ("PART", "N.PART", "N.NEW", "A.PART", "A.NEW", "R.OUT", "LARGE")),
       "200x60: all columns", text)
    s.keys("F4")
    s.wait("Filter:")
    s.keys(str(actors[3].pid), "Enter")
    s.wait(rf"^ +{actors[3].pid}")
    s.keys("Enter")
    s.shows(r"simulated nodes", "the nodes of a simulated topology")
    text = s.wait(r"^ +5 ")
    ok(re.search(r"^ +\d .* [apfe]{30,}$", text, re.M) and re.search(r"^ +5 ", text, re.M),
       "a row for each, with its map", text)
    tmux("resize-window", "-x", "100", "-y", "20")
    text = s.wait(r"^F1 Help|^Filter")
    time.sleep(0.5)
    text = s.text()
    ok(len(text.splitlines()) == 20 and text.splitlines()[0].startswith("numaslab top"),
       "a smaller window is drawn anew", text)
    tmux("resize-window", "-x", "20", "-y", "5")
    time.sleep(0.5)
    tmux("resize-window", "-x", "200", "-y", "60")
    s.shows(r"simulated nodes", "it survives a tiny one")
    pid = s.pid()
    if ok(pid, "top is found"):
        before = sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))
        time.sleep(3)
        after = sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))
        share = (after - before) / os.sysconf("SC_CLK_TCK") / 3
        ok(share < 0.1, f"with 4 processes at 3 Hz it takes {100 * share:.1f} % of a CPU")
        os.kill(pid, signal.SIGTERM)
        s.shows("ended 143", "SIGTERM ends it")
        ok(not re.search("-icanon", s.wait("icanon")), "and gives the terminal back", s.text())
    s = Screen(directory)
    s.wait("PID")
    os.kill(s.pid(), signal.SIGSEGV)
    text = s.wait("icanon")
    ok("ended 139" in text and not re.search("-icanon|-echo ", text),
       "even a crash gives the terminal back", text)
    for a in actors:
        a.kill()


def plain(directory):
    a = Actor(directory)
    a.tell("tick")
    s = Screen(directory, env="NO_COLOR=1 LC_ALL=C.UTF-8")
    s.wait(str(a.pid))
    ok(not re.search(r"\x1b\[[0-9;]*[34][0-9]m", s.text("-e")), "NO_COLOR: no colours",
       repr(s.text("-e")))
    s = Screen(directory, env="LC_ALL=C.UTF-8")
    s.wait(str(a.pid))
    ok(re.search(r"\x1b\[[0-9;]*[34][0-9]m", s.text("-e")), "else there are some")
    s.keys("Enter")
    ok(re.search("[▁▂▃▄▅▆▇█]", s.wait("held max")), "sparklines in UTF-8", s.text())
    s = Screen(directory, env="LC_ALL=C")
    s.wait(str(a.pid))
    s.keys("Enter")
    text = s.wait("held max")
    ok("held max" in text and text.isascii(), "and in ASCII in another locale", text)
    a.kill()
    s = Screen(directory, env="TERM=nosuchterminal")
    s.shows("terminal is not known", "an unknown terminal is said")


def first_picture(directory):
    a = Actor(directory, NUMASLAB_PUBLISH_AFTER_MS="0")
    a.tell("alloc 20000 100")
    t = Terminal(directory, "-d", "60")
    seen = t.read(rb"\b1 process", rb"\b0 process")
    ok(b"1 process" in seen and b"0 process" not in seen and b"No process" not in seen,
       "the first picture has the processes that there are", seen)
    ok(t.close() is not None, "top ends when its terminal is taken away")
    a.kill()


def same_number(directory):
    """Two processes of one number, as those of two containers: a live one, and one that left."""
    a = Actor(directory, NUMASLAB_PUBLISH_AFTER_MS="0")
    a.tell("alloc 20000 100")
    name = next(n for n in os.listdir(directory) if re.fullmatch(rf"\d+-{a.pid}-\d+-\d+", n))
    space, pid, start, generation = name.split("-")
    shutil.copy(f"{directory}/{name}", f"{directory}/{int(space) + 1}-{pid}-{start}-{generation}")
    s = Screen(directory)
    s.keys("x")
    s.shows("2 processes", "two processes of one number")
    states = []
    for key in "Home", "End":
        s.keys(key)
        s.keys("Enter")
        text = s.wait(rf"^{a.pid} actor +(live|exited)")
        states += re.findall(rf"^{a.pid} actor +(live|exited)", text, re.M)
        s.keys("Escape")
        s.wait("COMMAND")
    ok(sorted(states) == ["exited", "live"], "Enter goes into the one under the cursor", states)
    a.kill()


def narrow(directory):
    a = Actor(directory, NUMASLAB_PUBLISH_AFTER_MS="0")
    a.tell("alloc 20000 100")
    a.tell("alloc 3 500000")
    s = Screen(directory, 40, 10)
    text = s.wait("actor")
    lines = text.splitlines()
    ok(re.search(rf"^ +{a.pid} .* actor$", text, re.M) and "F10 Quit" in lines[9] and
       re.search("1 process .*used .* held$", lines[0]),
       "40x10: what it is, what it holds, how to quit", text)
    for _ in range(12):
        s.keys("F6")
    for _ in range(3):
        if "*" not in s.text().splitlines()[2]:
            break
        s.keys("F6")
        time.sleep(0.3)
    ok("*" in s.text().splitlines()[2], "40x10: the column sorted by is among those shown", s.text())
    s.keys("Enter")
    text = s.wait("NODE")
    ok(all(len(line) <= 40 for line in text.splitlines()) and f"{a.pid} actor" in text,
       "40x10: nodes", text)
    s.keys("m")
    text = s.wait("each .*slab")
    ok(re.search("each .*slab.*a .*p .*f .*e .*m", text), "40x10: what the map's characters mean",
       text)
    s.keys("h")
    s.wait("keys")
    s.keys("PPage", *["NPage"] * 9)
    s.shows("one sorted by never is", "40x10: help goes on below")
    s.keys("h")
    s.shows("each .*slab", "and any other key ends it")
    s.keys("q")
    s.shows("isig icanon", "40x10: q ends")
    s = Screen(directory)
    s.shows(rf"LARGE  HINTS COMMAND\n +{a.pid} .* [\d.]+M +\S+ actor", "80x24: large blocks are shown")
    s.keys("Enter")
    s.shows(r"large blocks: \d in 1\.\d+M", "80x24: and counted")
    a.kill()


def history(directory):
    """All of it, on a scale of time: also where it has more entries than there are columns."""
    a = Actor(directory, NUMASLAB_PUBLISH_AFTER_MS="0", NUMASLAB_TICK_MS="20")
    a.tell("tick")
    a.tell("alloc 20000 1000")
    a.tell("tick")
    s = Screen(directory, 60, 20, env="LC_ALL=C")
    s.wait("actor")
    s.keys("Enter")
    text = s.wait("held max")
    ok(re.search(r"^ +used max [\d.]+M +[.:]{3,}\S*@$", text, re.M),
       "in a narrow window the history begins with its beginning", text)
    s.shows(r"history of the last ([5-9]|\d\d) s", "and goes on to now where a process is idle")
    ok(re.search(r"^ +used max [\d.]+M +\S*@{8,}$", s.text(), re.M),
       "with what it had last", s.text())
    a.kill()


def says_why(directory):
    a = Actor(directory, NUMASLAB_PUBLISH_AFTER_MS="0")
    a.tell("alloc 100 100")
    s = Screen(directory, args=f"-p {os.getpid()}")
    s.shows(f"process {os.getpid()} does not publish", "-p of another process: why it is not shown")
    s = Screen(directory)
    s.wait("1 process")
    s.keys("F4")
    s.wait("Filter:")
    s.keys("zzz")
    s.shows("^numaslab top .*0 of 1 process ", "a filter: so many of how many")
    s.shows("None matches the filter", "and that none matches")
    name = next(n for n in os.listdir(directory) if re.fullmatch(rf"\d+-{a.pid}-\d+-\d+", n))
    shutil.copy(f"{directory}/{name}", f"{directory}/1-2-3-4")
    with open(f"{directory}/1-2-3-4", "r+b") as f:
        f.seek(8)
        f.write(b"\x09\0")
    s = Screen(directory)
    s.shows("1-2-3-4: .*version 9", "a file that cannot be read: which, and why")
    a.kill()
    for term in "dumb", "nosuchterminal":
        b = Actor(directory, NUMASLAB_PUBLISH_AFTER_MS="0")
        b.tell("alloc 100 100")
        s = Screen(directory, env=f"TERM={term}", args="-n 1")
        text = s.wait("ended 0")
        ok("lines instead" in text and re.search(rf"^ +{b.pid} +0 ", text, re.M) and
           "ended 0" in text, f"TERM={term}: lines, and that it is so", text)
        b.kill()


# --- Captures: whole screens against stored ones. ---

def normal(text):
    """What a screen says without the numbers of the day: words, order, shapes."""
    lines = []
    for line in text.splitlines():
        line = re.sub(r"fill 0\[.{10}\]100%", "fill ~", line)
        line = re.sub("[▁▂▃▄▅▆▇█]{2,}", lambda m: "~" if set(m[0]) - {"█"} else "█+", line)
        line = re.sub(r"(?<=max # )\S+", "~", line)
        line = re.sub(r"\d[\d.]*[kKMGTPE]?%?", "#", line)
        line = re.sub(r"(?<=max # )\S.*", "~", re.sub(" +", " ", line))
        line = re.sub(r"([apfe▓░·])\1{2,}", r"\1+", line).rstrip()
        lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines) + "\n"


def same(name, screen, sign):
    """The screen once it shows the sign, and once more after a look, against the stored one."""
    path = os.path.join(os.path.dirname(__file__), "captures", name + ".txt")
    screen.wait(sign)
    end = time.monotonic() + 10
    want = open(path).read() if os.path.exists(path) else ""
    while True:
        text = screen.text()
        if normal(text) == want or time.monotonic() > end or os.environ.get("UPDATE_CAPTURES"):
            break
        time.sleep(0.1)
    if os.environ.get("UPDATE_CAPTURES"):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        time.sleep(1)
        with open(path, "w") as f:
            f.write(normal(screen.text()))
        return
    ok(normal(text) == want, f"the screen is as stored: {name}",
       *difflib.unified_diff(want.splitlines(), normal(text).splitlines(), "stored", "seen",
                             lineterm=""))


def captures(directory, width, height):
    """One thread, two nodes of three, the same every time."""
    a = Actor(directory, NUMASLAB_TOPOLOGY="0:1G@0;1:1G;2:1G", NUMASLAB_PUBLISH_AFTER_MS="0",
              NUMASLAB_TICK_MS="20")
    a.tell("node 20000 100 0")
    a.tell("node 3000 3000 2")
    a.tell("holes 3")
    a.tell("node 12 20000 2")
    a.tell("alloc 3 500000")
    a.tell("tick")
    size = f"{width}x{height}"
    # What is said of hint faults is the machine's: tests/hints/test_top.py.
    s = Screen(directory, width, height, "--tier none", env="LC_ALL=C.UTF-8")
    s.wait(str(a.pid))
    same(f"{size}-processes", s, "COMMAND")
    s.keys("h")
    same(f"{size}-help", s, "keys")
    s.keys("h")
    s.wait("COMMAND")
    s.keys("Enter")
    same(f"{size}-nodes", s, "held max")
    s.keys("End", "Enter")
    same(f"{size}-classes", s, "size classes of node 2")
    s.keys("Home", "Enter")
    same(f"{size}-map-class", s, "fill 0")
    text = s.text()
    ok("blocks of 3072, each a slab" in text and "slabs of node 2" in text,
       "Enter on a class: the map of its slabs on the node", text)
    s.keys("n")
    s.shows("slabs of all nodes", "n: on all nodes")
    s.keys("c")
    same(f"{size}-map", s, "all classes")
    s.keys("Escape")
    s.shows("size classes of node 2", "Escape is back")
    s.keys("Escape")
    s.wait("NODE")
    s.keys("m")
    s.shows("all classes, each", "m is the map of all")
    s.keys("Escape")
    s.wait("NODE")
    s.keys("Escape")
    s.wait("COMMAND")
    s.keys("m")
    s.shows("slabs of all nodes", "also from the processes")
    a.kill()
    s.shows("is gone", "a process that goes takes its map along")
    s.keys("q")
    s.shows("ended 0", "q ends it")


def map_in_other_ways(directory):
    a = Actor(directory)
    a.tell("alloc 100000 200")
    a.tell("tick")
    s = Screen(directory, env="LC_ALL=C")
    s.wait(str(a.pid))
    s.keys("m")
    text = s.wait("node 0: ")
    ok(text.isascii() and re.search("^[apfe]{40,}$", text, re.M), "the map in ASCII: letters", text)
    tmux("resize-window", "-x", "40", "-y", "10")
    text = s.wait(r"each \d+ slabs")
    ok(re.search(r"each \d+ slabs", text) and len(text.splitlines()) == 10 and
       all(len(line) <= 40 for line in text.splitlines()),
       "in a small window each letter is several slabs", text)
    tmux("resize-window", "-x", "10", "-y", "3")
    time.sleep(0.5)
    tmux("resize-window", "-x", "120", "-y", "30")
    s.shows("node 0: .*fill 0", "it survives a tiny one")
    s = Screen(directory, env="LC_ALL=C.UTF-8 NO_COLOR=1")
    s.wait(str(a.pid))
    s.keys("m")
    s.wait("node 0: ")
    text = s.text("-e")
    ok(re.search("█{20,}|▓{20,}|░{20,}", text) and
       not re.search(r"\x1b\[[0-9;]*[34][0-9]m", text.replace("\x1b[39m", "").replace(
           "\x1b[49m", "")), "NO_COLOR: shapes alone", repr(text))
    a.tell("free")
    s.shows("node 0: .*", "it follows the process")
    a.kill()
    old = Actor(directory, NUMASLAB_PUBLISH_AFTER_MS="0")
    old.tell("tick")
    for name in os.listdir(directory):
        if re.fullmatch(rf"\d+-{old.pid}-\d+-\d+", name):
            with open(f"{directory}/{name}", "r+b") as f:
                f.seek(10)
                f.write(b"\0\0")
    s = Screen(directory)
    s.wait(str(old.pid))
    s.keys("m")
    s.shows("no slab map", "a file of the older format has none, and that is said")
    old.kill()


def main():
    if not shutil.which("tmux"):
        print("1..0 # SKIP tmux is not installed")
        return
    os.environ["LC_ALL"] = "C.UTF-8"
    parent = tempfile.mkdtemp(prefix="numaslab-screen-", dir="/dev/shm")
    os.environ["TMUX_TMPDIR"] = parent  # tmux leaves its sockets
    try:
        small(parent + "/a")
        wide(parent + "/b")
        plain(parent + "/c")
        captures(parent + "/d", 80, 24)
        captures(parent + "/e", 200, 60)
        map_in_other_ways(parent + "/f")
        first_picture(parent + "/g")
        same_number(parent + "/h")
        narrow(parent + "/i")
        says_why(parent + "/j")
        history(parent + "/k")
    finally:
        tmux("kill-server")
        shutil.rmtree(parent, ignore_errors=True)
    sys.exit(plan())


if __name__ == "__main__":
    main()
