"""What to try next: levers rest on evidence, speak the engine's flags, and are pieces of a study."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from campaigns import CHAT_RULES, founding_decision, run_phase
from factory import ENVIRONMENT, Cell, cell_files, noisy
from pivotbench.decision.decide import decide
from pivotbench.decision.levers.bottlenecks import held_back
from pivotbench.decision.levers.lever import variant
from pivotbench.decision.levers.roofline import limit
from pivotbench.decision_rules import DecisionRules
from pivotbench.engines import ENGINES, get_engine
from pivotbench.engines.llamacpp_serve import build_parser, catalogue
from pivotbench.engines.sglang import effective
from pivotbench.evidence import CellFiles
from pivotbench.measurements import rows
from pivotbench.model.shape import shape_of
from pivotbench.settings import flat, spelled
from pivotbench.study import load_study
from pivotbench.summary.text import summary_markdown
from unit.study_samples import RIGHT, write_study
from unit.test_model_shape import QWEN3_8B

LOGS = Path(__file__).parents[1] / "data" / "sglang-logs"
SGLANG = replace(CHAT_RULES, engine="sglang", gpus=1)
H200 = {**ENVIRONMENT, "engine": "sglang", "gpus": [{"name": "NVIDIA H200"}]}
STUDIES = {
    "llamacpp": yaml.safe_load(RIGHT),
    "sglang": {
        **yaml.safe_load(RIGHT),
        "engine": "sglang",
        "serve": {"context-length": 2048},
        "backends": {"plain": {}, "fa3": {"attention-backend": "fa3"}},
        "speculative": {"ngram": {"speculative-algorithm": "NGRAM"}},
        "hosts": {"gpus": 1},
    },
}


def cell(name: str = "fa3", tok_s: float = 196.0, concurrency: int = 1, **more: Any) -> CellFiles:
    """A cell with Qwen3-8B in bf16 on an H200."""
    phase = "speculative" if "+" in name else "backends"
    made = {"flags": {"attention-backend": "fa3"}, "environment": H200, **more}
    files = cell_files(Cell(phase, name, 1, tok_s={("chat", concurrency): tok_s}, **made))
    assert files.launch is not None
    return replace(
        files, launch={**files.launch, "model": {"shape": shape_of(QWEN3_8B).as_json(), "why": None}}
    )


def levers(
    winner: CellFiles,
    rules: DecisionRules = SGLANG,
    open_loop: Sequence[Mapping[str, Any]] = (),
    speculation: Sequence[Mapping[str, Any]] = (),
    others: Sequence[CellFiles] = (),
    prompt_tokens: int | None = None,
) -> list[dict[str, str]]:
    cells = [winner, *others]
    table = [{**row, "prompt_tokens": prompt_tokens} for row in rows(cells)]
    found = held_back(rules, winner, limit(rules, winner, table), open_loop, speculation, cells, table)
    for each in found:
        loads(each, rules.engine)
    return found


def loads(lever: Mapping[str, str], engine: str) -> None:
    """Put a lever's snippet into a study of this engine, and load it."""
    study = json.loads(json.dumps(STUDIES[engine]))
    for section, keys in yaml.safe_load(lever["snippet"]).items():
        study[section].update(keys)
    metric, workloads = study["decision"]["metric"], study["throughput"]["workloads"]
    for name in metric["workloads"]:  # those of the campaign, which the sample study does not have
        run = workloads.setdefault(name, {**workloads.get("free", {})})
        run["concurrency"] = sorted({*run["concurrency"], metric["concurrency"]})
    with TemporaryDirectory() as folder:
        (Path(folder) / "prompts").mkdir()
        (Path(folder) / "prompts" / "code.jsonl").write_text('{"id": "a", "prompt": "Say a."}\n')
        load_study(write_study(Path(folder), yaml.safe_dump(study, sort_keys=False)))


def names(found: Sequence[Mapping[str, str]]) -> list[str]:
    return [each["lever"] for each in found]


def test_near_the_roof_the_weights_are_to_be_narrower() -> None:
    found = levers(cell())
    assert names(found) == ["keep the weights in fewer bits"]
    assert "reaches 62 % of what memory bandwidth allows" in found[0]["because"]
    assert yaml.safe_load(found[0]["snippet"]) == {
        "backends": {"fa3-narrow": {"attention-backend": "fa3", "quantization": "fp8"}}
    }


def test_where_the_cache_is_most_of_what_is_read_the_cache_is_to_be_narrower() -> None:
    rules = replace(SGLANG, metric_concurrency=64)
    run = cell(tok_s=6000.0, concurrency=64)
    assert names(levers(run, rules, prompt_tokens=2_000_000))[0] == "keep the cache in fewer bits"


def test_far_from_the_roof_one_gpu_is_held_back_by_launching_and_several_by_their_sums() -> None:
    slow = cell(tok_s=60.0)
    assert names(levers(slow)) == ["let the scheduler step in less often"]
    assert names(levers(slow, replace(SGLANG, gpus=2))) == [
        "fuse the GPUs' sums with what follows them",
        "sum over the GPUs by another library",
    ]


