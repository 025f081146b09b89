"""What the hardware does while a server is measured: power, clocks, throttling, heat, memory, energy."""

from pivotbench.telemetry.parquet import RunReadings, write_readings
from pivotbench.telemetry.sampler import Sampler
from pivotbench.telemetry.summary import summarize

__all__ = ["RunReadings", "Sampler", "summarize", "write_readings"]
