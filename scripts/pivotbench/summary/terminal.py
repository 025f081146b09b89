"""The decision in about a dozen plain lines, for the end of a run."""

from __future__ import annotations

from pivotbench.decision.loads.words import crossing_words
from pivotbench.summary.limit import limit_sentence
from pivotbench.summary.words import (
    Decision,
    against,
    best_speculation,
    load_words,
    mean_words,
    metric_words,
    speculation_line,
    spent_words,
    winner_line,
    winner_phase,
)


def terminal_summary(decision: Decision) -> str:
    """Return about a dozen plain lines: winner, ranking, eliminated, speculation, what is open."""
    lines = [f"{decision['study']}: {winner_line(decision)}"]
    if decision["launch_command"]:
        lines.append(f"  launch      {decision['launch_command']}")
    lines.append(f"  metric      {metric_words(decision)}")
    ranking, reference = winner_phase(decision)
    for i, row in enumerate(ranking[:3]):
        label = "ranking" if i == 0 else ""
        verdict = against(decision, row["configuration"], reference)
        lines.append(f"  {label:<11} {row['configuration']}: {mean_words(row)}{verdict and ', ' + verdict}")
    for i, row in enumerate(decision["eliminated"][:3]):
        label = "eliminated" if i == 0 else ""
        lines.append(
            f"  {label:<11} {row['configuration']}: {row['code']} at {row['stage']}, {row['reason']}"
        )
    best = best_speculation(decision)
    for i, row in enumerate(best):
        label = "speculation" if i == 0 else ""
        lines.append(f"  {label:<11} {load_words(row)}: {row['configuration']} {speculation_line(row)}")
    shown = [row for row in decision["regions"]["crossings"] if row["verdict"] == "crossing"]
    lines += [f"  {'by load':<11} {crossing_words(row)}" for row in shown[:1]]
    if decision["limit"]["reason"] is None:
        lines.append(f"  limit       {limit_sentence(decision['limit'])}")
    spent = decision["cost"]
    lines.append(f"  cost        {spent['launches']} launches, {spent_words(spent)}")
    return "\n".join(lines) + "\n"
