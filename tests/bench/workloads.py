# SPDX-License-Identifier: MIT
"""The real programs: what each is given to do, made from fixed seeds, and how it is measured.

A workload's run(place, allocator) returns {"wall", "cpu", "rss", "faults"}: seconds, seconds of
the program's own processor time, KiB of peak resident set, minor faults.
"""
import os
import random
import shutil
import socket
import subprocess
import time


class Skip(Exception):
    """The machine lacks the program."""


class Failed(Exception):
    """The program did not do its work under this allocator."""


def key_values(text):
    return {k: float(v) for k, _, v in (word.partition("=") for word in text.split()) if v}


class Command:
    """One command, run to its end under `measure`."""

    def __init__(self, name, argv, make=None, stdin=None, env=None, times=1, metric="cpu"):
        self.name, self.argv, self.make, self.stdin = name, argv, make, stdin
        self.env, self.times, self.metric = env or {}, times, metric

    def prepare(self, place):
        if not shutil.which(self.argv[0]):
            raise Skip(f"{self.argv[0]} is not installed")
        if self.make:
            self.make(place.directory)

    def run(self, place, allocator):
        out = os.path.join(place.directory, "measured")
        argv = [place.program("measure"), "-n", str(self.times), "-o", out]
        if allocator.preload:
            argv += ["-p", allocator.preload]
        argv += ["--"] + [a.replace("@", place.directory + "/") for a in self.argv]
        stdin = os.path.join(place.directory, self.stdin) if self.stdin else os.devnull
        with open(stdin, "rb") as given:
            text = place.run(argv, stdin=given, env=self.env)
        with open(out) as f:
            got = key_values(f.read())
        if got["status"]:
            raise Failed(f"status {got['status']:.0f}: {text[-200:]!r}")
        return {"wall": got["each"], "rss": got["rss"], "faults": got["faults"],
                "cpu": (got["user"] + got["sys"]) / self.times}


class Server:
    """A server on a socket in the bench's own folder, loaded from outside."""

    metric = "cpu"

    def __init__(self, name, argv, load, needs=(), bundled=False):
        self.name, self.argv, self.load = name, argv, load
        self.needs = (argv[0],) + tuple(needs)
        self.bundled = bundled  # linked with an allocator: glibc's has to be asked for

    def prepare(self, place):
        for program in self.needs:
            if not shutil.which(program):
                raise Skip(f"{program} is not installed")

    def run(self, place, allocator):
        path = os.path.join(place.directory, "socket")
        if os.path.exists(path):
            os.unlink(path)
        preload = allocator.preload or (place.libc if self.bundled else None)
        process = place.start([a.replace("@", place.directory + "/") for a in self.argv], preload)
        try:
            socket_wait(path, process)
            start = time.monotonic()
            self.load(place, path)
            wall = time.monotonic() - start
            rss = rss_peak(process.pid)
            process.terminate()
            _, _, use = os.wait4(process.pid, 0)
            process.returncode = 0
            return {"wall": wall, "cpu": use.ru_utime + use.ru_stime, "rss": rss,
                    "faults": use.ru_minflt}
        finally:
            place.stop(process)


def socket_wait(path, process, limit=10):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                return
        except OSError:
            if process.poll() is not None:
                raise Failed(f"ended with status {process.returncode} before it served") from None
            time.sleep(0.005)
    raise Failed("does not answer")


def rss_peak(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1])
    except OSError:
        pass
    raise Failed("died under its load")


def redis_load(place, path):
    place.run(["redis-benchmark", "-s", path, "-t", "set,get,incr,lpush,lpop,sadd,hset,zadd",
               "-n", "60000", "-r", "50000", "-d", "200", "-P", "16", "-q"])


def memcached_load(place, path):
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
                    raise Failed("closed the connection")
                tail = (tail + got)[-8:]


def write(directory, name, text):
    with open(os.path.join(directory, name), "w") as f:
        f.write(text)


