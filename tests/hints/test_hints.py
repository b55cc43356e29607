#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""numaslab hints on this machine: its command line, the tiers that need no probes of functions, what
becomes of targets that exit, execute, fork and lie, and of a companion that is killed.  The tiers fentry
and kprobe, and counts against the kernel's, are in tests/vm."""
import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from tap import ok, plan, skip  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
LIB = os.path.abspath(f"{BUILD}/libnumaslab.so")
TOOL = os.path.abspath(f"{BUILD}/numaslab")
SWEEPER = os.path.abspath(f"{BUILD}/tests/hints/sweeper")
BALANCING = "/proc/sys/kernel/numa_balancing"
NOBODY = 65534
LIMIT = 120  # of any one command
SWEEP = 60   # seconds until the kernel's scan must have come by


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def run(*args, **more):
    return subprocess.run([TOOL, "hints", *args], text=True, capture_output=True, timeout=LIMIT, **more)


class Sweeper:
    def __init__(self, size=256, mib=32, prefix=(), **env):
        variables = dict(os.environ, LD_PRELOAD=LIB, NUMASLAB_PUBLISH_AFTER_MS="0",
                         NUMASLAB_PLACEMENT="kernel")
        variables.update(env)
        self.process = subprocess.Popen([*prefix, SWEEPER, str(size), str(mib)], env=variables, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        preexec_fn=die_with_parent)
        self.pid = int(self.process.stdout.readline())

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def tell(self, line):
        self.send(line)
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Hints:
    """One that runs: until it counts, then until it is told to end."""

    def __init__(self, *args, prefix=(), env=None, binary=TOOL):
        self.process = subprocess.Popen([*prefix, binary, "hints", "--json", *args], text=True, env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        preexec_fn=die_with_parent)
        self.said = self.process.stderr.readline()
        self.counts = "counting, tier" in self.said

    def end(self, number=signal.SIGINT):
        if number:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LIMIT)
        self.said += err
        self.status = self.process.returncode
        try:
            self.json = json.loads(out)
        except ValueError:
            self.json = None
        return self.json


def find(doc, pid):
    return [p for p in doc["processes"] if p["pid"] == pid] if doc else []


def same(counts, rows):
    keys = ("faults", "local", "remote", "unjoined", "pages", "bytes", "migrated", "failed")
    return all(counts[k] == sum(r[k] for r in rows) for k in keys)


def sums(doc, p):
    """The conservation laws of tools/hints.h; those that do not hold."""
    wrong = []
    if not same(p["total"], p["cells"]):
        wrong.append("total != cells")
    if not same(p["total"], p["kinds"].values()):
        wrong.append("total != kinds")
    if not same(p["total"], p["history"]):
        wrong.append("total != history")
    heap = [p["kinds"]["slab"], p["kinds"]["large"]]
    if sum(r["faults"] for r in p["matrix"]) != sum(h["faults"] for h in heap):
        wrong.append("heap != matrix")
    if sum(s["faults"] for s in p["slabs"]) > p["kinds"]["slab"]["faults"]:
        wrong.append("slabs > kind slab")
    if sum(t["faults"] for t in p["threads"]) > p["total"]["faults"]:
        wrong.append("threads > total")
    for c in [p["total"], *p["cells"], *p["slabs"], *p["classes"]]:
        if c["faults"] != c["local"] + c["remote"] + c["unjoined"]:
            wrong.append(f"faults != local + remote + unjoined: {c}")
    if not same(doc["total"], [q["total"] for q in doc["processes"]]):
        wrong.append("total of all != processes")
    return wrong


class Balancing:
    """NUMA balancing on, and as it was again afterwards."""

    def __init__(self):
        with open(BALANCING) as f:
            self.before = f.read().strip()

    def set(self, value):
        with open(BALANCING, "w") as f:
            f.write(value)

    def __enter__(self):
        self.set("1")

    def __exit__(self, *_):
        self.set(self.before)


# --- The command line. ---

