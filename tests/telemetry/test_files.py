#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The telemetry of real processes: exactness, files, forks, full and missing /dev/shm, the tools.

What is run in a mount namespace of its own runs this file again with a word as argument."""
import json
import os
import re
import resource
import shutil
import signal
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
ACTOR = os.path.abspath(f"{BUILD}/tests/telemetry/actor")


class Actor:
    def __init__(self, directory=None, preexec=None, lib=LIB, **env):
        variables = dict(os.environ, LD_PRELOAD=lib, **env)
        if directory:
            variables["NUMASLAB_DIR"] = directory
        self.process = subprocess.Popen([ACTOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=variables, preexec_fn=preexec)
        self.pid = int(self.process.stdout.readline())

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"the actor ended with {self.process.wait()} at '{line}'")
        return answer

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        return self.process.wait()

    def finish(self):
        self.process.stdin.close()
        return self.process.wait()


def files(directory):
    try:
        return sorted(f for f in os.listdir(directory) if re.fullmatch(r"[\d-]+", f))
    except FileNotFoundError:
        return []


def files_of(directory, pid):
    return [f for f in files(directory) if f.split("-")[1] == str(pid)]


def run(directory, *args):
    return subprocess.run([TOOL, *args], env=dict(os.environ, NUMASLAB_DIR=directory), text=True,
                          capture_output=True, timeout=60)


def stat(directory, pid, *args):
    done = run(directory, "stat", "--json", *args, str(pid))
    found = json.loads(done.stdout)["processes"] if done.stdout else []
    return (found[0] if found else None), done


def total(process, key):
    return sum(node[key] for node in process["nodes"])


def conserved(p):
    bad = []
    for node in p["nodes"]:
        rows = [n for c in p["classes"] for n in c["nodes"] if n["id"] == node["id"]]
        for key in ("slabs", "active", "partial", "full", "empty", "objects", "slots",
                    "used_bytes", "capacity_bytes", "held_bytes"):
            if sum(r[key] for r in rows) != node[key]:
                bad.append(f"node {node['id']}: {key} is not the sum over classes")
        for r in rows + [node]:
            if r["active"] + r["partial"] + r["full"] + r["empty"] != r["slabs"]:
                bad.append("slabs")
            if r["used_bytes"] > r["capacity_bytes"] or r["objects"] > r["slots"]:
                bad.append("used > capacity")
    return bad


def heap_kilobytes(pid):
    """Anonymous memory of the library's windows: mappings of the largest reserved range."""
    ranges, size, rss, start = [], 0, 0, 0
    with open(f"/proc/{pid}/smaps") as smaps:
        for line in smaps:
            head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ (\d+)\s*(\S*)", line)
            if head:
                start = int(head[1], 16)
                size, named = int(head[2], 16) - start, head[5] != ""
            elif line.startswith("Anonymous:") and not named:
                ranges.append((start, size, int(line.split()[1])))
    # The windows lie together: the run of neighbours that spans most.
    best, run_, end = [], [], None
    for start, size, kb in ranges:
        if end != start:
            run_ = []
        run_.append((size, kb))
        end = start + size
        if sum(s for s, _ in run_) > sum(s for s, _ in best):
            best = list(run_)
    return sum(kb for _, kb in best)


