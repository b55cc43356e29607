# SPDX-License-Identifier: MIT
"""Results of a suite in Python, as tests/run reads them."""
count = failed = 0
LINES, WIDTH = 200, 2000  # shown of what is wrong


def ok(good, name, *why):
    global count, failed
    count += 1
    print(f"{'' if good else 'not '}ok {count} - {name}", flush=True)
    if not good:
        failed += 1
        for line in "\n".join(str(w) for w in why).splitlines()[:LINES]:
            print("#", line[:WIDTH])
    return good


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {why}", flush=True)


def plan():
    """When all was said; the exit status."""
    print(f"1..{count}")
    return failed > 0