def command_line():
    for args, says in ((["-p", "0"], "is no process number"), (["-p", "1,x"], "is no process number"),
                       (["-d", "0"], "0.1 to 86400"), (["-d", "x"], "0.1 to 86400"),
                       (["--tier", "kprob"], "did you mean 'kprobe'"), (["--observe", "1/4"], "with -p"),
                       (["--observe", "2/4", "-p", "1"], "1/1 to 1/65536"),
                       (["--observe", "1/65537", "-p", "1"], "1/1 to 1/65536"),
                       (["now"], "too much"), (["--jason"], "--json")):
        r = run(*args)
        ok(r.returncode == 2 and says in r.stderr and not r.stdout, f"wrong: {' '.join(args)}", r)
    r = run("--help")
    ok(r.returncode == 0 and "--observe" in r.stdout, "--help", r)
    gone = subprocess.Popen(["true"])
    gone.wait()
    r = run("-p", str(gone.pid), "-d", "0.2")
    ok(r.returncode == 3 and f"no process {gone.pid}" in r.stderr, "a process that is not there: 3", r)


def refused_tiers():
    for tier in ("fentry", "kprobe"):
        r = run("--tier", tier, "-d", "0.2")
        if r.returncode == 0:
            skip(f"{tier}: refused", "this machine has it")
        else:
            ok(r.returncode == 77 and tier in r.stderr and len(r.stderr.splitlines()) == 1,
               f"{tier} is refused here, in one line: 77", r)


# --- Faults. ---

def see_sweep(doc, pid, tier, name):
    """A sweeper's part of a document, with a single class."""
    found = find(doc, pid)
    if not ok(len(found) == 1 and doc["schema"] == 1 and doc["tier"] == tier, f"{name}: in the document", doc):
        return None
    p = found[0]
    slab = p["kinds"]["slab"]
    ok(slab["faults"] > 2000, f"{name}: faults on slabs", p["kinds"])
    ok({c["size"] for c in p["cells"] if c["size"] and c["faults"] > 20} == {256},
       f"{name}: of the one class that is used", p["cells"])
    ok(all(c["home"] in doc["nodes"] for c in p["cells"] if c["kind"] == "slab" and c["size"]),
       f"{name}: home is a node", p["cells"])
    ok(not sums(doc, p), f"{name}: it adds up", sums(doc, p))
    ok(p["placement"] == "kernel" and not p["masked"], f"{name}: its placement", p["placement"])
    ok(len(p["slabs"]) > 20 and all(s["slab_bytes"] == 65536 for s in p["slabs"] if s["size"] == 256),
       f"{name}: its slabs", p["slabs"][:3])
    # By perf the name is asked afterwards, and the thread may have ended.
    ok(any(t["comm"] in ("sweeper", "" if tier == "perf" else "sweeper") and t["size"] == 256 for t in p["threads"]),
       f"{name}: its thread",
       p["threads"][:3])
    ok("local: nothing to do" in p["advice"] or len(doc["nodes"]) > 1, f"{name}: advice", p["advice"])
    return p


def swept(name, *args, **more):
    """A sweeper under hints; None if the kernel's scan did not come by."""
    sweeper = Sweeper()
    hints = Hints("-p", str(sweeper.pid), *args, **more)
    faults = int(sweeper.tell(f"sweep 6000 {SWEEP}")) if hints.counts else 0
    doc = hints.end()
    sweeper.end()
    if not ok(hints.counts and hints.status == 0 and doc, f"{name}: ends well", hints.said):
        return None, sweeper.pid
    if faults < 6000:
        skip(f"{name}: faults", f"the kernel's scan did not come by in {SWEEP} s ({faults} faults)")
        return None, sweeper.pid
    return doc, sweeper.pid


def tracepoint():
    doc, pid = swept("tracepoint", "--tier", "tracepoint")
    if not doc:
        return
    p = see_sweep(doc, pid, "tracepoint", "tracepoint")
    ok(doc["exact"] is False and "estimate" in doc["unknown"], "tracepoint: says that it estimates")
    ok(not any(doc["drops"].values()), "tracepoint: nothing was dropped", doc["drops"])
    ok(p and p["resolve"] == {"late": 0, "failed": 0, "damaged": 0}, "tracepoint: each slab was read at once",
       p and p["resolve"])
    ok(p and p["samples"] and all(s["address"] for s in p["samples"]), "tracepoint: sampled addresses")


def best_tier():
    doc, pid = swept("the best tier")
    if not doc:
        return
    ok(doc["tier"] in ("fentry", "kprobe", "tracepoint"), "the best tier is one of eBPF's", doc["tier"])
    ok(all(t["why"] for t in doc["better_tiers"]), "and why no better one", doc["better_tiers"])