def test_with_many_requests_far_from_the_roof_no_cause_is_claimed() -> None:
    assert levers(cell(tok_s=300.0, concurrency=8), replace(SGLANG, metric_concurrency=8)) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"disable-cuda-graph": True}, "turned off"),
        ({"cuda-graph-config": {"decode": {"bs": [1, 2, 4]}}}, "up to 4"),
    ],
)
def test_kernels_that_are_not_recorded_are_named_before_all_else(settings: dict[str, Any], said: str) -> None:
    rules = replace(SGLANG, metric_concurrency=8)
    found = levers(cell(concurrency=8, effective=settings), rules)[0]
    assert said in found["because"]
    flags = yaml.safe_load(found["snippet"])["backends"]["fa3-graphs"]
    assert flags["cuda-graph-max-bs-decode"] == 8 and flags["disable-cuda-graph"] is False


def test_a_queue_that_grows_over_the_limit_asks_for_a_wider_server() -> None:
    behind = {
        "configuration": "fa3",
        "workload": "chat",
        "rate_per_second": 4.0,
        "rounds": 2,
        "rounds_sustained": 0,
        "in_flight_peak": 96,
    }
    limited = cell(effective={"max-running-requests": 48})
    found = levers(limited, open_loop=[behind])[0]
    assert found["lever"] == "serve more requests at once" and "96 are in flight and 48" in found["because"]
    assert yaml.safe_load(found["snippet"])["backends"]["fa3-wider"]["max-running-requests"] == 96
    for kept_up in ({"rounds_sustained": 2}, {"in_flight_peak": 40}, {"configuration": "triton"}):
        assert "serve more requests at once" not in names(levers(limited, open_loop=[{**behind, **kept_up}]))
    replicated = cell(effective={"max-running-requests": 48, "dp-size": 2})
    assert "serve more requests at once" not in names(levers(replicated, open_loop=[behind]))
    small = cell("flash", flags={"parallel": 4, "ctx-size": 4096}, environment=ENVIRONMENT)
    wider = levers(small, CHAT_RULES, open_loop=[{**behind, "configuration": "flash", "in_flight_peak": 8}])
    assert yaml.safe_load(wider[0]["snippet"]) == {
        "backends": {"flash-wider": {"parallel": 8, "ctx-size": 8192}}
    }


def test_a_variant_runs_the_version_of_the_backend_it_varies() -> None:
    fragment = variant(cell(), "wide", {"max-running-requests": 96}, "old")
    assert fragment["backends"]["fa3-wide"]["version"] == "old"
    assert "version" not in variant(cell(), "wide", {})["backends"]["fa3-wide"]


def test_a_long_wait_for_the_first_token_asks_for_shorter_prefills() -> None:
    rules = replace(CHAT_RULES, metric_concurrency=4)
    waiting = cell("flash", tok_s=4000.0, concurrency=4, flags={}, environment=ENVIRONMENT)
    assert names(levers(waiting, rules)) == ["take prompts up in smaller pieces"]
    assert levers(cell("flash", tok_s=40.0, concurrency=4, flags={}, environment=ENVIRONMENT), rules) == []


def drafted(**more: Any) -> dict[str, Any]:
    """One entry of the decision's speculation: dear to verify."""
    return {
        "configuration": "fa3+ngram",
        "baseline": "fa3+none",
        "workload": "chat",
        "concurrency": 1,
        "acceptance_length": 2.5,
        "draft_proposed": 100,
        "draft_accepted": 80,
        "step_cost_ratio": 3.0,
        "derived": False,
        "evidence": "text",
        "verdict": "costs",
        **more,
    }


def test_drafts_that_cost_are_halved_where_a_cause_can_be_claimed() -> None:
    flags = {"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": 8}
    other = cell("fa3+ngram", flags=flags)
    dear = levers(cell(), speculation=[drafted()], others=[other])[-1]
    assert dear["because"] == "on chat at 1 80 % of the drafts are accepted and a pass costs 3.00 plain steps"
    assert (
        yaml.safe_load(dear["snippet"])["speculative"]["ngram-shorter"]["speculative-num-draft-tokens"] == 4
    )
    vain = levers(cell(), speculation=[drafted(draft_accepted=20, derived=True)], others=[other])[-1]
    assert "made in vain" in vain["because"]
    for silent in (drafted(verdict="pays"), drafted(verdict="undecided"), drafted(derived=True)):
        assert names(levers(cell(), speculation=[silent], others=[other])) == names(levers(cell()))


