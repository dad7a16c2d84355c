// `gpu2@n03.json` is slot 2 of node n03; ranks count slots through the nodes, in the order of the site's list.

export const naming = {
  describe() {
    return {
      name: "gpu-nodes",
      version: "0.1.0",
      summary: "ranks from gpu<slot>@<node>.json",
      settings: [
        { name: "nodes", help: "The job's nodes in the order of their ranks, with commas between.", default: null },
        { name: "gpus-per-node", help: "How many GPUs a node has, 1 to 1024.", default: "4" },
      ],
    };
  },

  labelAll(traces, settings) {
    const site = new Map(settings);
    const nodes = (site.get("nodes") ?? "").split(",").map((node) => node.trim()).filter((node) => node !== "");
    const text = site.get("gpus-per-node") ?? "4";
    const gpus = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0;
    if (gpus < 1 || gpus > 1024) {
      // The error of the contract's result; anything else that is thrown is a bare trap.
      throw "gpus-per-node must be 1 to 1024";
    }
    return traces.map((trace) => label(trace.path, nodes, gpus));
  },
};

function label(path, nodes, gpus) {
  const match = /^gpu([0-9]{1,9})@(.+)\.json(\.gz)?$/s.exec(path.slice(path.lastIndexOf("/") + 1));
  if (!match) {
    return unknown("not named gpu<slot>@<node>.json");
  }
  const slot = Number(match[1]);
  const node = match[2];
  const index = nodes.indexOf(node);
  if (index < 0) {
    return unknown("its node is not in the setting nodes");
  }
  if (slot >= gpus) {
    return unknown(`slot ${slot} on a node of ${gpus} GPUs`);
  }
  const claim = {
    rank: index * gpus + slot,
    worldSize: nodes.length * gpus,
    group: null,
    node,
    certain: true,
    evidence: `slot ${slot} of ${node}`,
  };
  return { tag: "rank", val: claim };
}

function unknown(reason) {
  return { tag: "unknown", val: reason };
}
