"""How the study's errors are worded: near matches, short quotations, paths of keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

KeyPath = tuple[str | int, ...]

_SHOWN_CHARACTERS = 60
_SHOWN_NAMES = 12


def quoted(value: object) -> str:
    """Return ``value`` as one short line in quotes, whatever it holds."""
    text = value if isinstance(value, str) else str(value)
    text = text.encode("unicode_escape").decode() if not text.isprintable() else text
    return f"'{text[: _SHOWN_CHARACTERS - 1]}…'" if len(text) > _SHOWN_CHARACTERS else f"'{text}'"


def key_text(path: KeyPath) -> str:
    """Return a path as a reader writes it: ``smoke.prompts[0].ask``; list items count from 0."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if part.isprintable() and len(part) < 80 else quoted(part))
    return text


def near(word: str, known: Iterable[str]) -> str | None:
    """Return the known name most like ``word``, or None; case, ``-`` and ``_`` weigh nothing."""

    def plain(name: str) -> str:
        return name.lower().lstrip("-").replace("_", "-")

    by_plain = {plain(name): name for name in sorted(known, reverse=True)}
    found = get_close_matches(plain(word[:200]), by_plain, n=1, cutoff=0.6)
    return by_plain[found[0]] if found else None


def listed(names: Sequence[str]) -> str:
    """Return names as a comma-separated list, cut after a dozen."""
    shown = ", ".join(names[:_SHOWN_NAMES])
    return f"{shown}, … ({len(names)} in all)" if len(names) > _SHOWN_NAMES else shown


def suggestion(word: str, known: Sequence[str], *, label: str = "known") -> str:
    """Return what to try instead of ``word``: the nearest name, or the names there are."""
    match = near(word, known)
    if match is not None:
        return f"did you mean {quoted(match)}?"
    return f"{label}: {listed(known)}" if known else f"{label}: none"
