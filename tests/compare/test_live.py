#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""numaslab compare with real commands: what is measured, what is said of commands that fail, and that
nothing stays behind.  The second allocator is whichever peer is installed; what is tested here does
not depend on which."""
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import (LOAD, NUMASLAB, Skip, compare, failing, main, measured, metric, peer,  # noqa: E402
                    side, status, test)


# A figure that is 100 under glibc and `after` under the other, without a clock anywhere.
FIGURE = 'if [ "$LD_PRELOAD" ]; then echo "score: {after}"; else echo "score: 100"; fi'
JITTER = 'n=$(cat {file}); echo $((n+1)) > {file}; ' \
         'if [ "$LD_PRELOAD" ]; then b={after}; else b=1000; fi; echo "score: $((b + n * 7 % 11))"'


# --- what is measured ---------------------------------------------------------------------------

@test
def runs_interleave_with_a_control():
    out = measured("-r", 4, "--max-pairs", 4, "--fail-over", "none", "--", "true", expect=0)
    order = sorted((s["order"], s["side"]) for s in out["samples"])
    assert [o for o, _ in order] == list(range(12))
    assert "".join(s[0] for _, s in order) == "cbaabccbaabc", order
    assert {s["pair"] for s in out["samples"]} == {0, 1, 2, 3}
    assert all(s["time"] > 0 and s["rss"] > 0 and s["minor_faults"] > 0 for s in out["samples"])
    assert out["machine"]["cpus_online"] >= 1 and out["machine"]["nodes"][0]["memory_bytes"] > 0


@test
def a_small_command_shows_its_own_memory_not_ours():
    out = measured("-r", 12, "--max-pairs", 12, "--fail-over", "none", "--", "true", expect=0)
    # true needs about 1 MiB and 52 faults; numaslab itself, before exec, has more memory, and the
    # launcher, which may end before or after the command, takes 30 faults.
    faults = side(out, "before", "minor_faults")
    assert max(faults) - min(faults) < 20, faults
    if out["rss_source"] == "pss":
        assert max(side(out, "before", "rss")) < 1.3 * 2**20, side(out, "before", "rss")


@test
def peak_memory_is_the_whole_trees():
    out = measured("-r", 2, "--max-pairs", 2, "--fail-over", "none", "--", LOAD, 24, 3, expect=0)
    for who in ("before", "after"):
        for rss in side(out, who, "rss"):
            assert 96 * 2**20 < rss < 125 * 2**20, (who, rss / 2**20)
    # one fault a page in each of four processes, the children's by way of wait()
    for faults in side(out, "before", "minor_faults"):
        assert 4 * 24 * 256 < faults < 4 * 24 * 256 + 2000, faults


@test
def processor_time_of_children_counts():
    burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    out = measured("-r", 2, "--max-pairs", 2, "--fail-over", "none", "--",
                   "sh", "-c", f"({burn}); ({burn}); true", expect=0)
    for s in out["samples"]:
        assert 0.02 < s["user"] + s["sys"] < s["time"] * 2.2, s
        assert abs(s["cpu"] - s["user"] - s["sys"]) < 1e-9, s


@test
def pinned_commands_run_where_they_should():
    done = compare("--with", peer(), "-r", 1, "--warmup", 0, "--fail-over", "none", "--pin", "0",
                   "--metric", "Cpus_allowed_list:.([0-9]+)$", "--json", "--",
                   "grep", "Cpus_allowed_list", "/proc/self/status")
    status(done, 0)
    assert side(json.loads(done.stdout), "after", "metric") == [0]
    status(compare("--pin", "0-", "--", "true"), 2)
    status(compare("--with", peer(), "--pin", "8000", "--", "true"), 2)


@test
def both_environments_are_equally_large():
    # What the kernel copies onto the stack: the strings of the environment.
    done = compare("--with", peer(), "-r", 1, "--warmup", 0, "--fail-over", "none", "--json",
                   "--metric", "bytes ([0-9]+)", "--", sys.executable, "-c",
                   "print('bytes', len(open('/proc/self/environ','rb').read())"
                   " + 8 * open('/proc/self/environ','rb').read().count(b'\\0'))")
    status(done, 0)
    out = json.loads(done.stdout)
    assert side(out, "before", "metric") == side(out, "after", "metric")


@test
def the_librarys_own_counters_are_read():
    if not shutil.which("perl"):
        raise Skip("no perl")
    done = compare("-r", 2, "--max-pairs", 2, "--warmup", 0, "--fail-over", "none", "--json", "--",
                   "perl", "-e", 'my @a = map { "x$_" } 1..400000;',
                   env={"NUMASLAB_PUBLISH_AFTER_MS": "0"})
    status(done, 0)
    for s in json.loads(done.stdout)["samples"]:
        assert ("fragmentation" in s) == (s["side"] == "after"), s
        if s["side"] == "after":
            assert 0 <= s["fragmentation"] < 0.5, s
            assert s["ladder_own"] > 100 and s["ladder_node_new"] > 100, s


# --- verdicts on real runs ----------------------------------------------------------------------

@test
def a_figure_that_is_steady():
    for after, direction, expected in ((102, "lower", 0), (108, "lower", 1), (108, "higher", 0),
                                       (92, "higher", 1)):
        done = compare("--with", peer(), "-r", 2, "--fail-over", "metric=5%",
                       "--metric", f"score: ([0-9]+),{direction}", "--",
                       "sh", "-c", FIGURE.format(after=after))
        status(done, expected)


@test
def a_figure_that_varies():
    with tempfile.TemporaryDirectory() as folder:
        counter = os.path.join(folder, "n")
        for after, expected in ((1200, 1), (1000, 0), (1050, 6)):
            with open(counter, "w") as file:
                file.write("0\n")
            done = compare("--with", peer(), "-r", 8, "--fail-over", "metric=5%",
                           "--metric", "score: ([0-9]+)", "--",
                           "sh", "-c", JITTER.format(file=counter, after=after))
            status(done, expected)


@test
def limits_on_what_is_not_measured_are_refused():
    nodes = len([d for d in os.listdir("/sys/devices/system/node") if d[4:].isdigit()]) \
        if os.path.isdir("/sys/devices/system/node") else 1
    if nodes == 1:
        status(compare("--with", peer(), "--fail-over", "remote=1%", "--", "true"), 77)
        status(compare("--with", peer(), "--numa", "--", "true"), 77)
    status(compare("--with", peer(), "--fail-over", "metric=1%", "--", "true"), 2)


# --- commands that fail -------------------------------------------------------------------------

@test
def a_crash_under_one_allocator_is_said_first():
    text = failing('[ -z "$LD_PRELOAD" ] || { echo last words >&2; kill -SEGV $$; }')
    first = text.splitlines()[0]
    assert peer() in first and "signal 11" in first and "glibc" in first, first
    assert "last words" in text and "LD_PRELOAD=" in text


@test
def a_crash_under_both_is_nobodys_fault():
    assert "nothing to compare" in failing("kill -ABRT $$").splitlines()[0]
    assert "exit status 4" in failing("exit 4").splitlines()[0]


@test
def exit_statuses_must_agree():
    assert "exit status 3" in failing('[ -z "$LD_PRELOAD" ] || exit 3').splitlines()[0]
    done = compare("--with", peer(), "-r", 1, "-i", "--fail-over", "none", "--", "sh", "-c", "exit 4")
    status(done, 0)
    failing('[ -z "$LD_PRELOAD" ] && exit 3; exit 4', "-i")


@test
def a_failure_long_after_the_first_pair_is_seen():
    with tempfile.TemporaryDirectory() as folder:
        script = f'echo >> {folder}/n; [ $(wc -l < {folder}/n) -lt 9 ]'
        assert "exit status 1" in failing(script, "--max-pairs", 4).splitlines()[0]


@test
def outputs_must_agree_if_asked():
    text = failing('echo one; echo "two $LD_PRELOAD"', "--same-output").splitlines()[0]
    assert "line 2" in text and '"two "' in text, text
    done = compare("--with", peer(), "-r", 1, "--fail-over", "none", "--same-output", "--",
                   "sh", "-c", "echo same")
    status(done, 0)
    with tempfile.TemporaryDirectory() as folder:
        text = failing(f'echo >> {folder}/n; [ "$LD_PRELOAD" ] && echo 1 || wc -l < {folder}/n',
                       "--same-output", "--warmup", 2).splitlines()[0]
        assert "run to run" in text, text


@test
def a_command_that_hangs_is_ended():
    began = time.monotonic()
    text = failing('[ -z "$LD_PRELOAD" ] || exec sleep 1000', "--timeout", "0.5").splitlines()[0]
    assert "0.5 s" in text and "under glibc it did" in text, text
    assert time.monotonic() - began < 60


@test
def output_without_the_figure_is_a_failure():
    assert "--metric" in failing("echo nothing", "--metric", "score: ([0-9]+)").splitlines()[0]


@test
def what_cannot_be_compared_is_refused():
    status(compare("--with", peer(), "--", "no-such-command"), 2)
    status(compare("--with", peer()), 2)
    status(compare("--against", "/no/such.so", "--", "true"), 2)
    status(compare("--with", peer(), "--against", peer(), "--", "true"), 2)
    status(compare("--with", peer(), "--against", "glibc", "--against", "glibc", "--", "true"), 2)
    status(compare("--with", peer(), *["--against", "glibc"] * 10, "--", "true"), 2)
    status(compare("--with", peer(), "--fail-over", "speed=1%", "--", "true"), 2)
    status(compare("--with", peer(), "--metric", "(", "--", "true"), 2)
    status(compare("--bogus"), 2)
    status(compare("-r", "0", "--", "true"), 2)
    if not shutil.which("gcc"):
        raise Skip("no gcc to make a static program")
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(["gcc", "-static", "-x", "c", "-", "-o", folder + "/s"], text=True,
                              input="int main(void) { return 0; }", capture_output=True)
        if made.returncode:
            raise Skip("no static libc")
        status(compare("--with", peer(), "--", folder + "/s"), 77)


@test
def a_script_without_its_first_line_runs_as_in_a_shell():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plain")
        with open(path, "w") as file:
            file.write('echo "args $1 $2"\n')
        os.chmod(path, 0o755)
        out = measured("-r", 1, "--warmup", 0, "--fail-over", "none", "--metric", "args a ([0-9]+)",
                       "--", path, "a", "7", expect=0)
        assert side(out, "after", "metric") == [7]


# --- nothing stays behind -----------------------------------------------------------------------

def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def pids_in(path):
    with open(path) as file:
        return [int(line) for line in file.read().split()]


@test
def daemons_that_a_command_leaves_are_ended():
    if not shutil.which("setsid"):
        raise Skip("no setsid")
    with tempfile.TemporaryDirectory() as folder:
        script = f"setsid sh -c 'echo $$ >> {folder}/p; exec sleep 1000' & " \
                 f"while [ ! -s {folder}/p ]; do :; done"
        done = compare("--with", peer(), "-r", 2, "--max-pairs", 2, "--fail-over", "none", "--",
                       "sh", "-c", script)
        status(done, 0)
        left = pids_in(f"{folder}/p")
        assert left and not any(map(alive, left)), left


@test
def processes_of_others_are_left_alone():
    with tempfile.TemporaryDirectory() as folder:
        # A shell that becomes compare while it has a child of its own.
        script = f"sleep 1000 & echo $! > {folder}/p; exec {NUMASLAB} compare --with {peer()} " \
                 "-r 1 --fail-over none -- true"
        subprocess.run(["sh", "-c", script], check=True, stdout=subprocess.DEVNULL)
        [pid] = pids_in(f"{folder}/p")
        try:
            assert alive(pid)
        finally:
            os.kill(pid, signal.SIGKILL)


def interrupted(number):
    with tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, "f")
        os.mkfifo(fifo)
        script = f"sh -c 'echo $$; exec sleep 1000' > {fifo} & echo $$ > {fifo}; wait"
        child = subprocess.Popen([NUMASLAB, "compare", "--with", peer(), f"--json={folder}/out",
                                  "--", "sh", "-c", script], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pids = []
        with open(fifo) as file:
            while len(pids) < 2:
                pids += [int(line) for line in file.readline().split()]
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
        assert child.returncode == -number, child.returncode
        assert "nothing is left running" in err
        assert not any(map(alive, pids)), pids
        assert sorted(os.listdir(folder)) == ["f"], os.listdir(folder)


@test
def ctrl_c_leaves_nothing():
    interrupted(signal.SIGINT)


@test
def sigterm_leaves_nothing():
    interrupted(signal.SIGTERM)


@test
def what_was_published_goes_with_a_process_that_is_ended():
    if not shutil.which("perl"):
        raise Skip("no perl")
    with tempfile.TemporaryDirectory() as folder:
        files = os.path.join(folder, "published")
        os.mkdir(files, 0o700)
        script = '[ -z "$LD_PRELOAD" ] || exec perl -e \'my @a = map { "x$_" } 1..400000; sleep 1000;\''
        child = subprocess.Popen([NUMASLAB, "compare", "--", "sh", "-c", script], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env={**os.environ, "NUMASLAB_DIR": files, "NUMASLAB_PUBLISH_AFTER_MS": "0"})
        end = time.monotonic() + 60
        while not os.listdir(files):
            assert time.monotonic() < end and child.poll() is None, "nothing was published"
            time.sleep(0.01)
        other = os.path.join(files, "1-1-1-0")  # somebody else's
        open(other, "w").close()
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == -signal.SIGINT
        assert os.listdir(files) == ["1-1-1-0"], os.listdir(files)


@test
def killing_compare_ends_the_command():
    with tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, "f")
        os.mkfifo(fifo)
        child = subprocess.Popen([NUMASLAB, "compare", "--with", peer(), "--", "sh", "-c",
                                  f"echo $$ > {fifo}; exec sleep 1000"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        with open(fifo) as file:
            pid = int(file.readline())
        handle = os.pidfd_open(pid)
        child.kill()
        child.wait()
        ended, _, _ = select.select([handle], [], [], 60)
        assert ended


@test
def descriptors_and_signals_are_as_before():
    # What the command finds: 0, 1, 2 and the directory that it reads; nothing blocked or ignored.
    script = 'ls /proc/self/fd | tr "\\n" " "; grep -E "^Sig(Blk|Ign)" /proc/self/status'
    done = subprocess.run([NUMASLAB, "compare", "--with", peer(), "-r", "1", "--warmup", "0",
                           "--fail-over", "none", "--metric", "^0 1 2 ([0-9]+) .*SigBlk:.0+$",
                           "--json", "--", "sh", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert metric(json.loads(done.stdout), "metric")["after"]["max"] == 3


# --- for people -----------------------------------------------------------------------------------

@test
def progress_is_shown_on_a_terminal_and_only_there():
    leader, follower = pty.openpty()
    arguments = [NUMASLAB, "compare", "--with", peer(), "-r", "2", "--fail-over", "none", "--", "true"]
    child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=follower)
    os.close(follower)
    seen = b""
    while True:
        try:
            more = os.read(leader, 4096)
        except OSError:
            break
        if not more:
            break
        seen += more
    os.close(leader)
    assert child.wait() == 0
    assert b"warming up: " + peer().encode() in seen, seen
    assert b"pair 1 of 2: glibc" in seen and b"pair 2 of 2: " + peer().encode() in seen, seen
    assert b"left" in seen, seen
    assert seen.endswith(b"\r\x1b[K"), seen[-40:]
    quiet = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True)
    assert quiet.stderr == b"", quiet.stderr


@test
def help_names_every_option():
    done = compare("--help")
    status(done, 0)
    for option in ("--pairs", "--against", "--pin", "--numa", "--markdown", "--json", "--junit",
                   "--fail-over", "--metric", "--same-output", "--base", "--seed", "--max-pairs"):
        assert option in done.stdout, option


main()
