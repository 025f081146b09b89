"""Between Snakemake and the library: everything that needs Snakemake's own objects."""

from __future__ import annotations

import fcntl
import functools
import gc
import json
import os
import platform
import re
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from terminal import stand_in

from cluster import refuse_two_runs, speak_for_slurm
from pivotbench.campaign import Campaign
from pivotbench.cells import Cell
from pivotbench.changes.folder import read_pair
from pivotbench.damage import damaged_files
from pivotbench.errors import UserError, file_fault
from pivotbench.files import read_json
from pivotbench.lease.ensure import stop
from pivotbench.lease.processes import Identity, descendants, send
from pivotbench.lease.state import HURRIED_GRACE_SECONDS
from pivotbench.lease.sweep import sweep_stale
from pivotbench.results import DECISION_SCHEMA, Stage
from pivotbench.rounds import outlived_races, standing_races
from pivotbench.settled import Settled
from pivotbench.stage_files import load_stage
from pivotbench.stages.context import OWNER_VARIABLE
from pivotbench.study import check_conflicts, check_flags, check_secrets, load_study
from pivotbench.summary.terminal import terminal_summary

P = ParamSpec("P")
R = TypeVar("R")

CONFIG_KEYS = ("study", "frozen", "retry", "old", "new")
_DEFAULT = object()


