"""The streaming client: sends a study's load to a server and times what a user would see."""

from pivotbench.client.answers import Answer, Interview, generate
from pivotbench.client.load import measure
from pivotbench.client.parquet import read_requests, write_requests
from pivotbench.client.plan import LoadOutcome, LoadPlan, WorkloadPlan
from pivotbench.client.record import RequestRecord
from pivotbench.client.spoken import spoken

__all__ = [
    "Answer",
    "Interview",
    "LoadOutcome",
    "LoadPlan",
    "RequestRecord",
    "WorkloadPlan",
    "generate",
    "measure",
    "read_requests",
    "spoken",
    "write_requests",
]
