# SPDX-License-Identifier: MIT
"""One guest: QEMU's command line from a topology, its life, and the lines that come out of it."""
import ctypes
import os
import re
import selectors
import signal
import subprocess
import time

BOOT_SECONDS = 180  # until the guest says @up; software emulation on shared cores is slow
SLACK_SECONDS = 30  # what a check may take beyond its own limit before the guest counts as hung


def topology_args(path):
    """(QEMU's arguments, number of CPUs) of a topology file; see topology/*.topo."""
    args, cpus, total = [], 0, 0
    with open(path) as f:
        for line in f:
            word = line.split("#")[0].split()
            if not word:
                continue
            if word[0] == "dist":
                args += ["-numa", "dist,src=%s,dst=%s,val=%s" % tuple(word[1:4])]
                continue
            if word[0] != "node":
                raise ValueError(f"{path}: {line.strip()}")
            option = dict(x.split("=") for x in word[2:])
            node = f"node,nodeid={word[1]}"
            if "cpus" in option:
                node += f",cpus={option['cpus']}"
                cpus = max(cpus, int(re.findall(r"[0-9]+", option["cpus"])[-1]) + 1)
            if "mem" in option:
                total += int(option["mem"])
                args += ["-object", f"memory-backend-ram,id=m{word[1]},size={option['mem']}M"]
                node += f",memdev=m{word[1]}"
            args += ["-numa", node]
    return ["-smp", f"{cpus},sockets={cpus}", "-m", f"{total}M"] + args


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Guest:
    def __init__(self, topology, kernel, series, initrd, console):
        # Kernel 6.12 oopsed under thread=multi.
        thread = "single" if series == "6.12" else "multi"
        self.console = console
        cmd = ["qemu-system-x86_64", "-accel", f"tcg,thread={thread}", "-cpu", "max",
               "-display", "none", "-monitor", "none", "-no-reboot", "-nic", "none",
               "-serial", f"file:{console}", "-serial", "stdio",
               # An empty disk of zeroes whose pages fill the page cache.
               "-blockdev", "null-co,node-name=zero,size=4294967296,read-zeroes=on",
               "-device", "nvme,drive=zero,serial=zero",
               "-kernel", kernel, "-initrd", initrd,
               "-append", "console=ttyS0 quiet rdinit=/init panic=-1 nokaslr"]
        self.qemu = subprocess.Popen(cmd + topology_args(topology), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     start_new_session=True, preexec_fn=die_with_parent)
        self.deadline = time.monotonic() + BOOT_SECONDS
        self.why_dead, self.is_up = None, False

    def expect_within(self, seconds):
        self.deadline = time.monotonic() + seconds + SLACK_SECONDS

    def lines(self):
        """Lines of the guest's second serial port, until it is off, dead or past the deadline."""
        fd, rest = self.qemu.stdout.fileno(), b""
        os.set_blocking(fd, False)
        with selectors.DefaultSelector() as sel:
            sel.register(fd, selectors.EVENT_READ)
            while True:
                left = self.deadline - time.monotonic()
                if left <= 0:
                    self.why_dead = "the guest hung"
                    break
                if not sel.select(min(left, 1)):
                    continue
                data = os.read(fd, 65536)
                if not data:
                    self.why_dead = "the guest went down"
                    break
                rest += data
                *full, rest = rest.split(b"\n")
                for line in full:
                    yield line.decode(errors="replace").rstrip("\r")
        if rest:
            yield rest.decode(errors="replace")

    def console_tail(self, count=25):
        try:
            with open(self.console, errors="replace") as f:
                return [x.rstrip() for x in f.read().splitlines()[-count:]]
        except OSError:
            return []

    def stop(self):
        if self.qemu.poll() is None:
            self.qemu.kill()
        self.qemu.wait()
        self.qemu.stdout.close()