def exactness(directory):
    a = Actor(directory)
    a.tell("tick")
    before, _ = stat(directory, a.pid)
    if not ok(before, "a process that allocates for a second publishes"):
        a.kill()
        return
    a.tell("alloc 30000 100")
    want = a.tell("stats").split()
    after, _ = stat(directory, a.pid)
    got = [str(total(after, k)) for k in ("objects", "slabs", "held_bytes")]
    ok(got == want, "an idle process shows its exact state, without a tick", got, want)
    ok(total(after, "objects") - total(before, "objects") >= 30000 - 1000,
       "30000 blocks more are 30000 objects more", total(before, "objects"),
       total(after, "objects"))
    ok(not conserved(after), "conservation, and classes sum up to nodes", *conserved(after))
    out = 30000 * 100
    asked = total(after, "asked_estimate") - total(before, "asked_estimate")
    ok(0.9 * out <= asked <= 1.05 * out < total(after, "used_bytes") * 0.95,
       "asked_estimate is what was asked for, not what its class has", asked,
       total(after, "used_bytes"))
    os.kill(a.pid, signal.SIGSTOP)
    heap, held = heap_kilobytes(a.pid), total(after, "held_bytes") // 1024
    held += after["large"]["kept_bytes"] // 1024
    ok(abs(heap - held) <= 0.1 * held + 1200, "held agrees with smaps (and descriptors)",
       f"smaps {heap} KiB, held {held} KiB")
    stopped, _ = stat(directory, a.pid)
    ok(stopped and stopped["state"] == "live", "a stopped process is shown, as live")
    os.kill(a.pid, signal.SIGCONT)
    a.tell("free")
    want = a.tell("stats").split()
    after, _ = stat(directory, a.pid)
    got = [str(total(after, k)) for k in ("objects", "slabs", "held_bytes")]
    ok(got == want, "after free, too", got, want)
    a.tell("alloc 5 1000000")
    after, _ = stat(directory, a.pid)
    ok(after["large"]["count"] == 5 and after["large"]["bytes"] >= 5000000,
       "five large blocks are five", after["large"])
    a.tell("threads 16")
    want = a.tell("stats").split()
    after, _ = stat(directory, a.pid)
    got = [str(total(after, k)) for k in ("objects", "slabs", "held_bytes")]
    ok(got == want and not conserved(after), "after 16 threads, too", got, want, conserved(after))
    ok(a.finish() == 0 and not files_of(directory, a.pid) and
       not [f for f in os.listdir(directory) if str(a.pid) in f],
       "a normal end leaves no file", os.listdir(directory))


def conservation_under_load(directory):
    a = Actor(directory)
    a.tell("tick")
    a.process.stdin.write("threads 8\n" * 6)
    a.process.stdin.flush()
    bad, looks = [], 0
    end = time.monotonic() + 2
    while time.monotonic() < end:
        p, _ = stat(directory, a.pid)
        if p:
            bad += conserved(p)
            looks += 1
    ok(looks > 10 and not bad, f"conservation in each of {looks} snapshots under load", *bad[:5])
    a.kill()


def death(directory):
    a = Actor(directory)
    a.tell("alloc 5000 64")
    a.tell("tick")
    a.tell("tick")
    live, _ = stat(directory, a.pid)
    ok(a.kill() == -signal.SIGKILL, "killed")
    none, done = stat(directory, a.pid)
    ok(done.returncode == 3 and "--dead" in done.stderr, "a dead process is not shown as live",
       done.stderr)
    dead, done = stat(directory, a.pid, "--dead")
    ok(dead and dead["state"] == "exited" and done.returncode == 0, "stat --dead shows it")
    ok(dead and dead["nodes"] == live["nodes"], "with its last state")
    ok(dead and len(dead["history"]) >= 5 and
       all(x["age_ms"] >= y["age_ms"] for x, y in zip(dead["history"], dead["history"][1:])),
       "and its last seconds", dead and len(dead["history"]))
    b = Actor(directory)
    b.tell("tick")
    done = run(directory, "stat", "--gc")
    ok(done.returncode == 0 and files_of(directory, b.pid) and not files_of(directory, a.pid),
       "--gc removes the dead one's file and no other", done.stdout, os.listdir(directory))
    b.finish()


def forks(directory):
    a = Actor(directory)
    a.tell("alloc 1000 64")
    a.tell("tick")
    for how in ("fork", "rawfork"):
        child = int(a.tell(how))
        ok(len(files_of(directory, child)) == 1 and len(files_of(directory, a.pid)) == 1,
           f"{how}: parent and child have a file each", files(directory))
        p, _ = stat(directory, a.pid)
        c, _ = stat(directory, child)
        want = a.tell("stats").split()
        ok(p and [str(total(p, k)) for k in ("objects", "slabs", "held_bytes")] == want,
           f"{how}: the parent's file is the parent's", p and total(p, "objects"), want)
        ok(c and total(c, "objects") >= 1000, f"{how}: the child's has what it inherited")
        os.kill(child, signal.SIGKILL)
    a.tell("vfork")
    ok(stat(directory, a.pid)[0] and len(files_of(directory, a.pid)) == 1,
       "vfork and exec leave the parent's file")
    ok(int(a.tell("exec")) == a.pid, "exec")
    gone, done = stat(directory, a.pid)
    ok(done.returncode == 3, "after exec the old program's file is a dead one's", done.stderr)
    a.tell("tick")
    fresh, _ = stat(directory, a.pid)
    ok(fresh and len(files_of(directory, a.pid)) == 1, "the new program has the one file",
       files(directory))
    daemon = int(a.tell("daemon"))
    time_end = time.monotonic() + 10
    while a.process.poll() is None and time.monotonic() < time_end:
        time.sleep(0.01)
    _, done = stat(directory, a.pid)
    ok(done.returncode == 3 and len(files_of(directory, a.pid)) <= 1,
       "daemon: the parent, which left by _exit, is dead", done.stderr, files(directory))
    ok(len(files_of(directory, daemon)) == 1 and stat(directory, daemon)[0],
       "daemon: the child has its own")
    os.kill(daemon, signal.SIGKILL)
    while stat(directory, daemon)[0]:  # it dies in its own time
        time.sleep(0.01)
    run(directory, "stat", "--gc")
    short = subprocess.run(["bash", "-c", "for i in $(seq 50); do /bin/true; done"],
                           env=dict(os.environ, LD_PRELOAD=LIB, NUMASLAB_DIR=directory),
                           check=False)
    ok(short.returncode == 0 and not os.listdir(directory), "short processes leave no litter",
       os.listdir(directory))


