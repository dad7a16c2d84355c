// Whose trace is this? `gpu3.json` is rank 3's.

export const naming = {
  describe() {
    return {
      name: "@NAME@",
      version: "0.1.0",
      summary: "ranks from gpu<rank>.json",
      settings: [
        { name: "prefix", help: "What stands before the rank in a trace's name.", default: "gpu" },
      ],
    };
  },

  labelAll(traces, settings) {
    const prefix = new Map(settings).get("prefix") ?? "gpu";
    return traces.map((trace) => label(trace.path, prefix));
  },
};

function label(path, prefix) {
  const stem = path.slice(path.lastIndexOf("/") + 1).split(".", 1)[0];
  const digits = stem.startsWith(prefix) ? stem.slice(prefix.length) : "";
  const rank = /^[0-9]{1,10}$/.test(digits) ? Number(digits) : NaN;
  if (!(rank < 2 ** 32)) {
    return { tag: "unknown", val: `not called ${prefix.slice(0, 80)}<rank>.json` };
  }
  // A name proves nothing, so it is not certain: what a trace says of itself overrules it.
  const evidence = `name: ${stem.slice(0, 80)}`;
  return { tag: "rank", val: { rank, worldSize: null, group: null, node: null, certain: false, evidence } };
}