def perf():
    doc, pid = swept("perf", "--tier", "perf")
    if doc:
        see_sweep(doc, pid, "perf", "perf")


def lost():
    """What a ring had no room for at the end, when nothing came after it."""
    pages = 100000
    hints = Hints("--tier", "perf")
    if not ok(hints.counts, "perf counts", hints.said):
        return
    hints.process.send_signal(signal.SIGSTOP)
    touch = "import mmap; m = mmap.mmap(-1, %d << 12); m.madvise(15)\nfor i in range(0, len(m), 4096): m[i] = 1"
    subprocess.run([sys.executable, "-c", touch % pages], check=True, timeout=LIMIT)
    hints.process.send_signal(signal.SIGINT)
    doc = hints.end(signal.SIGCONT)
    room = (256 << 12) // 48 * os.cpu_count()
    ok(doc and doc["drops"]["events"] >= pages - room, f"perf: of {pages} faults at least {pages - room} are said lost",
       doc and doc["drops"])


def proc():
    sweeper = Sweeper()
    r = run("--tier", "proc", "-p", str(sweeper.pid), "-d", "0.5", "--json")
    sweeper.end()
    p = find(json.loads(r.stdout), sweeper.pid) if r.returncode == 0 else []
    ok(len(p) == 1 and sum(n["heap_pages"] for n in p[0]["residency"]) > 8000,
       "proc: where its pages lie, the heap's among them", r.stderr, p and p[0]["residency"])


def in_namespace():
    """Everything in a pid namespace of its own: numbers are those of the namespace there."""
    script = f"""
    LD_PRELOAD={LIB} NUMASLAB_PUBLISH_AFTER_MS=0 NUMASLAB_PLACEMENT=kernel {SWEEPER} 256 32 <$1/in >$1/out &
    exec 3>$1/in 4<$1/out; read -r pid <&4
    {TOOL} hints --json --tier tracepoint -p $pid >$1/json 2>$1/said &
    tool=$!
    until grep -q counting $1/said; do kill -0 $tool || exit 1; sleep 0.1; done
    echo "sweep 6000 {SWEEP}" >&3; read -r n <&4; kill -INT $tool; wait $tool || exit 1
    echo quit >&3; echo $pid $n"""
    with tempfile.TemporaryDirectory() as tmp:
        os.mkfifo(f"{tmp}/in")
        os.mkfifo(f"{tmp}/out")
        r = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c", script, "-",
                            tmp], text=True, capture_output=True, timeout=2 * LIMIT)
        if r.returncode or not r.stdout.split():
            return ok(False, "in a pid namespace: ends well", r, open(f"{tmp}/said").read())
        pid, faults = map(int, r.stdout.split())
        if faults < 6000:
            return skip("in a pid namespace", "the kernel's scan did not come by")
        with open(f"{tmp}/json") as f:
            see_sweep(json.load(f), pid, "tracepoint", "in a pid namespace")


# --- What becomes of the targets. ---

def exits():
    sweeper = Sweeper()
    hints = Hints("--tier", "tracepoint", "-p", str(sweeper.pid))
    sweeper.send("quit")
    sweeper.process.wait()
    doc = hints.end(None)
    p = find(doc, sweeper.pid)
    ok(hints.status == 0 and len(p) == 1 and p[0]["state"] == "exited", "the target exits: so does hints",
       hints.said, p)


def executes():
    sweeper = Sweeper()
    hints = Hints("--tier", "tracepoint", "-p", str(sweeper.pid))
    ok(sweeper.tell("exec") == str(sweeper.pid), "the target executes another program")
    faults = int(sweeper.tell(f"sweep 6000 {SWEEP}"))
    doc = hints.end()
    sweeper.end()
    states = sorted(p["state"] for p in find(doc, sweeper.pid))
    ok(states == ["live", "replaced"], "both programs have an entry", states)
    if faults < 6000:
        return skip("faults of the second program", "the kernel's scan did not come by")
    live = [p for p in find(doc, sweeper.pid) if p["state"] == "live"]
    old = [p for p in find(doc, sweeper.pid) if p["state"] == "replaced"]
    ok(live and live[0]["kinds"]["slab"]["faults"] > 2000 and live[0]["resolve"]["failed"] == 0,
       "faults of the second program are its own", live and live[0]["kinds"])
    ok(old and old[0]["kinds"]["slab"]["faults"] < 100, "and not the first one's", old and old[0]["kinds"])


