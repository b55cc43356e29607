# SPDX-License-Identifier: MIT
import gc, hashlib, json, multiprocessing, os, re, sqlite3, subprocess, sys, threading, zlib
from concurrent.futures import ThreadPoolExecutor

os.environ["X"] = "y"


class Node:
    def __init__(self, n):
        self.n, self.me, self.more = n, self, [None] * (n % 50)


def churn(seed):
    blocks, x = [], seed
    for i in range(30000):
        x = (x * 1103515245 + 12345) % 2**31
        if len(blocks) > 300:
            blocks[x % 300] = bytes(x % 4000)
        else:
            blocks.append(bytearray(x % 70000))
    return sum(map(len, blocks))


def child(n):
    return churn(n)


nodes = [Node(i) for i in range(50000)]
del nodes
print(gc.collect() > 0)
with ThreadPoolExecutor(4) as pool:
    print(sorted(pool.map(churn, range(4))))
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(child, range(4)))
text = json.dumps({str(i): ["x" * (i % 100), i, {"a": i}] for i in range(20000)})
print(len(text), hashlib.sha256(text.encode()).hexdigest())
print(len(json.loads(text)), len(re.findall(r"x+", text)))
data = os.urandom(10) * 200000
print(zlib.decompress(zlib.compress(data, 1)) == data)
db = sqlite3.connect(":memory:")
db.execute("create table t(a integer, b text)")
db.executemany("insert into t values(?, ?)", ((i, "t" * (i % 80)) for i in range(50000)))
print(db.execute("select sum(a), sum(length(b)) from t").fetchall())
big = 3**20000
print(len(hex(big)), big % 1000007)
for i in range(20):
    r = subprocess.run(["/bin/echo", str(i)], capture_output=True)
    assert r.stdout == f"{i}\n".encode()
threads = [threading.Thread(target=churn, args=(i,)) for i in range(10)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sys.getsizeof([0] * 1000000), memoryview(bytearray(10**8))[::1000000].nbytes)