def c_source(directory):
    rng = random.Random(42)
    parts = ["struct s { int a, b; struct s *next; double d[4]; };\n"]
    for i in range(180):
        cases = "".join(f"case {k}: x += p->a * {rng.randrange(1, 99)}; "
                        f"p->d[{k % 4}] += y / {k + 1}.0; break;\n" for k in range(12))
        parts.append(f"static int f{i}(struct s *p, int x, double y)\n{{\n"
                     f"for (int i = 0; i < x; i++) {{\nswitch ((i ^ p->b) % 13) {{\n{cases}"
                     f"default: p = p->next; y *= {rng.random():.6f};\n}}\n}}\n"
                     + (f"return f{rng.randrange(i)}(p, x & 7, y) + p->a;\n}}\n" if i else
                        "return x;\n}\n"))
    parts.append("int main(int n, char **v)\n{\nstruct s s = {n, n, &s, {0}};\nint r = !v;\n"
                 + "".join(f"r += f{i}(&s, n, n);\n" for i in range(0, 180, 3))
                 + "return r;\n}\n")
    write(directory, "source.c", "".join(parts))


def cxx_source(directory):
    write(directory, "source.cc", """
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct item { std::map<std::string, std::vector<int>> m;
\tstd::unordered_map<int, std::set<std::string>> u;
\tint sum() { int s = N; for (auto &[k, v] : m) { std::sort(v.begin(), v.end()); s += v.size(); }
\tfor (auto &[k, v] : u) s += v.size() + item<N - 1>().sum(); return s; } };
template <> struct item<0> { int sum() { return 0; } };
int main(int n, char **v)
{
\tstd::regex r(v[0]);
\tstd::function<int(int)> f = [&](int x) { return x + item<24>().sum(); };
\tstd::cout << f(n) << std::regex_match(v[0], r);
}
""")


def sql_script(directory):
    write(directory, "script.sql", """
create table t(id integer primary key, k integer, name text, body text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 120000)
  insert into t select i, (i * 7919) % 5003, 'name' || (i * 31 % 9973),
    substr(hex(i * 2654435761) || hex(i * 40503) || 'abcdefghijklmnopqrstuvwxyz', 1, 8 + i % 60)
    from n;
create index tk on t(k, name);
create index tn on t(name);
select count(*), sum(length(g)) from
  (select k, group_concat(body) g from t group by k order by max(name));
select count(*) from t a join t b on a.k = b.k and b.id < a.id where a.id % 7 = 0;
update t set body = body || name where k % 3 = 0;
delete from t where k % 5 = 1;
select count(distinct body), max(upper(name) || lower(body)) from t;
vacuum;
""")


def python_script(directory):
    write(directory, "script.py", """
import json, collections
class Node:
    __slots__ = ("left", "right", "value")
    def __init__(self, depth):
        self.value = depth
        self.left = Node(depth - 1) if depth else None
        self.right = Node(depth - 1) if depth else None
rows = [{"id": i, "name": "name%d" % i, "tags": [str(i * k) for k in range(5)]}
        for i in range(25000)]
for turn in range(3):
    text = json.dumps(rows)
    back = json.loads(text)
words = collections.Counter(w for r in back for w in r["tags"])
trees = [Node(12) for _ in range(6)]
lines = ("\\n".join("%s:%d" % p for p in words.items())).split("\\n")
big = [bytearray(n * 37 % 9000 + 600) for n in range(20000)]
for turn in range(4):
    big[turn::3] = [bytes(n * 53 % 7000 + 600) for n in range(len(big[turn::3]))]
print(len(text), len(words), len(lines), sum(map(len, big)))
""")


def lua_script(directory):
    write(directory, "script.lua", """
local function tree(d) if d == 0 then return {d} end return {tree(d - 1), tree(d - 1), d} end
local kept = {}
for i = 1, 12 do kept[i % 4 + 1] = tree(14) end
local words, n = {}, 0
for i = 1, 250000 do
  local w = "word" .. (i * 7919 % 50021)
  if not words[w] then words[w] = {count = 0, at = {}}; n = n + 1 end
  local e = words[w]
  e.count = e.count + 1
  e.at[#e.at + 1] = i
end
local parts = {}
for w, e in pairs(words) do parts[#parts + 1] = w .. "=" .. e.count .. ";" end
table.sort(parts)
local text = table.concat(parts)
local up = text:gsub("%d+", function(s) return "<" .. s .. ">" end)
print(n, #text, #up)
""")


