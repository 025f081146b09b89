"""The decision for people: summary.md, and a dozen lines for the end of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.decision.loads.arrivals import CAPTION, sustained
from pivotbench.decision.loads.words import crossing_words, largest_load_words
from pivotbench.latency_limits import Goodput
from pivotbench.summary.limit import limit_markdown, limit_sentence
from pivotbench.summary.load import by_load, pareto_table
from pivotbench.summary.markdown import block as _block
from pivotbench.summary.markdown import code as _code
from pivotbench.summary.markdown import figure as _figure
from pivotbench.summary.markdown import latency as _latency
from pivotbench.summary.markdown import table as _table
from pivotbench.summary.markdown import text as _text

Decision = Mapping[str, Any]
Row = Mapping[str, Any]


def terminal_summary(decision: Decision) -> str:
    """Return about a dozen plain lines: winner, ranking, eliminated, speculation, what is open."""
    lines = [f"{decision['study']}: {_winner_line(decision)}"]
    if decision["launch_command"]:
        lines.append(f"  launch      {decision['launch_command']}")
    lines.append(f"  metric      {_metric(decision)}")
    ranking, reference = _winner_phase(decision)
    for i, row in enumerate(ranking[:3]):
        label = "ranking" if i == 0 else ""
        verdict = _against(decision, row["configuration"], reference)
        lines.append(f"  {label:<11} {row['configuration']}: {_mean(row)}{verdict and ', ' + verdict}")
    for i, row in enumerate(decision["eliminated"][:3]):
        label = "eliminated" if i == 0 else ""
        lines.append(
            f"  {label:<11} {row['configuration']}: {row['code']} at {row['stage']}, {row['reason']}"
        )
    best = _best_speculation(decision)
    for i, row in enumerate(best):
        label = "speculation" if i == 0 else ""
        lines.append(f"  {label:<11} {_place(row)}: {row['configuration']} {_speculation_line(row)}")
    shown = [row for row in decision["regions"]["crossings"] if row["verdict"] == "crossing"]
    lines += [f"  {'by load':<11} {crossing_words(row)}" for row in shown[:1]]
    if decision["limit"]["reason"] is None:
        lines.append(f"  limit       {limit_sentence(decision['limit'])}")
    spent = decision["cost"]
    lines.append(f"  cost        {spent['launches']} launches, {_spent(spent)}")
    return "\n".join(lines) + "\n"


def summary_markdown(decision: Decision) -> str:
    """Return summary.md: two minutes' read in GitHub flavoured Markdown."""
    parts = [
        f"# {_text(decision['study'])}\n",
        f"**{_text(_winner_line(decision))}**\n",
        _text(
            f"{decision['model']} on {decision['engine']}, {_where(decision['environment'])}. "
            f"Metric: {_metric(decision)}."
        )
        + "\n",
    ]
    if decision["launch_command"]:
        parts.append(_block("sh", decision["launch_command"]))
    if (second := decision["runner_up"]) and second["launch_command"]:
        parts.append(f"Runner-up: {_text(second['configuration'])}.\n")
        parts.append(_block("sh", second["launch_command"]))
    parts += [
        _section("Ranking", _ranking(decision)),
        _section("By load", by_load(decision)),
        _section("Throughput against latency", pareto_table(decision["pareto"])),
        _section("Speculation", _speculation(decision["speculation"])),
        _section("Limit", limit_markdown(decision["limit"])),
        _section("Under a rate of arrivals", _open_loop(decision["open_loop"])),
        _section("Eliminated", _eliminated(decision["eliminated"])),
        _section("Answers", "\n".join(_answers(part) for part in decision["agreement"])),
        _section("Hypotheses", _bullets(decision["hypotheses"], "**{verdict}**: {statement}. {evidence}.")),
        _section("Next levers", _levers(decision["next_levers"])),
        _section("What may be wrong with this", _bullets(decision["threats"], "{message}")),
        _section("How it was decided", _log(decision)),
    ]
    return "\n".join(part for part in parts if part)


def _winner_line(decision: Decision) -> str:
    winner = decision["winner"]
    if winner is None and decision["ranking"]:
        return "no winner yet: the rounds that would decide are missing"
    if winner is None:
        return "no winner: nothing is healthy and ranked"
    relaunched = f"{winner}+none"  # a winner without speculation is that phase's baseline
    names = (winner, relaunched)
    own = next((row for name in names for row in decision["ranking"] if row["configuration"] == name), None)
    speed = f" {'with' if own['at_least'] else 'at'} {_speed(own)}" if own else ""
    rivals = _verdicts(decision, winner) | _verdicts(decision, relaunched)
    equals, open_, apart = (
        [name for name, row in rivals.items() if row["verdict"] == verdict]
        for verdict in ("equivalent", "undecided", "not_comparable")
    )
    also = f", equivalent to {', '.join(equals)}" if equals else ""
    unclear = f"; not told apart from {', '.join(open_)}" if open_ else ""
    unlike = f"; not comparable with {', '.join(apart)}" if apart else ""
    judged = all(part["judged"] for part in decision["agreement"])
    does = "leads" if open_ else "wins"
    return f"{winner} {does}{speed}{also}{unclear}{unlike}{'' if judged else '; its answers are not judged'}"


