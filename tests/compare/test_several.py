#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""numaslab compare with several allocators, several figures, and earlier runs as base."""
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import (compare, failing, library, main, measured, metric, peer, side, status,  # noqa: E402
                    test)


def order_of(document):
    rows = [(s["order"], s["side"][0]) for s in document["samples"]]
    for i, p in enumerate(document["peers"]):
        rows += [(s["order"], str(i)) for s in p["samples"]]
    return "".join(letter for _, letter in sorted(rows))


@test
def several_allocators_in_one_run():
    # The command's figure is the length of the library's name, which differs.
    with tempfile.TemporaryDirectory() as folder:
        peers = [shutil.copy(library(), f"{folder}/{name}.so") for name in ("aa", "bbbb")]
        out = measured("--against", "glibc", "--against", "first=" + peers[0], "--against", peers[1],
                       "-r", 4, "--max-pairs", 4, "--metric", "length ([0-9]+)", "--fail-over", "none",
                       "--", "sh", "-c", 'echo length ${#LD_PRELOAD}', expect=0)
    assert order_of(out) == "cba01" "10abc" "cba10" "01abc", order_of(out)
    assert [p["name"] for p in out["peers"]] == ["first", "bbbb"]
    assert [p["library"] for p in out["peers"]] == peers
    lengths = [[s["metric"] for s in p["samples"]] for p in out["peers"]]
    assert lengths == [[len(path)] * 4 for path in peers], lengths
    for p in out["peers"]:
        assert {m["name"] for m in p["metrics"]} == {"time", "cpu", "rss", "metric"}
        assert metric(p, "metric")["after"]["mean"] == len(library())
        assert metric(p, "metric")["tendency"] in ("better", "worse") and "verdict" not in metric(p)
    assert out["verdict"] == "PASS"


@test
def a_peer_under_which_the_command_fails_is_left_out():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(library(), f"{folder}/bad.so")
        shutil.copy(library(), f"{folder}/good.so")
        script = f'case $LD_PRELOAD in */bad.so) echo x >> {folder}/n; [ $(wc -l < {folder}/n) -ne 4 ];; esac'
        arguments = ["--against", "glibc", "--against", f"{folder}/bad.so", "--against",
                     f"{folder}/good.so", "-r", 4, "--max-pairs", 4, "--fail-over", "none"]
        out = measured(*arguments, "--", "sh", "-c", script, expect=0)
        bad, good = out["peers"]
        assert len(bad["samples"]) == 2 and metric(bad)["before"]["runs"] == 2  # the first was to warm up
        assert len(good["samples"]) == 4 and good["problem"] is None
        assert bad["problem"]["what"].startswith("under bad the command ended with exit status 1")
        assert f"LD_PRELOAD={folder}/bad.so" in bad["problem"]["how"]
        with open(f"{folder}/n") as file:
            assert len(file.readlines()) == 4  # not run again
        os.unlink(f"{folder}/n")
        done = compare("--with", peer(), *arguments, "--", "sh", "-c", script)
        assert done.stdout.startswith("bad is left out: under bad"), done.stdout


@test
def two_builds_of_a_library_are_told_apart():
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(library(), folder)
        out = measured("--against", copy, "-r", 1, "--fail-over", "none", "--", "true", expect=0)
    assert out["before"]["library"] == copy
    assert out["before"]["name"] != out["after"]["name"]
    assert copy.endswith(out["before"]["name"]), out["before"]


@test
def several_figures_of_one_run():
    text = 'if [ "$LD_PRELOAD" ]; then echo "a=100 b=80"; else echo "a=100 b=100"; fi'
    figures = ["--metric", "a=([0-9]+)", "--metric", "b=([0-9]+),higher"]
    for limits, expected in ((["--fail-over", "metric=5%"], 0), (["--fail-over", "metric2=5%"], 1),
                             (["--fail-over", "metric=5%,metric2=25%"], 0)):
        done = compare("--with", peer(), "-r", 2, "--max-pairs", 2, *figures, *limits, "--json",
                       "--", "sh", "-c", text)
        status(done, expected)
    out = json.loads(done.stdout)
    assert (out["metric"], out["metric2"]) == ("a=([0-9]+)", "b=([0-9]+)")
    assert (out["metric_better"], out["metric2_better"]) == ("lower", "higher")
    assert side(out, "after", "metric2") == [80, 80] and side(out, "before", "metric2") == [100, 100]
    status(compare("--with", peer(), "--metric", "a=(.)", "--fail-over", "metric2=1%", "--", "true"), 2)
    status(compare("--with", peer(), *["--metric", "a=(.)"] * 5, "--", "true"), 2)
    text = failing("echo a=1", *figures).splitlines()[0]
    assert "'b=([0-9]+)'" in text, text


@test
def a_later_run_against_a_recorded_one():
    with tempfile.TemporaryDirectory() as folder:
        base = os.path.join(folder, "base.json")
        counter = os.path.join(folder, "n")
        common = ["--with", peer(), "-r", 3, "--fail-over", "metric=2%", "--metric",
                  "score: ([0-9]+)"]
        script = f'if [ "$LD_PRELOAD" ]; then cat {counter}; else echo "score: 100"; fi'
        for value, flags, expected in ((90, [f"--json={base}"], 0), (91, ["--base", base], 0),
                                       (95, ["--base", base], 1), (85, ["--base", base], 0)):
            with open(counter, "w") as file:
                file.write(f"score: {value}\n")
            done = compare(*common, *flags, "--", "sh", "-c", script)
            status(done, expected)
        assert "(base)" in done.stdout
        # Another figure of the same command is another experiment.
        other = compare("--with", peer(), "-r", 1, "--base", base, "--metric", "scor. ([0-9]+)", "--",
                        "sh", "-c", script)
        status(other, 2)
        assert "another figure: score: ([0-9]+)" in other.stderr, other.stderr


@test
def a_base_that_holds_several_comparisons():
    with tempfile.TemporaryDirectory() as folder:
        common = ["--with", peer(), "-r", 2, "--metric", "score: ([0-9]+)", "--fail-over", "metric=2%"]
        documents = {}
        for value in (90, 70):
            done = compare(*common, "--json", "--", "sh", "-c", f"echo score: {value}")
            status(done, 0)
            documents[str(value)] = json.loads(done.stdout)
        many = os.path.join(folder, "many.json")
        for form in (documents, list(documents.values())):
            with open(many, "w") as file:
                json.dump({"comparisons": form, "more": 1}, file)
            for value in (90, 70):
                out = compare(*common, "--base", many, "--json", "--", "sh", "-c", f"echo score: {value}")
                status(out, 0)
                assert metric(json.loads(out.stdout), "metric")["before"]["mean"] == value
            done = compare(*common, "--base", many, "--", "sh", "-c", "echo score: 1")
            status(done, 5)
            assert "none of the comparisons" in done.stderr
            status(compare("--replay", many), 5)


main()
