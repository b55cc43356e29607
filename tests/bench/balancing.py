# SPDX-License-Identifier: MIT
"""NUMA balancing switched on for a while.  A process of its own puts the old value back as soon as we
are done or gone, by whatever signal."""
import contextlib
import fcntl
import os
import subprocess
import sys

SWITCH = "/proc/sys/kernel/numa_balancing"
NODES = "/sys/devices/system/node"
GUARDIAN = """
import signal, sys
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)
print("ready", flush=True)
sys.stdin.read()
with open(sys.argv[1], "w") as f:
    f.write(sys.argv[2])
"""


class Unable(Exception):
    """This machine, or this user, cannot."""


def switch_read(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError as why:
        raise Unable(f"this kernel has no NUMA balancing ({path}: {why.strerror})") from None


@contextlib.contextmanager
def switched_on(path=SWITCH):
    old = switch_read(path)
    if not os.access(path, os.W_OK):
        raise Unable(f"{path} cannot be written by this user")
    lock = os.open(NODES if os.path.isdir(NODES) else "/proc", os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)  # nobody else takes our 1 for the old value
    old = switch_read(path)
    guardian = subprocess.Popen([sys.executable, "-c", GUARDIAN, path, old], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, start_new_session=True,
                                pass_fds=[lock])  # the lock lasts until the old value is back
    try:
        guardian.stdout.readline()
        with open(path, "w") as f:
            f.write("1")
        yield
    finally:
        guardian.stdin.close()
        guardian.wait()
        guardian.stdout.close()
        os.close(lock)
