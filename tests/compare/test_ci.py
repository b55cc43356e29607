#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The ready CI recipes: they are YAML, and the step that compares does here what it will do there."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import LOAD, NUMASLAB, Skip, main, test  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/ci")


def recipe(name):
    path = os.path.join(FOLDER, name)
    try:
        import yaml
        with open(path) as file:
            return yaml.safe_load(file)
    except ImportError:
        pass
    if not shutil.which("ruby"):
        raise Skip("no YAML parser (ruby or python3-yaml)")
    done = subprocess.run(["ruby", "-ryaml", "-rjson", "-e",
                           "puts JSON.dump(YAML.load_file(ARGV[0]))", path],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def run_step(script, variables, command, limits, pairs=2):
    """The step in a folder of its own; the allocator after is whichever can be had."""
    if not os.path.exists(os.path.join(os.path.dirname(NUMASLAB), "libnumaslab.so")):
        raise Skip("libnumaslab.so is not built")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **{k: str(v) for k, v in variables.items()},
                       "PATH": os.path.dirname(NUMASLAB) + ":" + os.environ["PATH"],
                       "COMPARE_COMMAND": command, "COMPARE_LIMITS": limits, "COMPARE_PAIRS": str(pairs),
                       "GITHUB_STEP_SUMMARY": os.path.join(folder, "summary")}
        done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=environment,
                              capture_output=True, text=True)
        return done, sorted(os.listdir(folder)), done.stdout + done.stderr


# Under the second allocator, which is preloaded, the command touches 24 MiB, else 4 MiB.
LARGER = f"sh -c 'exec {LOAD} ${{LD_PRELOAD:+2}}4'"
CASES = [("true", "none", 0), (LARGER, "minor_faults=50%", 1), ("sh -c 'exit 9'", "time=5%", 7)]
FILES = ["compare.json", "compare.md", "compare.xml"]


@test
def recipes_install_what_the_build_needs():
    """The headers that `make` refuses to go without, and compare's own library."""
    with open(os.path.join(FOLDER, "../../packages.txt")) as file:
        build = {line.split("\t")[0] for line in file if line.split("\t")[1:2] == ["build"]}
    needed = {"gcc", "make"} | {name for name in build if name.startswith(("libnuma", "liburcu", "libcjson"))}
    assert len(needed) == 5, needed
    for name in ("github.yml", "gitlab.yml"):
        with open(os.path.join(FOLDER, name)) as file:
            words = {word for line in file if "apt-get install" in line for word in line.split()}
        assert needed <= words, (name, needed - words)


@test
def github_actions():
    job = recipe("github.yml")["jobs"]["compare"]
    [script] = [step["run"] for step in job["steps"] if step.get("name") == "Compare"]
    for command, limits, expected in CASES:
        done, files, text = run_step(script, job["env"], command, limits)
        assert done.returncode == expected, (limits, text)
        assert files == FILES + ["summary"], files


@test
def github_actions_when_undecided():
    job = recipe("github.yml")["jobs"]["compare"]
    [script] = [step["run"] for step in job["steps"] if step.get("name") == "Compare"]
    done, files, text = run_step(script, job["env"], "true", "time=5%", pairs=1)
    # At most four pairs of times, which vary, can never be decided.
    assert done.returncode == 0 and "::warning::" in text, text


@test
def gitlab():
    job = recipe("gitlab.yml")["compare allocators"]
    assert job["allow_failure"]["exit_codes"] == 6
    assert job["artifacts"]["reports"]["junit"] == "compare.xml"
    [script] = job["script"]
    for command, limits, expected in CASES:
        done, files, text = run_step(script, job["variables"], command, limits)
        assert done.returncode == expected, (limits, text)
        assert files == FILES, files


main()
