"""What changed between two folders of results: each change is found, said once, and judged by the rules."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaigns import CHAT_RULES, write_campaign
from factory import ENVIRONMENT, UNSUPPORTED, Cell, noisy, smoke_prompt
from pivotbench.changes.compare import compare_folders
from pivotbench.changes.folder import read_pair, read_results
from pivotbench.changes.model import SCHEMA_FILE, json_schema
from pivotbench.changes.summary import summary_markdown, terminal_summary
from pivotbench.errors import UserError
from pivotbench.files import read_json
from pivotbench.results import STAGES

RULES = replace(CHAT_RULES, rounds_min=3, rounds_max=3, margin=0.05)
SPEED = {"fast": 100.0, "slow": 60.0}
ASK = "Why is the sky blue?"
Change = Callable[[Cell], Cell]


def written(
    folder: Path, change: Change = lambda cell: cell, names: Sequence[str] = ("fast", "slow"), **rules: Any
) -> Path:
    """Write a campaign of these backends as ``folder``; ``change`` says how its cells differ."""

    def make(phase: str, asked: Sequence[str], round_: int) -> list[Cell]:
        return [
            change(
                Cell(
                    phase,
                    name,
                    round_,
                    tok_s={("chat", 1): noisy(SPEED.get(name, 80.0), 0.005, folder.name, name, round_)},
                    smoke=[smoke_prompt(ASK, "It scatters light.", gap_nats=3.0)],
                    continuations={"c1": (-0.1, -0.2, -0.3)},
                )
            )
            for name in asked
        ]

    return write_campaign(folder, replace(RULES, study=folder.name, **rules), make, names)


def faster(factor: float) -> Change:
    return lambda cell: replace(cell, tok_s={load: v * factor for load, v in cell.tok_s.items()})


def only(name: str, change: Change) -> Change:
    return lambda cell: change(cell) if cell.configuration == name else cell


def crashed(cell: Cell) -> Cell:
    return replace(cell, failed="launch", reason=UNSUPPORTED)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("old") / "before")


@pytest.fixture
def compared(old: Path, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Compare the old folder with one made anew with a change."""

    def compare(change: Change = lambda cell: cell, **more: Any) -> dict[str, Any]:
        return compare_folders(*read_pair(str(old), str(written(tmp_path / "after", change, **more))))

    return compare


Compared = Callable[..., dict[str, Any]]


def lines(comparison: Mapping[str, Any], kind: str) -> list[str]:
    return [row["line"] for row in comparison["changelog"] if row["kind"] == kind]


def verdicts(comparison: Mapping[str, Any]) -> dict[str, str]:
    return {row["configuration"]: row["verdict"] for row in comparison["speeds"]}


def test_an_unchanged_machine_gives_equivalent_configurations_and_passes_the_gate(compared: Compared) -> None:
    found = compared()
    assert verdicts(found) == {"fast": "equivalent", "slow": "equivalent"}
    assert found["gate"] == {"passed": True, "reasons": []}
    assert lines(found, "winner")[0].startswith("winner: fast, as before; equivalent")
    assert lines(found, "answers") == [
        "answers of 2 configurations: the same as before, beyond rounding; word for word in 2"
    ]


def test_a_configuration_that_became_faster_is_named_with_its_interval(compared: Compared) -> None:
    found = compared(only("slow", faster(1.2)))
    assert verdicts(found) == {"fast": "equivalent", "slow": "faster"}
    [line] = lines(found, "faster")
    row = next(row for row in found["speeds"] if row["configuration"] == "slow")
    assert row["ci"][0] < row["ratio"] < row["ci"][1]
    assert f"{row['ratio']:.3f} times ({row['ci'][0]:.3f} to {row['ci'][1]:.3f})" in line
    assert found["gate"]["passed"]