def postscript(directory):
    rng = random.Random(42)
    parts = ["%!PS\n/Times-Roman findfont 11 scalefont setfont\n"]
    for page in range(2):
        for line in range(60):
            text = " ".join("".join(rng.choice("etaoinshrdlu") for _ in range(rng.randrange(2, 9)))
                            for _ in range(14))
            parts.append(f"40 {760 - line * 12} moveto ({text}) show\n")
        for _ in range(400):
            c = [rng.randrange(600) for _ in range(8)]
            parts.append(f"{rng.random():.2f} {rng.random():.2f} {rng.random():.2f} setrgbcolor "
                         f"newpath {c[0]} {c[1]} moveto {c[2]} {c[3]} {c[4]} {c[5]} {c[6]} {c[7]} "
                         f"curveto closepath {'fill' if rng.random() < .4 else 'stroke'}\n")
        parts.append("showpage\n")
    write(directory, "pages.ps", "".join(parts))


def java_source(directory):
    write(directory, "Work.java", """
import java.nio.ByteBuffer;
import java.util.*;
import java.util.zip.*;
public class Work {
  public static void main(String[] a) throws Exception {
    Random r = new Random(42);
    byte[] in = new byte[60000], out = new byte[70000];
    r.nextBytes(in);
    for (int i = 0; i < in.length; i++) in[i] &= 15;
    long sum = 0;
    ByteBuffer[] kept = new ByteBuffer[500];
    for (int i = 0; i < 150; i++) {
      Deflater d = new Deflater(1 + i % 6);
      d.setInput(in, 0, 20000 + r.nextInt(40000));
      d.finish();
      int n = d.deflate(out);
      d.end();
      Inflater f = new Inflater();
      f.setInput(out, 0, n);
      sum += f.inflate(in);
      f.end();
      for (int k = 0; k < 40; k++)
        kept[r.nextInt(kept.length)] = ByteBuffer.allocateDirect(64 + r.nextInt(20000));
    }
    for (ByteBuffer b : kept) if (b != null) sum += b.capacity();
    System.out.println(sum);
  }
}
""")


WORKLOADS = [
    Server("redis", ["redis-server", "--unixsocket", "@socket", "--port", "0", "--save", "",
                     "--appendonly", "no", "--daemonize", "no", "--dir", "@", "--loglevel",
                     "warning"], redis_load, needs=["redis-benchmark"], bundled=True),
    Server("memcached", ["memcached", "-s", "@socket", "-m", "128", "-t", "2", "-u", "root"],
           memcached_load),
    Command("sqlite3", ["sqlite3", "-batch", ":memory:"], make=sql_script, stdin="script.sql"),
    Command("gcc", ["gcc", "-O2", "-w", "-c", "-o", "@source.o", "@source.c"], make=c_source),
    Command("g++", ["g++", "-std=c++17", "-w", "-c", "-o", "@source.o", "@source.cc"],
            make=cxx_source),
    Command("python3", ["/usr/bin/python3", "-I", "@script.py"], make=python_script),
    Command("python3-malloc", ["/usr/bin/python3", "@script.py"], make=python_script,
            env={"PYTHONMALLOC": "malloc"}),
    Command("lua", ["lua5.4", "@script.lua"], make=lua_script),
    Command("ghostscript", ["gs", "-q", "-dBATCH", "-dNOPAUSE", "-dSAFER", "-sDEVICE=png16m",
                            "-dTextAlphaBits=4", "-dGraphicsAlphaBits=4", "-r120",
                            "-sOutputFile=@page%d.png", "@pages.ps"], make=postscript),
    Command("java", ["java", "-Xmx256m", "-XX:+UseSerialGC", "@Work.java"], make=java_source),
    Command("start-up", ["true"], times=300, metric="wall"),
]
