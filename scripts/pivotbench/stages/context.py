"""What every stage is given, and the rule that a stage never outlives the run that asked for it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pivotbench.errors import UserError, file_fault
from pivotbench.files import read_json
from pivotbench.installations import Installation
from pivotbench.lease.ensure import Server, ensure, new_launch_id, record_path
from pivotbench.lease.key import lease_key
from pivotbench.lease.processes import Identity
from pivotbench.lease.state import LaunchOrder, Record
from pivotbench.redaction import secrets_of
from pivotbench.results import Reason, Stage, later, now, write_stage
from pivotbench.terminal.mode import IN_PLACE, told_mode, write_line

OWNER_VARIABLE = "PIVOTBENCH_OWNER"
ORPHANED = 75


@dataclass(frozen=True)
class Context:
    """One stage of one cell.

    ``request`` is the launch request, ``work`` this stage's own; ``host`` says where things are on
    this machine: python, model, launch_timeout_seconds, slot_wait_seconds. ``started`` is of the wall
    clock, ``began`` the same moment of the monotonic one, which nobody sets back.
    """

    stage: Stage
    cell: dict[str, Any]
    fingerprint: str
    request: dict[str, Any]
    work: dict[str, Any]
    host: dict[str, Any]
    output: Path
    started: str
    owner: Identity
    began: float = field(default_factory=time.monotonic)

    @property
    def folder(self) -> Path:
        """The cell's folder."""
        return self.output.parent

    @property
    def logs(self) -> Path:
        """The folder of server logs and launch records."""
        return self.folder / "logs"

    @property
    def key(self) -> str:
        """What a live server must carry to be this cell's."""
        return lease_key(self.cell, self.request)

    @property
    def installation(self) -> Installation:
        """Where this cell's version of the engine is."""
        return Installation.of_request(self.request, self.host["python"])

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no file may hold."""
        return secrets_of(self.host.get("secrets", ()))

    def say(self, text: str) -> None:
        """Print a line worth keeping in a log; a run that only tells outcomes does without."""
        if told_mode() != "outcomes":
            self._print(text)

    def progress(self, text: str) -> None:
        """Say how far this stage is: in place on a terminal, as a line elsewhere."""
        if told_mode() != "outcomes":
            self._print(text, IN_PLACE if told_mode() == "live" else "")

    def _tell(self, text: str) -> None:
        """Print what became of this stage, where the run does not tell it of the whole cell."""
        if told_mode() == "lines":
            self._print(text)

    def _print(self, text: str, before: str = "") -> None:
        label = f"{self.cell['configuration']} r{self.cell['round']}"
        write_line(f"{before}{label}: {self.stage}: {text}")

    def read(self, stage: Stage) -> dict[str, Any]:
        """Return the file of an earlier stage of the same cell."""
        data: dict[str, Any] = read_json(self.folder / f"{stage}.json")
        return data

    def ensure(self) -> Server | Record:
        """Return this cell's ready server, live or launched anew, or the record of its failure."""
        launch_id = new_launch_id()
        installed = self.installation
        log = (self.logs / f"{self.stage}.log").resolve()
        order = LaunchOrder(
            launch_id=launch_id,
            key=self.key,
            owner=str(self.owner),
            engine=self.request["engine"],
            python=installed.python,
            model=self.host["model"],
            flags=self.request["flags"],
            env=self.request["env"],
            gpus=self.request["gpus"],
            numa=self.request.get("numa", False),
            log=str(log),
            record=str(record_path(self.logs, launch_id)),
            launch_timeout_seconds=self.host["launch_timeout_seconds"],
            slot_wait_seconds=self.host["slot_wait_seconds"],
            container=asdict(installed.container) if installed.container else None,
            secrets=self.host.get("secrets", []),
        )
        return ensure(order, self.progress)

    def server_block(self, server: Server) -> dict[str, Any]:
        """Return the ``server`` key of a stage file for a server in use."""
        return {
            "launch_id": server.launch_id,
            "relaunched": server.relaunched,
            "effective": server.facts.get("effective", {}),
            "log": f"logs/{self.stage if server.relaunched else 'launch'}.log",
        }

    def write(
        self,
        status: str,
        *,
        reason: Reason | None = None,
        server: dict[str, Any] | None = None,
        **body: Any,
    ) -> None:
        """Write this stage's file, unless the run that asked for it is gone."""
        if not self.owner.alive():
            os._exit(ORPHANED)
        write_stage(
            self.output,
            stage=self.stage,
            status=status,  # type: ignore[arg-type]
            fingerprint=self.fingerprint,
            cell=self.cell,
            started=self.started,
            ended=later(self.started, time.monotonic() - self.began),
            server=server,
            reason=reason,
            secrets=self.secrets,
            **body,
        )
        if status == "skipped" and reason is not None:
            self._tell(f"skipped: {reason.message.partition(':')[0]}")
        else:
            self._tell(status if reason is None else f"{status}: {reason.code}: {_in_words(reason)}")

    def skip_after(self, stage: Stage, earlier: dict[str, Any]) -> None:
        """Record that this stage was not tried, because an earlier one failed."""
        cause = Reason.from_json(earlier["reason"])
        self.write("skipped", reason=Reason(cause.code, cause.kind, f"{stage} failed: {cause.message}"))


def _in_words(reason: Reason) -> str:
    return f"{reason.message.rstrip('.')}. {reason.remedy}" if reason.remedy else reason.message


def failed_launch(record: Record) -> tuple[Reason, dict[str, Any]]:
    """Return the reason and the ``server`` key for a launch that did not become ready."""
    if record.reason is not None:
        reason = Reason.from_json(record.reason)
    else:
        reason = Reason.of("server_died", f"the launch ended before the server was ready ({record.why})")
    block = {
        "launch_id": record.launch_id,
        "relaunched": True,
        "effective": record.effective,
        "log": f"logs/{Path(record.log).name}",
    }
    return reason, block


def run_stage(stage: Stage, body: Callable[[Context], None]) -> None:
    """Run a stage from the command line; end at once when the owning run is gone.

    Exits 2 with one line on a UserError, 75 when orphaned. Results, failures included, exit 0.
    """
    parser = argparse.ArgumentParser(description=f"Run the {stage} stage of one cell.")
    parser.add_argument("--cell", required=True, help="JSON: cell, fingerprint, request, work")
    parser.add_argument("--host", required=True, help="JSON: where things are on this machine")
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()
    asked = json.loads(arguments.cell)
    told = os.environ.get(OWNER_VARIABLE)
    owner = Identity.parse(told) if told else Identity.of(os.getppid())
    if owner is None or not owner.alive():
        sys.exit(ORPHANED)
    context = Context(
        stage=stage,
        cell=asked["cell"],
        fingerprint=asked["fingerprint"],
        request=asked["request"],
        work=asked.get("work") or {},
        host=json.loads(arguments.host),
        output=arguments.output,
        started=now(),
        owner=owner,
    )
    threading.Thread(target=_watch, args=(owner,), daemon=True).start()
    try:
        body(context)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if (fault := file_fault(error)) is None:
            raise
        print(f"error: {fault}", file=sys.stderr)
        sys.exit(2)


def _watch(owner: Identity) -> None:
    while owner.alive():
        time.sleep(0.25)
    os._exit(ORPHANED)