def descriptors_and_modes(directory):
    a = Actor(directory)
    a.tell("tick")
    fds = {os.readlink(f"/proc/{a.pid}/fd/{f}") for f in os.listdir(f"/proc/{a.pid}/fd")}
    ok(not [f for f in fds if directory in f], "no descriptor stays open", fds)
    modes = {f: oct(os.stat(f"{directory}/{f}").st_mode & 0o777) for f in os.listdir(directory)}
    ok(os.stat(directory).st_mode & 0o777 == 0o700 and set(modes.values()) == {"0o600"},
       "0700 and 0600", modes)
    blocks = sum(os.stat(f"{directory}/{f}").st_blocks * 512 for f in os.listdir(directory))
    ok(blocks < 2 << 20, f"one node's file takes less than 2 MiB ({blocks >> 10} KiB now)")
    threads = os.listdir(f"/proc/{a.pid}/task")
    ok(len(threads) == 1, "no thread of ours", threads)
    a.kill()
    run(directory, "stat", "--gc")
    os.environ["NUMASLAB_GROUP"] = "1"
    if os.geteuid() == 0:
        group = directory + "-group"
        a = Actor(group)
        a.tell("tick")
        st = os.stat(f"{group}/{files(group)[0]}") if files(group) else None
        ok(st and st.st_gid == 1 and st.st_mode & 0o777 == 0o640 and
           os.stat(group).st_mode & 0o777 == 0o750, "NUMASLAB_GROUP: 0750 and 0640")
        a.kill()
        shutil.rmtree(group)
    del os.environ["NUMASLAB_GROUP"]


def refusals(directory):
    import resource

    off = {
        "NUMASLAB_TELEMETRY=0": dict(NUMASLAB_TELEMETRY="0"),
        "RLIMIT_FSIZE 0": dict(preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))),
    }
    for name, how in off.items():
        a = Actor(directory, **how)
        a.tell("tick")
        ok(not files_of(directory, a.pid) and a.tell("stats") and a.finish() == 0,
           f"{name}: off, and the program runs", files(directory))
    small = 400 << 10
    a = Actor(directory, preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (small, small)))
    a.tell("tick")
    a.tell("tick")
    sizes = [os.stat(f"{directory}/{f}").st_size for f in files_of(directory, a.pid)]
    ok(sizes and sizes[0] <= small and a.finish() == 0, "a small RLIMIT_FSIZE: a small file", sizes)
    foreign = directory + "-foreign"
    os.mkdir(foreign, 0o777)
    os.chmod(foreign, 0o777)
    a = Actor(foreign)
    a.tell("tick")
    ok(not os.listdir(foreign) and a.finish() == 0, "a directory that others may write: off")
    os.rmdir(foreign)
    os.symlink(directory, foreign)
    a = Actor(foreign)
    a.tell("tick")
    ok(not files(directory) and a.finish() == 0, "a link to a directory: off")
    os.unlink(foreign)


def dead_are_capped(directory):
    for _ in range(3):
        a = Actor(directory, NUMASLAB_PUBLISH_AFTER_MS="0")
        a.tell("alloc 10 10")
        a.kill()
    name = files(directory)[0]
    for i in range(40):
        subprocess.run(["cp", "--sparse=always", f"{directory}/{name}",
                        f"{directory}/1-{i + 2}-3-0"], check=True)
        os.utime(f"{directory}/1-{i + 2}-3-0", (1000 + i, 1000 + i))
    a = Actor(directory, NUMASLAB_PUBLISH_AFTER_MS="0")
    a.tell("alloc 10 10")
    left = files(directory)
    ok(len(left) == 33 and "1-2-3-0" not in left and "1-41-3-0" in left,
       "at most 32 files of dead processes stay, the newest", len(left), left)
    a.finish()
    run(directory, "stat", "--gc")
    ok(not os.listdir(directory), "--gc removes them all", os.listdir(directory))


