// What did the answer to a capture request mean? This site's wrapper around dyno prints `traced PID` for each process.

import bytes from "tracemend:plugin/bytes@0.1.0";

export const interpreter = {
  describe() {
    return {
      name: "@NAME@",
      version: "0.1.0",
      summary: "a wrapper that prints `traced PID`",
      settings: [],
    };
  },

  interpret(call, settings) {
    if (call.exitCode == null) {
      return answer("unreachable", [], "the wrapper did not come to its end");
    }
    if (call.exitCode !== 0) {
      return answer("rejected", [], said(call.stderr) || `exit code ${call.exitCode}`);
    }
    const pids = new Set();
    // Output may be any bytes; the host makes text of them.
    for (const line of bytes.repair(call.stdout).split("\n")) {
      const match = /^traced ([0-9]{1,15})\r?$/.exec(line);
      if (match && Number(match[1]) > 0) {
        pids.add(Number(match[1]));
      }
    }
    return pids.size === 0
      ? answer("waiting", [], "no process is there yet")
      : answer("accepted", [...pids], `${pids.size} traced`);
  },
};

function answer(verdict, pids, reason) {
  return { verdict, matched: pids, triggered: pids, busy: 0, reason };
}

// The first line that says something, cut to a length for people.
function said(output) {
  const lines = bytes.repair(output).split("\n");
  return lines.map((line) => line.trim().slice(0, 200)).find((line) => line !== "");
}
