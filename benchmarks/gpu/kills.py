"""SIGKILL under load: how long until processes, port, GPU memory and locks of the server are free again?

    PYTHONPATH=scripts python -m benchmarks.gpu.kills docs/campaigns/h200-kills/study.yaml --out kills.json

Each configuration of the study is named after whom to kill: ``scheduler`` (SGLang's child process that owns
the GPU), ``snakemake`` (the run) or ``supervisor`` (who watches over the server). Its first cell is run by
itself until requests are in flight; then one process is killed and everything is watched from outside.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import psutil

from pivotbench.cells import Cell
from pivotbench.errors import UserError
from pivotbench.files import write_json
from pivotbench.lease.key import lease_name, name_in
from pivotbench.lease.locks import is_held, lock_folder
from pivotbench.lease.processes import Identity, descendants
from pivotbench.lease.state import Handle, live_launches
from pivotbench.machine.gpu import memory_used_mib
from pivotbench.study import load_study

LOADED_SECONDS = 4.0
RELEASE_SECONDS = 40.0
LAUNCH_SECONDS = 600.0
# The driver keeps a few MiB more or less from launch to launch.
MEMORY_SLACK_MIB = 64
_IN_FLIGHT = re.compile(r"^sglang:num_running_reqs(?:\{[^}]*\})? ([\d.eE+]+)", re.MULTILINE)


def handle_of(cell: Cell) -> Handle | None:
    """Return the live launch of a cell of this folder."""
    name = lease_name(cell.as_json())
    return next((handle for _, handle in live_launches() if name_in(handle.key) == name), None)


def processes_of(handle: Handle) -> dict[Identity, str]:
    """Return the server's living processes and their names, children of every depth included."""
    told = {Identity.parse(text) for text in handle.processes}
    every = told | {child for process in told for child in descendants(process.pid)}
    return {process: psutil.Process(process.pid).name() for process in sorted(every) if process.alive()}


def victim_of(who: str, run_pid: int, supervisor: str, processes: Mapping[Identity, str]) -> int:
    """Return the pid to kill; exits where the server has no such process."""
    if who == "snakemake":
        return run_pid
    if who == "supervisor":
        return Identity.parse(supervisor).pid
    found = [process.pid for process, name in processes.items() if who in name]
    if not found:
        names = ", ".join(processes.values()) or "none"
        raise SystemExit(f"error: no process of the server is called {who}; there are: {names}")
    return found[0]


def in_flight(url: str) -> float:
    """Return how many requests the server says are running, 0 where it does not answer."""
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=2) as answer:
            return max(map(float, _IN_FLIGHT.findall(answer.read().decode())), default=0.0)
    except OSError:
        return 0.0


def is_closed(port: int) -> bool:
    """Return whether nobody listens on a port of this machine."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def watch(conditions: Mapping[str, Callable[[], bool]], limit_seconds: float) -> dict[str, float | None]:
    """Return the seconds after which each condition was first met, None for one not met in time."""
    began = time.monotonic()
    found: dict[str, float | None] = dict.fromkeys(conditions)
    while None in found.values() and time.monotonic() < began + limit_seconds:
        for name, met in conditions.items():
            if found[name] is None and met():
                found[name] = round(time.monotonic() - began, 2)
        time.sleep(0.02)
    return found


def releases(
    processes: Collection[Identity], port: int, before_mib: Mapping[str, int], locks: Collection[Path]
) -> dict[str, Callable[[], bool]]:
    """Return what has to come true; memory only where NVML told of any before the launch."""
    conditions: dict[str, Callable[[], bool]] = {
        "processes_gone_seconds": lambda: not any(process.alive() for process in processes),
        "port_closed_seconds": lambda: is_closed(port),
        "locks_free_seconds": lambda: not any(map(is_held, locks)),
    }
    if before_mib:
        conditions["memory_back_seconds"] = lambda: all(
            used <= before_mib[uuid] + MEMORY_SLACK_MIB
            for uuid, used in memory_used_mib(list(before_mib)).items()
        )
    return conditions


def kill(study: Path, name: str, who: str, snakemake: str, requests: int, log: Path) -> dict[str, Any]:
    """Run one cell until ``requests`` are in flight, kill ``who`` and return how all was released."""
    cell = Cell(name, "backends", who, 1)
    command = [snakemake, "--cores", "1", str(cell.file("teardown")), "--config", f"study={study}"]
    with log.open("w") as stream:
        run = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        handle = _loaded(run, cell, requests, log)
        time.sleep(LOADED_SECONDS)
        processes = processes_of(handle)
        victim = victim_of(who, run.pid, handle.supervisor, processes)
        row: dict[str, Any] = {
            "killed": who,
            "victim": psutil.Process(victim).name(),
            "processes": sorted(processes.values()),
            "requests_in_flight": in_flight(handle.url or ""),
            "memory_before_mib": handle.before_mib,
            "memory_when_killed_mib": memory_used_mib(list(handle.before_mib)),
        }
        locks = [lock_folder() / f"{device}.lock" for device in handle.devices]
        port = int((handle.url or "").rsplit(":", 1)[1])
        os.kill(victim, signal.SIGKILL)
        row |= watch(releases(processes, port, handle.before_mib, locks), RELEASE_SECONDS)
        row["memory_after_mib"] = memory_used_mib(list(handle.before_mib))
        run.wait(RELEASE_SECONDS)
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
    row["snakemake_exit"] = run.returncode
    row["stages"] = {path.stem: _outcome(path) for path in sorted(cell.folder.glob("*.json"))}
    return row


def _loaded(run: subprocess.Popen[bytes], cell: Cell, requests: int, log: Path) -> Handle:
    deadline = time.monotonic() + LAUNCH_SECONDS
    while time.monotonic() < deadline and run.poll() is None:
        handle = handle_of(cell)
        if handle is not None and handle.url and in_flight(handle.url) >= requests:
            return handle
        time.sleep(0.2)
    raise SystemExit(f"error: {cell.label} never had {requests} requests in flight; see {log}")


def _outcome(path: Path) -> dict[str, Any]:
    stage = json.loads(path.read_text())
    told = {key: stage.get(key) for key in ("status", "verdict", "why", "signals", "memory")}
    return {"reason": (stage.get("reason") or {}).get("code"), **told}


def main() -> int:
    """Kill in turn, write all after each; return 1 where something was not released in time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("study", type=Path, help="docs/campaigns/h200-kills/study.yaml, or one like it")
    parser.add_argument("--out", type=Path, default=Path("kills.json"), help="the findings (%(default)s)")
    parser.add_argument("--snakemake", default=str(Path(sys.executable).with_name("snakemake")))
    parser.add_argument("--requests", type=int, default=6, help="in flight when killed (%(default)s)")
    arguments = parser.parse_args()
    try:
        study = load_study(arguments.study)
    except UserError as error:
        raise SystemExit(f"error: {error}") from error
    rows: list[dict[str, Any]] = []
    for who in study.configurations:
        log = arguments.out.with_name(f"kill-{who}.log")
        rows.append(kill(arguments.study, study.name, who, arguments.snakemake, arguments.requests, log))
        write_json(arguments.out, rows)
        print(json.dumps(rows[-1]), flush=True)
    return int(any(value is None for row in rows for key, value in row.items() if key.endswith("_seconds")))


if __name__ == "__main__":
    sys.exit(main())