def forks():
    sweeper = Sweeper()
    hints = Hints("--tier", "tracepoint", "-p", str(sweeper.pid))
    child = int(sweeper.tell(f"fork 3000 {SWEEP}"))
    doc = hints.end()
    sweeper.end()
    ok(hints.status == 0 and child > 0 and not find(doc, child), "the target forks: the child is not counted with it",
       hints.said, [p["pid"] for p in doc["processes"]])
    p = find(doc, sweeper.pid)
    ok(len(p) == 1 and not sums(doc, p[0]), "and what is counted adds up", p and sums(doc, p[0]))


def among_hundreds():
    others = [subprocess.Popen(["sleep", "300"], preexec_fn=die_with_parent) for _ in range(300)]
    few = [Sweeper(mib=1) for _ in range(20)]
    sweeper = Sweeper()
    hints = Hints("--tier", "tracepoint")
    # The table of processes is told of each at once.
    faults = int(sweeper.tell(f"sweep 6000 {SWEEP}"))
    doc = hints.end()
    ok(hints.status == 0 and all(len(find(doc, s.pid)) == 1 for s in few + [sweeper]),
       "one of hundreds: each that publishes is there", hints.said)
    if faults < 6000:
        skip("one of hundreds: its faults", "the kernel's scan did not come by")
    else:
        p = find(doc, sweeper.pid)[0]
        ok(p["kinds"]["slab"]["faults"] > 2000 and not sums(doc, p), "one of hundreds: its faults", p["kinds"])
        ok(doc["processes"][0]["pid"] == sweeper.pid or doc["processes"][0]["total"]["remote"] > 0,
           "one of hundreds: it comes first")
    for s in few + [sweeper]:
        s.end()
    for o in others:
        o.kill()
        o.wait()


# --- A slab map that lies. ---

SLAB_MAP, SLAB_DIR = 6, 7


def telemetry_file(pid):
    for line in open(f"/proc/{pid}/maps"):
        name = line.split()[-1]
        if "/numaslab-" in name and name.rsplit("/")[-1].count("-") == 3 and not name.endswith((".pins", ".control")):
            return name
    return None


def section(header, kind):
    for i in range(8):
        t, stride, offset, n = struct.unpack_from("=IIQQ", header, 144 + 24 * i)
        if t == kind:
            return offset, stride * n
    return None, None


