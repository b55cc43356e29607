# SPDX-License-Identifier: MIT
"""The guest's kernel and initramfs."""
import glob
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile

# Kernel series -> what apt-cache calls its packages; the newest is taken.
SERIES = {
    "6.1": r"^linux-image-6\.1\.0-[0-9]+-cloud-amd64$",
    "6.12": r"^linux-image-6\.12\.[0-9]+\+deb12-cloud-amd64$",
}


class Missing(Exception):
    """Something this machine cannot give; the text is the reason of a skip."""


def run(cmd, **kw):
    try:
        return subprocess.run(cmd, check=True, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kw).stdout
    except FileNotFoundError:
        raise Missing(f"{cmd[0]} is not installed")
    except subprocess.TimeoutExpired:
        raise Missing(f"{cmd[0]} {cmd[1]} did not end in time")
    except subprocess.CalledProcessError as e:
        last = e.stdout.strip().splitlines()
        raise Missing(f"{' '.join(cmd[:3])}: {last[-1] if last else e.returncode}")


def kernel_packages(series):
    found = run(["apt-cache", "search", "--names-only", SERIES[series]], timeout=120).split("\n")
    return [line.split()[0] for line in found if line.startswith("linux-image-")]


def kernel_path(series, cache):
    """Path of a vmlinuz of that series: NUMASLAB_VM_KERNEL_<series>, the cache, or the package."""
    own = os.environ.get("NUMASLAB_VM_KERNEL_" + series.replace(".", "_"))
    if own:
        if not os.path.exists(own):
            raise Missing(f"no kernel at {own}")
        return own
    have = glob.glob(f"{cache}/kernel-{series}/vmlinuz-*")
    if have:
        return have[0]
    names = kernel_packages(series)
    if not names and os.geteuid() == 0:  # lists of a new machine may lack a part
        run(["apt-get", "-q", "update"], timeout=300)
        names = kernel_packages(series)
    if not names:
        raise Missing(f"apt-cache knows no kernel {series} (apt-get update first?)")
    newest = max(names, key=lambda n: [int(x) for x in re.findall(r"[0-9]+", n)])
    with tempfile.TemporaryDirectory(dir=cache, prefix="fetch-") as tmp:
        run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", newest], cwd=tmp,
            timeout=600)
        run(["dpkg-deb", "-x", glob.glob(f"{tmp}/*.deb")[0], f"{tmp}/x"], timeout=300)
        image = glob.glob(f"{tmp}/x/boot/vmlinuz-*")
        if not image:
            raise Missing(f"{newest} holds no vmlinuz")
        os.makedirs(f"{cache}/kernel-{series}", exist_ok=True)
        shutil.move(image[0], f"{cache}/kernel-{series}/")
    return glob.glob(f"{cache}/kernel-{series}/vmlinuz-*")[0]


def libraries(path):
    """What ldd names for a dynamic program or library, {guest path: host path}."""
    out = subprocess.run(["ldd", path], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT).stdout
    if "not found" in out:
        raise Missing(f"ldd {path}: " + [x for x in out.split("\n") if "not found" in x][0].strip())
    libs = {}
    for found in re.finditer(r"(?:(\S+) => )?(/\S+) \(0x", out):
        real = os.path.realpath(found.group(2))
        if found.group(1):
            libs["lib/" + os.path.basename(found.group(1))] = real
        else:
            libs[found.group(2).lstrip("/")] = real  # the loader, by its full name
    return libs


def digest(path, known={}):
    key = (path, os.stat(path).st_mtime_ns)
    if key not in known:
        with open(path, "rb") as f:
            known[key] = hashlib.sha256(f.read()).hexdigest()
    return known[key]


class Initramfs:
    """A list of files for the guest, written as a cpio archive (newc, uncompressed: quick to boot)."""

    def __init__(self):
        self.files = {}  # guest path -> host path or bytes

    def add(self, guest, host):
        self.files[guest] = host

    def add_program(self, host, guest=None):
        self.files[guest or "bin/" + os.path.basename(host)] = os.path.realpath(host)
        for name, path in libraries(host).items():
            self.files.setdefault(name, path)

    def entries(self):
        dirs = {"proc", "sys", "dev", "tmp", "root", "cg"}
        for name in self.files:
            while os.path.dirname(name):
                name = os.path.dirname(name)
                dirs.add(name)
        for name in sorted(dirs):
            yield name, stat.S_IFDIR | 0o755, b"", (0, 0)
        yield "dev/console", stat.S_IFCHR | 0o600, b"", (5, 1)
        for name, source in sorted(self.files.items()):
            if isinstance(source, str):
                with open(source, "rb") as f:
                    source = f.read()
            yield name, stat.S_IFREG | 0o755, source, (0, 0)
        yield "TRAILER!!!", 0, b"", (0, 0)

    def write(self, path):
        with open(path, "wb") as out:
            for ino, (name, mode, data, dev) in enumerate(self.entries(), 1):
                fields = (ino, mode, 0, 0, 1, 0, len(data), 0, 0, *dev, len(name) + 1, 0)
                out.write(b"070701" + b"".join(b"%08x" % x for x in fields) + name.encode() + b"\0")
                out.write(b"\0" * (-out.tell() % 4) + data)
                out.write(b"\0" * (-out.tell() % 4))
