"""The changelog: one line for each thing that changed, the weightiest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pivotbench.figures import MOST_RATIO

Row = Mapping[str, Any]
VERDICT_ORDER = ("slower", "faster", "undecided", "not_comparable", "equivalent")


def changelog(comparison: Row) -> list[dict[str, Any]]:
    """Return the lines, each with its kind and what it speaks of; the threats are known already."""
    return [
        *_winner(comparison),
        *_fates(comparison["configurations"]),
        *_together(comparison),
        *_speeds(comparison["speeds"]),
        *_answers(comparison["answers"]),
        *_differences("environment", comparison["environment"]),
        *_differences("study", comparison["study"]),
        *_flags(comparison["configurations"]),
    ]


def speed_words(row: Row) -> str:
    """Return a verdict with its figures."""
    change = f"{row['old_tok_s']:.1f} -> {row['new_tok_s']:.1f} tok/s"
    interval = f" ({' to '.join(map(_bound, row['ci']))})" if row["ci"] else ""
    words = f"{row['verdict'].replace('_', ' ')}, {row['ratio']:.3f} times{interval}, {change}"
    if row["reason"]:
        words += f"; {row['reason']}"
    if more := row["rounds_needed"]:
        words += f"; about {more} more round{'s' if more > 1 else ''} in both would likely tell"
    if row["confounders"]:
        words += f"; the hardware differed: {', '.join(row['confounders'])}"
    return words


def _bound(ratio: float) -> str:
    return f"over {MOST_RATIO}" if ratio > MOST_RATIO else f"{ratio:.3f}"


def _winner(comparison: Row) -> Iterator[dict[str, Any]]:
    old, new, speed = (comparison["winner"][key] for key in ("old", "new", "speed"))
    names = f"{old or 'none'} -> {new or 'none'}" if old != new else f"{old or 'none'}, as before"
    yield _line("winner", None, new, f"winner: {names}{f'; {speed_words(speed)}' if speed else ''}")


def _fates(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    moved = _moved(rows)
    if moved:
        bases, names = moved
        line = f"speculation is tried on {bases[1]} and no more on {bases[0]}: {', '.join(names)}"
        yield _line("appeared", "speculative", None, line)
    for fate in ("broke", "mended", "appeared", "vanished", "still_broken"):
        for row in rows:
            if moved and row["phase"] == "speculative" and "eliminated" not in _states(row):
                continue
            if row["fate"] == fate and (words := _fate(row)):
                yield _line(fate, row["phase"], row["configuration"], f"{row['configuration']} {words}")


def _moved(rows: Sequence[Row]) -> tuple[tuple[str, str], list[str]] | None:
    """The old and the new base of speculation and what is tried on it, where the whole phase has moved."""
    phase = [row for row in rows if row["phase"] == "speculative"]
    bases = [
        {r["configuration"].partition("+")[0] for r in phase if r["fate"] == f}
        for f in ("vanished", "appeared")
    ]
    if any(len(base) != 1 for base in bases) or any(r["fate"] not in ("vanished", "appeared") for r in phase):
        return None
    suffixes = [r["configuration"].partition("+")[2] for r in phase if r["fate"] == "appeared"]
    return (bases[0].pop(), bases[1].pop()), sorted(set(suffixes) - {"none"})


def _states(row: Row) -> tuple[str, str]:
    return row["old"]["state"], row["new"]["state"]


def _fate(row: Row) -> str | None:
    old, new = row["old"], row["new"]
    if row["fate"] == "broke":
        return f"broke: {new['code']}, {new['reason']}"
    if row["fate"] == "mended":
        return f"was mended: it was eliminated for {old['code']}"
    if row["fate"] == "appeared":
        return f"appeared and is eliminated: {new['code']}" if new["code"] else "appeared and works"
    if row["fate"] == "vanished":
        return f"vanished; it was eliminated for {old['code']}" if old["code"] else "vanished; it worked"
    return (
        f"is still out, for another reason: {old['code']} -> {new['code']}"
        if old["code"] != new["code"]
        else None
    )


def _together(comparison: Row) -> Iterator[dict[str, Any]]:
    for threat in comparison["threats"]:
        if threat["code"] == "together":
            yield _line("together", None, None, threat["message"])


def _speeds(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for verdict in VERDICT_ORDER:
        for row in rows:
            if row["verdict"] == verdict:
                name = row["configuration"]
                yield _line(verdict, row["phase"], name, f"{name}: {speed_words(row)}")


def _answers(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for verdict in ("disagree", "changed", "unknown"):
        for row in rows:
            if row["verdict"] == verdict:
                words = f"answers of {row['configuration']}: {verdict}, {row['why']}"
                yield _line("answers", row["phase"], row["configuration"], words)
    same = [row for row in rows if row["verdict"] == "same"]
    if same:
        whole = sum(row["equal"] == row["prompts"] for row in same)
        words = (
            f"answers of {_count(len(same))}: the same as before, beyond rounding; word for word in {whole}"
        )
        yield _line("answers", None, None, words)


def _differences(kind: str, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield _line(kind, None, None, f"{row['what']}: {row['old'] or 'none'} -> {row['new'] or 'none'}")


def flag_groups(rows: Sequence[Row]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield what kind of flag differs, how, and of which configurations; alike in several is said once."""
    for key, what in (("requested", "flag asked for"), ("effective", "setting in effect")):
        named: dict[str, list[str]] = {}
        for row in rows:
            for difference in row[key]:
                named.setdefault(difference, []).append(row["configuration"])
        yield from ((what, difference, names) for difference, names in named.items())


def _flags(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for what, difference, names in flag_groups(rows):
        who = names[0] if len(names) == 1 else f"{_count(len(names))} ({', '.join(names[:3])}{_more(names)})"
        yield _line("flags", None, names[0] if len(names) == 1 else None, f"{who}: {what}, {difference}")


def _count(number: int) -> str:
    return f"{number} configuration{'s' if number != 1 else ''}"


def _more(names: Sequence[str]) -> str:
    return ", ..." if len(names) > 3 else ""


def _line(kind: str, phase: str | None, configuration: str | None, line: str) -> dict[str, Any]:
    return {"kind": kind, "phase": phase, "configuration": configuration, "line": line}
