"""Why a server failed: the first causal error in the log of many processes, not its last line.

What failures look like is data, in engines/signatures.yaml; the rules of reading are here:

- the first line that a signature knows is the cause, unless that one only follows from others' failures;
- what was logged before the server was ready was survived, what comes after a requested stop is no cause;
- memory that runs out is named by the phase its own process was in.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pivotbench.diagnosis.log_lines import plain, suspicious_lines
from pivotbench.diagnosis.reasons import reason_codes, remedy_for
from pivotbench.diagnosis.signatures import Signature, catalogue
from pivotbench.results import Reason

MAX_EVIDENCE_LINES = 5
MAX_LINE_CHARS = 400

_FRAME = re.compile(r'\bFile ".*", line \d+')
_INDENTED = re.compile(r"(^|\] ?)\s{4,}\S")
_RAISE = re.compile(r"(^|\])\s*raise \w")
_SOURCE_LINES = 8

# Before a message: when, which process, how grave. Ranks that say the same differ only in this.
_PREFIX = re.compile(r"^(\s*(\[[^\]]*\]|\([^)]*\)|[\w.-]+\s+\||(ERROR|CRITICAL|FATAL)\b|[-:\d.,]+))*\s*")

# How telling a line is where no signature matches: an exception's own line, an error, a mention of one.
_TELLING = (
    re.compile(r"(^|[\s:\]])([\w.]+\.)?\w*(Error|Exception|Interrupt)(: \S|$)|terminate called|what\(\):"),
    re.compile(r"\b(ERROR|FATAL|CRITICAL|E)\b|[Ss]egmentation fault|[Aa]ssertion.*failed|panic:"),
    re.compile(
        r"\b(error|fail(ed|ure)|exception|cannot|unable|abort\w*|killed|unsupported)\b", re.IGNORECASE
    ),
)


@dataclass(frozen=True)
class Match:
    """A signature found in a log, in which line (from 0), and which further line it rests on."""

    signature: Signature
    number: int
    line: str
    also: str | None = None


def diagnose(lines: Iterable[str], exit_code: int | None, engine: str) -> Reason:
    """Return why a server that left these lines ended.

    ``exit_code`` is negative for a signal, as subprocess has it, and None where it is not known.
    The evidence is at most five lines, the causal one first unless another line explains it.
    """
    return _reason(_read(enumerate(lines), engine), exit_code)


def diagnose_file(path: Path, exit_code: int | None, engine: str) -> Reason:
    """Return the same of a log of any size, in one pass."""
    return _reason(_read(suspicious_lines(path, catalogue().words), engine), exit_code)


@dataclass
class _Reading:
    """What one pass over a log keeps: a few lines for each signature, and the most telling ones."""

    matches: dict[str, list[Match]] = field(default_factory=dict)
    explained_by: dict[str, str] = field(default_factory=dict)
    telling: list[dict[str, tuple[int, str]]] = field(default_factory=lambda: [{} for _ in _TELLING])
    ending: list[tuple[int, str]] = field(default_factory=list)

    def add(self, match: Match) -> None:
        held = self.matches.setdefault(match.signature.id, [])
        if len(held) < MAX_EVIDENCE_LINES:
            held.append(match)

    def survived(self) -> None:
        """Forget the matches so far, save those with which no server comes up."""
        self.matches = {name: held for name, held in self.matches.items() if held[0].signature.fatal}
        self.telling = [{} for _ in _TELLING]

    def mention(self, number: int, line: str) -> None:
        """Keep a line that no signature knows, if it is among the most telling."""
        text = _shown(line)
        if not text:
            return
        self.ending = [*self.ending, (number, text)][-MAX_EVIDENCE_LINES:]
        for telling, held in zip(_TELLING, self.telling, strict=True):
            if telling.search(text):
                if len(held) < MAX_EVIDENCE_LINES:
                    held.setdefault(_PREFIX.sub("", text), (number, text))
                return

    def known(self) -> list[Match]:
        """Every kept match that holds, in the log's order."""
        found = [
            Match(m.signature, m.number, m.line, self.explained_by.get(m.signature.id))
            for held in self.matches.values()
            for m in held
            if m.signature.also is None or m.signature.id in self.explained_by
        ]
        return sorted(found, key=lambda match: match.number)

    def cause(self) -> Match | None:
        found = self.known()
        return next((m for m in found if not m.signature.follows), found[0] if found else None)

    def best_lines(self) -> tuple[str, ...]:
        """The five most telling lines, in the log's order; among those that tell nothing, the last."""
        ranked = [line for held in self.telling for line in held.values()]
        ranked += [line for line in reversed(self.ending) if line not in ranked]
        return tuple(text for _, text in sorted(ranked[:MAX_EVIDENCE_LINES]))


