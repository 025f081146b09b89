"""The signatures of known failures: data of engines/signatures.yaml, checked and compiled."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pivotbench.diagnosis.reasons import Sentence, load_yaml, reason_codes

SIGNATURES_FILE = Path(__file__).parents[1] / "engines" / "signatures.yaml"

Link = Annotated[str, Field(pattern=r"^https://github\.com/[^/\s]+/[^/\s]+/(issues|pull)/\d+$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Phase(_Part):
    """A mark in the log after which its process is in the named phase."""

    phase: str
    pattern: re.Pattern[str]


class Signature(_Part):
    """One known failure: what it looks like, what it means, what helps.

    ``fatal``: no server comes up after it, even if one says so. ``follows``: other processes log it when
    one has failed, so any signature that does not follow explains more.
    """

    id: str
    code: str
    pattern: re.Pattern[str]
    also: re.Pattern[str] | None = None
    phase: str | None = None
    engine: str | None = None
    fatal: bool = False
    follows: bool = False
    says: Sentence
    remedy: Sentence
    links: tuple[Link, ...] = ()

    @model_validator(mode="after")
    def _says_what_it_finds(self) -> Self:
        named = {name for _, name, _, _ in Formatter().parse(self.says) if name}
        if unknown := named - self.pattern.groupindex.keys():
            raise ValueError(f"{self.id}: the pattern has no group {', '.join(sorted(unknown))}")
        return self


class Catalogue(_Part):
    """The content of signatures.yaml."""

    words: tuple[str, ...]
    processes: re.Pattern[str]
    phases: tuple[Phase, ...]
    ready: re.Pattern[str]
    ignore: tuple[str, ...]
    stopped: re.Pattern[str]
    signatures: tuple[Signature, ...]

    @model_validator(mode="after")
    def _is_coherent(self) -> Self:
        codes, phases = reason_codes().reasons, {mark.phase for mark in self.phases}
        for signature in self.signatures:
            if signature.code not in codes:
                raise ValueError(f"{signature.id}: reasons.yaml has no code {signature.code}")
            if signature.phase is not None and signature.phase not in phases:
                raise ValueError(f"{signature.id}: no mark begins a phase {signature.phase}")
        if len({signature.id for signature in self.signatures}) < len(self.signatures):
            raise ValueError("two signatures have the same id")
        return self


@cache
def catalogue() -> Catalogue:
    """Return the catalogue, read when the first log is diagnosed: a healthy server never pays for it."""
    return Catalogue.model_validate(load_yaml(SIGNATURES_FILE))