def other_namespace(directory):
    """A process that is number 1 of its own pid namespace."""
    env = dict(os.environ, NUMASLAB_DIR=directory)
    p = subprocess.Popen(["unshare", "-p", "-f", "env", f"LD_PRELOAD={LIB}", ACTOR], text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=env)
    if p.stdout.readline().strip() != "1":
        skip("another pid namespace", p.stderr.read().strip() or "no pid namespace")
        return
    p.stdin.write("tick\n")
    p.stdin.flush()
    p.stdout.readline()
    found = json.loads(run(directory, "stat", "--json").stdout)["processes"]
    ok([(x["pid"], x["comm"], x["state"]) for x in found] == [(1, "actor", "live")],
       "a process of another pid namespace is shown, as live", found)
    done = run(directory, "stat", "1")
    ok(done.returncode in (3, 4) and not done.stdout, "and not taken for our process 1",
       done.returncode, done.stderr)
    outer = subprocess.run(["pgrep", "-P", str(p.pid)], text=True,
                           capture_output=True).stdout.strip()
    inner, _ = stat(directory, outer)
    ok(inner and inner["comm"] == "actor", "it is found by the number that it has here", outer)
    os.kill(int(outer), signal.SIGKILL)
    p.wait()
    ok(run(directory, "stat").returncode == 3 and
       "exited" in run(directory, "stat", "--dead").stdout,
       "killed, it is dead, though there is a process 1")
    run(directory, "stat", "--gc")


def spoil(path, offset, data):
    with open(path, "r+b") as f:
        f.seek(offset)
        f.write(data)


def tools(directory):
    done = run(directory, "stat")
    ok(done.returncode == 3 and "no process publishes" in done.stderr, "nothing to show: 3",
       done.stderr)
    ok(f"in {directory}, where NUMASLAB_DIR" in done.stderr, "and where it was looked for",
       done.stderr)
    ok(run(directory, "top", "-b").returncode == 3, "top -b: the same")
    ok(run(directory, "stat", "1x").returncode == 2, "no number: 2")
    ok(run(directory, "top", "-b", "-d", "0").returncode == 2, "a bad delay: 2")
    done = run(directory, "stat", str(os.getpid()))
    ok(done.returncode == 3 and "does not publish" in done.stderr, "not under the library: 3",
       done.stderr)
    done = run(directory, "stat", "4194305")
    ok(done.returncode == 3 and "no process 4194305" in done.stderr, "no such process: 3")
    a = Actor(directory)
    a.tell("tick")
    a.tell("alloc 1000 100")
    text = run(directory, "stat", str(a.pid))
    ok(text.returncode == 0 and f"{a.pid} actor: live, placement home" in text.stdout,
       "stat in words", text.stdout, text.stderr)
    done = subprocess.run([TOOL, "stat", str(a.pid)], text=True, capture_output=True,
                          env={k: v for k, v in os.environ.items() if k != "NUMASLAB_DIR"})
    ok(done.returncode == 0 and f"{a.pid} actor" in done.stdout,
       "a process with a directory of its own is found through /proc", done.stderr)
    top = run(directory, "top", "-b", "-n", "2", "-d", "0.2", "--json")
    ticks = [json.loads(line) for line in top.stdout.splitlines()]
    ok(len(ticks) == 2 and all(t["schema"] == 1 and t["processes"][0]["pid"] == a.pid
                               for t in ticks), "top --json: one object for each tick")
    csv = run(directory, "top", "-b", "-n", "3", "-d", "0.1", "--csv").stdout.splitlines()
    ok(len(csv) == 4 and len({line.count(",") for line in csv}) == 1 and
       csv[0].startswith("time_ms,pid,comm,node,"), "top --csv: a head, one line each", csv)
    plain = run(directory, "top", "-n", "1", "-p", str(a.pid))
    ok(plain.returncode == 0 and "actor" in plain.stdout and "\x1b" not in plain.stdout,
       "top without a terminal is plain text by itself", plain.stdout, plain.stderr)
    path = f"{directory}/{files_of(directory, a.pid)[0]}"
    a.kill()
    spoil(path, 112, b"a\x1b[2J\x9b\xff\x07")
    for args in (["stat", "--dead"], ["stat", "--dead", "--json"]):
        done = run(directory, *args)
        ok("a?[2J???" in done.stdout and "\x1b" not in done.stdout,
           f"{' '.join(args)}: no control character of a name", repr(done.stdout[:200]))
    spoil(path, 8, b"\x02\x00")
    done = run(directory, "stat", "--dead")
    ok(done.returncode == 5 and "version 2." in done.stderr and "use the numaslab" in done.stderr,
       "another major version: 5, and what to do", done.stderr)
    spoil(path, 8, b"\x01\x00\x07\x00")
    ok(run(directory, "stat", "--dead").returncode == 0, "a later minor version is read")
    spoil(path, 0, b"X")
    done = run(directory, "stat", "--dead")
    ok(done.returncode == 3 and "damaged" in done.stderr, "another magic: said, 3", done.stderr)
    os.unlink(path)
    os.symlink("/etc/passwd", path)
    done = run(directory, "stat", "--dead")
    ok(done.returncode == 3 and not done.stdout, "a link is not followed", done.stderr)
    os.unlink(path)
    if os.geteuid() == 0:
        os.mkdir(directory, 0o700) if not os.path.exists(directory) else None
        os.chmod(os.path.dirname(directory), 0o755)
        tool = shutil.copy(TOOL, os.path.dirname(directory))  # that user may not reach this folder
        done = subprocess.run([tool, "stat"], text=True, capture_output=True,
                              preexec_fn=lambda: os.setuid(65534),
                              env=dict(os.environ, NUMASLAB_DIR=directory))
        ok(done.returncode == 4 and "other users" in done.stderr,
           "another user's files: 4", done.returncode, done.stderr)