def one_line(function: Callable[P, R]) -> Callable[P, R]:
    """Have a function that Snakemake calls end the run in one line where the user has something to mend.

    Snakemake itself would show where in this code it was noticed.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except UserError as error:
            sys.exit(f"error: {error}")
        except OSError as error:
            if (fault := file_fault(error)) is None:
                raise
            sys.exit(f"error: {fault}")

    return wrapped


class Bridge:
    """One Snakemake process at work on one study."""

    @one_line
    def __init__(self, workflow: Any, config: dict[str, Any]) -> None:
        self.workflow = workflow
        root = Path(workflow.basedir)
        _check_records()
        options = _options(config)
        study = load_study(_study_path(options["study"], root))
        self.frozen: bool = options["frozen"]
        self.compared: tuple[str, str] = options["compared"]
        self.campaign = Campaign(
            study=study,
            root=root,
            retry_all=options["retry"] == "all",
        )
        if not self.frozen:
            check_secrets(study)
        catalogues = self.campaign.catalogues()
        check_flags(study, catalogues, self.campaign.engine.reserved_flags)
        if self.frozen and not any(self.compared):
            self.campaign.check_stored()
        if any(self.compared) and not workflow.subprocess_exec:
            read_pair(*self.compared)
        elif catalogues and not (self.frozen or workflow.subprocess_exec):
            for line in check_conflicts(study, catalogues, self.campaign.kinds):
                print(f"warning: {line}", file=sys.stderr)
        self.owner = str(Identity.own())
        if workflow.is_main_process or OWNER_VARIABLE not in os.environ:
            # A job in a process of its own belongs to the run that started it.
            os.environ[OWNER_VARIABLE] = self.owner
        self.standing: frozenset[Path] = frozenset()
        self._prepared = False
        self._out_of_sight: Settled | None = None
        self._renewed: set[str] = set()
        self._unreadable: set[str] = set()
        self._races: dict[Path, tuple[tuple[int, int, int], Any]] = {}
        self._run_lock: Any = None
        self.terminal = stand_in(workflow, self.campaign)

    @one_line
    def prepare(self) -> None:
        """Once, when Snakemake knows what it is to do: heal what a killed run left behind.

        While a Snakefile is read, Snakemake has not yet decided on executor and dry run; when the
        first input is asked for, it has, and has locked nothing yet.
        """
        if self._prepared:
            return
        self._prepared = True
        workflow = self.workflow
        # A dry run knows no executor; who groups stages into jobs sends them to other machines.
        away = workflow.dryrun and bool(workflow.group_settings.overwrite_groups)
        self.campaign.local = workflow.local_exec and not away
        if workflow.is_main_process and workflow.non_local_exec:
            # Servers on a node belong to the job there: to its first Snakemake, which the others inherit.
            os.environ.pop(OWNER_VARIABLE, None)
        settings = workflow.dag_settings
        settings.force_incomplete = True
        # What a result depends on is in its params and its fingerprint. A stage names engine and model as
        # input only when it is to run, so a changed set of inputs says nothing; and no rule's line does. Of
        # what is stored all evidence is input, and less of it is another decision.
        ours = {"CODE"} if self.frozen else {"INPUT", "CODE"}
        settings.rerun_triggers = frozenset(t for t in settings.rerun_triggers if t.name not in ours)
        if workflow.is_main_process and not workflow.dryrun:
            if workflow.non_local_exec:
                refuse_two_runs()
            self.campaign.results.mkdir(parents=True, exist_ok=True)
            sweep_stale()
            self._run_lock = _heal_locks(Path(".snakemake"))
        if not (self.frozen or any(self.compared) or workflow.subprocess_exec):
            self.campaign.check_model()
        if workflow.is_main_process:
            for path in damaged_files(self.campaign.results):
                workflow.dag.forcefiles.add(str(path))
                print(f"{path} is made anew: it is not whole", file=sys.stderr)
            for path, names in ({} if self.frozen else outlived_races(self.campaign)).items():
                # Without Snakemake's records, nothing else would tell it that the study has changed.
                workflow.dag.forcefiles.add(str(path))
                print(f"{path} is made anew: the study no longer runs {names}", file=sys.stderr)
        # All that is loaded by now stays: Python's collector need not walk over it as cells are read.
        gc.freeze()
        if not (self.frozen or workflow.dag.forcerules or workflow.dag.forcefiles):
            holds = functools.cache(self.campaign.holds)
            # Each checkpoint that Snakemake has to wait for costs it several walks over the whole graph.
            self.standing = standing_races(self.campaign, holds)
            if self._only_runs():
                self._out_of_sight = Settled(self.campaign, holds)

    def _only_runs(self) -> bool:
        """Return whether Snakemake is to do what is to be done: draws no graph, leaves no part out."""
        workflow, settings = self.workflow, self.workflow.dag_settings
        narrowed = settings.until or settings.omit_from or settings.batch
        executes = workflow.executor_plugin is not None and not workflow.touch
        return workflow.is_main_process and executes and not narrowed

    def in_sight(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return the cells that Snakemake has to look at: it spends milliseconds on every job it knows of.

        Left out are those that are settled, where nothing is forced and the whole is asked for.
        """
        self.prepare()
        settled = self._out_of_sight
        return [cell for cell in cells if settled is None or cell not in settled]

    @one_line
    def need_two_folders(self) -> None:
        """End the run where a comparison was asked for and its folders were not named."""
        if not all(self.compared):
            read_pair(*self.compared)

    def start(self) -> None:
        """From now on, end running stages at once when this run is told to end; listen to the scheduler.

        Snakemake would wait for them, and with them for a load of minutes. A killed stage leaves no
        file; its server ends with the run. On a cluster no stage runs here: Snakemake cancels its jobs.
        """
        workflow = self.workflow
        if not workflow.is_main_process:
            return
        if self.terminal is not None:
            self.terminal.begin(self.owner)
        if workflow.non_local_exec:
            speak_for_slurm(workflow.remote_execution_settings.seconds_between_status_checks)
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._end_stages_then(signal.getsignal(number)))

    def _end_stages_then(self, before: Any) -> Callable[[int, FrameType | None], None]:
        def handle(number: int, frame: FrameType | None) -> None:
            if self.terminal is not None:
                self.terminal.stopped = True
            session = os.getsid(0)
            stages = [p for p in descendants(os.getpid()) if _session(p) == session]
            send(stages, signal.SIGTERM)
            if callable(before):
                before(number, frame)

        return handle

    def renew(self, stage: Stage, cell: Cell) -> bool:
        """Have a stored result made anew where it no longer holds; say why, once.

        Returns whether the stage will run for a reason of its own: its file is missing, stale, or
        forced by the user.
        """
        self.prepare()
        if not self.workflow.is_main_process:
            return False  # a job on a node does what the run that submitted it has decided
        forced = self.workflow.dag.forcefiles
        path = str(cell.file(stage))
        why = self.campaign.stale(stage, cell)
        missing = not Path(path).exists()
        if missing and path not in forced:
            # Snakemake would let a missing file be where what was made of it is there.
            self._renewed.add(path)
            forced.add(path)
        elif why is None and not missing:
            # Only what was forced here: what the user forced stays forced.
            forced -= {path} & self._renewed
        elif why is not None and path not in self._renewed:
            self._renewed.add(path)
            forced.add(path)
            print(f"{path} is made anew: {why}", file=sys.stderr)
        runs = path in forced
        if runs:
            forced.update(self.campaign.lacking())
        return runs

    def race(self, path: Path) -> Any:
        """Return a race's verdict, read again only where its file was replaced."""
        state = path.stat()
        version = (state.st_ino, state.st_mtime_ns, state.st_size)
        if path not in self._races or self._races[path][0] != version:
            self._races[path] = (version, read_json(path))
        return self._races[path][1]

    def readable(self, files: Sequence[str]) -> list[str]:
        """Return the stored results that can be read; say once which cannot."""
        there = []
        for file in files:
            try:
                load_stage(Path(file))
                there.append(file)
            except UserError as fault:
                if file not in self._unreadable:
                    print(f"{fault}; it is no evidence", file=sys.stderr)
                    self._unreadable.add(file)
        return there

    @one_line
    def finish(self) -> None:
        """End this run's servers; say the decision where one was made."""
        if self.workflow.dryrun or not self.workflow.is_main_process:
            return
        stop(owner=self.owner, grace_seconds=HURRIED_GRACE_SECONDS)
        if self.terminal is not None:
            self.terminal.end()
        decision = self.campaign.results / "decision.json"
        if decision.is_file() and not any(self.compared):
            try:
                decided = read_json(decision)
            except ValueError:  # damaged, and this run made no new one
                return
            if decided.get("schema") != DECISION_SCHEMA:  # of another version, and this run made no new one
                return
            print(f"\n{terminal_summary(decided)}", end="", file=sys.stderr)
            report = decision.with_name("report.html")
            if report.is_file():
                print(f"  report      {report}", file=sys.stderr)


