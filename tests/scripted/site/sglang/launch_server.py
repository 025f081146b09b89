"""Start the scripted server: ``python3 -m sglang.launch_server --model-path M --port P ...``."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import threading
import time
from typing import Any

from sglang.faults import Events, crash, hand_over, leave_orphans, say
from sglang.script import Script, parse_script
from sglang.server import ScriptedServer
from sglang.srt.server_args import ServerArgs

# What a launch logs, and the share of ``start`` seconds that passes before each line.
LAUNCH_LINES = (
    (0.1, "Init torch distributed begin."),
    (0.0, "Init torch distributed ends. elapsed=0.10 s, mem usage=0.09 GB"),
    (0.1, "Load weight begin. avail mem=139.09 GB"),
    (0.4, "Load weight end. elapsed=1.00 s, type=ScriptedForCausalLM, avail mem=130.01 GB, usage=9.09 GB."),
    (0.1, "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 698890, K size: 48 GB, V size: 48 GB"),
    (0.0, "Memory pool end. avail mem=27.71 GB"),
    (0.1, "Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2, 4, 8]"),
    (0.2, "Capture target decode CUDA graph end. elapsed=0.50 s, mem usage=0.06 GB, avail mem=26.72 GB."),
)


def main() -> None:
    """Read the command line, go through a launch, serve until told to stop."""
    parser = argparse.ArgumentParser(prog="sglang.launch_server")
    ServerArgs.add_cli_args(parser)
    args = parser.parse_args()
    script = parse_script(args.script)
    events = Events(args.script_events, args.served_model_name or args.model_path)
    events.write("START")
    _on_stop(script, events)
    say(f"server_args=ServerArgs(model_path={args.model_path!r}, port={args.port})")
    if script.leak:
        say(f"{script.leak} is {os.environ[script.leak]}")
    _launch(script, events)
    if script.port_stolen:
        thief = socket.create_server((args.host, args.port))  # kept until this process ends
        say(f"somebody else listens at {thief.getsockname()}")
    server = ScriptedServer(args, script, lambda: crash(script, events))
    if script.keep_port:
        hand_over(server.socket, script.keep_port)
    leave_orphans(script)
    say(f"INFO:     Uvicorn running on http://{args.host}:{args.port} (Press CTRL+C to quit)")
    if script.crash_after:
        threading.Timer(script.crash_after, crash, (script, events)).start()
    threading.Timer(script.warming, _ready, (server, events)).start()
    server.serve_forever()


def _launch(script: Script, events: Events) -> None:
    for share, line in LAUNCH_LINES:
        time.sleep(share * script.start)
        say(line)
        if script.crash and not script.crash_after and line.startswith("Load weight begin"):
            crash(script, events)
    while script.hang_launch:
        time.sleep(1)


def _ready(server: ScriptedServer, events: Events) -> None:
    server.warm = True
    events.write("READY")
    say("The server is fired up and ready to roll!")


def _on_stop(script: Script, events: Events) -> None:
    def stop(number: int, _frame: Any) -> None:
        if script.ignore_term and number == signal.SIGTERM:
            say("SIGTERM received and ignored.")
            return
        say("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        events.write("STOP")
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


if __name__ == "__main__":
    main()
