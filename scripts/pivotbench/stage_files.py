"""A stage file as it must be to be evidence: the keys that every reader relies on, and what they hold.

Keys beyond these may be there or not, by the version that wrote the file; readers ask for them with ``get``.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    Discriminator,
    Field,
    InstanceOf,
    Tag,
    ValidationError,
    model_validator,
)

from pivotbench.errors import UserError
from pivotbench.files import read_json
from pivotbench.results import SCHEMA_VERSION, ReasonKind, Stage, Status


def _moment(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without its zone")
    return text


_Moment = Annotated[str, AfterValidator(_moment)]


# Any object: JSON has no keys but text, and pydantic would copy hundreds of settings to see that.
_Object = InstanceOf[dict[str, Any]]


class _Reason(BaseModel):
    code: str
    kind: ReasonKind
    message: str


class _Cell(BaseModel):
    study: str
    phase: str
    configuration: str
    round: int = Field(ge=1)


class _Server(BaseModel):
    launch_id: str
    effective: _Object = Field(default_factory=dict)


class _StageFile(BaseModel):
    status: Status
    reason: _Reason | None
    fingerprint: str
    cell: _Cell
    started: _Moment
    ended: _Moment
    server: _Server | None

    @model_validator(mode="after")
    def _failures_have_reasons(self) -> _StageFile:
        if self.status != "ok" and self.reason is None:
            raise ValueError(f"{self.status} without a reason")
        return self


class _Launch(_StageFile):
    environment: _Object
    requested: _Object = Field(default_factory=dict)


class _Answer(BaseModel):
    text: str
    detectors: list[_Object]


class _Prompt(BaseModel):
    ask: str
    answers: list[_Answer] = Field(default_factory=list)


class _Smoke(_StageFile):
    prompts: list[_Prompt] = Field(default_factory=list)


class _Window(BaseModel):
    window: int
    output_tok_s: float


class _Requests(BaseModel):
    completed: int


class _Counted(_Requests):
    failed: int
    short: int
    timeout: int


class _Latency(BaseModel):
    p50: float | None
    p99: float | None


class _InFlight(BaseModel):
    peak: int


class _OpenLoop(BaseModel):
    arrivals_per_second: float | None
    completed_per_second: float | None
    in_flight: _InFlight | None
    unsustainable: bool


class _Run(BaseModel):
    workload: str
    kind: Literal["text", "synthetic"]
    concurrency: int | None
    windows: list[_Window]
    requests: _Requests
    output_tokens: _Object


class _RunAtARate(_Run):
    """Without ``open_loop`` too many requests were in flight."""

    rate_per_second: float
    open_loop: _OpenLoop | None
    ttft_seconds: _Latency
    e2e_seconds: _Latency
    requests: _Counted


_TAGS = ("closed loop", "open loop")


def _loop(run: Any) -> str:
    return _TAGS[isinstance(run, dict) and run.get("rate_per_second") is not None]


_AnyRun = Annotated[
    Annotated[_Run, Tag(_TAGS[0])] | Annotated[_RunAtARate, Tag(_TAGS[1])], Discriminator(_loop)
]


class _Throughput(_StageFile):
    runs: list[_AnyRun] = Field(default_factory=list)


_MODELS: dict[Stage, type[_StageFile]] = {
    "launch": _Launch,
    "smoke": _Smoke,
    "throughput": _Throughput,
    "teardown": _StageFile,
}


def load_stage(path: Path) -> dict[str, Any]:
    """Return the content of the stage file ``.../<stage>.json``.

    Raises UserError, one line with the file, where it is missing, no JSON, of another version, or lacks
    what a result of that stage must hold.
    """
    stage: Any = path.stem
    try:
        data = read_json(path)
    except FileNotFoundError:
        raise UserError(f"{path}: missing") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path}: not JSON") from None
    schema = f"pivotbench/{stage}/{SCHEMA_VERSION}"
    if not isinstance(data, dict) or data.get("schema") != schema:
        raise UserError(f"{path}: not a file with the schema {schema}")
    try:
        _MODELS[stage].model_validate(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"] if part not in _TAGS) or "the file"
        raise UserError(f"{path}: damaged: {where}: {first['msg'].lower()}") from None
    return data


def read_stage(path: Path) -> dict[str, Any] | None:
    """Return a stage file's content, or None where ``load_stage`` refuses it."""
    try:
        return load_stage(path)
    except UserError:
        return None
