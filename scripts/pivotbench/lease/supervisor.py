"""Owns one server from its start to the proof that nothing of it is left.

It runs in a session of its own (scripts/supervise.py). It locks the
devices before it starts anything, and it stops the server when a stage asked for that, when the
owning run is gone, when somebody waits for the devices and no stage uses the server, or when
nobody has used it for long.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import signal
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pivotbench.engines import get_engine
from pivotbench.engines.base import Engine
from pivotbench.errors import UserError, file_fault
from pivotbench.files import read_json
from pivotbench.lease.claim import Claim
from pivotbench.lease.contained import contained
from pivotbench.lease.death import as_the_log_tells, death_reason
from pivotbench.lease.guard import start_guard
from pivotbench.lease.locks import is_held, try_lock
from pivotbench.lease.ports import free_port
from pivotbench.lease.processes import Identity
from pivotbench.lease.readiness import Readiness
from pivotbench.lease.release import memory_is_back, prove_released
from pivotbench.lease.server_process import ServerProcess
from pivotbench.lease.slot import take_slot
from pivotbench.lease.state import (
    HURRIED_GRACE_SECONDS,
    Handle,
    LaunchOrder,
    Record,
    read_order,
    write_handle,
    write_record,
)
from pivotbench.lease.sweep import sweep_stale
from pivotbench.machine import containers
from pivotbench.machine.containers import Container
from pivotbench.redaction import redact_log, secrets_of
from pivotbench.results import Reason, now

POLL_SECONDS = 0.05
IDLE_SECONDS = 300.0
# Longer than the gap between two stages of a cell: otherwise two runs evict each other for ever.
EVICTION_GRACE_SECONDS = 5.0
PR_SET_CHILD_SUBREAPER = 36


class Supervisor:
    """One launch under watch; ``run`` returns when it is over and recorded."""

    def __init__(self, folder: Path, order: LaunchOrder) -> None:
        self.folder, self.order = folder, order
        self.engine: Engine = get_engine(order.engine)
        self.owner = Identity.parse(order.owner)
        self.claim = Claim(order)
        self.handle = Handle(order.launch_id, order.key, order.owner, str(Identity.own()), "waiting")
        self.record = Record(
            order.launch_id, order.key, why="failed", became_ready=False, log=order.log, started=now()
        )
        self.secrets = secrets_of(order.secrets)
        self.container = Container.from_json(order.container)
        self.server = ServerProcess(order)
        self.readiness = Readiness(self.engine, order.served_name, self.server.log_lines)
        self.idle_since = time.monotonic()
        self.spawned = time.monotonic()

    # The life of a server, told in order.

    def run(self) -> None:
        """Wait for devices, start the server, watch it, end it, record it."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        try:
            write_handle(self.folder, self.handle)
            if self._wait_for_devices():
                sweep_stale()
                self._start_guard()
                self._start_server()
                self._watch()
        except Exception as error:
            fault = file_fault(error) or "the supervisor broke"
            self._fail("supervisor_failed", fault, tuple(traceback.format_exc().splitlines()[-5:]))
        finally:
            self._finish()

    def _wait_for_devices(self) -> bool:
        if (why := self.claim.impossible()) is not None:
            self._fail("slot_refused", why)
            return False
        deadline = time.monotonic() + self.order.slot_wait_seconds
        while not self.claim.try_acquire():
            if not self.owner.alive() or not is_held(self.folder / "lease"):
                self.record.why = "owner_gone"
                return False
            if time.monotonic() > deadline:
                self._fail("slot_refused", self.claim.refusal(self.order.slot_wait_seconds))
                return False
            time.sleep(0.1 + random.random() * 0.1)
        self.handle.devices = self.record.devices = self.claim.devices
        return True

    def _start_guard(self) -> None:
        self.server.guard = start_guard(self.folder, self.handle.supervisor, self.claim.descriptors)
        self.handle.guard = str(Identity.of(self.server.guard.pid) or "") or None
        write_handle(self.folder, self.handle)

    def _start_server(self) -> None:
        order = self.order
        self.handle.before_mib = self.claim.memory_mib()
        self.record.memory = {"before_mib": self.handle.before_mib}
        self._tell_devices()
        slot = take_slot(order, self.engine, self.handle.devices)
        self.record.slot = slot.as_json
        port = free_port()
        command = self.engine.command(
            order.python, order.model, order.flags, port=port, served_name=order.served_name
        )
        self.record.command = {"study": list(command.study), "added": list(command.added)}
        devices = self.claim.variables()
        argv = list(command.argv)
        environment = {**os.environ, **command.env, **slot.variables, **order.env, **devices}
        if self.container is not None:
            inside = contained(order, self.container, command, slot, devices, self.claim.uuids)
            argv, environment = inside.argv, inside.environment
            self.record.command |= {"study": inside.shown, "container": argv}
        self.spawned = time.monotonic()
        try:
            self.server.start(argv, environment)
        except OSError as error:
            if error.filename == order.log:
                raise
            self._fail("engine_missing", f"{argv[0]} cannot be started: {error.strerror}")
            return
        self.handle.state, self.handle.url = "starting", f"http://127.0.0.1:{port}"
        self._note_processes()
        write_handle(self.folder, self.handle)
        self.readiness.watch(self.handle.url, self.spawned)

    def _watch(self) -> None:
        noted = time.monotonic()
        while self.server.process is not None:
            if self.handle.state == "starting":
                self.readiness.ready.wait(POLL_SECONDS)
            else:
                time.sleep(POLL_SECONDS)
            exit_code = self.server.process.poll()
            if exit_code is not None:
                self._server_ended(exit_code)
                return
            if self.handle.state == "starting" and not self._still_starting():
                return
            if time.monotonic() - noted > (0.5 if self.handle.state == "starting" else 2.0):
                noted = time.monotonic()
                self._note_processes()
                if self.server.guard is not None and self.server.guard.poll() is not None:
                    self._start_guard()
            if (why := self._why_stop()) is not None:
                self.record.why = why
                return

    def _still_starting(self) -> bool:
        launch = self.readiness
        if launch.stranger is not None:
            self._fail("port_in_use", f"another server answers at {self.handle.url}: {launch.stranger}")
            return False
        if launch.ready.is_set():
            self.record.became_ready = True
            self.record.ready_seconds, self.record.effective = launch.ready_seconds, launch.effective
            self.record.phases = launch.phases()
            self.handle.state = "ready"
            self.handle.facts = {
                "ready_seconds": self.record.ready_seconds,
                "phases": self.record.phases,
                "effective": self.record.effective,
                "command": self.record.command,
                "memory": self._memory_now(),
                "slot": self.record.slot,
            }
            self._note_processes()
            write_handle(self.folder, self.handle)
            self.idle_since = time.monotonic()
        elif time.monotonic() - self.spawned > self.order.launch_timeout_seconds:
            what = f"the server was not ready within {self.order.launch_timeout_seconds:g} s"
            log = Path(self.order.log)
            self.record.why = "failed"
            self.record.reason = asdict(
                as_the_log_tells("launch_timeout", what, log, None, self.order.engine, self.secrets)
            )
            return False
        return True

    def _server_ended(self, exit_code: int) -> None:
        if not self.record.became_ready:
            why = containers.why_not_started(self.container, exit_code, self.server.log_lines())
            if why is not None:
                self.record.exit_code = exit_code
                self._fail("engine_missing", f"docker did not start the server: {why}", (why,))
                return
        exit_code = containers.exit_code_of_server(self.container, exit_code)
        self.record.exit_code = exit_code
        if self.record.became_ready:
            self.record.why = "died"
        log = Path(self.order.log)
        reason = death_reason(log, exit_code, self.order.engine, self.record.became_ready, self.secrets)
        self.record.reason = asdict(reason)

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
            elif idle_seconds > EVICTION_GRACE_SECONDS and self.claim.wanted_by_others():
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
        self.readiness.give_up()
        self.handle.state = "ended"
        with contextlib.suppress(OSError):  # a full disk keeps no server from being ended
            write_handle(self.folder, self.handle)
        grace = self._grace_seconds()
        began = time.monotonic()
        if self.server.process is not None:
            ending = self.server.end(grace)
            self.record.signals = [{"signal": name, "seconds": s} for name, s in ending.signals]
            self.record.processes_left = list(ending.left)
            code = self.server.process.poll()
            self.record.exit_code = (
                None if code is None else containers.exit_code_of_server(self.container, code)
            )
            prove_released(self.record, self.handle.url)
            self.record.phases = self.record.phases or self.readiness.phases()
        self.record.teardown_seconds = round(time.monotonic() - began, 3)
        self.record.ended = now()
        with contextlib.suppress(OSError):
            self._leave_devices()
        try:
            if Path(self.order.record).parent.is_dir():
                try:
                    redact_log(Path(self.order.log), self.secrets)
                finally:
                    write_record(Path(self.order.record), self.record, self.secrets)
            shutil.rmtree(self.folder, ignore_errors=True)
        except OSError as error:
            # The stage that ordered the launch reads this, and tidies up.
            print(f"error: {file_fault(error) or error}", file=sys.stderr, flush=True)
        if self.server.guard is not None:
            self.server.guard.kill()
            self.server.guard.wait()
        self.claim.release()

    def _grace_seconds(self) -> float:
        usual = self.engine.stop_grace_seconds
        if self.record.why == "owner_gone":
            return min(usual, HURRIED_GRACE_SECONDS)
        try:
            told = read_json(self.folder / "stop")
        except (OSError, ValueError):
            return usual
        return usual if told is None else float(told)

    # Small helpers.

    def _memory_now(self) -> dict[str, Any]:
        return {"per_gpu_mib": self.claim.memory_mib(), "resident_mib": self.server.resident_mib()}

    def _fail(self, code: str, message: str, evidence: tuple[str, ...] = ()) -> None:
        self.record.why = "failed"
        self.record.reason = asdict(Reason.of(code, message, evidence))

    def _note_processes(self) -> None:
        if self.server.note_processes():
            self.handle.processes = sorted(str(p) for p in self.server.known)
            write_handle(self.folder, self.handle)
            self._tell_devices()

    def _tell_devices(self) -> None:
        self.claim.tell(self.handle.processes, self.handle.before_mib)

    def _leave_devices(self) -> None:
        after_mib = self.record.memory.get("after_mib", {})
        if self.record.processes_left or not memory_is_back(self.handle.before_mib, after_mib):
            self.server.note_processes()
            self.handle.processes = sorted(str(p) for p in self.server.known)
            self._tell_devices()
        else:
            self.claim.clear()


def supervise(folder: Path) -> None:
    """Supervise the launch ordered in ``folder``; return when it is over and recorded."""
    order = read_order(folder)
    if order is None:
        raise UserError(f"{folder}: no launch order here to supervise")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    Supervisor(folder, order).run()
