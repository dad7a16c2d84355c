"""`gpu2@n03.json` is slot 2 of node n03; ranks count slots through the nodes, in the order of the site's list."""

import re

from componentize_py_types import Err
from wit_world.exports.naming import Claim, Label_Rank, Label_Unknown
from wit_world.imports.types import Description, Setting

NAME = re.compile(r"gpu([0-9]{1,9})@([^/]+)\.json(\.gz)?", re.DOTALL)
NUMBER = re.compile(r"[0-9]{1,4}")


class Naming:
    def describe(self):
        return Description(
            name="gpu-nodes",
            version="0.1.0",
            summary="ranks from gpu<slot>@<node>.json",
            settings=[
                Setting("nodes", "The job's nodes in the order of their ranks, with commas between.", None),
                Setting("gpus-per-node", "How many GPUs a node has, 1 to 1024.", "4"),
            ],
        )

    def label_all(self, traces, settings):
        settings = dict(settings)
        nodes = [node.strip() for node in settings.get("nodes", "").split(",") if node.strip()]
        gpus = settings.get("gpus-per-node", "4")
        if not NUMBER.fullmatch(gpus) or not 1 <= int(gpus) <= 1024:
            raise Err("gpus-per-node must be 1 to 1024")
        return [label(trace.path, nodes, int(gpus)) for trace in traces]


def label(path, nodes, gpus):
    match = NAME.fullmatch(path.split("/")[-1])
    if match is None:
        return Label_Unknown("not named gpu<slot>@<node>.json")
    slot, node = int(match[1]), match[2]
    if node not in nodes:
        return Label_Unknown("its node is not in the setting nodes")
    if slot >= gpus:
        return Label_Unknown(f"slot {slot} on a node of {gpus} GPUs")
    return Label_Rank(
        Claim(
            rank=nodes.index(node) * gpus + slot,
            world_size=len(nodes) * gpus,
            group=None,
            node=node,
            certain=True,
            evidence=f"slot {slot} of {node}",
        )
    )
