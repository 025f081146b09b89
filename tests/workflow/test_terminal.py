"""What a person sees of a real run: on a terminal, in a file, in CI, and when it is ended in the middle."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import termios
from pathlib import Path

import pytest

from pseudo_terminal import PseudoTerminal
from workflow.campaign import DECISION, ROOT, Folder, Run
from workflow.test_kills import CELL, one_backend

GPUS = ("GPU-00000000-0000-4000-8000-000000000001", "GPU-00000000-0000-4000-8000-000000000002")
HIDE_CURSOR = b"\x1b[?25l"


def two_gpus(folder: Folder) -> dict[str, str]:
    """The environment of a host with two GPUs, and a study whose servers take one each."""
    gpus = folder.path / "gpus.json"
    gpus.write_text(json.dumps({uuid: {} for uuid in GPUS}))
    study = folder.study()
    study["hosts"]["gpus"] = 1
    del study["speculative"], study["backends"]["garbage"]
    folder.write(study)
    return folder.environment() | {
        "PIVOTBENCH_TEST_GPUS": str(gpus),
        "PYTHONPATH": str(ROOT / "tests" / "faults" / "node"),
    }


def on_terminal(folder: Folder, *arguments: str, env: dict[str, str], columns: int = 100) -> PseudoTerminal:
    command = [word for word in folder.command(*arguments) if word != "--nocolor"]
    return PseudoTerminal(command, cwd=folder.path, env=env, columns=columns)


def test_a_terminal_shows_the_cells_at_work_and_keeps_a_line_of_each(fresh: Folder) -> None:
    terminal = on_terminal(fresh, DECISION, "--cores", "2", env=two_gpus(fresh))
    both = terminal.look_until(lambda text: "GPU 0" in text and "GPU 1" in text)
    assert re.search(r"^small · backends, round 1 · \d of 3 cells +\S* +\d:\d\d", both, re.MULTILINE), both
    assert re.search(r"^●  \w+ r1 +launch", both, re.MULTILINE), both
    assert terminal.end() == 0
    said = terminal.everything()
    assert re.search(r"^✓  good r1 +text \d+\.\d tok/s at 1 +\d:\d\d$", said, re.MULTILINE), said
    assert re.search(r"^✗  crash r1 +unsupported_arch at launch: None of the kernels", said, re.MULTILINE), (
        said
    )
    assert len(re.findall(r"^[✓✗] ", said, re.MULTILINE)) == 3, "a line for each cell, and none twice"
    assert said.count("\nsmall: good ") == 1, "the decision, once"
    assert "●" not in said and "cells  " not in said, "nothing of the picture is left"
    for noise in ("Select jobs", "Execute 1 jobs", "localrule", "Finished jobid", "Building DAG"):
        assert noise not in said
    assert HIDE_CURSOR not in terminal.sent


def test_a_narrow_terminal_without_colour_is_still_whole(fresh: Folder) -> None:
    one_backend(fresh)
    env = fresh.environment() | {"NO_COLOR": "1"}
    terminal = on_terminal(fresh, CELL, env=env, columns=60)
    seen = terminal.look_until(lambda text: "throughput" in text and "warming up" in text)
    head, cell, detail = seen.splitlines()[-3:]
    assert head.startswith("small · 0 of 1 cells") and "throughput 0:" in cell
    assert detail.startswith("  text at concurrency 1: warming up")
    os.kill(terminal.process.pid, signal.SIGINT)
    assert terminal.end() != 0
    said = terminal.everything()
    assert said.endswith("Stopped: what is done is kept; the same command goes on")
    for alarm in ("error:", "Traceback", "CalledProcessError", "--cell"):
        assert alarm not in said
    assert not re.search(rb"\x1b\[[\d;]*3[0-7]", terminal.sent), "no colour"


def test_a_killed_run_leaves_the_terminal_as_it_was(fresh: Folder) -> None:
    one_backend(fresh)
    terminal = on_terminal(fresh, CELL, env=fresh.environment())
    terminal.look_until(lambda text: "warming up" in text)
    os.kill(terminal.process.pid, signal.SIGKILL)
    terminal.end()
    assert not terminal.screen.cursor.hidden
    assert terminal.screen.cursor.x == 0, "the prompt begins a line"
    assert HIDE_CURSOR not in terminal.sent
    assert terminal.settings == termios.tcgetattr(terminal.master)


def test_in_a_file_every_line_is_plain_and_says_how_far_it_is(finished: tuple[Folder, Run]) -> None:
    _, run = finished
    assert "\x1b" not in run.text and "\x1e" not in run.text
    assert re.search(r"^good r1: text \S+ tok/s at 1 \[.* of at most 6 cells, \d:\d\d, ends ", run.text, re.M)
    assert "crash r1: launch: failed: unsupported_arch: None of the kernels" in run.text
    assert "crash r1: smoke: skipped: launch failed\n" in run.text
    assert run.text.count("\nsmall: good ") == 1, "the decision, once"
    assert "Select jobs" not in run.text and "Select jobs" in run.log, "it is all in Snakemake's own log"


def test_a_resumed_race_expects_every_cell_it_judges_in_later_rounds(campaign: Folder) -> None:
    shutil.rmtree(campaign.cell("slow"))
    for made in ("race", "measurements.parquet", "measurements.csv", "environment.json", "decision.json"):
        gone = campaign.results / made
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    study = campaign.study()
    study["decision"]["rounds"] = {"min": 2, "max": 2}
    campaign.write(study)
    run = campaign.snakemake("backends")
    assert re.search(r"^slow r1: text .* 1 of at most 5 cells, ", run.text, re.M), run.text
    assert run.jobs["teardown"] == 3, "slow again, and the second round of the two that work"


def test_ci_hears_of_outcomes_alone(fresh: Folder) -> None:
    said = subprocess.run(
        fresh.command("results/small/race/backends.r1.json"),
        cwd=fresh.path,
        env=fresh.environment() | {"CI": "true"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    ).stdout
    lines = [line for line in said.splitlines() if not line.startswith("backends round 1: ")]
    cells = sorted(line.partition(":")[0] for line in lines)
    assert cells == ["crash r1", "garbage r1", "good r1", "slow r1"], said
    assert "Choose another backend for that layer" in said, "what to do is part of an outcome"


def test_an_error_says_what_failed_and_what_to_do_without_the_whole_command(fresh: Folder) -> None:
    one_backend(fresh)
    (fresh.cell("good") / "requests.parquet" / "somebody's file").mkdir(parents=True)
    run = fresh.snakemake(CELL)
    assert run.code != 0
    assert re.search(r"^error: \S*requests.parquet: ", run.text, re.MULTILINE), run.text
    assert "error: throughput of good r1 ended with exit status 2\n" in run.text
    assert "run the same command again: it goes on from here" in run.text
    [log] = re.findall(r"whole log is (\S+\.log)", run.text)
    assert (fresh.path / log).is_file()
    assert "--cell" not in run.text and "--cell" in run.log


@pytest.mark.parametrize("asked", ["--printshellcmds", "--verbose"])
def test_who_asks_snakemake_for_more_gets_its_own_log(fresh: Folder, asked: str) -> None:
    assert "Select jobs to execute" in fresh.snakemake("stop_servers", asked).text


def test_a_dry_run_is_snakemakes_own(fresh: Folder) -> None:
    run = fresh.snakemake("all", "--dry-run")
    assert run.planned["launch"] == 4 and "This was a dry-run" in run.text
    assert not (fresh.path / "results").exists() or not any(Path(fresh.results).rglob("*.json"))
