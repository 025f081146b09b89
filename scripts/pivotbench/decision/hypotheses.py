"""The statements every campaign is asked about, and those of the study, each with what the data say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pivotbench.decision.comparison import Comparison
from pivotbench.decision.contest import Contest
from pivotbench.decision_rules import DecisionRules
from pivotbench.evidence import CellFiles

Entry = Mapping[str, Any]
HEADROOM = 0.10


def hypotheses(
    rules: DecisionRules,
    states: Sequence[Contest],
    pays: Sequence[Entry],
    speculation: Sequence[Entry],
    cells: Iterable[CellFiles],
    winner: str | None,
) -> list[dict[str, str]]:
    """Return the built-in hypotheses with verdict and evidence, then those that the study states.

    ``states``: both phases, the backends first. ``pays``: comparisons of speculative configurations with
    their baseline on the study's metric, as they count for the choice of the winner. ``winner``: the
    configuration that was measured for it.
    """
    backends = states[0]
    return [
        _equivalence(rules, backends),
        _speculation_pays(pays),
        _draft_path(speculation),
        _headroom([c for c in cells if c.configuration == winner]),
        _agreement(backends),
        *(_stated(states, *each) for each in rules.stated),
    ]


def _said(statement: str, verdict: str, evidence: str) -> dict[str, str]:
    return {"statement": statement, "verdict": verdict, "evidence": evidence}


def _equivalence(rules: DecisionRules, state: Contest) -> dict[str, str]:
    margin = f"{100 * rules.margin:g} %"
    statement = f"The two fastest backends are the same within {margin}, relaunch after relaunch"
    if len(state.ranked) < 2:
        return _said(statement, "untested", f"{len(state.ranked)} backends could be ranked")
    second = state.compare(state.ranked[1], state.ranked[0])
    verdict = {"equivalent": "supported", "slower": "refuted", "faster": "refuted"}
    return _said(statement, verdict.get(second.verdict, "undecided"), _figures(state, second))


def _stated(states: Sequence[Contest], a: str, verdict: str, b: str) -> dict[str, str]:
    """A hypothesis of the study: speculative configurations go by their names without the base's."""
    how = {"faster": "faster than", "slower": "slower than", "equivalent": "equivalent to"}
    statement = f"{a} is {how[verdict]} {b}"
    for state in states:
        names = {_without_base(name): name for name in state.alive}
        out = [e for e in state.eliminated if _without_base(e["configuration"]) in (a, b)]
        if out:
            broken = ", ".join(f"{e['configuration']} is out ({e['code']} at {e['stage']})" for e in out)
            return _said(statement, "untested", broken)
        if a in names and b in names:
            found = state.compare(names[a], names[b])
            held = "supported" if found.verdict == verdict else "refuted"
            open_ = found.verdict in ("undecided", "not_comparable")
            return _said(statement, "undecided" if open_ else held, _figures(state, found))
    return _said(statement, "untested", "the two were not measured together")


def _without_base(name: str) -> str:
    return name.partition("+")[2] or name


def _figures(state: Contest, found: Comparison) -> str:
    """A comparison's ratio, interval, rounds and, where it gives no verdict, why."""
    if not found.ratio:
        return f"{found.a}, {found.b}: {found.reason}"
    figures = f"{found.a} / {found.b} = {found.ratio:.3f}"
    if found.ci:
        figures += f" ({found.ci.low:.3f} to {found.ci.high:.3f})"
    rounds = len(state.subjects[found.a].rounds)
    figures += f" over {rounds} round{'s' if rounds != 1 else ''}"
    return f"{figures}; {found.reason}" if found.reason else figures


def _speculation_pays(pays: Sequence[Entry]) -> dict[str, str]:
    statement = "Speculative decoding pays on the study's mix of workloads"
    if not pays:
        return _said(statement, "untested", "none that keeps the greedy text was compared with its baseline")
    best = max(pays, key=lambda c: c["ratio"] or 0)
    figures = f"best: {best['a']}"
    if best["ratio"]:
        figures += f", {best['ratio']:.2f} times the baseline"
    if best["ci"]:
        figures += f" ({best['ci'][0]:.2f} to {best['ci'][1]:.2f})"
    verdicts = {c["verdict"] for c in pays}
    if "faster" in verdicts:
        return _said(statement, "supported", figures)
    if verdicts <= {"slower", "equivalent"}:
        return _said(statement, "refuted", figures)
    reason = f"; {best['reason']}" if best["reason"] else ""
    return _said(statement, "undecided", figures + reason)


def _draft_path(speculation: Sequence[Entry]) -> dict[str, str]:
    statement = "The draft path works: drafts are made and accepted"
    if not speculation:
        return _said(statement, "untested", "no speculative configuration was measured")
    real = [s for s in speculation if s["evidence"] == "text"]
    if not real:
        only = "only random tokens, text that nobody judged or simulated acceptance were measured"
        return _said(statement, "undecided", only)
    reported = [s for s in real if s["draft_proposed"] is not None]
    if not reported:
        return _said(statement, "undecided", "the server did not report its drafts")
    best = max(reported, key=lambda s: s["acceptance_length"] or 0)
    figures = (
        f"{best['configuration']} on {best['workload']}: {best['draft_accepted']} of "
        f"{best['draft_proposed']} drafted tokens accepted"
    )
    if best["acceptance_length"]:
        figures += f", {best['acceptance_length']:.2f} tokens a pass"
    works = any(s["draft_accepted"] for s in reported)
    return _said(statement, "supported" if works else "refuted", figures)


def _agreement(state: Contest) -> dict[str, str]:
    statement = (
        "The backends that work agree: their log probabilities lie within the bound, their answers hold"
    )
    table = state.agreement.table
    others = (
        []
        if table is None
        else [r for r in table["configurations"] if r["configuration"] != table["reference"]]
    )
    if table is None or not others:
        return _said(statement, "untested", "no two backends answered")
    if not table["judged"]:
        return _said(statement, "undecided", table["statement"])
    if state.agreement.eliminated:
        out = ", ".join(f"{e['configuration']} ({e['code']})" for e in state.agreement.eliminated)
        return _said(statement, "refuted", f"out: {out}")
    known = [r for r in others if r["distance_nats"] is not None]
    if len(known) < len(others):
        return _said(statement, "undecided", "log probabilities of fixed continuations were not told by all")
    farthest = max(known, key=lambda r: r["distance_nats"])
    figures = (
        f"{farthest['configuration']} lies farthest from {table['reference']}, "
        f"{farthest['distance_nats']:.3f} nats in the mean over {farthest['distance_tokens']} tokens; "
        f"the bound is {table['bound_nats']:g}"
    )
    return _said(statement, "supported", figures)


def _headroom(cells: Sequence[CellFiles]) -> dict[str, str]:
    statement = "Memory has headroom: the winner leaves a tenth of each GPU free"
    shares = []
    for cell in cells:
        used = ((cell.launch or {}).get("memory") or {}).get("per_gpu_mib") or {}
        for gpu in cell.environment.get("gpus") or []:
            if gpu.get("memory_mib") and gpu.get("uuid") in used:
                shares.append(1 - used[gpu["uuid"]] / gpu["memory_mib"])
    if not shares:
        return _said(statement, "untested", "no GPU memory was recorded for the winner")
    verdict = "supported" if min(shares) >= HEADROOM else "refuted"
    return _said(statement, verdict, f"the fullest GPU has {100 * min(shares):.0f} % left after launch")