def test_a_draft_whose_kernels_are_not_all_recorded_is_tried_with_attention_that_records_them() -> None:
    flags = {"attention-backend": "fa3", "speculative-algorithm": "STANDALONE"}
    eager = cell("fa3+standalone", flags=flags, effective=flags)
    entry = drafted(configuration="fa3+standalone", verdict="pays", step_cost_ratio=2.27)
    [found] = [
        each
        for each in levers(cell(), speculation=[entry], others=[eager])
        if each["lever"].startswith("record all kernels of the draft")
    ]
    assert found["because"] == (
        "on chat at 1 a pass costs 2.27 plain steps, and with fa3 the draft's catching up after each pass "
        "has no CUDA graph of its own"
    )
    tried = yaml.safe_load(found["snippet"])["speculative"]["standalone-triton-draft"]
    assert tried["speculative-draft-attention-backend"] == "triton"

    recorded = cell("fa3+standalone-triton", flags=tried, effective=tried)
    ngram = {"attention-backend": "fa3", "speculative-algorithm": "NGRAM"}
    silent = (
        ([entry], [eager, recorded]),
        ([drafted(configuration="fa3+standalone-triton", verdict="pays")], [recorded]),
        ([drafted(verdict="pays")], [cell("fa3+ngram", flags=ngram, effective=ngram)]),
        ([{**entry, "derived": True}], [eager]),
        ([entry], [cell("fa3+standalone", flags=flags, effective={**flags, "disable-cuda-graph": True})]),
        ([entry], [eager, replace(recorded, throughput=None)]),
    )
    for speculation, others in silent:
        assert names(levers(cell(), speculation=speculation, others=others)) == names(levers(cell()))


def test_acceptance_that_falls_over_a_much_longer_context_is_named() -> None:
    runs = {("chat", 1): 300.0, ("long", 1): 250.0}
    other = replace(
        cell("fa3+ngram"), throughput=cell_files(Cell("speculative", "fa3+ngram", 1, runs)).throughput
    )
    table = [
        {**row, "prompt_tokens": row["requests"] * (8000 if row["workload"] == "long" else 100)}
        for row in rows([other])
    ]
    entries = [drafted(verdict="pays"), drafted(workload="long", acceptance_length=1.6, verdict="pays")]
    found = held_back(SGLANG, cell(), limit(SGLANG, None, []), [], entries, [other], table)
    assert names(found) == ["decide long apart"]
    assert yaml.safe_load(found[0]["snippet"])["decision"]["metric"]["workloads"] == {"long": 1}
    entries[1]["acceptance_length"] = 2.4
    assert held_back(SGLANG, cell(), limit(SGLANG, None, []), [], entries, [other], table) == []


def founded(rules: DecisionRules, **more: Any) -> dict[str, Any]:
    """A whole decision of two backends."""

    def make(_: str, contenders: Sequence[str], round_: int) -> list[Cell]:
        return [
            Cell("backends", name, round_, tok_s={("chat", 1): noisy(speed, 0.05, name, round_)}, **more)
            for name, speed in (("a", 100.0), ("b", 101.0))
            if name in contenders
        ]

    races, cells = run_phase(rules, "backends", ["a", "b"], make)
    return decide(rules, races, cells)


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_the_levers_of_a_whole_decision_load_in_a_study_of_its_engine(engine: str) -> None:
    decision = founded(replace(CHAT_RULES, engine=engine), client_bound=False)
    assert "try speculative decoding" in names(decision["next_levers"])
    for each in decision["next_levers"]:
        loads(each, engine)
    bound = founded(replace(CHAT_RULES, engine=engine), client_bound=True)
    assert "leave the load generator more of the machine" in names(bound["next_levers"])
    for each in bound["next_levers"]:
        loads(each, engine)


def test_the_founding_campaigns_levers_load() -> None:
    for each in founding_decision()["next_levers"]:
        loads(each, "sglang")


def test_pairs_that_are_not_comparable_are_to_be_served_on_the_same_terms() -> None:
    rules = replace(SGLANG, metric_concurrency=8)

    def make(_: str, contenders: Sequence[str], round_: int) -> list[Cell]:
        return [
            Cell(
                "backends",
                name,
                round_,
                tok_s={("chat", 8): noisy(speed, 0.003, name, round_)},
                effective={"max-running-requests": most},
            )
            for name, speed, most in (("narrow", 90.0, 4), ("wide", 100.0, 64))
            if name in contenders
        ]

    decision = decide(rules, *run_phase(rules, "backends", ["narrow", "wide"], make))
    assert [c["verdict"] for c in decision["comparisons"]] == ["not_comparable"]
    assert decision["comparisons"][0]["confounders"] == ["max_running_requests: 4 | 64"]
    assert decision["next_levers"][0]["lever"] == "serve all on the same terms"
    assert yaml.safe_load(decision["next_levers"][0]["snippet"]) == {"serve": {"max-running-requests": 8}}
    assert "; not comparable with narrow" in summary_markdown(decision)
    assert {"unfair"} <= {threat["code"] for threat in decision["threats"]}


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_remedies_are_flags_of_their_own_engine(engine: str) -> None:
    if engine == "sglang":
        info = json.loads((LOGS / "nano-fa3.info.json").read_text(encoding="utf-8"))
        known = {spelled(name) for name in flat(effective(info))}
    else:
        known = {spelled(flag["name"]) for flag in catalogue(build_parser(), "1")["flags"]}
    spelling = get_engine(engine).spelling
    asked = {name for flags in spelling.remedies.values() for name in flags}
    asked |= {*spelling.draft_length, *(topic.flag for topic in spelling.topics)}
    asked |= {spelling.graphs_reach} - {None}
    asked |= {spelling.draft_graphs.attention.flag} if spelling.draft_graphs else set()
    assert {spelled(str(name)) for name in asked} <= known
