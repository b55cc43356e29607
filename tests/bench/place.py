# SPDX-License-Identifier: MIT
"""Where a benchmark runs, under which allocators, and what it leaves behind: nothing."""
import atexit
import contextlib
import ctypes
import fcntl
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = {  # name: (soname, Debian package)
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    "tbbmalloc": ("libtbbmalloc_proxy.so.2", "libtbbmalloc2"),
}
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


class Failed(Exception):
    """A program did not do its work under this allocator."""


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def show(text=""):
    """What is done just now, on a terminal; nothing clears it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text and 'bench: ' + text}", end="", file=sys.stderr, flush=True)


def key_values(text):
    return {k: float(v) for k, _, v in (word.partition("=") for word in text.split()) if v}


class Allocator:
    def __init__(self, name, preload, package=None):
        self.name, self.preload, self.package = name, preload, package

    def version(self):
        if not self.package or not shutil.which("dpkg-query"):
            return ""
        got = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", self.package],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return got.stdout

    def option(self):
        """As numaslab compare takes it."""
        return f"{self.name}={self.preload}" if self.preload else self.name


def folder_make(where, prefix):
    """A folder that we hold the lock of; those of runs that were killed go first, as nobody holds
    theirs.  None where none can be made."""
    with contextlib.suppress(OSError):
        for name in os.listdir(where):
            path = os.path.join(where, name)
            if not name.startswith(prefix) or os.stat(path).st_uid != os.geteuid():
                continue
            with contextlib.suppress(OSError):
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
                os.close(fd)
        folder = tempfile.mkdtemp(prefix=prefix, dir=where)
        fcntl.flock(os.open(folder, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_EX)  # until we end
        return folder
    return None


class Place:
    """A folder and the processes of this run; leave() takes both away, whatever happened."""

    def __init__(self, build, settings=None):
        self.build, self.settings = build, settings or {}
        self.results = os.path.join(build, "bench")
        os.makedirs(self.results, exist_ok=True)
        self.directory = folder_make(self.results, "run-")
        # Where what is measured publishes: a process that is killed leaves its file.
        self.published = folder_make("/dev/shm", "numaslab-bench-")
        os.symlink(os.path.join(build, "tests", "bench"), os.path.join(self.directory, "bin"))
        os.symlink(HERE, os.path.join(self.directory, "bench"))
        self.processes = []
        atexit.register(self.leave)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda n, _: sys.exit(128 + n))

    def leave(self):
        for process in list(self.processes):
            self.stop(process)
        for folder in filter(None, (self.directory, self.published)):
            shutil.rmtree(folder, ignore_errors=True)

    def program(self, name):
        return os.path.join(self.build, "tests", "bench", name)

    def environment(self, preload=None, extra=None):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("NUMASLAB_", "LD_PRELOAD", "MALLOC_", "GLIBC_TUNABLES"))}
        if self.published:
            env["NUMASLAB_DIR"] = self.published
        env.update(self.settings, LC_ALL="C", **(extra or {}))
        if preload:
            env["LD_PRELOAD"] = preload
        return env

    def start(self, argv, preload=None, extra=None, stdout=subprocess.PIPE,
              stderr=subprocess.STDOUT):
        """It ends with us, also when we are killed."""
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                                   cwd=self.directory, env=self.environment(preload, extra),
                                   preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
        self.processes.append(process)
        return process

    def stop(self, process):
        """Asked first: compare ends what it runs before it ends itself."""
        for ask in (process.terminate, process.kill):
            if process.poll() is None:
                ask()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
        if process.stdout:
            process.stdout.close()
        self.processes.remove(process)

    def run(self, argv, preload=None, env=None, limit=300, statuses=(0,)):
        """Standard output and error, of a program without children."""
        process = self.start(argv, preload, env)
        try:
            out, _ = process.communicate(timeout=limit)
            if process.returncode not in statuses:
                raise Failed(f"status {process.returncode}: "
                             f"{out[-300:].decode(errors='replace').strip()}")
            return out.decode(errors="replace")
        except subprocess.TimeoutExpired:
            raise Failed(f"not done after {limit} s") from None
        finally:
            self.stop(process)


def library_find(soname):
    ldconfig = shutil.which("ldconfig") or "/sbin/ldconfig"
    try:
        text = subprocess.run([ldconfig, "-p"], stdout=subprocess.PIPE, text=True).stdout
    except OSError:
        return None
    width = "x86-64" if platform.machine() == "x86_64" else ""
    found = re.search(rf"^\s*{re.escape(soname)} \([^)]*{width}[^)]*\) => (\S+)", text, re.M)
    return found and found.group(1)


def allocators_find(build, more=()):
    """glibc, the peers that are installed, ours, and NAME=PATH of others."""
    found = [Allocator("glibc", None, "libc6")]
    for name, (soname, package) in PEERS.items():
        path = library_find(soname)
        if path:
            found.append(Allocator(name, path, package))
        else:
            say(f"no {soname}: {name} is left out (apt-get install {package})")
    own = os.path.join(build, "libnumaslab.so")
    if os.path.exists(own):
        found.append(Allocator("numaslab", own))
    else:
        say(f"no {os.path.basename(own)} in the build folder yet: the others alone")
    for pair in more:
        name, _, path = pair.partition("=")
        if not os.path.exists(path):
            sys.exit(f"bench: --lib wants NAME=PATH of a library, not {pair}")
        found.append(Allocator(name, os.path.abspath(path)))
    return found


def allocators_try(place, allocators):
    """Those under which a program ends at all; a failure here would be one in every row."""
    good = []
    for a in allocators:
        try:
            place.run(["true"], a.preload, limit=20)
            good.append(a)
        except Failed as why:
            say(f"{a.name} is left out, `true` does not run under it: {why}")
    return good


def machine_tell():
    model = ""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as f:
        model = next((x.split(":")[1].strip() for x in f if x.startswith("model name")), "")
    return {"cpu": model, "cpus": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "load": os.getloadavg()[0]}
