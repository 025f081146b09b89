"""Stands in for Snakemake's own log at the terminal: what its jobs mean for the campaign's cells.

Snakemake's whole log stays in .snakemake/log; whoever asks Snakemake for more or less of it
(--verbose, --printshellcmds, --debug-dag, --quiet, --logger) gets it here too, and none of this.
"""

from __future__ import annotations

import atexit
import copy
import logging
import os
import re
import sys
from collections.abc import Callable
from typing import Any

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake_interface_logger_plugins.common import LogEvent

from pivotbench.campaign import Campaign
from pivotbench.cells import Cell
from pivotbench.results import STAGES
from pivotbench.terminal.devices import Devices
from pivotbench.terminal.mode import IN_PLACE, VARIABLE, choose_mode, write_line
from pivotbench.terminal.outcome import Outcome, outcome, status
from pivotbench.terminal.progress import Progress, span
from pivotbench.terminal.to_come import left

# The end of what Snakemake says of a command that failed; before it stands the whole command.
HOW_IT_ENDED = re.compile(
    r"CalledProcessError.*"
    r"(returned non-zero exit status (?P<code>\d+)|died with <Signals\.(?P<signal>\w+))[^']*$",
    re.DOTALL,
)
SAID_ALREADY = ("Exiting because a job execution failed", "WorkflowError:\nAt least one job did not complete")
# Longer names push their own line alone.
WIDEST_NAME = 24


def stand_in(workflow: Any, campaign: Campaign) -> Terminal | None:
    """Take the place of Snakemake's own log on the terminal; None where that is to stay."""
    os.environ.pop(VARIABLE, None)
    logger, asked = logging.getLogger("snakemake.logging"), workflow.output_settings
    native = next((h for h in logger.handlers if h.name == "DefaultStreamHandler"), None)
    told_otherwise = asked.dryrun or asked.verbose or asked.printshellcmds or asked.debug_dag or asked.quiet
    if native is None or told_otherwise or not workflow.is_main_process:
        return None
    terminal = Terminal(workflow, campaign, native)
    logger.removeHandler(native)
    logger.addHandler(terminal)
    return terminal


