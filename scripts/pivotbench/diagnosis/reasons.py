"""The reason codes: what each means, whether it may pass, and what helps. The words are in reasons.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pivotbench.results import Reason, ReasonKind

REASONS_FILE = Path(__file__).with_name("reasons.yaml")

Sentence = Annotated[str, Field(pattern=r"\.$")]


class ReasonCode(BaseModel):
    """One code: its kind, where it is seen (the server's log, or the stages that judge), its words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: ReasonKind
    seen: str
    means: Sentence
    remedy: Sentence


class ReasonCodes(BaseModel):
    """The content of reasons.yaml: reasons by code, what helps against warnings, what detectors see."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reasons: dict[str, ReasonCode]
    warnings: dict[str, Sentence]
    signs: dict[str, Sentence]


@cache
def reason_codes() -> ReasonCodes:
    """Return the codes, read once for a process."""
    return ReasonCodes.model_validate(load_yaml(REASONS_FILE))


def kind_of(code: str) -> ReasonKind:
    """Return whether a failure may pass; one whose code is of another version is held not to."""
    known = reason_codes().reasons.get(code)
    return known.kind if known else "deterministic"


def remedy_for(code: str, remedy: str | None = None) -> str | None:
    """Return ``remedy`` where there is one, else what helps against the code in general, None if unknown."""
    known = reason_codes().reasons.get(code)
    return remedy or (known.remedy if known else None)


def remedy_of(reason: Reason) -> str | None:
    """Return what helps against a failure, also where its stage file is older than remedies are."""
    return remedy_for(reason.code, reason.remedy)


def load_yaml(path: Path) -> Any:
    """Return a YAML file's content, by the quick parser where there is one."""
    import yaml

    return yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
