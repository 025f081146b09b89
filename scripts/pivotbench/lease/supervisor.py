"""Owns one server from its start to the proof that nothing of it is left.

It runs in a session of its own (scripts/supervise.py). It locks the
devices before it starts anything, and it stops the server when a stage asked for that, when the
owning run is gone, when somebody waits for the devices and no stage uses the server, or when
nobody has used it for long.
"""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pivotbench.engines import get_engine
from pivotbench.engines.base import Engine
from pivotbench.errors import UserError
from pivotbench.files import read_json
from pivotbench.gpu import device_variables, memory_used_mib, visible_gpus
from pivotbench.lease.locks import DeviceLocks, try_lock
from pivotbench.lease.processes import MARKER, Identity, descendants, end, marked, reap, resident_mib
from pivotbench.lease.state import (
    HURRIED_GRACE_SECONDS,
    Handle,
    LaunchOrder,
    Record,
    marker_value,
    read_order,
    write_handle,
    write_record,
)
from pivotbench.lease.sweep import memory_is_back, port_is_closed, sweep_stale, wait_for_memory
from pivotbench.results import Reason, now

POLL_SECONDS = 0.05
IDLE_SECONDS = 300.0
# Longer than the gap between two stages of a cell: otherwise two runs evict each other for ever.
EVICTION_GRACE_SECONDS = 5.0
LOG_PART_BYTES = 16 << 20
FIRST_PORT = 16000
GUARD = Path(__file__).resolve().parents[2] / "guard.py"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class Supervisor:
    """One launch under watch; ``run`` returns when it is over and recorded."""

    def __init__(self, folder: Path, order: LaunchOrder) -> None:
        self.folder, self.order = folder, order
        self.engine: Engine = get_engine(order.engine)
        self.owner = Identity.parse(order.owner)
        gpus = visible_gpus()
        candidates = [g.uuid for g in gpus] if order.gpus else ["cpu"]
        self.gpus = gpus
        self.locks = DeviceLocks(candidates, order.gpus or 1)
        self.handle = Handle(order.launch_id, order.key, order.owner, str(Identity.own()), "waiting")
        self.record = Record(
            order.launch_id, order.key, why="failed", became_ready=False, log=order.log, started=now()
        )
        self.server: subprocess.Popen[bytes] | None = None
        self.guard: subprocess.Popen[bytes] | None = None
        self.known: set[Identity] = set()
        self.ready = threading.Event()
        self.stranger: str | None = None
        self.idle_since = time.monotonic()
        self.spawned = time.monotonic()

    # The life of a server, told in order.

    def run(self) -> None:
        """Wait for devices, start the server, watch it, end it, record it."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        write_handle(self.folder, self.handle)
        try:
            if self._wait_for_devices():
                sweep_stale()
                self._start_guard()
                self._start_server()
                self._watch()
        except Exception:
            self._fail(
                "supervisor_failed", "the supervisor broke", tuple(traceback.format_exc().splitlines()[-5:])
            )
        finally:
            self._finish()

    def _wait_for_devices(self) -> bool:
        if len(self.locks.candidates) < self.locks.count:
            self._fail(
                "slot_refused",
                f"the study asks for {self.locks.count} GPUs, this host shows {len(self.locks.candidates)}: "
                "lower hosts.gpus or free CUDA_VISIBLE_DEVICES",
            )
            return False
        deadline = time.monotonic() + self.order.slot_wait_seconds
        while not self.locks.try_acquire():
            if not self.owner.alive() or not self._leased():
                self.record.why = "owner_gone"
                return False
            if time.monotonic() > deadline:
                self._fail(
                    "slot_refused",
                    f"all devices were taken for {self.order.slot_wait_seconds:g} s: wait, or stop them",
                )
                return False
            time.sleep(0.1 + random.random() * 0.1)
        self.handle.devices = self.record.devices = sorted(self.locks.held)
        return True

    def _start_guard(self) -> None:
        self.guard = subprocess.Popen(
            [sys.executable, str(GUARD), str(self.folder), self.handle.supervisor],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=list(self.locks.held.values()),
        )

    def _start_server(self) -> None:
        order = self.order
        uuids = [d for d in self.handle.devices if d != "cpu"]
        self.handle.before_mib = memory_used_mib(uuids)
        self.record.memory = {"before_mib": self.handle.before_mib}
        port = free_port()
        command = self.engine.command(
            order.python, order.model, order.flags, port=port, served_name=order.served_name
        )
        self.record.command = {"study": list(command.study), "added": list(command.added)}
        environment = {**os.environ, **command.env, **order.env, MARKER: marker_value(order.launch_id)}
        if uuids:
            environment |= device_variables(self.gpus, uuids)
        Path(order.log).parent.mkdir(parents=True, exist_ok=True)
        self.spawned = time.monotonic()
        with Path(order.log).open("wb") as log:
            try:
                self.server = subprocess.Popen(
                    command.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                    preexec_fn=_die_with_parent,
                )
            except OSError as error:
                self._fail("engine_missing", f"{command.argv[0]} cannot be started: {error.strerror}")
                return
        self.handle.state, self.handle.url = "starting", f"http://127.0.0.1:{port}"
        self._note_processes()
        write_handle(self.folder, self.handle)
        threading.Thread(target=self._probe_until_ready, daemon=True).start()

    def _probe_until_ready(self) -> None:
        assert self.handle.url is not None
        while not self.ready.is_set():
            probe = self.engine.probe(self.handle.url, self.order.served_name, timeout_seconds=30.0)
            if probe.state == "stranger":
                self.stranger = probe.detail
                return
            if probe.state == "ready":
                self.record.ready_seconds = round(time.monotonic() - self.spawned, 3)
                self.record.effective = self.engine.server_info(self.handle.url, self._log())
                self.record.phases = self._phases()
                self.ready.set()
                return
            time.sleep(0.1)

    def _watch(self) -> None:
        noted = time.monotonic()
        while self.server is not None:
            time.sleep(POLL_SECONDS)
            exit_code = self.server.poll()
            if exit_code is not None:
                self._server_ended(exit_code)
                return
            if self.handle.state == "starting" and not self._still_starting():
                return
            if time.monotonic() - noted > (0.5 if self.handle.state == "starting" else 2.0):
                noted = time.monotonic()
                self._note_processes()
                if self.guard is not None and self.guard.poll() is not None:
                    self._start_guard()
            if (why := self._why_stop()) is not None:
                self.record.why = why
                return

    def _still_starting(self) -> bool:
        if self.stranger is not None:
            self._fail("port_in_use", f"another server answers at {self.handle.url}: {self.stranger}")
            return False
        if self.ready.is_set():
            self.record.became_ready = True
            self.handle.state = "ready"
            self.handle.facts = {
                "ready_seconds": self.record.ready_seconds,
                "phases": self.record.phases,
                "effective": self.record.effective,
                "command": self.record.command,
                "memory": self._memory_now(),
            }
            self._note_processes()
            write_handle(self.folder, self.handle)
            self.idle_since = time.monotonic()
        elif time.monotonic() - self.spawned > self.order.launch_timeout_seconds:
            self.record.why = "failed"
            what = f"the server was not ready within {self.order.launch_timeout_seconds:g} s"
            self.record.reason = asdict(self._as_the_log_tells("launch_timeout", what))
            return False
        return True

    def _server_ended(self, exit_code: int) -> None:
        from pivotbench.diagnose import diagnose_file

        self.record.exit_code = exit_code
        if self.record.became_ready:
            self.record.why = "died"
            what = f"the server ended by itself with exit code {exit_code} after it was ready"
            reason = self._as_the_log_tells("server_died", what)
        else:
            reason = diagnose_file(Path(self.order.log), exit_code, self.order.engine)
        self.record.reason = asdict(reason)

    def _as_the_log_tells(self, code: str, what: str) -> Reason:
        """What happened, with the cause in the log's words and what helps against it, where the log knows."""
        from pivotbench.diagnose import diagnose_file
        from pivotbench.reasons import remedy_for

        cause = diagnose_file(Path(self.order.log), self.record.exit_code, self.order.engine)
        if cause.code == "unknown":
            return replace(Reason.of(code, what, cause.evidence), remedy=remedy_for(code))
        message = f"{what} ({cause.code}: {cause.message})"
        return replace(cause, code=code, kind="transient", message=message)

    def _why_stop(self) -> str | None:
        if not self.owner.alive():
            return "owner_gone"
        lease = try_lock(self.folder / "lease")
        if lease is None:
            self.idle_since = time.monotonic()
            return None
        try:
            idle_seconds = time.monotonic() - self.idle_since
            if (self.folder / "stop").exists():
                why = "stop"
            elif idle_seconds > EVICTION_GRACE_SECONDS and self.locks.wanted_by_others():
                why = "evicted"
            elif idle_seconds > IDLE_SECONDS:
                why = "idle"
            else:
                return None
            # Said while the lease is held alone: a stage that attaches next sees it and starts anew.
            self.handle.state = "ended"
            write_handle(self.folder, self.handle)
            return why
        finally:
            os.close(lease)

    def _finish(self) -> None:
        self.ready.set()
        self.handle.state = "ended"
        write_handle(self.folder, self.handle)
        grace = self._grace_seconds()
        began = time.monotonic()
        if self.server is not None:
            ending = end(self._server_processes, grace_seconds=grace, collect=self._collect)
            self.record.signals = [{"signal": name, "seconds": s} for name, s in ending.signals]
            self.record.processes_left = [str(p) for p in ending.left]
            self.record.exit_code = self.server.poll()
            self._prove_released()
            self.record.phases = self.record.phases or self._phases()
        self.record.teardown_seconds = round(time.monotonic() - began, 3)
        self.record.ended = now()
        if Path(self.order.record).parent.is_dir():
            write_record(Path(self.order.record), self.record)
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.guard is not None:
            self.guard.kill()
            self.guard.wait()
        self.locks.release()

    def _grace_seconds(self) -> float:
        usual = self.engine.stop_grace_seconds
        if self.record.why == "owner_gone":
            return min(usual, HURRIED_GRACE_SECONDS)
        try:
            told = read_json(self.folder / "stop")
        except (OSError, ValueError):
            return usual
        return usual if told is None else float(told)

    def _prove_released(self) -> None:
        record = self.record
        before = record.memory.get("before_mib", {})
        record.memory["after_mib"] = wait_for_memory(before)
        deadline = time.monotonic() + 2.0
        while not port_is_closed(self.handle.url) and time.monotonic() < deadline:
            time.sleep(0.1)
        record.port_closed = port_is_closed(self.handle.url)
        back = memory_is_back(before, record.memory["after_mib"])
        record.released = record.port_closed and back and not record.processes_left

    # Small helpers.

    def _log(self) -> list[str]:
        """The server's log from its beginning, where causes stand; the middle of a huge one is left out."""
        try:
            with Path(self.order.log).open("rb") as stream:
                head = stream.read(LOG_PART_BYTES)
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(len(head), size - LOG_PART_BYTES))
                text = head + stream.read()
        except OSError:
            return []
        return text.decode(errors="replace").splitlines()

    def _phases(self) -> list[dict[str, Any]]:
        return [asdict(p) for p in self.engine.launch_phases(self._log())]

    def _memory_now(self) -> dict[str, Any]:
        uuids = [d for d in self.handle.devices if d != "cpu"]
        resident = sum(resident_mib(p.pid) for p in self._server_processes())
        return {"per_gpu_mib": memory_used_mib(uuids), "resident_mib": resident}

    def _fail(self, code: str, message: str, evidence: tuple[str, ...] = ()) -> None:
        self.record.why = "failed"
        self.record.reason = asdict(Reason.of(code, message, evidence))

    def _leased(self) -> bool:
        lease = try_lock(self.folder / "lease")
        if lease is None:
            return True
        os.close(lease)
        return False

    def _server_processes(self) -> set[Identity]:
        mine = {Identity.own()} | ({i} if self.guard and (i := Identity.of(self.guard.pid)) else set())
        found = descendants(os.getpid()) | marked(marker_value(self.order.launch_id))
        return (found | {p for p in self.known if p.alive()}) - mine

    def _note_processes(self) -> None:
        found = self._server_processes()
        if found - self.known:
            self.known |= found
            self.handle.processes = sorted(str(p) for p in self.known)
            write_handle(self.folder, self.handle)

    def _collect(self) -> None:
        children = [child for child in (self.server, self.guard) if child is not None]
        for child in children:
            child.poll()
        reap(keep=frozenset(child.pid for child in children if child.returncode is None))


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    """Return a free loopback port that the kernel hands out to nobody else.

    A server binds its port a minute or more after it was chosen. One out of the kernel's own range may by
    then be the local end of somebody's connection.
    """
    handed_out_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(FIRST_PORT, max(handed_out_from, FIRST_PORT + 1000)), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise RuntimeError("no free port for the server")


def supervise(folder: Path) -> None:
    """Supervise the launch ordered in ``folder``; return when it is over and recorded."""
    order = read_order(folder)
    if order is None:
        raise UserError(f"{folder}: no launch order here to supervise")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    Supervisor(folder, order).run()
