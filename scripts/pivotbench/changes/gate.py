"""Whether a change may pass: the documented rule of compare_gate.

It stops a change for each of these, and for nothing else; what is undecided passes, and is said:

- there was a winner and there is none any more;
- the winner's metric is slower beyond the margin: the new winner against the old winner, the whole interval
  below 1 and the ratio below 1 / (1 + margin);
- a configuration that worked is eliminated;
- a configuration's answers disagree with its old ones, or the old winner's greedy text changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def gate(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether the change passes, and one line for each reason against it."""
    reasons = [*_winner(comparison), *_broken(comparison), *_answers(comparison)]
    return {"passed": not reasons, "reasons": reasons}


def _winner(comparison: Mapping[str, Any]) -> list[str]:
    old, new, speed = (comparison["winner"][key] for key in ("old", "new", "speed"))
    margin = comparison["metric"]["margin"]
    if old is not None and new is None:
        return [f"no winner any more: it was {old}"]
    if speed is None or speed["verdict"] != "slower" or speed["ratio"] >= 1 / (1 + margin):
        return []
    low, high = speed["ci"]
    who = new if new == old else f"{new}, the winner after {old},"
    return [
        f"{who} is slower beyond the margin of {100 * margin:g} %: {speed['ratio']:.3f} times "
        f"({low:.3f} to {high:.3f}), {speed['old_tok_s']:.1f} -> {speed['new_tok_s']:.1f} tok/s"
    ]


def _broken(comparison: Mapping[str, Any]) -> list[str]:
    return [
        f"{row['configuration']} worked and is eliminated: {row['new']['code']}, {row['new']['reason']}"
        for row in comparison["configurations"]
        if row["fate"] == "broke"
    ]


def _answers(comparison: Mapping[str, Any]) -> list[str]:
    winner = comparison["winner"]["old"]
    return [
        f"answers of {row['configuration']} {_SAYS[row['verdict']]}: {row['why']}"
        for row in comparison["answers"]
        if row["verdict"] == "disagree"
        or (row["verdict"] == "changed" and row["configuration"] in (winner, f"{winner}+none"))
    ]


_SAYS = {"disagree": "disagree with the old ones", "changed": "have another greedy text"}
