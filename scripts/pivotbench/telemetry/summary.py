"""From readings to the ``telemetry`` of a run: pure functions of the readings within its measured time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pivotbench.telemetry.reading import ENERGY, GPU_QUANTITIES, HOST, HOST_QUANTITIES, Reading
from pivotbench.telemetry.sampler import PERIOD_SECONDS

# These lower the clock because the board is too hot or is told by its power supply to draw less: the
# hardware ones by a factor of two or more (NVML API reference). sw_power_cap is not among them: it holds a
# fully loaded GPU at its rated power, which is how such a GPU is meant to run. It is reported all the same.
THROTTLING = frozenset(
    {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"}
)
# A slowdown of this share of the time costs at most this share of the speed: less than relaunches differ by.
THROTTLED_SHARE = 0.02
# What several GPUs show together: their sum, for these; for all others every GPU's figures side by side.
SUMMED = frozenset({"power_w", "memory_mib"})

Entry = dict[str, Any]


def summarize(readings: Sequence[Reading], begin: float, end: float, output_tokens: float) -> Entry:
    """Return a run's ``telemetry`` from readings that reach from before ``begin`` to after ``end``.

    ``source`` is nvml where a GPU of the server was read, else psutil. The energy and the throttling are
    those of the GPUs, and of the processors without one; null: not told, which is not "none".
    """
    by_device: dict[str, list[Reading]] = {}
    for reading in readings:
        by_device.setdefault(reading.device, []).append(reading)
    gpus = {device: by_device[device] for device in by_device if device != HOST}
    machine = by_device.get(HOST, [])
    host = _device(machine, begin, end, HOST_QUANTITIES)
    entries = {device: _device(each, begin, end, GPU_QUANTITIES) for device, each in gpus.items()}
    shares = reason_shares(gpus.values(), begin, end)
    energies = [entry[ENERGY] for entry in entries.values()] if entries else [host[ENERGY]]
    energy = None if None in energies else sum(energies)
    return {
        "source": "nvml" if gpus else "psutil",
        "samples": sum(begin <= reading.seconds <= end for reading in machine),
        "period_seconds": PERIOD_SECONDS,
        "aggregate": _aggregate(gpus, begin, end) if gpus else None,
        "gpus": [{"uuid": device, **entry} for device, entry in entries.items()],
        "host": host,
        "throttle_reasons": shares,
        "throttled": throttled(shares, [entry["throttle_reasons"] for entry in entries.values()]),
        ENERGY: energy,
        "energy_joules_per_output_token": energy / output_tokens if energy and output_tokens else None,
    }


def extremes(values: Sequence[float]) -> Mapping[str, float] | None:
    """Return mean, min and max, or None without values."""
    if not values:
        return None
    return {"mean": sum(values) / len(values), "min": min(values), "max": max(values)}


def reason_shares(devices: Iterable[Sequence[Reading]], begin: float, end: float) -> dict[str, float] | None:
    """Return, for each throttle reason seen, the share of rounds of readings in which any device had it.

    Devices are read in turn, so the n-th reading of each is of one round. A server runs at the pace of its
    slowest GPU. None where no device tells reasons.
    """
    told = [
        [r.reasons for r in each if begin <= r.seconds <= end and r.reasons is not None] for each in devices
    ]
    rounds = [
        set().union(*(each[n] for each in told if n < len(each)))
        for n in range(max(map(len, told), default=0))
    ]
    if not rounds:
        return None
    return {name: sum(name in r for r in rounds) / len(rounds) for name in sorted(set().union(*rounds))}


def throttled(
    together: Mapping[str, float] | None, devices: Sequence[Mapping[str, float] | None]
) -> bool | None:
    """Return whether a THROTTLING reason held for more than THROTTLED_SHARE of the time; None: not known.

    Where one device tells nothing, the others can show that there was throttling, not that there was none.
    """
    if any(share > THROTTLED_SHARE for name, share in (together or {}).items() if name in THROTTLING):
        return True
    return None if together is None or None in devices else False


def energy_joules(readings: Sequence[Reading], begin: float, end: float) -> float | None:
    """Return one device's energy from ``begin`` to ``end``, None where it tells neither energy nor power.

    By its energy counter where it has one, read off between the two readings around each end; else the
    integral of power by trapezoids. The counter is the better one: on some GPUs the power shown covers a
    quarter of the time only (arXiv:2312.02741).
    """
    counter = [(r.seconds, r.values[ENERGY]) for r in readings if ENERGY in r.values]
    if counter and counter[0][0] <= begin and end <= counter[-1][0]:
        used = _at(counter, end) - _at(counter, begin)
        return used if used >= 0 else None  # the counter began anew: the driver was reloaded
    power = [(r.seconds, r.values["power_w"]) for r in readings if "power_w" in r.values]
    if not any(begin <= at <= end for at, _ in power):
        return None
    inner = [point for point in power if begin < point[0] < end]
    points = [(begin, _at(power, begin)), *inner, (end, _at(power, end))]
    return sum((right - left) * (one + other) / 2 for (left, one), (right, other) in pairwise(points))


def _at(points: Sequence[tuple[float, float]], when: float) -> float:
    """Return the value at ``when`` on the line through the points, level beyond its ends."""
    if when <= points[0][0]:
        return points[0][1]
    for (left, one), (right, other) in pairwise(points):
        if when <= right:
            return one + (other - one) * (when - left) / (right - left) if right > left else other
    return points[-1][1]


def _device(readings: Sequence[Reading], begin: float, end: float, names: Sequence[str]) -> Entry:
    within = [r for r in readings if begin <= r.seconds <= end]
    entry: Entry = {name: extremes([r.values[name] for r in within if name in r.values]) for name in names}
    if names is GPU_QUANTITIES:
        entry["throttle_reasons"] = reason_shares([readings], begin, end)
        entry["throttled"] = throttled(entry["throttle_reasons"], [])
    entry[ENERGY] = energy_joules(readings, begin, end)
    return entry


def _aggregate(gpus: Mapping[str, Sequence[Reading]], begin: float, end: float) -> Entry:
    each = [[r.values for r in readings if begin <= r.seconds <= end] for readings in gpus.values()]
    rounds = list(zip(*each, strict=False))
    return {
        name: extremes(
            [sum(v[name] for v in r) for r in rounds if all(name in v for v in r)]
            if name in SUMMED
            else [v[name] for r in rounds for v in r if name in v]
        )
        for name in GPU_QUANTITIES
    }