def _winner_phase(decision: Decision) -> tuple[list[Row], str | None]:
    """Return the ranking of the phase the winner comes from, and whom the others are compared with."""
    winner = decision["winner"]
    ranking = decision["ranking"]
    phase = next((r["phase"] for r in ranking if r["configuration"] == winner), "backends")
    rows = [row for row in ranking if row["phase"] == phase]
    return rows, _reference(decision, rows)


def _reference(decision: Decision, rows: Sequence[Row]) -> str | None:
    names = [row["configuration"] for row in rows]
    return decision["winner"] if decision["winner"] in names else names[0] if names else None


def _verdicts(decision: Decision, name: str | None) -> dict[str, Row]:
    """Return the comparisons with ``name`` by the other's name, their verdicts being the other's."""
    turn = {"faster": "slower", "slower": "faster"}
    found = {}
    for row in decision["comparisons"]:
        if row["b"] == name:
            found[row["a"]] = row
        elif row["a"] == name:
            found[row["b"]] = {**row, "verdict": turn.get(row["verdict"], row["verdict"])}
    return found


def _against(decision: Decision, name: str, reference: str | None) -> str:
    row = _verdicts(decision, reference).get(name)
    if row is None:
        return ""
    needed = row["rounds_needed"]
    more = f", about {needed} more round{'s' if needed > 1 else ''}" if needed else ""
    return str(row["verdict"]).replace("_", " ") + more


def _mean(row: Row) -> str:
    rounds = f"{row['rounds']} round{'s' if row['rounds'] > 1 else ''}"
    if row["ci"] is None:
        return f"{_speed(row)} ({rounds})"
    low, high = row["ci"]
    return f"{_speed(row)} ({low:.1f} to {high:.1f}, {rounds})"


def _speed(row: Row) -> str:
    return f"{'at least ' if row['at_least'] else ''}{row['mean_tok_s']:.1f} tok/s"


def _metric(decision: Decision) -> str:
    metric = decision["metric"]
    mix = ", ".join(f"{w} x {weight:g}" for w, weight in metric["workloads"].items())
    load = f"concurrency {metric['concurrency']}"
    if metric["goodput"]:
        goodput = Goodput.from_json(metric["goodput"])
        load = f"the largest {goodput.over} with {goodput.words}"
    return f"output tok/s at {load} ({mix}), margin {100 * metric['margin']:g} %"


def _place(row: Row) -> str:
    return f"{row['workload']} at {row['concurrency']}"


def _best_speculation(decision: Decision) -> list[Row]:
    """The fastest speculative configuration for each workload at the metric's concurrency, if it has one."""
    best: dict[str, Row] = {}
    for row in decision["speculation"]:
        if decision["metric"]["concurrency"] in (None, row["concurrency"]):
            held = best.get(row["workload"])
            if held is None or (row["speedup"] or 0) > (held["speedup"] or 0):
                best[row["workload"]] = row
    return [best[w] for w in sorted(best)][:3]


def _speculation_line(row: Row) -> str:
    if row["speedup"] is None or row["evidence"] != "text":
        return str(row["why"])
    interval = f" ({row['ci'][0]:.2f} to {row['ci'][1]:.2f})" if row["ci"] else ""
    length = f", {row['acceptance_length']:.2f} tokens a pass" if row["acceptance_length"] else ""
    return f"{row['verdict']}, {row['speedup']:.2f} times as fast{interval}{length}"


def _spent(cost: Row) -> str:
    if cost["gpu_seconds"]:
        return f"{cost['gpu_seconds'] / 3600:.2f} GPU-hours"
    return f"{cost['server_seconds']:.0f} s of server time"