def test_a_winner_slower_beyond_the_margin_fails_the_gate(compared: Compared) -> None:
    found = compared(faster(0.85))
    assert verdicts(found) == {"fast": "slower", "slow": "slower"}
    [reason] = found["gate"]["reasons"]
    assert reason.startswith("fast is slower beyond the margin of 5 %: 0.8")
    [line] = lines(found, "together")
    assert "the machine included" in line, "all moved alike, so the cause may be no configuration's"
    assert line in {threat["message"] for threat in found["threats"]}, "said in one wording"


def test_another_winner_is_judged_by_what_users_now_get(compared: Compared) -> None:
    found = compared(only("fast", faster(0.5)))
    assert (found["winner"]["old"], found["winner"]["new"]) == ("fast", "slow")
    assert lines(found, "winner")[0].startswith("winner: fast -> slow; slower, 0.")
    assert found["gate"]["reasons"][0].startswith("slow, the winner after fast, is slower beyond the margin")


def test_a_slowdown_within_the_margin_passes(compared: Compared) -> None:
    found = compared(faster(0.98))
    assert found["gate"]["passed"]


def test_single_launches_decide_nothing_and_pass(old: Path, tmp_path: Path) -> None:
    once = written(tmp_path / "once", faster(0.5), rounds_min=1, rounds_max=1)
    found = compare_folders(*read_pair(str(old), str(once)))
    assert set(verdicts(found).values()) == {"undecided"}
    assert "a single round decides nothing" in lines(found, "undecided")[0]
    assert found["gate"]["passed"]


def test_what_broke_fails_the_gate_and_what_was_mended_is_said(old: Path, tmp_path: Path) -> None:
    broken = written(tmp_path / "broken", only("slow", crashed))
    there = compare_folders(*read_pair(str(old), str(broken)))
    assert lines(there, "broke") == ["slow broke: flag_conflict, a quantized V cache needs flash attention"]
    assert there["gate"]["reasons"] == [
        "slow worked and is eliminated: flag_conflict, a quantized V cache needs flash attention"
    ]
    back = compare_folders(*read_pair(str(broken), str(old)))
    assert lines(back, "mended") == ["slow was mended: it was eliminated for flag_conflict"]
    assert back["gate"]["passed"]


def test_nothing_that_works_any_more_fails_the_gate(compared: Compared) -> None:
    found = compared(crashed)
    assert found["winner"] == {"old": "fast", "new": None, "speed": None}
    assert found["gate"]["reasons"][0] == "no winner any more: it was fast"


def test_what_appeared_and_vanished_is_said_and_fails_nothing(compared: Compared) -> None:
    found = compared(names=("fast", "fresh"))
    assert lines(found, "appeared") == ["fresh appeared and works"]
    assert lines(found, "vanished") == ["slow vanished; it worked"]
    assert found["gate"]["passed"]