def _read(lines: Iterable[tuple[int, str]], engine: str) -> _Reading:
    known = catalogue()
    candidates = [s for s in known.signatures if s.engine in (None, engine)]
    explaining = [s for s in candidates if s.also is not None]
    ignore = re.compile("|".join(known.ignore))
    reading = _Reading()
    phase_of: dict[str, str] = {}
    process, newest, frame = "", None, -_SOURCE_LINES - 1
    for number, raw in lines:
        line = plain(raw)
        if known.stopped.search(line):
            break
        if _FRAME.search(line):
            frame = number
        if found := known.processes.match(line):
            process = next((group for group in found.groups() if group), "")
        if known.ready.search(line):
            reading.survived()
            phase_of, newest = {}, "serving"
            continue
        for mark in known.phases:
            if mark.pattern.search(line):
                phase_of[process] = newest = mark.phase
        for signature in explaining:
            if signature.also is not None and signature.also.search(line):
                reading.explained_by.setdefault(signature.id, line)
        if _is_source(line, number - frame) or ignore.search(line):
            continue
        phase = phase_of.get(process, newest)
        matched = False
        for signature in candidates:
            if signature.phase in (None, phase) and signature.pattern.search(line):
                reading.add(Match(signature, number, line))
                matched = True
                if signature.also is None:
                    break
        if not matched:
            reading.mention(number, line)
    return reading


def _is_source(line: str, below_frame: int) -> bool:
    """Whether a line of a traceback is source text: it may quote a message without raising it."""
    if below_frame == 1 or _RAISE.search(line):
        return True
    return 1 < below_frame <= _SOURCE_LINES and _INDENTED.search(line) is not None


def _reason(reading: _Reading, exit_code: int | None) -> Reason:
    match = reading.cause()
    if match is None:
        return _unexplained(reading, exit_code)
    signature = match.signature
    found = signature.pattern.search(match.line)
    groups = {name: text for name, text in (found.groupdict() if found else {}).items() if text is not None}
    return Reason(
        code=signature.code,
        kind=reason_codes().reasons[signature.code].kind,
        message=signature.says.format(**groups),
        evidence=_evidence(match, reading),
        signature=signature.id,
        links=signature.links,
        remedy=signature.remedy,
    )


def _unexplained(reading: _Reading, exit_code: int | None) -> Reason:
    ended, evidence = _ending(exit_code), reading.best_lines()
    # SGLang ends itself by SIGKILL when a child failed, so an exception in the log explains more.
    if exit_code == -signal.SIGKILL and not reading.telling[0]:
        reason = Reason.of("killed", f"The server {ended}, and its log names no cause.", evidence)
    else:
        reason = Reason.of("unknown", f"The server {ended} for a reason not in the catalogue.", evidence)
    return replace(reason, remedy=remedy_for(reason.code))


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "ended"
    if exit_code >= 0:
        return f"ended with status {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was ended by signal {-exit_code}"


def _evidence(match: Match, reading: _Reading) -> tuple[str, ...]:
    """The causal line, what explains it, and later lines that name the same failure in other words."""
    found = [match.also] if match.also else []
    found.append(match.line)
    found += [m.line for m in reading.known() if m.signature.code == match.signature.code]
    different: dict[str, str] = {}
    for line in map(_shown, found):
        different.setdefault(_PREFIX.sub("", line), line)
    return tuple(different.values())[:MAX_EVIDENCE_LINES]


def _shown(line: str) -> str:
    text = plain(line).strip()
    return text if len(text) <= MAX_LINE_CHARS else text[: MAX_LINE_CHARS - 1] + "…"