def _where(environment: Row) -> str:
    gpus = environment.get("gpus") or []
    if gpus:
        return f"{len(gpus)}x {gpus[0].get('name')}"
    return str(environment.get("cpu_model") or "unknown hardware")


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _ranking(decision: Decision) -> str:
    tables = []
    for phase in dict.fromkeys(row["phase"] for row in decision["ranking"]):
        rows = [row for row in decision["ranking"] if row["phase"] == phase]
        reference = _reference(decision, rows)
        goodput = bool(decision["metric"]["goodput"])
        lines = [
            f"| {_text(row['configuration'])} | {_mean(row)} | "
            + (f"{largest_load_words(row, decision['metric'])} | " if goodput else "")
            + f"{_against(decision, row['configuration'], reference)} |"
            for row in rows
        ]
        load = ["largest load"] if goodput else []
        head = [phase, "mean (interval, rounds)", *load, f"against {_text(reference)}"]
        tables.append(_table(head, lines))
    return "\n".join(tables)


def _speculation(rows: Sequence[Row]) -> str:
    lines = [
        f"| {_text(r['configuration'])} | {_place(r)} | {_figure(r['acceptance_length'])} | "
        f"{_figure(r['step_cost_ratio'])}{' (derived)' if r['derived'] and r['step_cost_ratio'] else ''} | "
        f"{_text(r['why'])} |"
        for r in rows
    ]
    return _table(["configuration", "workload", "tokens a pass", "cost of a pass", "verdict"], lines)


def _open_loop(rows: Sequence[Row]) -> str:
    lines = [
        f"| {_text(r['workload'])} | {r['rate_per_second']:g} | {_text(r['configuration'])} | "
        f"{_figure(r['arrived_per_second'])} | {_figure(r['completed_per_second'])}"
        f"{' (' + str(r['requests_lost']) + ' lost)' if r['requests_lost'] else ''} | "
        f"{_latency(r['ttft_p50_seconds'])} | {_latency(r['ttft_p99_seconds'])} | "
        f"{_latency(r['e2e_p99_seconds'])} | {'' if r['in_flight_peak'] is None else r['in_flight_peak']} | "
        f"{sustained(r)} |"
        for r in rows
    ]
    head = [
        "workload",
        "requests/s asked for",
        "configuration",
        "arrived/s",
        "completed/s",
        "TTFT p50",
        "TTFT p99",
        "end to end p99",
        "peak in flight",
        "sustained",
    ]
    return f"{CAPTION}.\n\n{_table(head, lines)}" if lines else ""


def _eliminated(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        links = "".join(f" ([{i}]({link}))" for i, link in enumerate(row["links"], 1))
        name, reason = _text(row["configuration"]), _text(row["reason"])
        lines.append(f"- {name}: `{row['code']}` at {row['stage']}, {reason}{links}")
        if remedy := row.get("remedy"):
            lines.append(f"  - What to do: {_text(remedy)}")
        lines += [f"  - {_code(line)}" for line in row["evidence"][:2]]
    return "\n".join(lines) + "\n" if lines else ""


def _answers(part: Row) -> str:
    """How the answers of a phase agree with its reference's."""
    aside = ", ".join(f'"{_text(ask)}"' for ask in part["set_aside"])
    lines = [
        f"| {_text(row['configuration'])} | {row['equal']} of {row['prompts']} | "
        f"{' / '.join(str(row['departures'][kind]) for kind in ('near_tie', 'clear', 'unknown'))} | "
        f"{_figure(row['distance_nats'])} | {row['steady']} of {part['prompts']} | "
        f"{row['greedy_text']['verdict'] if row['greedy_text'] else ''} |"
        for row in part["configurations"]
    ]
    head = [
        part["phase"],
        "same text",
        "left at a near tie / clearly / unknown how",
        f"distance, nats (bound {part['bound_nats']:g})",
        "the same in all launches",
        "greedy text",
    ]
    return f"{_text(part['statement'])}.{f' Set aside: {aside}.' if aside else ''}\n\n{_table(head, lines)}"


def _levers(rows: Sequence[Row]) -> str:
    return "\n".join(
        f"{i}. **{_text(r['lever'])}**: {_text(r['because'])}. Refuted by: {_text(r['refuted_by'])}.\n\n"
        f"   ```yaml\n{_indented(r['snippet'])}   ```\n"
        for i, r in enumerate(rows, 1)
    )


def _log(decision: Decision) -> str:
    spent = decision["cost"]
    statement = _text(decision["confidence"]["statement"])
    sweep = {key: spent[f"full_sweep_{key}"] for key in ("gpu_seconds", "server_seconds")}
    cost = f"cost: {spent['launches']} launches, {_spent(spent)}; every round for all: about {_spent(sweep)}"
    lines = [*decision["log"], cost]
    return "".join(f"- {_text(line)}\n" for line in lines) + f"\n{statement}\n"


def _bullets(rows: Sequence[Row], template: str) -> str:
    return "".join("- " + template.format(**{k: _text(v) for k, v in row.items()}) + "\n" for row in rows)


def _indented(snippet: str) -> str:
    return "".join(f"   {line}\n" for line in snippet.splitlines())
