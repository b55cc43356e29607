# SPDX-License-Identifier: MIT
"""What the checks of tests/vm say in the guest: read from the log of tests/vm/run, which runs a check
only if something that went into it changed since it passed."""
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Missing(Exception):
    """The guest cannot run, or its log lacks what was looked for; says which."""


class Log:
    """The lines of one check."""

    def __init__(self, boot, check, lines):
        self.boot, self.check, self.lines = boot, check, lines
        skipped = re.search(r"# SKIP (.*)", "\n".join(lines))
        if skipped:
            raise Missing(f"{boot}, {check}: {skipped.group(1)}")

    def failures(self):
        return [line for line in self.lines if line.startswith("not ok")]

    def find(self, expression, what):
        """The groups of each match, in order."""
        found = [m.groups() for m in (re.search(expression, line) for line in self.lines) if m]
        if not found:
            bad = "; it failed: " + self.failures()[0] if self.failures() else ""
            raise Missing(f"{self.boot}, {self.check}: no {what} in its log{bad}")
        return found


def sections(text):
    """{check: its lines}, from TAP as tests/vm/run prints it."""
    found, current = {}, None
    for line in text.splitlines():
        head = re.match(r"# (\S+/\S+): (\w+)( \(.*\))?$", line)
        if head:
            current = found.setdefault(head.group(2), [])
        elif current is not None:
            current.append(line)
    return found


def run(place, boot, checks):
    """{check: Log or Missing}; its progress goes to standard error."""
    wanted = f"^{re.escape(boot)} ({'|'.join(checks)})$"
    process = place.start([os.path.join(ROOT, "tests", "vm", "run"), wanted],
                          extra={"BUILD": place.build}, stdout=subprocess.PIPE, stderr=None)
    try:
        text = process.communicate()[0].decode(errors="replace")
    finally:
        place.stop(process)
    found, logs = sections(text), {}
    for check in checks:
        try:
            if check not in found:
                raise Missing(f"{boot}, {check}: tests/vm/run ended with status {process.returncode}")
            logs[check] = Log(boot, check, found[check])
        except Missing as why:
            logs[check] = why
    return logs
