"""What did the answer to a capture request mean? This site's wrapper around dyno prints `traced PID` for each process."""

import re

from wit_world.exports.interpreter import Answer, Verdict
from wit_world.imports.types import Description

TRACED = re.compile(r"traced ([0-9]{1,18})")


class Interpreter:
    def describe(self):
        return Description(
            name="@NAME@",
            version="0.1.0",
            summary="a wrapper that prints `traced PID`",
            settings=[],
        )

    def interpret(self, call, settings):
        # Output may be any bytes.
        stdout = call.stdout.decode("utf-8", "replace")
        stderr = call.stderr.decode("utf-8", "replace")
        if call.exit_code is None:
            return answer(Verdict.UNREACHABLE, [], "the wrapper did not come to its end")
        if call.exit_code != 0:
            return answer(Verdict.REJECTED, [], said(stderr) or f"exit code {call.exit_code}")
        matches = (TRACED.fullmatch(line) for line in stdout.splitlines())
        # Each process once, in order.
        pids = list(dict.fromkeys(int(match[1]) for match in matches if match and int(match[1]) > 0))
        if not pids:
            return answer(Verdict.WAITING, [], "no process is there yet")
        return answer(Verdict.ACCEPTED, pids, f"{len(pids)} traced")


def answer(verdict, pids, reason):
    return Answer(verdict=verdict, matched=pids, triggered=pids, busy=0, reason=reason)


def said(text):
    """The first line that says something, cut to a length for people."""
    lines = (line.strip()[:200] for line in text.splitlines())
    return next((line for line in lines if line), None)
