"""The flags of an installed engine, as its own argument parser declares them."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pivotbench.engines.catalogue import FlagCatalogue, FlagSpec
from pivotbench.errors import UserError
from pivotbench.machine import containers
from pivotbench.machine.containers import Container

# Importing an engine imports torch, which takes a while on a cold disk.
_TIMEOUT_SECONDS = 300
_MARK = "pivotbench-flags:"

# Runs in the engine's interpreter after the lines that make the parser; libraries may print to stdout first:
# hence the mark. SGLang's actions for retired flags carry `new_flag` (what to write now) and `const_value`
# (what the old one sets).
_TELL = f"""
import importlib.metadata, json, sys
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
print()
print({_MARK!r} + json.dumps(dict(
    versions={{name: version(name) for name in sys.argv[1:]}},
    flags=[
        dict(options=a.option_strings, nargs=a.nargs, help=str(a.help or ""), setting=a.dest,
             choices=None if a.choices is None else [str(c) for c in a.choices],
             kind=type(a).__name__, use=getattr(a, "new_flag", None), stores=getattr(a, "const_value", None))
        for a in parser._actions if a.dest != "help" and a.option_strings
    ])))
"""


def ask_parser(
    engine: str,
    parser: str,
    packages: Sequence[str],
    python: Path,
    env: Mapping[str, str],
    container: Container | None,
) -> FlagCatalogue:
    """Return an engine's flags, sorted by name, with the versions of ``packages``, its own the first.

    ``parser`` is Python that leaves the argparse parser under that name. The study's variables ``env`` are
    set, as a choice may hang on one; no GPU is visible. Raises UserError where the interpreter or the engine
    in it does not start.
    """
    inside = {**env, "CUDA_VISIBLE_DEVICES": ""}
    command = [str(python), "-c", parser + _TELL, *packages]
    where, remedy = str(python), "`python:`"
    environment = {**os.environ, **inside}
    name = containers.name_of(f"flags-{secrets.token_hex(6)}")
    if container is not None:
        command = containers.run_command(container, command, inside=inside, name=name)
        environment = containers.client_environment(container, inside)
        where, remedy = f"image {container.image}", "`container:`"
    try:
        told = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = (
            f"no answer within {_TIMEOUT_SECONDS} s"
            if isinstance(error, subprocess.TimeoutExpired)
            else error
        )
        raise UserError(f"{where}: cannot be asked for {engine}'s flags ({why}); check {remedy}") from error
    finally:
        if container is not None:
            containers.remove(container, name)  # still there where its client was interrupted
    for line in told.stdout.splitlines():
        if line.startswith(_MARK):
            answer = json.loads(line.removeprefix(_MARK))
            found = {name: version for name, version in answer["versions"].items() if version}
            return FlagCatalogue(
                engine=engine,
                version=found.pop(packages[0], "unknown"),
                flags=tuple(sorted(map(_spec, answer["flags"]), key=lambda flag: flag.name)),
                packages=found,
            )
    said = told.stderr.strip().splitlines() or [f"it ended with status {told.returncode}"]
    last = containers.why_not_started(container, told.returncode, said) or said[-1]
    raise UserError(
        f"{where}: {engine} does not load there ({last}); check {remedy} or install {packages[0]}"
    )


def _spec(action: dict[str, Any]) -> FlagSpec:
    names = [option.removeprefix("--") for option in action["options"] if option.startswith("--")]
    nargs = action["nargs"]
    return FlagSpec(
        name=names[0],
        aliases=tuple(names[1:]),
        choices=None if action["choices"] is None else tuple(action["choices"]),
        takes_value=nargs != 0,
        many=nargs in ("+", "*") or (isinstance(nargs, int) and nargs > 1),
        help=" ".join(action["help"].split()),
        setting=action["setting"],
        stores=action["stores"],
        deprecated=_deprecation(action),
    )


def _deprecation(action: dict[str, Any]) -> str | None:
    """Return what to use instead of a retired flag: from its action, else from the words of its help."""
    if action["use"]:
        return str(action["use"])
    help_text = " ".join(action["help"].split())
    if not action["kind"].startswith("Deprecated") and not re.match(r"\W*deprecated\b", help_text, re.I):
        return None
    flags = re.findall(r"--[a-z0-9][\w={},<> -]*[\w}>]|--[a-z0-9][\w-]*", help_text)
    return flags[0] if flags else "nothing: it has no effect of its own any more"
