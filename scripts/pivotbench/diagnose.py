"""Why a server failed: the first causal error in the log of many processes, not its last line.

What failures look like is data, in engines/signatures.yaml. It is read when the first log is
diagnosed, so that a stage whose server is healthy never pays for it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pivotbench.results import Reason, ReasonKind

CATALOGUE = Path(__file__).parent / "engines" / "signatures.yaml"

MAX_EVIDENCE_LINES = 5
MAX_LINE_CHARS = 400

_FRAME = re.compile(r'\bFile ".*", line \d+')

# How telling a line is where no signature matches: an exception's own line, an error, a mention of one.
_TELLING = (
    re.compile(r"(^|[\s:\]])([\w.]+\.)?\w*(Error|Exception|Interrupt): \S|terminate called|what\(\):"),
    re.compile(r"\b(ERROR|FATAL|CRITICAL|E)\b|[Ss]egmentation fault|[Aa]ssertion.*failed|panic:"),
    re.compile(r"\b(error|failed|failure|cannot|unable|abort\w*|killed|unsupported)\b", re.IGNORECASE),
)


@dataclass(frozen=True)
class Signature:
    """One known failure: what it looks like, what it means, what helps."""

    id: str
    code: str
    pattern: re.Pattern[str]
    says: str
    remedy: str
    phase: str | None
    also: re.Pattern[str] | None
    engine: str | None
    links: tuple[str, ...]


@dataclass(frozen=True)
class Match:
    """A signature found in a log, at which line (from 0), and which further line it rests on."""

    signature: Signature
    index: int
    line: str
    also: str | None


@dataclass(frozen=True)
class Catalogue:
    """The content of signatures.yaml, compiled."""

    phases: tuple[tuple[str, re.Pattern[str]], ...]
    ignore: re.Pattern[str]
    stopped: re.Pattern[str]
    transient: frozenset[str]
    signatures: tuple[Signature, ...]


@cache
def catalogue() -> Catalogue:
    """Read and compile signatures.yaml, once for a process."""
    import yaml

    data = yaml.load(CATALOGUE.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return Catalogue(
        phases=tuple((row["phase"], re.compile(row["pattern"])) for row in data["phases"]),
        ignore=re.compile("|".join(data["ignore"])),
        stopped=re.compile(data["stopped"]),
        transient=frozenset(data["transient"]),
        signatures=tuple(map(_signature, data["signatures"])),
    )


def first_error(lines: Iterable[str], engine: str = "") -> Match | None:
    """Return the first line that a signature knows as a failure, or None, as for a healthy server.

    Nothing after a requested stop counts. ``engine`` adds the signatures of that engine alone.
    """
    return next(_matches(list(lines), engine), None)


def diagnose(log_lines: Sequence[str], exit_code: int | None, engine: str) -> Reason:
    """Return why a server that left this log ended.

    ``exit_code`` is negative for a signal, as subprocess has it, and None where it is not known.
    The message's first sentence says what happened, its second what to do; the evidence is at most
    five lines, the causal one first unless another line explains it.
    """
    match = first_error(log_lines, engine)
    if match is None:
        return _unexplained(log_lines, exit_code)
    signature = match.signature
    groups = {k: v for k, v in _groups(match).items() if v is not None}
    return Reason(
        code=signature.code,
        kind=kind_of(signature.code),
        message=f"{signature.says.format(**groups)} {signature.remedy}",
        evidence=_evidence(match, log_lines, engine),
        signature=signature.id,
        links=signature.links,
    )


def kind_of(code: str) -> ReasonKind:
    """Return whether a failure of this code may well not come again."""
    return "transient" if code in catalogue().transient else "deterministic"


def _matches(log: Sequence[str], engine: str) -> Iterator[Match]:
    """Yield every line that some signature knows, in order, up to a requested stop."""
    known = catalogue()
    candidates = [s for s in known.signatures if s.engine in (None, engine)]
    phase = None
    previous = ""
    for index, line in enumerate(log):
        if known.stopped.search(line):
            return
        # The line below a traceback's ``File`` is source text: it may quote a message without raising it.
        source, previous = _FRAME.search(previous), line
        if source or known.ignore.search(line):
            continue
        phase = next((name for name, mark in known.phases if mark.search(line)), phase)
        for signature in candidates:
            if signature.phase not in (None, phase) or not signature.pattern.search(line):
                continue
            also = _first(log, signature.also)
            if signature.also is None or also is not None:
                yield Match(signature, index, line, also)
                break


def _unexplained(log_lines: Sequence[str], exit_code: int | None) -> Reason:
    ended = _ending(exit_code)
    evidence = _best_lines(log_lines)
    if exit_code == -signal.SIGKILL:
        message = (
            f"The server {ended}, and its log names no cause. See whether the machine ran out of memory."
        )
        return Reason("killed", "transient", message, evidence)
    message = (
        f"The server {ended} for a reason that is not in the catalogue. Read the log around these lines."
    )
    return Reason("unknown", "deterministic", message, evidence)


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "ended"
    if exit_code >= 0:
        return f"ended with status {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was ended by signal {-exit_code}"


def _evidence(match: Match, log: Sequence[str], engine: str) -> tuple[str, ...]:
    """The causal line, what explains it, and later lines that name the same failure in other words."""
    found = [match.also] if match.also else []
    found.append(match.line)
    found += [m.line for m in _matches(log, engine) if m.signature.code == match.signature.code]
    return tuple(dict.fromkeys(map(_clean, found)))[:MAX_EVIDENCE_LINES]


def _best_lines(log: Sequence[str]) -> tuple[str, ...]:
    ranked: list[tuple[int, int]] = []
    seen: set[str] = set()
    for index, line in enumerate(log):
        text = _clean(line)
        if not text or text in seen or catalogue().ignore.search(line):
            continue
        seen.add(text)
        rank = next((r for r, telling in enumerate(_TELLING) if telling.search(text)), len(_TELLING))
        # Among equally telling lines the first counts; among lines that tell nothing, the last.
        ranked.append((rank, index if rank < len(_TELLING) else -index))
    best = sorted(ranked)[:MAX_EVIDENCE_LINES]
    return tuple(_clean(log[index]) for index in sorted(abs(place) for _, place in best))


def _groups(match: Match) -> dict[str, Any]:
    found = match.signature.pattern.search(match.line)
    return found.groupdict() if found else {}


def _first(log: Sequence[str], pattern: re.Pattern[str] | None) -> str | None:
    return next((line for line in log if pattern is not None and pattern.search(line)), None)


def _clean(line: str) -> str:
    """One line as a reader wants it: what a progress bar overwrote is gone, and so are colours."""
    text = re.sub(r"\x1b\[[\d;]*m", "", line.rstrip().rpartition("\r")[2]).strip()
    return text if len(text) <= MAX_LINE_CHARS else text[: MAX_LINE_CHARS - 1] + "…"


def _signature(row: dict[str, Any]) -> Signature:
    return Signature(
        id=row["id"],
        code=row["code"],
        pattern=re.compile(row["pattern"]),
        says=row["says"],
        remedy=row["remedy"],
        phase=row.get("phase"),
        also=re.compile(row["also"]) if "also" in row else None,
        engine=row.get("engine"),
        links=tuple(row.get("links", ())),
    )
