"""The flags of two versions of SGLang, as tests/data/sglang-flags keeps them."""

from __future__ import annotations

import json
from pathlib import Path

from pivotbench.engines.catalogue import FlagCatalogue, FlagSpec

FOLDER = Path(__file__).parents[1] / "data" / "sglang-flags"
VERSIONS = tuple(sorted(file.stem for file in FOLDER.glob("*.json")))


def catalogue(version: str) -> FlagCatalogue:
    """Return the flags that a version takes."""
    data = json.loads((FOLDER / f"{version}.json").read_text(encoding="utf-8"))
    flags = tuple(
        FlagSpec(
            name=flag["name"],
            aliases=tuple(flag["aliases"]),
            choices=None if flag["choices"] is None else tuple(flag["choices"]),
            takes_value=flag["takes_value"],
            many=flag["many"],
            help=flag["help"],
        )
        for flag in data["flags"]
    )
    return FlagCatalogue(engine=data["engine"], version=data["version"], flags=flags)
