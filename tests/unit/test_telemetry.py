"""Telemetry: what is read, how it is cut to the measured time, and that nothing missing ever fails a run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pyarrow.parquet
import pytest

from pivotbench.telemetry import RunReadings, Sampler, summarize, write_readings
from pivotbench.telemetry.gpus import GpuReader
from pivotbench.telemetry.host import SLOW_SECONDS, HostReader, Rapl
from pivotbench.telemetry.reading import ENERGY, HOST, Reading
from pivotbench.telemetry.summary import THROTTLED_SHARE, energy_joules, reason_shares, throttled
from unit.fake_nvml import FakeGpu, FakeNvml

HW_THERMAL, SW_POWER_CAP, IDLE = 0x40, 0x04, 0x01


def powers(*watts: float, device: str = "GPU-a") -> list[Reading]:
    """One reading a second, from second 0."""
    return [Reading(at, device, {"power_w": w}, ()) for at, w in enumerate(watts)]


def counters(*joules: float) -> list[Reading]:
    return [Reading(at, "GPU-a", {ENERGY: j, "power_w": 1e6}, ()) for at, j in enumerate(joules)]


def test_every_quantity_of_a_gpu_is_read_in_its_unit() -> None:
    gpu = FakeGpu(energy_mj=5_000, memory_temperature=70, reasons=HW_THERMAL | SW_POWER_CAP | IDLE)
    (reading,) = GpuReader(FakeNvml({"GPU-a": gpu}), ["GPU-a"]).read()
    assert reading.device == "GPU-a"
    assert reading.values == {
        "power_w": 400.0,
        "sm_clock_mhz": 1980.0,
        "memory_clock_mhz": 2619.0,
        "temperature_c": 55.0,
        "memory_temperature_c": 70.0,
        "memory_mib": 102400.0,
        "utilization_percent": 97.0,
        ENERGY: 5.0,
    }
    assert reading.reasons == ("sw_power_cap", "hw_thermal_slowdown"), "idle is not among them"


def test_a_gpu_that_supports_nothing_gives_an_empty_reading_and_no_error() -> None:
    mute = FakeGpu(*[None] * 2, 0, *[None] * 7)
    (reading,) = GpuReader(FakeNvml({"MIG-a": mute}), ["MIG-a", "GPU-gone"]).read()
    assert (reading.values, reading.reasons) == ({}, None)
    entry = summarize([reading], reading.seconds - 1, reading.seconds + 1, 10)
    assert entry["source"] == "nvml"
    assert entry[ENERGY] is None and entry["throttled"] is None and entry["aggregate"]["power_w"] is None


def test_energy_is_the_counters_difference_read_off_exactly_at_begin_and_end() -> None:
    assert energy_joules(counters(0, 100, 200, 400), 0.5, 2.5) == pytest.approx(300 - 50)


def test_without_a_counter_energy_is_the_integral_of_power() -> None:
    assert energy_joules(powers(100, 100, 300, 300), 0.5, 2.5) == pytest.approx(50 + 200 + 150)


def test_a_counter_that_began_anew_gives_no_energy() -> None:
    assert energy_joules(counters(900, 950, 10, 20), 0.5, 2.5) is None


def test_readings_outside_the_measured_time_count_for_nothing() -> None:
    entry = summarize(powers(999, 100, 200, 999), 1, 2, 50)
    assert entry["aggregate"]["power_w"] == {"mean": 150, "min": 100, "max": 200}
    assert entry["energy_joules_per_output_token"] == pytest.approx(150 / 50)


def test_power_of_several_gpus_adds_up_and_clocks_do_not() -> None:
    readings = [
        Reading(at, device, {"power_w": 100.0 * (at + 1), "sm_clock_mhz": clock}, ())
        for at in range(3)
        for device, clock in (("GPU-a", 1000.0), ("GPU-b", 2000.0))
    ]
    entry = summarize(readings, 0, 2, 1)
    assert entry["aggregate"]["power_w"] == {"mean": 400, "min": 200, "max": 600}
    assert entry["aggregate"]["sm_clock_mhz"] == {"mean": 1500, "min": 1000, "max": 2000}
    assert [gpu["uuid"] for gpu in entry["gpus"]] == ["GPU-a", "GPU-b"]
    assert entry[ENERGY] == pytest.approx(800)


def test_the_slowest_gpu_of_a_group_decides_how_long_it_was_slowed() -> None:
    hot, cool = [("hw_thermal_slowdown",), ()], [(), ()]
    devices = [
        [Reading(at, name, {}, r) for at, r in enumerate(reasons)]
        for name, reasons in (("a", hot), ("b", cool))
    ]
    assert reason_shares(devices, 0, 1) == {"hw_thermal_slowdown": 0.5}


@pytest.mark.parametrize(
    ("shares", "devices", "verdict"),
    [
        ({"sw_power_cap": 1.0}, [{}], False),
        ({"sw_thermal_slowdown": THROTTLED_SHARE}, [{}], False),
        ({"sw_thermal_slowdown": 2 * THROTTLED_SHARE}, [{}], True),
        ({"hw_power_brake_slowdown": 0.5}, [{}, None], True),
        ({}, [{}, None], None),
        (None, [], None),
    ],
)
def test_heat_and_a_power_brake_are_throttling_the_rated_power_is_not_and_silence_is_unknown(
    shares: dict[str, float] | None, devices: list[dict[str, float] | None], verdict: bool | None
) -> None:
    assert throttled(shares, devices) is verdict


def test_the_machine_and_a_servers_processes_are_read_without_a_gpu() -> None:
    reader = HostReader(lambda: [os.getpid(), 1 << 30])
    reader.read()
    until = time.monotonic() + SLOW_SECONDS + 0.1
    while time.monotonic() < until:
        pass
    (reading,) = reader.read()
    assert 0 < reading.values["cpu_percent"] <= 100
    assert reading.values["server_cpu_percent"] > 1 and reading.values["server_memory_mib"] > 1
    assert reading.reasons is None


def test_a_servers_processes_are_read_less_often_than_the_machine() -> None:
    reader = HostReader(lambda: [os.getpid()])
    first, second = reader.read()[0], reader.read()[0]
    assert "server_memory_mib" in first.values and "server_memory_mib" not in second.values


def rapl(folder: Path, zone: str, name: str, energy_uj: int) -> None:
    (folder / zone).mkdir(exist_ok=True)
    for file, text in {"name": name, "energy_uj": energy_uj, "max_energy_range_uj": 1000_000_000}.items():
        (folder / zone / file).write_text(f"{text}\n")


def test_the_processors_energy_adds_packages_and_survives_a_wrap_around(tmp_path: Path) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", 999_000_000)
    rapl(tmp_path, "intel-rapl:1", "package-1", 5_000_000)
    rapl(tmp_path, "intel-rapl:0:0", "core", 7_000_000)
    rapl(tmp_path, "intel-rapl:2", "psys", 9_000_000)
    counter = Rapl(tmp_path)
    before = counter.joules()
    assert before == 1004.0
    rapl(tmp_path, "intel-rapl:0", "package-0", 2_000_000)
    after = counter.joules()
    assert after is not None and after - before == pytest.approx(3.0)


def test_unreadable_energy_is_unknown_and_not_zero(tmp_path: Path) -> None:
    assert Rapl(tmp_path).joules() is None
    rapl(tmp_path, "intel-rapl:0", "package-0", 1)
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    assert Rapl(tmp_path).joules() is None


def test_a_sampler_covers_the_asked_time_and_closes_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml({"GPU-a": FakeGpu(energy_mj=0, energy_step_mj=1_000)})
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    with Sampler(["GPU-a"], list) as sampler:
        time.sleep(0.3)
        begin, end = time.monotonic() - 0.15, time.monotonic()
        readings = sampler.readings(begin, end)
    times = [r.seconds for r in readings if r.device == "GPU-a"]
    assert min(times) <= begin and max(times) > end
    entry = summarize(readings, begin, end, 100)
    assert entry["source"] == "nvml" and entry[ENERGY] > 0 and entry["throttled"] is False
    assert nvml.open == 0


def test_without_nvml_the_machine_is_the_source_and_throttling_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with Sampler(["GPU-a"], lambda: [os.getpid()]) as sampler:
        time.sleep(0.3)
        begin, end = time.monotonic() - 0.2, time.monotonic()
        entry = summarize(sampler.readings(begin, end), begin, end, 100)
    assert (entry["source"], entry["throttled"], entry["aggregate"]) == ("psutil", None, None)
    assert entry["samples"] >= 1 and entry["host"]["cpu_percent"]["mean"] >= 0


def test_a_run_too_short_for_a_reading_gives_unknowns() -> None:
    entry = summarize([], 0, 1, 10)
    assert entry["samples"] == 0 and entry["host"]["cpu_percent"] is None and entry[ENERGY] is None


def test_every_reading_is_kept_with_its_run_and_its_time_from_the_runs_start(tmp_path: Path) -> None:
    readings = [Reading(100.5, HOST, {"cpu_percent": 40.0}), *powers(250.0)]
    kept = write_readings(tmp_path / "telemetry.parquet", [RunReadings("w", 4, None, 100.0, readings)])
    rows = pyarrow.parquet.read_table(tmp_path / "telemetry.parquet").to_pylist()
    assert (kept["path"], kept["rows"]) == ("telemetry.parquet", 2)
    assert (rows[0]["seconds"], rows[0]["cpu_percent"], rows[0]["power_w"]) == (0.5, 40.0, None)
    assert (rows[1]["device"], rows[1]["power_w"], rows[1]["concurrency"]) == ("GPU-a", 250.0, 4)
    assert (rows[0]["throttle_reasons"], rows[1]["throttle_reasons"]) == (None, [])