def lies():
    def garbage(f, header):
        at, size = section(header, SLAB_MAP)
        f.seek(at)
        f.write(os.urandom(min(size, 1 << 20)))

    def inner(f, header):  # each says that the slab begins before it
        at, size = section(header, SLAB_MAP)
        f.seek(at)
        f.write(struct.pack("=Q", 5 | 0xffff << 32) * min(size // 8, 1 << 17))

    def pages(f, header):
        at, size = section(header, SLAB_DIR)
        f.seek(at)
        f.write(struct.pack("=I", 0xffffffff) * (size // 4))

    for name, lie in (("random words", garbage), ("words that point back", inner), ("a directory of no pages", pages)):
        for tier in ("tracepoint", "perf"):
            sweeper = Sweeper(mib=16)
            path = telemetry_file(sweeper.pid)
            with open(path, "r+b") as f:
                header = f.read(4096)
                hints = Hints("--tier", tier, "-p", str(sweeper.pid))
                lie(f, header)
            faults = int(sweeper.tell(f"sweep 3000 {SWEEP}"))
            doc = hints.end()
            sweeper.end()
            p = find(doc, sweeper.pid)
            if not ok(hints.status == 0 and len(p) == 1 and not sums(doc, p[0]), f"{name}, {tier}: it adds up all the same",
                      hints.said, p and sums(doc, p[0])):
                continue
            if faults < 3000:
                skip(f"{name}, {tier}: damage is told", "the kernel's scan did not come by")
            else:
                ok(p[0]["resolve"]["damaged"] > 1000, f"{name}, {tier}: damage is told", p[0]["resolve"],
                   p[0]["cells"][:5])


def bad_header():
    sweeper = Sweeper(mib=16)
    path = telemetry_file(sweeper.pid)
    with open(path, "r+b") as f:
        f.seek(336)
        f.write(b"\xff" * 48)  # base, span, where the map is
    r = run("--tier", "tracepoint", "-p", str(sweeper.pid), "-d", "0.3", "--json")
    p = find(json.loads(r.stdout), sweeper.pid) if r.returncode == 0 else []
    ok(len(p) == 1 and not p[0]["publishes"] and p[0]["refusal"] and p[0]["kinds"]["slab"]["faults"] == 0,
       "a header that lies about addresses is refused, and that is said", r)
    with open(path, "r+b") as f:
        f.seek(8)
        f.write(b"\x63\x00")  # the major version
    r = run("--tier", "tracepoint", "-p", str(sweeper.pid), "-d", "0.3")
    ok(r.returncode == 5 and "version" in r.stderr, "a version that is not understood: 5", r)
    sweeper.end()


# --- Observation and the end of the companion. ---

def control_of(path):
    with open(path + ".control", "rb") as f:
        return struct.unpack("=QQ", f.read(16))


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000000


def observes():
    sweeper = Sweeper(NUMASLAB_PLACEMENT="home")
    path = telemetry_file(sweeper.pid)
    hints = Hints("--tier", "proc", "-p", str(sweeper.pid), "--observe", "1/4")
    request, lease = control_of(path)
    ok(request >> 32 == 4 and now_ms() < lease <= now_ms() + 60000, "--observe: the request and its lease stand there",
       request, lease, now_ms())
    sweeper.tell("churn")
    end = time.monotonic() + 30
    while control_of(path)[1] == lease and time.monotonic() < end:
        time.sleep(0.1)
    ok(lease < control_of(path)[1] <= now_ms() + 60000, "the lease is renewed", lease, control_of(path))
    doc = hints.end()
    ok(control_of(path) == (0, 0), "at the end it is taken back", control_of(path))
    p = find(doc, sweeper.pid)
    ok(len(p) == 1 and p[0]["observation"]["sample"] == 4, "the document tells of it", p and p[0]["observation"])
    hints = Hints("--tier", "proc", "-p", str(sweeper.pid), "--observe", "1/9")
    hints.end(signal.SIGKILL)
    request, lease = control_of(path)
    ok(request >> 32 == 9 and lease <= now_ms() + 60000, "killed: the lease ends by itself", lease, now_ms())
    hints = Hints("--tier", "proc", "-p", str(sweeper.pid), "--observe", "1/4")
    os.truncate(path + ".control", 0)
    doc = hints.end()
    ok(hints.status == 0 and doc, "the control file is cut meanwhile: no harm", hints.status, hints.said)
    os.unlink(path + ".control")
    r = run("--tier", "proc", "-p", str(sweeper.pid), "--observe", "1/4", "-d", "0.3")
    ok(r.returncode == 77 and "no control file" in r.stderr, "no control file: 77, and why", r)
    sweeper.end()
    plain = subprocess.Popen(["sleep", "100"], preexec_fn=die_with_parent)
    r = run("--tier", "proc", "-p", str(plain.pid), "--observe", "1/4", "-d", "0.3")
    ok(r.returncode == 3 and "does not publish" in r.stderr, "a process that does not publish: 3", r)
    plain.kill()
    plain.wait()


def programs():
    r = subprocess.run(["bpftool", "-j", "prog", "list"], capture_output=True, text=True, timeout=LIMIT)
    return sum("tp_fault_user" in p.get("name", "") for p in json.loads(r.stdout))


def gone(before, name):
    end = time.monotonic() + 30
    while programs() > before and time.monotonic() < end:  # the kernel frees them when it comes to it
        time.sleep(0.1)
    ok(programs() <= before, name, before, programs())


def killed():
    if not shutil.which("bpftool"):
        return skip("killed: nothing stays loaded", "bpftool is not installed")
    before = programs()
    hints = Hints("--tier", "tracepoint")
    during = programs()
    hints.end(signal.SIGKILL)
    ok(during > before, "killed: it was loaded", before, during)
    gone(before, "killed: nothing stays loaded")


def masked():
    sweeper = Sweeper(NUMASLAB_PLACEMENT="home")
    r = run("--tier", "tracepoint", "-p", str(sweeper.pid), "-d", "0.3")
    sweeper.end()
    ok(r.returncode == 0 and "masked by policy" in r.stdout and f"--observe 1/16 -p {sweeper.pid}" in r.stdout,
       "placement home: masked by policy, and how to see", r)


def lines():
    """What is shown while it goes on; Ctrl-C ends it with the summary."""
    p = subprocess.Popen([TOOL, "hints", "--tier", "tracepoint"], text=True, stdout=subprocess.PIPE,
                         preexec_fn=die_with_parent)
    first, second = p.stdout.readline(), p.stdout.readline()
    p.send_signal(signal.SIGINT)
    rest = p.communicate(timeout=LIMIT)[0]
    ok("Ctrl-C ends" in first and " faults, " in second and "nothing was dropped" in rest and p.returncode == 0,
       "lines while it goes on, the summary at Ctrl-C", first, second, rest)


def unprivileged():
    if not shutil.which("setpriv"):
        return skip("without privileges", "setpriv is not installed")
    with tempfile.TemporaryDirectory() as tmp:
        # The tree may be out of that user's reach.
        os.chmod(tmp, 0o755)
        for f in (TOOL, SWEEPER, LIB):
            shutil.copy(f, tmp)
        os.mkdir(f"{tmp}/shm")
        os.chown(f"{tmp}/shm", NOBODY, NOBODY)
        os.chmod(f"{tmp}/shm", 0o700)
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
        tool = [*as_nobody, f"{tmp}/numaslab", "hints"]
        env = dict(os.environ, NUMASLAB_DIR=f"{tmp}/shm")

        def said(*args):
            return subprocess.run([*tool, *args], text=True, capture_output=True, timeout=LIMIT, env=env)

        r = said("-d", "0.2")
        ok(r.returncode == 4 and "CAP_BPF and CAP_PERFMON" in r.stderr and "sudo" in r.stderr,
           "without privileges: 4, and what would do", r)
        r = said("--tier", "tracepoint", "-d", "0.2")
        ok(r.returncode == 4 and "CAP_BPF" in r.stderr, "the same for a tier by name", r)
        with open("/proc/sys/kernel/perf_event_paranoid") as f:
            paranoid = int(f.read())
        r = said("--tier", "perf", "-d", "0.2")
        if paranoid > 0:
            ok(r.returncode == 4 and "CAP_PERFMON" in r.stderr, "perf of all processes: 4", r)
        own(tmp, as_nobody, env, paranoid)
        sweeper = Sweeper()  # root's
        r = said("--tier", "proc", "-p", str(sweeper.pid), "--observe", "1/4", "-d", "0.2")
        sweeper.end()
        ok(r.returncode == 4, "another user's process is not asked: 4", r)


def own(tmp, as_nobody, env, paranoid):
    if paranoid > 2:
        return skip("perf of one's own processes", f"kernel.perf_event_paranoid is {paranoid}")
    global SWEEPER, LIB
    kept = SWEEPER, LIB
    SWEEPER, LIB = f"{tmp}/sweeper", f"{tmp}/libnumaslab.so"
    sweeper = Sweeper(prefix=as_nobody, NUMASLAB_DIR=f"{tmp}/shm")
    SWEEPER, LIB = kept
    hints = Hints("--tier", "perf", "-p", str(sweeper.pid), prefix=as_nobody, env=env, binary=f"{tmp}/numaslab")
    faults = int(sweeper.tell(f"sweep 6000 {SWEEP}")) if hints.counts else 0
    doc = hints.end()
    sweeper.end()
    if ok(hints.counts and doc, "perf of one's own processes: works", hints.said) and faults < 6000:
        skip("perf of one's own processes: faults", "the kernel's scan did not come by")
    elif doc:
        see_sweep(doc, sweeper.pid, "perf", "perf of one's own")


def on_signal(*_):
    sys.exit(1)  # what is changed is put back on the way out


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)
    command_line()
    if os.geteuid() != 0:
        r = run("-d", "0.2")
        ok(r.returncode in (4, 77), "without privileges: 4", r)
        skip("tiers", "the tests of the tiers need root")
        return plan()
    if run("--tier", "tracepoint", "-d", "0.1").returncode == 77:
        skip("tiers", "raw tracepoints are refused here: " +
             run("--tier", "tracepoint", "-d", "0.1").stderr.strip())
        return plan()
    refused_tiers()
    for test in (proc, exits, bad_header, observes, killed, lines):
        test()
    if not os.path.exists(BALANCING):
        skip("faults", "the kernel has no NUMA balancing")
    else:
        with Balancing():
            for test in (masked, tracepoint, perf, lost, best_tier, executes, forks, among_hundreds, lies, in_namespace,
                         unprivileged):
                test()
    return plan()


if __name__ == "__main__":
    sys.exit(main())
