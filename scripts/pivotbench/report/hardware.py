"""What the hardware did while each configuration was measured, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pivotbench.charts.question import of_metric
from pivotbench.evidence import CellFiles
from pivotbench.figures import number, percent

Telemetry = Mapping[str, Any]


@dataclass(frozen=True)
class HardwareRow:
    """One configuration: a figure for each heading, and what limited its GPUs' clocks."""

    configuration: str
    figures: tuple[str, ...]
    limits: str
    throttled: bool


@dataclass(frozen=True)
class HardwareTable:
    """Means over the runs of the study's metric; a figure that nobody told has no heading."""

    headings: tuple[str, ...]
    rows: tuple[HardwareRow, ...]


def hardware_table(metric: Mapping[str, Any], cells: Iterable[CellFiles]) -> HardwareTable:
    """Return the table of the configurations that were measured, in the order of their cells."""
    seen: dict[str, list[Telemetry]] = {}
    for cell in cells:
        for run in (cell.throughput or {}).get("runs") or []:
            if cell.measured and of_metric(metric, run) and (run.get("telemetry") or {}).get("host"):
                seen.setdefault(cell.configuration, []).append(run["telemetry"])
    means = {name: _means(runs) for name, runs in seen.items()}
    headings = tuple(h for h in _FIGURES if any(h in figures for figures in means.values()))
    return HardwareTable(
        headings,
        tuple(
            HardwareRow(
                name,
                tuple(number(means[name][h]) if h in means[name] else "–" for h in headings),
                _limits([run["throttle_reasons"] for run in runs]),
                any(run["throttled"] for run in runs),
            )
            for name, runs in seen.items()
        ),
    )


def _mean_of(part: str, quantity: str, telemetry: Telemetry) -> float | None:
    devices = telemetry["host"] if part == "host" else telemetry["aggregate"] or telemetry["host"]
    value: float | None = (devices.get(quantity) or {}).get("mean")
    return value


_FIGURES = {
    "Power, W": ("devices", "power_w"),
    "J/token": ("", "energy_joules_per_output_token"),
    "Clock, MHz": ("devices", "sm_clock_mhz"),
    "Temp., °C": ("devices", "temperature_c"),
    "CPU, %": ("host", "cpu_percent"),
}


def _means(runs: Sequence[Telemetry]) -> dict[str, float]:
    means = {}
    for heading, (part, quantity) in _FIGURES.items():
        values = [_mean_of(part, quantity, run) if part else run[quantity] for run in runs]
        if known := [value for value in values if value is not None]:
            means[heading] = fmean(known)
    return means


def _limits(shares: Sequence[Mapping[str, float] | None]) -> str:
    told = [each for each in shares if each is not None]
    if not told:
        return "not known"
    names = sorted({name for each in told for name in each})
    means = {name: fmean(each.get(name, 0.0) for each in told) for name in names}
    return ", ".join(f"{name.replace('_', ' ')} {percent(means[name])}" for name in names) or "nothing"