class Terminal(logging.Handler):
    """Hears of each job from Snakemake's log; passes on what that says of errors."""

    # Whether somebody asked for the end of the run, so that stages which end by that are no errors.
    stopped = False

    def __init__(self, workflow: Any, campaign: Campaign, native: logging.Handler) -> None:
        super().__init__(native.level)
        self.workflow, self.campaign, self.native = workflow, campaign, native
        self.mode = choose_mode(os.environ, terminal=sys.stderr.isatty())
        self.progress = Progress()
        self._jobs: dict[int, tuple[str, Cell | str]] = {}
        self._failed: list[str] = []
        self._how = ""
        self._resumable = False
        self._at_work = False
        self._recount = True
        self._show: Callable[[str, Outcome, float], None] = self._say
        self._close: Callable[[], None] | None = None

    def begin(self, owner: str) -> None:
        """The run begins: its stages learn how to speak, a terminal gets its picture."""
        if self.workflow.local_exec:  # jobs on other machines write logs of their own
            os.environ[VARIABLE] = self.mode
        if self.mode != "live" or not self._at_work:
            return
        from pivotbench.terminal.screen import Screen
        from pivotbench.terminal.view import View, ended

        width = _names_width(self.campaign)
        view = View(self.campaign.study.name, self.progress, Devices(owner).held, width)
        screen = Screen(lambda: view, self._hear, colour=not self.workflow.output_settings.nocolor)
        self._show = lambda label, told, seconds: screen.print(ended(label, told, seconds, width))
        self._close = screen.stop
        atexit.register(screen.stop)
        screen.start()

    def end(self) -> None:
        """The run is over: cells of which only a part was asked for are told, the picture is gone."""
        for work in list(self.progress.work.values()):
            if work.cell is not None and work.stages_done:
                self._show(work.title, outcome(work.cell), self.progress.clock() - work.began)
        self.progress.work.clear()
        if self._close is not None:
            self._close()
        if self.stopped:
            write_line("Stopped: what is done is kept; the same command goes on")
        elif self._failed:
            again = "; mend it and run the same command again: it goes on from here"
            whole = f"Snakemake's whole log is {self._logfile()}{again if self._resumable else ''}"
            write_line(f"Why is said above; {whole}")

    def emit(self, record: Any) -> None:
        """Show what a record of Snakemake's log means for the campaign."""
        event = getattr(record, "event", None)
        if event == LogEvent.WORKFLOW_STARTED:
            self._at_work = True
        elif not self._at_work:
            if not str(record.msg).startswith("Assuming unrestricted shared filesystem"):
                self.native.handle(record)
        elif event == LogEvent.JOB_ERROR:
            self._job_failed(record)
        elif event == LogEvent.ERROR and (how := HOW_IT_ENDED.search(str(record.msg))):
            self._how = (
                f"died with {how['signal']}" if how["signal"] else f"ended with exit status {how['code']}"
            )
        elif self._failed and str(record.msg).startswith(SAID_ALREADY):
            pass
        elif record.levelno >= logging.WARNING or _of_use(record):
            self.native.handle(record)
        elif event == LogEvent.JOB_STARTED and self._recount:
            self._count()
        elif event == LogEvent.JOB_INFO:
            self._job_began(record)
        elif event == LogEvent.JOB_FINISHED:
            self._job_ended(*self._jobs.get(record.job_id, ("", "")))

    def _job_began(self, record: Any) -> None:
        rule, wildcards = record.rule_name, dict(record.wildcards or {})
        if rule in STAGES:
            cell = self.campaign.cell(**wildcards)
            self._jobs[record.jobid] = rule, cell
            self.progress.start_stage(cell, rule, away=self.workflow.non_local_exec)
        elif record.shellcmd:
            title = record.rule_msg or rule
            self._jobs[record.jobid] = rule, title
            self.progress.start_step(title)
            if self.mode == "lines":
                write_line(title)

    def _job_ended(self, rule: str, job: Cell | str) -> None:
        self._recount = self._recount or rule == "race"
        if isinstance(job, str):
            self.progress.end_step(job)
            return
        stage: Any = rule
        self.progress.end_stage(job, stage, status(job, stage))
        if rule == STAGES[-1]:
            seconds = self.progress.end_cell(job)
            self._show(job.label, outcome(job), seconds)

    def _job_failed(self, record: Any) -> None:
        rule, job = self._jobs.get(record.jobid, (record.rule_name, record.rule_name))
        self._failed.append(rule if isinstance(job, str) else f"{rule} of {job.label}")
        if isinstance(job, Cell):
            self.progress.work.pop(job.label, None)
            self._resumable = True
        if self.workflow.non_local_exec:
            # All that Snakemake knows but the command, which holds everything that a stage is asked.
            told = copy.copy(record)
            told.shellcmd, told.input, told.msg = None, [], record.rule_msg
            self.native.handle(told)
        elif not self.stopped:
            write_line(f"error: {self._failed[-1]} {self._how or 'failed'}")

    def _count(self) -> None:
        """Count the cells left, when the graph of jobs is as it will be for a whole round."""
        self._recount = False
        jobs = list(self.workflow.dag.needrun_jobs())
        cells = {tuple(sorted(job.wildcards_dict.items())) for job in jobs if job.rule.name in STAGES}
        races = [(job.wildcards.phase, int(job.wildcards.round)) for job in jobs if job.rule.name == "race"]
        alone = set(self.workflow.dag_settings.targets) == {"backends"}
        self.progress.left = left(self.campaign, len(cells), min(races, default=None), alone=alone)

    def _say(self, label: str, told: Outcome, seconds: float) -> None:
        words = told.words if self.mode == "outcomes" else told.brief
        progress = self.progress
        far = [span(seconds), progress.cells_words(), progress.elapsed_words(), progress.end_words()]
        write_line(f"{label}: {words} [{', '.join(filter(None, far))}]")

    def _hear(self, line: str) -> bool:
        """Return whether a line only says how far a stage is, and is shown in place."""
        if not line.startswith(IN_PLACE):
            return False
        label, _, words = line.removeprefix(IN_PLACE).partition(": ")
        self.progress.hear(label, words.partition(": ")[2])
        return True

    def _logfile(self) -> str:
        files = self.workflow.logger_manager.get_logfile()
        return os.path.relpath(files[0]) if files else ".snakemake/log"


def _names_width(campaign: Campaign) -> int:
    """Return the width of a column for names of cells, within reason."""
    names = max(map(len, campaign.study.configurations), default=0)
    drafts = max((len(name) + 1 for name in campaign.study.speculations), default=0)
    return min(names + drafts + len(" r1"), WIDEST_NAME)


def _of_use(record: Any) -> bool:
    """Return whether a line of Snakemake's says something that we do not."""
    said = record.msg == NOTHING_TO_BE_DONE_MSG or "this might take some time" in str(record.msg)
    return said or "snakemake_executor_plugin" in record.pathname
