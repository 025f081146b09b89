"""summary.md: the decision for people, two minutes' read on GitHub, the rest folded away."""

from __future__ import annotations

import shlex

from pivotbench.summary.details import answers, bullets, log, open_loop
from pivotbench.summary.limit import limit_markdown
from pivotbench.summary.load import by_load, pareto_table
from pivotbench.summary.markdown import block, folded, text
from pivotbench.summary.sections import eliminated, levers, ranking, speculation, why_speculation
from pivotbench.summary.words import (
    Decision,
    backends_sentence,
    metric_words,
    speculation_sentence,
    where_words,
    winner_line,
)

# A command that is longer stands with a flag a line: GitHub shows about so much of a line of code.
COMMAND_CHARACTERS = 100


def summary_markdown(decision: Decision) -> str:
    """Return summary.md: three sentences, the command, what decided; below, each folded, what it rests on."""
    sentences = [backends_sentence(decision), speculation_sentence(decision)]
    parts = [
        f"# {text(decision['study'])}\n",
        f"**{text(winner_line(decision))}.** {text(' '.join(sentences))}\n",
        text(
            f"{decision['model']} on {decision['engine']}, {where_words(decision['environment'])}. "
            f"Metric: {metric_words(decision)}."
        )
        + "\n",
    ]
    if decision["launch_command"]:
        parts.append(block("sh", command_lines(decision["launch_command"])))
    sections = {
        "Ranking": ranking(decision),
        "Speculation": speculation(decision["speculation"]),
        "Eliminated": eliminated(decision["eliminated"]),
        "Next levers": levers(decision["next_levers"]),
    }
    parts += [f"## {title}\n\n{body}" for title, body in sections.items() if body]
    threats = decision["threats"]
    below = {
        f"What may be wrong with this ({len(threats)})": bullets(threats, "{message}"),
        "The runner-up's command": _runner_up(decision),
        "By load": by_load(decision),
        "Throughput against latency": pareto_table(decision["pareto"]),
        "Why speculation pays or does not": why_speculation(decision["speculation"]),
        "Limit": limit_markdown(decision["limit"]),
        "Under a rate of arrivals": open_loop(decision["open_loop"]),
        "Answers": "\n".join(answers(part) for part in decision["agreement"]),
        "Hypotheses": bullets(decision["hypotheses"], "**{verdict}**: {statement}. {evidence}."),
        "How it was decided": log(decision),
    }
    parts.append("## More\n")
    parts += [folded(title, body) for title, body in below.items()]
    return "\n".join(part for part in parts if part)


def command_lines(command: str) -> str:
    """Return a long command with a flag a line, to be pasted as it stands; any other one unchanged."""
    try:
        words = shlex.split(command, posix=False)
    except ValueError:
        return command
    if len(command) <= COMMAND_CHARACTERS or " ".join(words) != command:
        return command
    return "".join(f" \\\n    {word}" if word.startswith("--") else f" {word}" for word in words).strip()


def _runner_up(decision: Decision) -> str:
    second = decision["runner_up"]
    if not second or not second["launch_command"]:
        return ""
    return f"{text(second['configuration'])}:\n\n{block('sh', command_lines(second['launch_command']))}"