def _session(process: Identity) -> int | None:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None


def _check_records() -> None:
    """Raise UserError where Snakemake cannot keep its records, which even a dry run needs."""
    records = Path.cwd() / ".snakemake"
    place = records if records.is_dir() else records.parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise UserError(f"{place}: Snakemake keeps its records here, and you may not write: make it writable")


def _options(config: dict[str, Any]) -> dict[str, Any]:
    for name in config:
        if name not in CONFIG_KEYS:
            raise UserError(f"--config {name}: unknown; known are {', '.join(CONFIG_KEYS)}")
        if re.search(r"[{}]", str(config[name])):
            raise UserError(
                f"--config {name}={config[name]}: Snakemake takes braces for wildcards; rename it"
            )
    retry = str(config.get("retry", "transient"))
    if retry not in ("transient", "all"):
        raise UserError(f"--config retry={retry}: must be transient or all")
    frozen = str(config.get("frozen", "false")).lower()
    if frozen not in ("true", "false"):
        raise UserError(f"--config frozen={frozen}: must be true or false")
    study = config.get("study", _DEFAULT)
    if study is not _DEFAULT and not isinstance(study, str | int | float):
        raise UserError(
            "--config study=: must be the path of one study file; leave it out for config/config.yaml"
        )
    compared = (str(config.get("old", "")), str(config.get("new", "")))
    return {"study": study, "frozen": frozen == "true", "retry": retry, "compared": compared}


def _study_path(told: Any, root: Path) -> Path:
    if told is _DEFAULT:
        return root / "config" / "config.yaml"
    return Path(str(told))


def _heal_locks(folder: Path) -> Any:
    """Hold a lock of our own while this run lives; remove Snakemake's where its run was killed.

    Snakemake's lock files outlive a SIGKILL, the kernel's lock does not: whoever gets it knows
    that no run of ours is alive on this folder. A lock left by another host is not touched.
    """
    folder.mkdir(exist_ok=True)
    record = (folder / "pivotbench.run").open("a+")
    try:
        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return record  # another run is at work: Snakemake itself will say so
    record.seek(0)
    try:
        before = json.loads(record.read() or "{}").get("host")
    except ValueError:
        before = None
    locks = [p for p in (folder / "locks").glob("*") if p.is_file()] if before == platform.node() else []
    if locks:
        print("the last run in this folder was killed: its locks are removed", file=sys.stderr)
        for lock in locks:
            lock.unlink(missing_ok=True)
    record.truncate(0)
    record.write(json.dumps({"host": platform.node(), "run": str(Identity.own())}))
    record.flush()
    return record
