"""The smoke stage fails by itself only on what no model writes; all else it records for the decision."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from streaming_server import Stream, StreamingServer

from pivotbench.engines.forced import Forced
from pivotbench.stages import smoke as stage

SUM = {"ask": "2+2?", "contains": "4"}
LOOP = "la femme au martyre, " * 8
TEXTS = [{"id": name, "prompt": "One,", "continuation": " two"} for name in ("x", "y")]


def smoked(
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    *,
    prompts: Sequence[dict[str, str]] = (SUM,),
    forced: Forced | None = None,
    repeats: int = 2,
    speed_only: bool = False,
) -> dict[str, Any]:
    """Run the stage on a server that gives the same answer to everything; return what it wrote."""

    async def answers(_: dict[str, Any], stream: Stream) -> None:
        await stream.content(text)
        await stream.finish(4, reason="stop")

    asked: list[str] = []
    engine = SimpleNamespace(
        dialects=("openai-chat",),
        teacher_logprobs=lambda _, prompt, __: asked.append(prompt) or forced,
    )
    monkeypatch.setattr(stage, "get_engine", lambda _: engine)
    monkeypatch.setattr(stage, "died_or", lambda _, reason: reason)
    said: list[str] = []
    written: dict[str, Any] = {"asked": asked, "said": said}
    work = {"prompts": list(prompts), "max_tokens": 8, "repeats": repeats}
    with StreamingServer(answers) as server:
        lease = SimpleNamespace(
            url=server.url, served_name="m", alive=lambda: True, release=lambda: written.update(released=True)
        )
        stage.smoke(
            SimpleNamespace(
                request={"engine": "llamacpp"},
                work=work
                | ({"continuations": TEXTS} if forced else {})
                | ({"speed_only": True} if speed_only else {}),
                read=lambda _: {"status": "ok"},
                ensure=lambda: lease,
                say=said.append,
                server_block=lambda _: {},
                write=lambda status, **body: written.update(status=status, **body),
            )  # type: ignore[arg-type]
        )
    return written


def test_a_pattern_that_takes_too_long_judges_nobody_and_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompts = ({"ask": "As?", "matches": r"(a+)+$"}, SUM)
    written = smoked(monkeypatch, "a" * 40 + "!", prompts=prompts, repeats=3)
    assert written["status"] == "ok"
    assert [answer["met"] for answer in written["prompts"][0]["answers"]] == [None] * 3
    assert written["prompts"][0]["expectation"]["met"] is None
    assert written["prompts"][1]["expectation"]["met"] is False
    [line] = [line for line in written["said"] if "is not judged" in line]
    assert "'As?'" in line and "(a+)+$" in line and "smoke.prompts.matches" in line


def test_a_good_answer_is_asked_for_again_and_recorded_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    written = smoked(monkeypatch, "It is 4", repeats=3)
    assert (written["status"], written["repeatability"], written["released"]) == ("ok", 1.0, True)
    [prompt] = written["prompts"]
    assert [(a["text"], a["met"]) for a in prompt["answers"]] == [("It is 4", True)] * 3
    assert prompt["expectation"] == {"kind": "contains", "value": "4", "met": True}
    assert smoked(monkeypatch, "It is 4", repeats=1)["repeatability"] is None


@pytest.mark.parametrize("text", ["It is 5", LOOP])
def test_what_a_weak_model_may_write_is_recorded_and_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    written = smoked(monkeypatch, text)
    assert (written["status"], written["reason"]) == ("ok", None)
    answer = written["prompts"][0]["answers"][0]
    assert answer["met"] is False
    assert ("suspect" in {d["verdict"] for d in answer["detectors"]}) == (text == LOOP)


def test_what_no_model_writes_is_garbage_with_the_text_as_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    written = smoked(monkeypatch, "!" * 64)
    assert (written["status"], written["reason"].code) == ("failed", "garbage")
    assert written["reason"].evidence == ("!" * 64,)


def test_a_followed_text_without_numbers_is_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    fine = smoked(monkeypatch, "It is 4", forced=Forced((-0.5, -90.0), at_most=(1,)))
    assert fine["status"] == "ok"
    assert fine["continuations"][0]["token_logprobs"] == [-0.5, -90.0]
    assert fine["continuations"][0]["at_most"] == [1]
    broken = smoked(monkeypatch, "It is 4", forced=Forced((-0.5, float("nan"))))
    assert (broken["status"], broken["reason"].code) == ("failed", "garbage")
    assert "'x'" in broken["reason"].message


def test_a_server_that_cannot_follow_is_asked_once_and_that_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = smoked(monkeypatch, "It is 4", forced=Forced(None, why="HTTP 400: not with speculation"))
    assert written["status"] == "ok" and len(written["asked"]) == 1
    assert [c["token_logprobs"] for c in written["continuations"]] == [None, None]
    assert {c["why"] for c in written["continuations"]} == {"HTTP 400: not with speculation"}


def test_a_study_that_asks_for_speed_only_records_garbage_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = smoked(monkeypatch, "!" * 40, speed_only=True)
    assert (written["status"], written["speed_only"]) == ("ok", True)
    assert "bad" in {d["verdict"] for d in written["prompts"][0]["answers"][0]["detectors"]}
