"""The tools of benchmarks/gpu, as far as they can be held to account without a GPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.gpu import clients, kills
from benchmarks.gpu.layers import deepened, picked
from benchmarks.gpu.shapes import write_shapes

import scripted
from pivotbench.client.idle import IdleWait
from pivotbench.lease.processes import Identity
from pivotbench.lease.state import Handle
from pivotbench.model.shape import ModelShape, read_shape


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 1}}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    (folder / "config.json").write_text("{}")
    return folder


def shapes(out: Path, tokenizer: Path) -> dict[str, ModelShape]:
    return {folder.name: read_shape(str(folder)) for folder in write_shapes(out, tokenizer)}


def test_the_shapes_are_those_of_the_models_they_are_named_after(tmp_path: Path, tokenizer: Path) -> None:
    made = shapes(tmp_path, tokenizer)
    dense, moe, hybrid = made.values()
    # As published: 8.19 billion parameters and 36 layers with 8 KV heads of 128, in bf16.
    assert (dense.parameters, dense.kv_bytes_per_token) == (8_190_735_360, 36 * 8 * 128 * 2 * 2)
    assert (moe.experts, moe.experts_per_token, moe.layers) == (128, 8, 12)
    assert (hybrid.attention_layers, hybrid.layers, hybrid.experts_per_token) == (3, 12, 10)
    assert hybrid.state_bytes_per_request > 0 == moe.state_bytes_per_request


def test_a_tokenizer_is_given_a_length_that_json_can_carry_and_keeps_its_own(
    tmp_path: Path, tokenizer: Path
) -> None:
    def lengths() -> set[int]:
        written = (folder / "tokenizer_config.json" for folder in write_shapes(tmp_path, tokenizer))
        return {json.loads(path.read_text())["model_max_length"] for path in written}

    assert lengths() == {32768}
    (tokenizer / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 2048}))
    assert lengths() == {2048}


def test_a_tokenizer_that_does_not_fit_or_is_none_is_one_line(tmp_path: Path, tokenizer: Path) -> None:
    added = {"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 151936, "content": "<|far|>"}]}
    (tokenizer / "tokenizer.json").write_text(json.dumps(added))
    with pytest.raises(SystemExit, match=r"error: .*token 151936 is beyond the shapes' 151936 tokens"):
        list(write_shapes(tmp_path, tokenizer))
    with pytest.raises(SystemExit, match=r"error: .*nowhere.*--tokenizer wants"):
        list(write_shapes(tmp_path, tmp_path / "nowhere"))


WEIGHTS = {
    "model.embed_tokens.weight": 1,
    "model.layers.0.self_attn.q_proj.weight": 2,
    "model.layers.0.self_attn.o_proj.weight": 3,
    "model.layers.0.mlp.down_proj.weight": 4,
    "model.layers.1.mlp.down_proj.weight": 5,
}


def test_layers_that_are_added_compute_and_write_nothing() -> None:
    assert deepened(WEIGHTS, 2, lambda _: 0) == {
        "model.embed_tokens.weight": 1,
        "model.layers.0.self_attn.q_proj.weight": 2,
        "model.layers.1.self_attn.q_proj.weight": 2,
        "model.layers.0.self_attn.o_proj.weight": 3,
        "model.layers.1.self_attn.o_proj.weight": 0,
        "model.layers.0.mlp.down_proj.weight": 4,
        "model.layers.1.mlp.down_proj.weight": 0,
        "model.layers.2.mlp.down_proj.weight": 5,
        "model.layers.3.mlp.down_proj.weight": 0,
    }


def test_a_draft_takes_the_layers_named_and_all_that_is_no_layer() -> None:
    assert picked(WEIGHTS, [1]) == {"model.embed_tokens.weight": 1, "model.layers.0.mlp.down_proj.weight": 5}


@pytest.fixture
def server() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with scripted.served("--script-token-seconds", "0.001", "--enable-metrics") as both:
        yield both


def handle(process: subprocess.Popen[bytes]) -> Handle:
    identity = Identity.of(process.pid)
    return Handle("l", "k", "o", supervisor="1:1", state="ready", processes=[str(identity)])


def test_a_killed_server_is_seen_to_go_and_a_live_one_is_not(
    server: tuple[subprocess.Popen[bytes], int], tmp_path: Path
) -> None:
    process, port = server
    processes = kills.processes_of(handle(process))
    conditions = kills.releases(processes, port, {}, [tmp_path / "cpu.lock"])
    assert "memory_back_seconds" not in conditions
    before = kills.watch(conditions, 0.1)
    assert before["processes_gone_seconds"] is before["port_closed_seconds"] is None
    assert before["locks_free_seconds"] is not None
    os.kill(kills.victim_of("python", 0, "1:1", processes), signal.SIGKILL)
    assert None not in kills.watch(conditions, 20).values()


def test_whom_to_kill_is_found_by_name_or_said_to_be_missing() -> None:
    processes = {Identity(7, 1): "python", Identity(8, 1): "sglang::scheduler"}
    assert kills.victim_of("scheduler", 5, "6:1", processes) == 8
    assert kills.victim_of("snakemake", 5, "6:1", processes) == 5
    assert kills.victim_of("supervisor", 5, "6:1", processes) == 6
    with pytest.raises(SystemExit, match="is called router; there are: python, sglang"):
        kills.victim_of("router", 5, "6:1", processes)


def test_our_client_gives_both_rows_of_a_turn(server: tuple[subprocess.Popen[bytes], int]) -> None:
    url = f"http://127.0.0.1:{server[1]}"
    sent = clients.Load(streams=2, requests=8, prompt_tokens=8, output_tokens=16)
    steady = clients.counted(url, lambda: clients.windows(url, 0, sent, 0.3))
    every = clients.counted(url, lambda: clients.whole(url, 0, sent, range(100, 200)))
    assert (steady.client, every.client) == ("windows", "whole")
    assert steady.completed >= 8 == every.completed
    assert min(steady.tok_s, every.tok_s, steady.ttft_mean_ms, every.tpot_mean_ms) > 0
    assert steady.prompt_tokens == every.prompt_tokens == 8, "by the server's count"


def test_a_server_that_is_not_there_is_one_line() -> None:
    with pytest.raises(SystemExit, match=r"error: .*/v1/models: .*start the server first"):
        clients.served_name("http://127.0.0.1:9")


def row(client: str, turn: int, speed: float, prompt_tokens: float | None = 256.0) -> clients.Row:
    return clients.Row(client, turn, 16, 8, speed, 1.0, 1.0, 1.0, prompt_tokens)


def test_ratios_are_taken_within_a_turn_and_one_turn_settles_nothing() -> None:
    rows = [row("whole", 0, 99), row("serving", 0, 100), row("whole", 1, 202), row("serving", 1, 200)]
    assert list(clients.lines(rows)) == ["whole / serving, 16 streams: 1.0000 (2 turns, sd 0.0141)"]
    assert "one turn settles nothing" in next(clients.lines(rows[:2]))


def test_loads_of_unequal_length_have_no_ratio() -> None:
    rows = [row("windows", 0, 99), row("whole", 0, 98, 257.0), row("serving", 0, 100, 1025.3)]
    ours_theirs, definitions, both = clients.lines(rows)
    assert definitions == "windows / whole, 16 streams: 1.0102 (1 turns, one turn settles nothing)"
    unequal = "16 streams: not of equal length, {} and 1025.3 prompt tokens a request in turn 0"
    assert ours_theirs == f"whole / serving, {unequal.format('257.0')}"
    assert both == f"windows / serving, {unequal.format('256.0')}"


def test_a_server_that_counts_no_prompts_gives_ratios_that_say_so() -> None:
    with scripted.served() as (_, port):
        told = clients.counted(f"http://127.0.0.1:{port}", lambda: row("whole", 0, 99, None))
    assert told.prompt_tokens is None
    [line] = clients.lines([told, row("serving", 0, 100)])
    assert line.endswith("0.9900 (1 turns, one turn settles nothing; prompt lengths not told)")


def test_no_row_is_measured_beside_somebody_elses_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "await_idle", lambda _: IdleWait(10.0, 3))
    with pytest.raises(SystemExit, match="still at work on 3 requests"):
        clients.counted("http://127.0.0.1:9", lambda: row("whole", 0, 99))
