"""Whose trace is this? `gpu3.json` is rank 3's."""

import re

from wit_world.exports.naming import Claim, Label_Rank, Label_Unknown
from wit_world.imports.types import Description, Setting


class Naming:
    def describe(self):
        return Description(
            name="@NAME@",
            version="0.1.0",
            summary="ranks from gpu<rank>.json",
            settings=[
                Setting(name="prefix", help="What stands before the rank in a trace's name.", default="gpu"),
            ],
        )

    def label_all(self, traces, settings):
        prefix = dict(settings).get("prefix", "gpu")
        name = re.compile(re.escape(prefix) + r"([0-9]{1,10})")
        return [label(trace.path, prefix, name) for trace in traces]


def label(path, prefix, name):
    stem = path.split("/")[-1].split(".")[0]
    match = name.fullmatch(stem)
    if match is None or int(match[1]) >= 2**32:
        return Label_Unknown(f"not called {prefix[:80]}<rank>.json")
    # A name proves nothing, so it is not certain: what a trace says of itself overrules it.
    return Label_Rank(
        Claim(
            rank=int(match[1]),
            world_size=None,
            group=None,
            node=None,
            certain=False,
            evidence=f"name: {stem[:80]}",
        )
    )
