#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Statistics and verdicts of numaslab compare on samples that are known (--replay), against an
implementation of our own here, and every form against a real parser."""
import itertools
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import (Skip, compare, experiment, main, metric, noisy, replay,  # noqa: E402
                    status, test, three)


# --- the other implementation -------------------------------------------------------------------

def boot_medians(effects, rounds=20000, seed=99):
    rng = random.Random(seed)
    n = len(effects)
    return sorted(statistics.median(rng.choices(effects, k=n)) for _ in range(rounds))


def two_sided(effects, limit):
    medians = boot_medians(effects)
    under = sum(m <= limit for m in medians) / len(medians)
    floor = 0.5 ** len(effects)
    return min(1, 2 * min(max(under, floor), max(1 - under, floor)))


def holm(ps):
    """By its definition: the k-th smallest is rejected at alpha iff all p(i)*(m-i+1) <= alpha."""
    order = sorted(range(len(ps)), key=ps.__getitem__)
    return [min(1, max(ps[i] * (len(ps) - k) for k, i in enumerate(order) if ps[i] <= p))
            for p in ps]


@test
def summaries_agree_with_python():
    a, b, c = three(1, 17, 3.0, 3.3, 3.0, 0.05)
    _, out = replay(experiment(a, b, c), "-r", "17")
    for side, v in (("before", a), ("after", b)):
        s = metric(out)[side]
        assert s["runs"] == 17
        for key, expected in (("min", min(v)), ("max", max(v)), ("mean", statistics.fmean(v)),
                              ("stddev", statistics.stdev(v)), ("median", statistics.median(v))):
            assert math.isclose(s[key], expected, rel_tol=1e-9), (side, key)


@test
def intervals_and_p_agree_with_python():
    for seed, n, after, spread in ((2, 9, 1.06, 0.02), (3, 16, 1.04, 0.05), (4, 25, 0.98, 0.1),
                                   (5, 12, 1.05, 0.01), (6, 31, 1.10, 0.08)):
        a, b, c = three(seed, n, 1.0, after, 1.0, spread, drift=0.2)
        effects = [y / x - 1 for x, y in zip(a, b)]
        medians = boot_medians(effects)
        _, out = replay(experiment(a, b, c), "-r", n, "--max-pairs", n, "--fail-over", "time=5%")
        m = metric(out)
        # Quantiles of 9999 resamples are off by 0.16 % (one standard error); four of them.
        around = [(medians[int(20000 * (q - 0.0065))], medians[int(20000 * (q + 0.0065))])
                  for q in (0.025, 0.975)]
        assert math.isclose(m["change"], statistics.median(effects), abs_tol=1e-9)
        for ours, (least, most) in zip(m["interval"], around):
            assert least - 1e-9 <= ours <= most + 1e-9, (seed, m["interval"], around)
        assert abs(m["p"] - two_sided(effects, 0.05)) < 0.03, (seed, m["p"])


@test
def small_samples_agree_with_every_resample():
    a, b = [1.0] * 4 + [1.00001], [1.01, 1.03, 1.08, 1.02, 1.06]
    effects = [y / x - 1 for x, y in zip(a, b)]
    medians = [statistics.median(r) for r in itertools.product(effects, repeat=5)]
    under = sum(m <= 0.04 for m in medians) / len(medians)
    _, out = replay(experiment(a, b, a), "-r", 5, "--max-pairs", 5, "--fail-over", "time=4%")
    assert abs(metric(out)["p"] - 2 * min(under, 1 - under)) < 0.03


@test
def holm_agrees_with_its_definition():
    rng = random.Random(11)
    names = ["time", "sys", "user", "rss", "minor_faults"]
    shift = [1.08, 1.05, 1.02, 1.055, 1.04]

    def rows(factor):
        return [{n: f * (1 + rng.gauss(0, 0.02)) for n, f in zip(names, factor)}
                for _ in range(14)]

    a, b, c = rows([1] * 5), rows(shift), rows([1] * 5)
    single = []
    for n in names:
        _, out = replay(experiment(a, b, c), "-r", 14, "--max-pairs", 14, "--fail-over", n + "=5%")
        single.append(metric(out, n)["p"])
    _, out = replay(experiment(a, b, c), "-r", 14, "--max-pairs", 14,
                    "--fail-over", ",".join(n + "=5%" for n in names))
    together = [metric(out, n)["p"] for n in names]
    assert all(math.isclose(x, y, abs_tol=1e-9) for x, y in zip(together, holm(single))), \
        (together, holm(single))


# --- verdicts ---------------------------------------------------------------------------------

@test
def slow_fast_and_equal_commands():
    for after, spread, expected in ((1.20, 0.02, 1), (0.80, 0.02, 0), (1.00, 0.01, 0)):
        code, out = replay(experiment(*three(21, 40, 1, after, 1, spread)))
        assert code == expected, (after, out["verdict"])
        assert out["exit_status"] == code


@test
def a_command_at_the_limit_or_noisy_is_undecided():
    code, out = replay(experiment(*three(22, 40, 1, 1.05, 1, 0.02)))
    assert code == 6 and out["verdict"] == "INCONCLUSIVE", out["verdict"]
    code, out = replay(experiment(*three(23, 10, 1, 1, 1, 0.5)), "--max-pairs", 10)
    assert code == 6, out["verdict"]


@test
def a_drift_that_pairs_share_does_no_harm():
    # 30 % of drift between pairs, 1 % within: hopeless without pairing, plain with it.
    code, out = replay(experiment(*three(24, 40, 1, 1.12, 1, 0.01, drift=0.3)))
    assert code == 1, metric(out)
    code, out = replay(experiment(*three(24, 40, 1, 1.01, 1, 0.01, drift=0.3)))
    assert code == 0, metric(out)


@test
def the_control_must_pass():
    code, out = replay(experiment(*three(25, 40, 1, 1.10, 1.08, 0.01)), "--fail-over", "time=5%")
    assert code == 6 and out["verdict"] == "NOISY", out["verdict"]
    assert metric(out)["control"]["passed"] is False
    code, out = replay(experiment(*three(25, 40, 1, 1.10, 1.00, 0.01)), "--fail-over", "time=5%")
    assert code == 1 and metric(out)["control"]["passed"] is True


@test
def looks_stop_as_soon_as_it_is_plain():
    _, out = replay(experiment(*three(26, 40, 1, 1.5, 1, 0.01)))
    assert out["pairs"] == 10 and out["looks"] == [10, 20, 40]
    _, out = replay(experiment(*three(27, 40, 1, 1.05, 1, 0.02)))
    assert out["pairs"] == 40
    _, out = replay(experiment(*three(28, 40, 1, 1.065, 1, 0.03)), "--fail-over", "time=5%")
    assert out["pairs"] in (20, 40)


@test
def hint_faults_are_judged_in_absolute_numbers():
    before = [5000 + 37 * (i % 7) for i in range(10)]
    control = [5100 + 31 * (i % 5) for i in range(10)]
    name = "numa_hint_faults"
    code, out = replay(experiment(before, [0] * 10, control, name), "--fail-over", "hint_faults=0")
    assert code == 0, out["verdict"]
    m = metric(out, name)
    assert m["change"] < -5000 and m["scale"] == "absolute"
    code, _ = replay(experiment([0] * 10, before, [0] * 10, name), "--fail-over", "hint_faults=0")
    assert code == 1
    code, _ = replay(experiment([0] * 10, [0] * 10, [0] * 10, name), "--fail-over", "hint_faults=0")
    assert code == 0


@test
def the_commands_own_figure_higher_is_better():
    slower = experiment(*three(29, 10, 1000, 900, 1000, 0.01), metric="metric",
                        metric_better="higher")
    slower["metric"] = "ops"
    for sample in slower["samples"]:
        sample["time"] = 1
    assert replay(slower, "--fail-over", "metric=5%")[0] == 1
    slower["metric_better"] = "lower"
    assert replay(slower, "--fail-over", "metric=5%")[0] == 0


@test
def processor_time_is_known_of_older_files():
    rows = [[{"time": 1, "rss": 1e6, "user": u, "sys": .5} for _ in range(8)] for u in (1, 2, 1)]
    code, out = replay(experiment(*rows), "-r", 2, "--fail-over", "cpu=5%")
    assert code == 1 and metric(out, "cpu")["before"]["mean"] == 1.5, metric(out, "cpu")


@test
def deterministic_counts_need_two_pairs():
    grown = experiment([100000, 100000], [102500, 102500], [100000, 100000], "metric")
    assert replay(grown, "-r", 2, "--fail-over", "metric=2%")[0] == 1
    assert replay(grown, "-r", 2, "--fail-over", "metric=3%")[0] == 0
    single = experiment([100000], [102500], [100000], "metric")
    assert replay(single, "-r", 1, "--fail-over", "metric=2%")[0] == 6


@test
def wrong_verdicts_are_rarer_than_alpha():
    # The truth lies exactly at the limit, where a wrong FAIL is as likely as it ever gets; each
    # experiment looks up to three times.  Alpha is 5 % two-sided; 200 experiments.
    fails = sum(replay(experiment(*three(1000 + i, 40, 1, 1.05, 1, 0.03)),
                       "--fail-over", "time=5%")[0] == 1 for i in range(200))
    assert fails <= 11, f"{fails} of 200"  # 2.5 % are 5; 12 or more come once in 150 suites


@test
def a_later_run_is_judged_against_a_base():
    rng = random.Random(31)
    base = experiment(noisy(rng, 12, 1, .01), noisy(rng, 12, .8, .01), noisy(rng, 12, 1, .01))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(base, file)
        file.flush()
        for reference, after, expected in ((1, .8, 0), (1, .92, 1), (1.15, .92, 6)):
            now = experiment(noisy(rng, 10, reference, .01), noisy(rng, 10, after, .01), [])
            code, out = replay(now, "--base", file.name, "--fail-over", "time=5%")
            assert code == expected, (reference, after, out["verdict"], metric(out))
            assert metric(out)["before"]["runs"] == 12
        with tempfile.NamedTemporaryFile("w", suffix=".json") as short:
            json.dump(experiment([1], [.8], [1]), short)
            short.flush()
            for name, said in ((short.name, True), (file.name, False)):
                code, out = replay(now, "--base", name)
                assert any("the base holds 1 runs" in note for note in out["notes"]) == said, out["notes"]
        other = dict(experiment([1], [1], []), command=["false"])
        with tempfile.NamedTemporaryFile("w", suffix=".json") as second:
            json.dump(other, second)
            second.flush()
            status(compare("--replay", second.name, "--base", file.name), 2)


@test
def what_one_side_alone_can_tell_is_shown():
    def rows(**more):
        return [{"time": 1 + i / 1000, "rss": 1e6, **more} for i in range(10)]

    both = experiment(rows(), rows(ladder_any_new=3, fragmentation=.04), rows())
    code, out = replay(both)
    assert code == 0
    row = metric(out, "fragmentation")
    assert row["before"]["runs"] == 0 and row["after"]["mean"] == .04 and row["change"] is None
    _, text = replay(both, raw=True)
    assert ["fragmentation", "-", "4.00", "%", "-"] in [x.split() for x in text.splitlines()], text
    # A limit on it is not passed by silence ...
    code, out = replay(both, "--fail-over", "fragmentation=5%")
    assert code == 6 and any("fragmentation" in note for note in out["notes"]), out["notes"]
    # ... but is judged where both sides have it.
    for now, expected in ((3, 0), (9, 1)):
        two = experiment(rows(ladder_any_new=3), rows(ladder_any_new=now), rows(ladder_any_new=3))
        assert replay(two, "--fail-over", "any_new=2")[0] == expected


@test
def the_seed_decides_the_resamples_and_nothing_else():
    document = experiment(*three(32, 20, 1, 1.04, 1, 0.04))
    first, again = replay(document, "--seed", 5)[1], replay(document, "--seed", 5)[1]
    other = replay(document, "--seed", 6)[1]
    assert first == again
    assert metric(first)["p"] != metric(other)["p"]
    assert metric(first)["change"] == metric(other)["change"]


# --- forms --------------------------------------------------------------------------------------

HOSTILE = ["sh", "-c", "echo \"<&>\" ]]> '`|`' \\\n\x1b[31m\x85\ufffe", "a\tb", "--", "$(x)", ""]
CASES = [(1, 1.2), (0, 0.8), (6, 1.05)]


def hostile(after, **more):
    return dict(experiment(*three(41, 40, 1, after, 1, 0.02)), command=HOSTILE,
                before={"name": "a|b <&\">"}, after={"name": "c`d* _e_"}, **more)


@test
def junit_is_valid_and_counts_right():
    if not shutil.which("xmllint"):
        raise Skip("no xmllint (libxml2-utils)")
    for expected, after in CASES:
        code, text = replay(hostile(after), "--junit", "-", "--fail-over", "time=5%", raw=True)
        assert code == expected
        lint = subprocess.run(["xmllint", "--noout", "-"], input=text, text=True,
                              capture_output=True)
        assert lint.returncode == 0, lint.stderr
        suite = ElementTree.fromstring(text.encode()).find("testsuite")
        cases = suite.findall("testcase")
        assert int(suite.get("tests")) == len(cases) == 2
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(key)) == len(suite.findall(f"testcase/{tag}")), key
        assert int(suite.get("failures")) == (expected == 1)
        assert int(suite.get("skipped")) == (expected == 6)


@test
def junit_of_a_failed_command():
    document = hostile(1.0, problem={"what": "killed <by> \"9\" & more", "how": "x <y>",
                                     "output": "line]]>\n\x00\x1b\x85\uffff<&"})
    code, text = replay(document, "--junit", "-", raw=True)
    assert code == 7
    suite = ElementTree.fromstring(text.encode()).find("testsuite")
    assert suite.get("errors") == "1" and suite.get("tests") == "1"
    assert suite.find("testcase/error").get("message") == "killed <by> \"9\" & more"


@test
def a_hostile_file_does_not_reach_the_terminal():
    bad = "x\x1b[31m\x85\x07"
    document = dict(experiment(*three(45, 9, 1, 1, 1, 0.02)), command=["a" + bad],
                    before={"name": "b" + bad}, after={"name": "c" + bad},
                    machine={"cpu": bad, "kernel": bad, "nodes": [{"node": 0, "cpus": bad}]},
                    peers=[{"name": "p" + bad, "problem": {"what": "q" + bad}, "samples": []}])
    failed = dict(document, problem={"what": bad, "how": bad, "output": bad + "\n" + bad})
    for d in (document, failed):
        for form in ("--table", "--markdown", "--junit=-"):
            text = replay(d, form, raw=True)[1]
            assert not set(text) & set("\x1b\x85\x07"), (form, text)


@test
def json_is_json_and_judges_itself_the_same():
    for expected, after in CASES:
        code, text = replay(hostile(after), "--json", raw=True)
        assert code == expected
        subprocess.run([sys.executable, "-m", "json.tool"], input=text, text=True, check=True,
                       stdout=subprocess.DEVNULL)
        first = json.loads(text)
        assert first["schema"] == 1 and first["exit_status"] == expected
        assert len(first["samples"]) == 120
        second = replay(first)[1]
        assert second == first, [k for k in first if first[k] != second[k]]


@test
def markdown_is_parsed_as_tables():
    if not shutil.which("cmark-gfm"):
        raise Skip("no cmark-gfm")
    for expected, after in CASES:
        code, text = replay(hostile(after), "--markdown", raw=True)
        assert code == expected
        html = subprocess.run(["cmark-gfm", "-e", "table"], input=text, text=True, check=True,
                              capture_output=True).stdout
        tree = ElementTree.fromstring("<r>" + html.replace("\ufffe", "?") + "</r>")
        tables = tree.findall("table")
        assert len(tables) == 3, html
        for table, columns in zip(tables, (6, 7, 4)):
            rows = table.findall("thead/tr") + table.findall("tbody/tr")
            assert all(len(list(row)) == columns for row in rows), html
        names = ["".join(td.itertext()) for td in tables[1].findall("tbody/tr/td")]
        assert "a|b <&\">" in names and "c`d* _e_" in names, names
        assert "".join(tree.find("h3").itertext()).endswith(
            {0: "PASS", 1: "FAIL", 6: "INCONCLUSIVE"}[expected])


@test
def the_table_has_the_shape_of_t2():
    rng = random.Random(42)

    def rows(hints, sys_time):
        return [{"time": 3 + rng.gauss(0, .01), "sys": sys_time + rng.gauss(0, .01), "user": 6,
                 "rss": 1e9, "numa_hint_faults": hints, "numa_pte_updates": hints and hints + 9,
                 "pgfault": 1000 + hints, "numa_miss": 0} for _ in range(10)]

    code, text = replay(experiment(rows(111878, .55), rows(0, .33), rows(111878, .55)),
                        "--fail-over", "hint_faults=0,sys=0%", raw=True)
    assert code == 0, text
    lines = [line.split() for line in text.splitlines()]
    assert ["Allocator", "Time", "Min", "Max", "Avg", "StdDev", "%Change"] in lines
    for who in ("glibc", "numaslab"):
        for row in ("Real:", "Sys:", "User:"):
            assert any(line[:2] == [who, row] for line in lines), (who, row)
    assert ["Parameter", "glibc", "numaslab", "%Change"] in lines
    assert ["numa_hint_faults", "111878", "0", "-100%"] in lines
    assert ["numa_pte_updates", "111887", "0", "-100%"] in lines
    assert not any(line[:1] == ["numa_miss"] for line in lines)  # zero on both sides
    sentence = text[text.index("numaslab against glibc:"):]
    assert "better at" in sentence and "numa_hint_faults" in sentence


@test
def colours_and_blocks_only_where_they_belong():
    document = experiment(*three(43, 10, 1, 1.2, 1, 0.02))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(document, file)
        file.flush()
        plain = compare("--replay", file.name, env={"LC_ALL": "C"}).stdout
        blocks = compare("--replay", file.name, env={"LC_ALL": "C.UTF-8"}).stdout
    assert plain.isascii() and "\x1b" not in plain
    assert "█" in blocks and "\x1b" not in blocks


@test
def files_are_written_and_the_table_still_shown():
    document = experiment(*three(44, 10, 1, 1.2, 1, 0.02))
    with tempfile.TemporaryDirectory() as folder:
        path = {kind: os.path.join(folder, kind) for kind in ("in", "json", "md", "xml")}
        with open(path["in"], "w") as file:
            json.dump(document, file)
        done = compare("--replay", path["in"], f"--json={path['json']}",
                       f"--markdown={path['md']}", "--junit", path["xml"])
        status(done, 1)
        assert "FAIL after 10 pairs" in done.stdout
        json.load(open(path["json"]))
        ElementTree.parse(path["xml"])
        assert open(path["md"]).read().startswith("### ")
        status(compare("--replay", path["in"], "--json=" + os.path.join(folder, "no/such")), 4)
        status(compare("--replay", path["in"], "--json", "--markdown"), 2)


@test
def wrong_files_are_told():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x")
        status(compare("--replay", path), 2)
        for text in ("", "{", "[]", '{"schema":2,"command":["x"]}'):
            with open(path, "w") as file:
                file.write(text)
            status(compare("--replay", path), 5)
            status(compare("--base", path, "--", "true"), 5)


main()
