"""``apptainer exec`` of a sandbox folder: the host's environment, APPTAINERENV_* over it, no new process.

As the real one: what it starts replaces it, in the same pid namespace and under the same user.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

PREFIX = "APPTAINERENV_"


def main() -> None:
    """Run a command in an image."""
    parser = argparse.ArgumentParser(prog="apptainer", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("exec", allow_abbrev=False)
    run.add_argument("--nv", action="store_true")
    run.add_argument("-B", "--bind", action="append", default=[])
    run.add_argument("image", type=Path)
    run.add_argument("argv", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    for bind in asked.bind:
        source = bind.split(":")[0]
        if not Path(source).exists():
            sys.exit(f"FATAL:   container creation failed: mount {source}: no such file or directory")
    if not asked.image.exists():
        sys.exit(f"FATAL:   could not open image {asked.image}: failed to retrieve path for {asked.image}")
    inside = {name.removeprefix(PREFIX): v for name, v in os.environ.items() if name.startswith(PREFIX)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environment = {**kept, "PATH": f"{asked.image / 'bin'}:{os.environ['PATH']}", **inside}
    os.execvpe(asked.argv[0], asked.argv, environment)


main()
