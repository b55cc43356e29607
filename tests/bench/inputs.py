# SPDX-License-Identifier: MIT
"""What the real programs of the benchmark are given to do, made from fixed seeds."""
import os
import random


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
