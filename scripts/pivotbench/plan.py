"""What a campaign would run, told before anything is launched: cells, time, doubtful launches."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean

from pivotbench.campaign import Campaign
from pivotbench.cells import Cell, launch_request
from pivotbench.cluster.walltime import cell_minutes
from pivotbench.decision.cost import server_seconds
from pivotbench.durations import measured_seconds
from pivotbench.evidence import is_cell, read_cell
from pivotbench.figures import NO_BREAK, seconds
from pivotbench.installations import known_versions
from pivotbench.machine.gpu import visible_gpus
from pivotbench.pace import SLOW_TOKEN_SECONDS
from pivotbench.preflight import preflight
from pivotbench.results import PHASES


def plan(campaign: Campaign) -> list[str]:
    """Return the lines: what is known against launches, the cells of each phase, the time they take."""
    return [*_preflight(campaign), *_phases(campaign), *_stored(campaign), _time(campaign)]


def _preflight(campaign: Campaign) -> list[str]:
    """What the preflight says on this machine's GPUs, each sentence once with all of whom it speaks."""
    study = campaign.study
    gpus = [{"memory_mib": g.memory_mib, "compute": g.compute_capability} for g in visible_gpus()]
    said: dict[str, list[str]] = {}
    for cell in _configurations(campaign):
        installed = campaign.installation(study.version_of(cell.configuration))
        version, _ = known_versions(campaign.engine, installed, study.env)
        for finding in preflight(launch_request(study, cell), campaign.model, version, gpus).findings:
            said.setdefault(f"{finding.outcome}: {finding.message}", []).append(cell.configuration)
    lines = [f"preflight: {', '.join(names)}: {words}" for words, names in said.items()]
    return lines or ["preflight: nothing is known against any launch"]


def _configurations(campaign: Campaign) -> Iterator[Cell]:
    """Each backend, and each speculative setting on every backend it may come to run on."""
    pinned = campaign.study.speculative_base
    for phase in campaign.phases:
        for base in [pinned] if pinned else sorted(campaign.study.configurations):
            names = campaign.contenders(phase, base) if phase == "speculative" else [str(base)]
            yield from campaign.cells(phase, [n for n in names if not n.endswith("+none")], 1)


def _contenders(campaign: Campaign, phase: str) -> int:
    return len(campaign.contenders(phase, next(iter(campaign.study.configurations))))


def _phases(campaign: Campaign) -> list[str]:
    rounds, lines = campaign.study.decision.rounds, []
    for phase in campaign.phases:
        count = _contenders(campaign, phase)
        where = f" on {campaign.study.speculative_base or 'the winner'}, with and without"
        cells = _range(count * rounds.min, count * rounds.max)
        lines.append(
            f"{phase}: {count} configurations{where if phase == 'speculative' else ''}, each in "
            f"{_range(rounds.min, rounds.max)} rounds: {cells} cells where all of them work"
        )
    return lines


def _stored(campaign: Campaign) -> list[str]:
    if "backends" not in campaign.phases:
        return []
    first = campaign.cells("backends", campaign.contenders("backends", None), 1)
    held = [cell for cell in first if campaign.holds(cell)]
    return [f"{len(held)} of {len(first)} cells of the first round are there and hold"] if held else []


def _time(campaign: Campaign) -> str:
    study = campaign.study
    cells = sum(_contenders(campaign, phase) for phase in campaign.phases)
    counts = (cells * study.decision.rounds.min, cells * study.decision.rounds.max)
    if took := list(_whole_cells(campaign)):
        each = mean(took)
        whole = _range(*(_span(each * count) for count in counts))
        return f"time: about {_span(each)} a cell, as those here took; {whole} in all"
    least, most = measured_seconds(study)
    each_in_words = _range(_span(least), _span(most))
    whole = _range(_span(least * counts[0]), _span(most * counts[1]))
    slow = "" if least == most else f", the longer at {1 / SLOW_TOKEN_SECONDS:g} tok/s a stream"
    return (
        f"time: {each_in_words} a cell are measured{slow}; {whole} in all; launch, smoke test, warm-up come "
        f"on top, and a cluster is asked for {_span(60 * cell_minutes(study))} a cell"
    )


def _whole_cells(campaign: Campaign) -> Iterator[float]:
    """Yield the seconds of each stored cell that was measured to its end; a crash tells of no other cell."""
    for phase in PHASES:
        for folder in sorted((campaign.results / phase).glob("*/r*")):
            if not is_cell(folder):
                continue
            cell = read_cell(folder)
            if cell.measured and cell.failure is None and cell.teardown is not None:
                yield server_seconds(cell)


def _range(least: object, most: object) -> str:
    return str(most) if least == most else f"{least} to {most}"


def _span(duration_seconds: float) -> str:
    return seconds(duration_seconds, digits=2).replace(NO_BREAK, " ")
