"""Docker's command line as far as it is used here; an option that the real one has not is refused as there.

``run`` stays in the foreground and hands on signals; killed by SIGKILL, it leaves its container running.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
from typing import Any, NoReturn

# Below each command, the options that are used: those that Docker has from 20.10 (Debian 12) to 28.
FLAGS = ("rm", "init", "force", "all", "quiet")
REPEATED = ("mount", "env", "ulimit")
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": (
        *("rm", "init", "network", "ipc", "pull", "name", "gpus", "mount", "env"),
        *("cpuset-cpus", "cpuset-mems"),
        *("entrypoint", "shm-size", "ulimit"),
    ),
    "stop": ("t",),
    "kill": ("signal",),
    "rm": ("force",),
    "ps": ("all", "quiet", "filter", "format"),
    "inspect": ("type", "format"),
    "pull": ("quiet",),
}


class Parser(argparse.ArgumentParser):
    """Fails as docker does."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and exit by docker's own code."""
        print(f"docker: {message}", file=sys.stderr)
        sys.exit(125)


def parse(words: list[str]) -> tuple[str, argparse.Namespace]:
    """Return the command and its options; ``image inspect`` is ``inspect --type image``."""
    if words[:2] == ["image", "inspect"]:
        words = ["inspect", "--type", "image", *words[2:]]
    parser = Parser(prog="docker", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name, options in COMMANDS.items():
        command = commands.add_parser(name, allow_abbrev=False)
        for option in options:
            if option in FLAGS:
                command.add_argument(f"--{option}", action="store_true")
            elif option in REPEATED:
                command.add_argument(f"--{option}", action="append", default=[])
            else:
                command.add_argument(f"--{option}" if len(option) > 1 else f"-{option}")
        command.add_argument("rest", nargs=argparse.REMAINDER if name == "run" else "*")
    asked = parser.parse_args(words)
    return asked.command, asked


def ask(request: dict[str, Any]) -> socket.socket:
    """Send one request to the daemon; exit as docker does where none is running."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        channel.connect(os.environ["PIVOTBENCH_TEST_DOCKER"])
    except (OSError, KeyError):
        print("docker: Cannot connect to the Docker daemon. Is the docker daemon running?", file=sys.stderr)
        sys.exit(125 if request["command"] == "run" else 1)
    channel.sendall(json.dumps(request).encode() + b"\n")
    return channel


def main() -> None:
    """Ask the daemon, print what it says, exit by the code it names."""
    command, asked = parse(sys.argv[1:])
    request = {**vars(asked), "command": command}
    if command == "run":
        # `--env NAME` takes the value that the client's own environment has.
        names = [text for text in asked.env if "=" not in text and text in os.environ]
        request["env"] = [text for text in asked.env if "=" in text] + [f"{n}={os.environ[n]}" for n in names]
    channel = ask(request)
    if command == "run":
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(
                number, lambda n, _: ask({"command": "kill", "signal": n, "rest": [asked.name]}).close()
            )
    with channel, channel.makefile("r", encoding="utf-8", errors="replace") as answer:
        for line in answer:
            told = json.loads(line)
            if "exit" in told:
                sys.exit(told["exit"])
            print(told["text"], file=sys.stderr if told.get("error") else sys.stdout, flush=True)
    sys.exit(1)


main()