def test_speculation_on_another_base_is_one_line(tmp_path: Path) -> None:
    def make(fastest: str) -> Path:
        def cells(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
            speeds = {name: 120.0 if name.startswith(fastest) else 80.0 for name in names}
            return [
                Cell(phase, name, round_, tok_s={("chat", 1): noisy(speed, 0.005, fastest, name, round_)})
                for name, speed in speeds.items()
            ]

        rules = replace(RULES, study=f"{fastest}-first")
        return write_campaign(tmp_path / rules.study, rules, cells, ("one", "two"), ("ngram",))

    found = compare_folders(*read_pair(str(make("one")), str(make("two"))))
    assert lines(found, "appeared") == ["speculation is tried on two and no more on one: ngram"]
    assert lines(found, "vanished") == []


def test_log_probabilities_beyond_the_bound_disagree(compared: Compared) -> None:
    found = compared(only("slow", lambda cell: replace(cell, continuations={"c1": (-0.1, -0.2, -0.9)})))
    assert all(row["verdict"] == "same" for row in found["answers"]), "0.2 nats in the mean are within 0.25"
    # Within its folder it must agree with the others, or it would be eliminated there.
    found = compared(lambda cell: replace(cell, continuations={"c1": (-0.5, -0.6, -0.7)}))
    [row] = [row for row in found["answers"] if row["configuration"] == "slow"]
    assert (row["verdict"], row["distance_tokens"]) == ("disagree", 3)
    assert row["distance_nats"] == pytest.approx(0.4)
    assert found["gate"]["reasons"][1].startswith("answers of slow disagree with the old ones")


def test_a_text_left_at_no_near_tie_is_changed_and_one_left_at_a_near_tie_is_not(
    compared: Compared, tmp_path: Path
) -> None:
    another = [smoke_prompt(ASK, "It reflects oceans.", gap_nats=3.0)]
    found = compared(lambda cell: replace(cell, smoke=another))
    assert {row["verdict"] for row in found["answers"]} == {"changed"}
    [reason] = found["gate"]["reasons"]
    assert reason.startswith("answers of fast have another greedy text"), "the old winner's alone"

    def says(text: str) -> Change:
        return lambda cell: replace(cell, smoke=[smoke_prompt(ASK, text, gap_nats=0.1)])

    pair = (
        written(tmp_path / "one", says("It scatters light.")),
        written(tmp_path / "two", says("It or light.")),
    )
    near = compare_folders(*read_pair(*map(str, pair)))
    assert {row["verdict"] for row in near["answers"]} == {"same"}
    assert near["answers"][0]["departures"]["near_tie"] == 1


def test_a_prompt_answered_well_before_and_wrongly_now_disagrees(tmp_path: Path) -> None:
    def says(text: str) -> Change:
        return lambda cell: replace(
            cell,
            smoke=[smoke_prompt("2+2?", text, contains="4"), smoke_prompt(ASK, "It scatters light.")],
        )

    right, wrong = (
        written(tmp_path / "right", says("It is 4.")),
        written(tmp_path / "wrong", says("It is 5.")),
    )
    found = compare_folders(*read_pair(str(right), str(wrong)))
    assert {row["verdict"] for row in found["answers"]} == {"disagree"}
    assert "fails '2+2?', which it answered well before" in found["gate"]["reasons"][0]


def test_changes_of_machine_and_software_are_each_a_line(compared: Compared) -> None:
    environment = ENVIRONMENT | {
        "engine_version": "2027.1",
        "packages": {"xllamacpp": "2027.1", "torch": "2.9"},
        "host": "bench-2",
        "gpus": [{"uuid": "GPU-1", "name": "H200"}],
    }
    found = compared(lambda cell: replace(cell, environment=environment))
    assert lines(found, "environment") == [
        "engine version: 2026.10.11549 -> 2027.1",
        "host: bench-1 -> bench-2",
        "package xllamacpp: 2026.10.11549 -> 2027.1",
    ], "what only one folder tells (torch, GPUs) is no difference"
    assert verdicts(found)["fast"] == "equivalent", "the environment is what is compared, no reason not to"


def test_a_flag_that_the_study_changed_is_said_beside_the_verdict(compared: Compared) -> None:
    found = compared(only("slow", lambda cell: replace(cell, flags={"threads": 4})))
    assert lines(found, "flags") == ["slow: flag asked for, threads: not set | 4"]
    assert verdicts(found)["slow"] == "equivalent"


def test_settings_that_changed_everywhere_are_one_line(tmp_path: Path) -> None:
    def batch(size: int) -> Change:
        return lambda cell: replace(cell, effective={"n_batch": size})

    pair = written(tmp_path / "small", batch(512)), written(tmp_path / "large", batch(2048))
    found = compare_folders(*read_pair(*map(str, pair)))
    assert lines(found, "flags") == ["2 configurations (fast, slow): setting in effect, n_batch: 512 | 2048"]


def test_other_work_is_not_comparable_and_other_terms_of_the_study_are_said(tmp_path: Path) -> None:
    def asked(digest: str) -> Change:
        work = {"seconds": 30.0, "workloads": {"chat": {"prompts": digest, "concurrency": [1]}}}
        return lambda cell: replace(cell, asked=work)

    pair = written(tmp_path / "one", asked("a" * 64)), written(tmp_path / "two", asked("b" * 64), margin=0.1)
    found = compare_folders(*read_pair(*map(str, pair)))
    assert set(verdicts(found).values()) == {"not_comparable"}
    assert (
        "other work was sent: chat: prompts SHA-256 aaaaaaaa | SHA-256 bbbbbbbb"
        in found["speeds"][0]["reason"]
    )
    assert lines(found, "study") == [
        "study: one -> two",
        "margin: 5 % -> 10 %",
        "chat: prompts: SHA-256 aaaaaaaa -> SHA-256 bbbbbbbb",
    ]


def test_every_load_that_both_measured_has_a_verdict_of_its_own(compared: Compared) -> None:
    def more(cell: Cell) -> Cell:
        return replace(cell, tok_s={**cell.tok_s, ("chat", 8): 300.0})

    found = compared(more)
    assert {(row["workload"], row["concurrency"]) for row in found["speeds_by_load"]} == {("chat", 1)}


def test_what_a_model_wrote_stays_text(tmp_path: Path) -> None:
    def says(text: str) -> Change:
        prompt = smoke_prompt("<script>alert(1)</script>", text, contains="4")
        return lambda cell: replace(cell, smoke=[prompt, smoke_prompt(ASK, "It scatters light.")])

    pair = written(tmp_path / "right", says("4")), written(tmp_path / "wrong", says("5"))
    found = compare_folders(*read_pair(*map(str, pair)))
    assert "<script>" not in summary_markdown(found)
    assert "gate: would fail, 2 reasons" in terminal_summary(found)


def test_the_committed_schema_is_that_of_the_model() -> None:
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == json_schema()


def _without_decision(folder: Path) -> None:
    (folder / "decision.json").unlink()


def _not_json(folder: Path) -> None:
    (folder / "decision.json").write_text('{"schema": ')


def _edited(folder: Path, **changes: Any) -> None:
    file = folder / "decision.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def _damaged_stage(folder: Path) -> None:
    (folder / "backends/fast/r1/throughput.json").write_text("{}")


def _without_cells(folder: Path) -> None:
    shutil.rmtree(folder / "backends")


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "no decision": (_without_decision, "decision.json: missing;"),
    "half a decision": (_not_json, "decision.json: damaged: not JSON"),
    "another version": (lambda f: _edited(f, schema="pivotbench/decision/1"), "written by another version"),
    "a key of another shape": (lambda f: _edited(f, ranking="none"), "damaged: ranking: "),
    "a damaged stage file": (_damaged_stage, "r1/throughput.json: not a file with the schema"),
    "evidence of another shape": (lambda f: _edited(f, evidence=[{}]), "damaged: evidence.0.phase: "),
    "no stage files": (_without_cells, "holds no stage files"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_one_line_that_names_the_file(damage: str, old: Path, tmp_path: Path) -> None:
    spoil, words = DAMAGES[damage]
    copy = tmp_path / "copy"
    shutil.copytree(old, copy)
    spoil(copy)
    with pytest.raises(UserError, match=words) as error:
        read_pair(str(old), str(copy))
    assert "\n" not in str(error.value) and str(copy) in str(error.value)


def test_a_folder_is_read_file_by_file_once(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[Path] = Counter()

    def counted(path: Path) -> Any:
        reads[path] += 1
        return read_json(path)

    monkeypatch.setattr("pivotbench.stage_files.read_json", counted)
    cells = read_results(old).cells
    assert len(reads) == len(cells) * len(STAGES) and set(reads.values()) == {1}


def test_wrong_folders_are_one_line(old: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(old)
    other = written(tmp_path / "other", metric_concurrency=8)
    for pair, words in (
        ((str(old), str(old.parent / "gone")), f"no such folder; there are {old}"),
        ((str(old), str(link)), "the same folder twice"),
        ((str(old), ""), "no --config new="),
        ((None, None), "no --config old= and --config new="),
        ((str(old), str(other)), "different metrics"),
    ):
        with pytest.raises(UserError, match=words) as error:
            read_pair(*pair)
        assert "\n" not in str(error.value)