def written(directory):
    """What becomes of the output, and of what is not shown."""
    a = Actor(directory, NUMASLAB_PUBLISH_AFTER_MS="0")
    a.tell("alloc 3 500000")
    for size in range(100, 2000, 100):
        a.tell(f"alloc 20 {size}")
    environment = dict(os.environ, NUMASLAB_DIR=directory)
    commands = (["stat"], ["stat", "--json"], ["stat", "--gc"], ["top", "-b", "-n", "1"],
                ["top", "--json"], ["top", "--csv"], ["top", "--help"])
    for args in commands:
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, *args], env=environment, text=True, stdout=full,
                                  stderr=subprocess.PIPE, timeout=60)
        ok(done.returncode == 77 and "No space left on device" in done.stderr,
           f"{' '.join(args)}: what cannot be written is no success", done.returncode, done.stderr)
    for args in ["top", "-b", "-d", "0.1"], ["top", "--json", "-d", "0.1"]:
        for action in signal.SIG_DFL, signal.SIG_IGN:
            p = subprocess.Popen([TOOL, *args], env=environment, text=True, restore_signals=False,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 preexec_fn=lambda to=action: signal.signal(signal.SIGPIPE, to))
            p.stdout.read(1)
            p.stdout.close()
            said, status = p.stderr.read(), p.wait(60)
            ok(not said and status == (77 if action == signal.SIG_IGN else -signal.SIGPIPE),
               f"{' '.join(args)}: a pipe that is closed ends it", status, said)
    done = run(directory, "top", "-b", "-n", "1", "-p", f"{a.pid},{os.getpid()}")
    ok(done.returncode == 3 and f"process {os.getpid()} does not publish" in done.stderr and
       f"{a.pid}    0 " in done.stdout, "top -p: one is shown, of the other it is said why not",
       done.returncode, done.stdout, done.stderr)
    ok(re.search(rf"^ +{a.pid} +- +[\d.]+M in \d large blocks of actor$", done.stdout, re.M),
       "large blocks are in the lines of top", done.stdout)
    crowd = [Actor(directory, NUMASLAB_PUBLISH_AFTER_MS="0") for _ in range(40)]
    for b in crowd:
        b.tell("alloc 10 10")
    for args in ["stat", "--json"], ["top", "--json", "-n", "1"]:
        done = subprocess.run(
            [TOOL, *args], env=environment, text=True, capture_output=True, timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096)))
        pids = [p["pid"] for p in json.loads(done.stdout or '{"processes": []}')["processes"]]
        ok(set(pids) >= {b.pid for b in crowd} and not done.stderr,
           f"{' '.join(args)}: more processes than it begins with descriptors", pids, done.stderr)
    for b in crowd:
        b.kill()
    p, _ = stat(directory, a.pid)
    text = run(directory, "stat", str(a.pid)).stdout
    held = sorted((sum(n["held_bytes"] for n in c["nodes"]) for c in p["classes"]), reverse=True)
    more = re.search(r"^ +\+ .* in (\d+) more sizes", text, re.M)
    ok(more and int(more[1]) == sum(h > 0 for h in held[12:]) > 0,
       "stat: what the sizes that are not shown hold", text)
    a.kill()
    text = run(directory, "stat", "--dead", str(a.pid)).stdout
    end = re.search(r"^ +at its end +(\S+) +(\S+) ", text, re.M)
    node = re.search(r"^  node +USED.*\n +0 +(\S+) +(\S+) ", text, re.M)
    ok(end and node and end.groups() == node.groups(),
       "stat --dead: the history ends with the end, not with its last entry", text)
    run(directory, "stat", "--gc")


