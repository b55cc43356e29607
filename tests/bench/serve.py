# SPDX-License-Identifier: MIT
"""serve.py redis|memcached: starts the server on a socket in this folder, under the library that
BENCH_PRELOAD names, loads it from outside, and tells the server's own
    cpu=S wall=S rss=KIB faults=N
"""
import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

LIMIT = 10  # seconds until it answers


def socket_wait(path, process):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX) as s:
            with contextlib.suppress(OSError):
                s.connect(path)
                return
        if process.poll() is not None:
            sys.exit(f"serve: it ended with status {process.returncode} before it served")
        time.sleep(0.005)
    sys.exit("serve: it does not answer")


def rss_peak(pid):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    sys.exit("serve: it died under its load")


def redis_load(path):
    subprocess.run(["redis-benchmark", "-s", path, "-t", "set,get,incr,lpush,lpop,sadd,hset,zadd",
                    "-n", "60000", "-r", "50000", "-d", "200", "-P", "16", "-q"], check=True,
                   stdout=subprocess.DEVNULL)


def memcached_load(path):
    """Sets and gets in long batches over connections that come and go."""
    rng = random.Random(42)
    value = b"x" * 2000
    for batch in range(120):
        keys = [b"key%d" % rng.randrange(40000) for _ in range(1000)]
        lines = [b"set %s 0 0 %d noreply\r\n%s\r\n" % (k, n, value[:n])
                 for k, n in ((k, rng.randrange(16, 1500)) for k in keys)]
        asked = b"".join(b"get " + b" ".join(keys[i:i + 50]) + b"\r\n"
                         for i in range(0, len(keys), 50)) + b"mn\r\n"
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(path)
            s.sendall(b"".join(lines))
            s.sendall(asked)
            tail = b""
            while not tail.endswith(b"MN\r\n"):
                got = s.recv(1 << 20)
                if not got:
                    sys.exit("serve: it closed the connection")
                tail = (tail + got)[-8:]


SERVERS = {
    "redis": (["redis-server", "--unixsocket", "socket", "--port", "0", "--save", "",
               "--appendonly", "no", "--daemonize", "no", "--dir", ".", "--loglevel", "warning"],
              redis_load),
    "memcached": (["memcached", "-s", "socket", "-m", "128", "-t", "2", "-u", "root"],
                  memcached_load),
}


def libc_path():
    """Debian's redis is linked with jemalloc, so glibc's malloc has to be asked for."""
    with open("/proc/self/maps") as f:
        return next((line.split()[-1] for line in f if "/libc.so" in line), "")


def serve(name):
    argv, load = SERVERS[name]
    preload = os.environ.pop("BENCH_PRELOAD", "") or libc_path()
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               env={**os.environ, "LD_PRELOAD": preload})
    try:
        socket_wait("socket", process)
        start = time.monotonic()
        load("socket")
        wall = time.monotonic() - start
        rss = rss_peak(process.pid)
        process.terminate()
        _, _, use = os.wait4(process.pid, 0)
        process.returncode = 0
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
    print(f"cpu={use.ru_utime + use.ru_stime:.6f} wall={wall:.6f} rss={rss} faults={use.ru_minflt}")


def main():
    folder = tempfile.mkdtemp(prefix="serve-", dir=".")
    try:
        os.chdir(folder)  # the socket's path stays short
        serve(sys.argv[1])
    finally:
        os.chdir("..")
        shutil.rmtree(folder, ignore_errors=True)


main()