def in_namespace(word):
    done = subprocess.run(["unshare", "-m", sys.executable, os.path.abspath(__file__), word],
                          text=True, capture_output=True, timeout=120)
    print("".join(f"# {line}\n" for line in done.stderr.splitlines()), end="")
    return done


def shm_cases():
    names = {
        "full": "a full /dev/shm: off, and the program runs",
        "tiny": "a /dev/shm of 64 KiB: no history, the counters are there",
        "fills": "a /dev/shm that fills later: the history stops, the counters stay",
        "readonly": "a read-only /dev/shm: off, and the program runs",
        "missing": "no /dev/shm: off, and the program runs",
        "noproc": "no /proc: the program runs",
    }
    for word, name in names.items():
        done = in_namespace(word)
        if done.returncode == 77 or "unshare failed" in done.stderr:
            skip(name, "no mount namespace: " + done.stderr.strip()[-80:])
        else:
            ok(done.returncode == 0, name, done.stdout, done.stderr)


def mount(*args):
    return subprocess.run(["mount", *args], stderr=subprocess.PIPE).returncode == 0


def fill_up():
    fd = os.open("/dev/shm/filler", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while os.write(fd, b"x" * 4096):
            pass
    except OSError:
        os.close(fd)


def agrees(actor, directory):
    """The file says what the library says."""
    p, _ = stat(directory, actor.pid)
    want = actor.tell("stats").split()
    return p and [str(total(p, k)) for k in ("objects", "slabs", "held_bytes")] == want


def inside(word):
    """In a mount namespace of our own: exit status 0 good, 1 bad, 77 cannot."""
    if not mount("--make-rprivate", "/"):
        return 77
    options = {"full": "size=4096k", "tiny": "size=64k", "fills": "size=6144k",
               "readonly": "size=1m,ro", "missing": "size=1m", "noproc": "size=8m"}[word]
    where = "/dev" if word == "missing" else "/dev/shm"
    if not mount("-t", "tmpfs", "-o", options, "none", where):
        return 77
    if word == "missing":
        os.mknod("/dev/null", 0o666 | 0o020000, os.makedev(1, 3))
    if word == "full":
        fill_up()
    if word == "noproc" and not mount("-t", "tmpfs", "none", "/proc"):
        return 77
    env = {"NUMASLAB_TICK_MS": "1"} if word == "fills" else {}
    a = Actor(**env)
    a.tell("alloc 1000 100")
    a.tell("tick")
    directory = f"/dev/shm/numaslab-{os.geteuid()}"
    good = True
    if word == "fills":
        good = agrees(a, directory)
        fill_up()
        a.tell("tick")
        a.tell("alloc 1000 100")
        good = good and agrees(a, directory)
    elif word == "tiny":
        good = agrees(a, directory)
    elif word == "noproc":
        good = len(files(directory)) == 1
    else:
        good = not files(directory)
        left = os.listdir(directory) if os.path.isdir(directory) else []
        good = good and not left
    return 0 if a.tell("stats") and a.finish() == 0 and good else 1


def main():
    if len(sys.argv) > 1:
        sys.exit(inside(sys.argv[1]))
    parent = tempfile.mkdtemp(prefix="numaslab-test-", dir="/dev/shm")
    directory = parent + "/files"
    try:
        for part in (exactness, conservation_under_load, death, forks, descriptors_and_modes,
                     refusals, dead_are_capped, other_namespace, tools, written):
            part(directory)
        shm_cases()
    finally:
        shutil.rmtree(parent, ignore_errors=True)
    sys.exit(plan())


if __name__ == "__main__":
    main()
