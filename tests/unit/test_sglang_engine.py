"""The SGLang adapter: what it runs, which version and flags it finds, whom it believes, what it reads."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import scripted
from pivotbench.engines.base import simulates_drafts
from pivotbench.engines.llamacpp import LLAMACPP
from pivotbench.engines.packages import package_version
from pivotbench.engines.sglang import SGLANG, effective
from pivotbench.errors import UserError

LOGS = scripted.LOGS


def info_of(name: str) -> dict[str, Any]:
    return json.loads((LOGS / f"{name}.info.json").read_text(encoding="utf-8"))


def phases_of(name: str) -> dict[str, float]:
    lines = (LOGS / f"{name}.log").read_text(encoding="utf-8").splitlines()
    return {phase.name: phase.seconds for phase in SGLANG.launch_phases(lines)}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIVOTBENCH_TEST_PYTHON", sys.executable)
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    return scripted.install(tmp_path / "engine", "0.5.16")


@pytest.fixture
def url(engine: Path, free_port: int) -> Iterator[str]:
    flags = {"attention-backend": "fa3", "dp": 2, "script": ['override={"attention_backend": "triton"}']}
    command = SGLANG.command(str(engine), "m", flags, port=free_port, served_name="ours-1")
    server = subprocess.Popen(command.argv, stderr=subprocess.DEVNULL)
    yield f"http://127.0.0.1:{free_port}"
    server.kill()
    server.wait()


@pytest.fixture
def free_port() -> int:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as probe:
        return int(probe.server_address[1])


def test_the_studys_flags_are_kept_apart_from_the_added_ones() -> None:
    command = SGLANG.command("py", "/m", {"tp": 2, "disable-radix-cache": True}, port=7, served_name="n")
    assert command.study == (
        *("py", "-m", "sglang.launch_server", "--model-path", "/m"),
        *("--disable-radix-cache", "--tp", "2"),
    )
    assert command.added == (
        *("--host", "127.0.0.1", "--port", "7", "--served-model-name", "n", "--enable-metrics"),
    )
    assert {
        part.removeprefix("--") for part in command.added if part.startswith("--")
    } <= SGLANG.reserved_flags


def test_an_upgrade_of_the_engine_is_seen(engine: Path) -> None:
    assert SGLANG.installed_version(engine) == "0.5.16"
    scripted.upgrade(engine.parent.parent, "0.5.23")
    assert SGLANG.installed_version(engine) == "0.5.23"


def test_the_version_is_found_in_a_venv_whose_interpreter_is_a_link(tmp_path: Path) -> None:
    metadata = tmp_path / "lib" / "python3.12" / "site-packages" / "sglang-0.5.9.post1.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.9.post1\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    assert SGLANG.installed_version(tmp_path / "bin" / "python") == "0.5.9.post1"


def test_an_odd_interpreter_is_asked_once_and_an_upgrade_is_still_seen(engine: Path, tmp_path: Path) -> None:
    wrapper = tmp_path / "odd" / "deep" / "run-python"
    wrapper.parent.mkdir(parents=True)
    asked = tmp_path / "asked"
    wrapper.write_text(f'#!/bin/sh\necho x >> {asked}\nexec {engine} "$@"\n')
    wrapper.chmod(0o755)
    assert package_version(wrapper, "sglang") == "0.5.16"
    scripted.upgrade(engine.parent.parent, "0.5.17")
    assert package_version(wrapper, "sglang") == "0.5.17"
    assert asked.read_text().count("x") == 1


def test_workers_that_rename_themselves_keep_the_marker_of_their_launch() -> None:
    """setproctitle overwrites /proc/<pid>/environ unless it is told not to."""
    assert SGLANG.command("python", "m", {}, port=1, served_name="s").env["SPT_NOENV"] == "1"


def test_no_engine_is_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    assert SGLANG.installed_version(tmp_path / "bin" / "python") is None


def test_flags_come_from_the_engines_own_parser(engine: Path) -> None:
    catalogue = SGLANG.read_flags(engine, {})
    assert (catalogue.engine, catalogue.version) == ("sglang", "0.5.16")
    parallel = catalogue.find("tp")
    assert parallel is not None and parallel.name == "tensor-parallel-size"
    attention = catalogue.find("attention-backend")
    assert attention is not None and attention.choices is not None and "trtllm_mha" in attention.choices
    radix, sizes = catalogue.find("disable-radix-cache"), catalogue.find("cuda-graph-bs")
    assert radix is not None and not radix.takes_value
    assert sizes is not None and sizes.many
    assert catalogue.find("help") is None


def test_a_flag_knows_its_setting_and_a_retired_one_its_successor(engine: Path) -> None:
    catalogue = SGLANG.read_flags(engine, {})
    renamed, const, helped = map(
        catalogue.find, ("cuda-graph-max-bs", "monokernel-backend", "enable-flashinfer-allreduce-fusion")
    )
    assert renamed is not None and const is not None and helped is not None
    assert (renamed.setting, renamed.deprecated) == ("cuda_graph_max_bs_decode", "--cuda-graph-max-bs-decode")
    assert (const.setting, const.stores) == ("enable_amd_monokernel", True)
    assert helped.deprecated == "--flashinfer-allreduce-fusion-backend=auto"
    attention = catalogue.find("attention-backend")
    assert attention is not None and attention.deprecated is None


def test_an_interpreter_without_sglang_is_named_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"No module named 'sglang'"):
        SGLANG.read_flags(Path(sys.executable), {})
    with pytest.raises(UserError, match="check `python:`"):
        SGLANG.read_flags(tmp_path / "nowhere", {})


def test_our_server_is_ready_and_another_name_is_a_stranger(url: str) -> None:
    deadline = time.monotonic() + 10
    while (probe := SGLANG.probe(url, "ours-1", timeout_seconds=1)).state != "ready":
        assert probe.state == "loading"
        assert time.monotonic() < deadline, probe.detail
        time.sleep(0.01)
    other = SGLANG.probe(url, "ours-2", timeout_seconds=1)
    assert other.state == "stranger" and "ours-1" in other.detail
    flags = SGLANG.server_info(url)
    assert flags["attention-backend"] == "triton"
    assert len(flags["internal_states"]) == 2


def test_nobody_at_the_address_is_loading_and_has_no_settings(free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}"
    assert SGLANG.probe(url, "ours", timeout_seconds=0.2).state == "loading"
    assert SGLANG.server_info(url) == {}


def test_a_server_that_generates_nothing_is_not_ready(free_port: int) -> None:
    class Hollow(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer({"data": [{"id": "ours"}]})

        def do_POST(self) -> None:
            self.answer({"text": "", "meta_info": {"completion_tokens": 0}})

        def answer(self, value: Any) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", free_port), Hollow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert SGLANG.probe(f"http://127.0.0.1:{free_port}", "ours", timeout_seconds=1).state == "loading"
        server.shutdown()


def test_a_proxy_in_the_environment_does_not_stand_between(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "http_proxy", "http://127.0.0.1:9")
    deadline = time.monotonic() + 10
    while SGLANG.probe(url, "ours-1", timeout_seconds=1).state != "ready":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_real_settings_are_named_as_flags_with_every_override_kept() -> None:
    flags = effective(info_of("nano-standalone"))
    assert flags["speculative-algorithm"] == flags["speculative-algo"] == "STANDALONE"
    assert flags["fp4-gemm-backend"] == flags["fp4-gemm-runner-backend"] == "auto"
    assert flags["max-total-num-tokens"] == 69_888_071
    (state,) = flags["internal_states"]
    assert state["effective_max_running_requests_per_dp"] == 48
    assert ["scheduler.pp_max_micro_batch_size_default", {"pp_max_micro_batch_size": 48}] in state[
        "_runtime_mutations"
    ]
    assert "_resolved_overrides" in state and state["memory_usage"]["kvcache"] == 33.33
    assert "attention_backend" not in state and "last_gen_throughput" not in state


def test_what_the_schedulers_run_with_counts_not_what_they_were_launched_with() -> None:
    info = info_of("8b-fp8")
    assert info["disable_chunked_prefix_cache"] is False
    assert effective(info)["disable-chunked-prefix-cache"] is True


def test_ranks_that_disagree_leave_the_launched_value_and_both_states() -> None:
    info = {"page_size": 1, "internal_states": [{"page_size": 1}, {"page_size": 64}]}
    assert effective(info) == {"page-size": 1, "internal_states": [{}, {"page_size": 64}]}


def test_trimmed_settings_are_small() -> None:
    info = info_of("tp2-8b-fa3")
    assert len(json.dumps(effective(info))) < 0.7 * len(json.dumps(info))


@pytest.mark.parametrize(
    ("name", "phases"),
    [
        ("8b-fp8", (23, 2, 0, 0, 8, 1)),
        ("nano-fa3", (20, 2, 0, 1, 66, 10)),
        ("nano-standalone", (30, 2, 1, 0, 7, 2)),
        ("tp2-8b-ngram-sim", (23, 3, 1, 9, 12, 3)),
    ],
)
def test_launch_phases_add_up_to_the_launch(name: str, phases: tuple[int, ...]) -> None:
    names = ("imports", "distributed", "weights", "kv_cache", "cuda_graphs", "warmup")
    assert phases_of(name) == dict(zip(names, phases, strict=True))


def test_a_launch_that_broke_off_gives_the_phases_it_completed() -> None:
    assert phases_of("moe-trtllm") == {"imports": 24, "distributed": 2, "weights": 1, "kv_cache": 0}


def test_a_log_without_stamps_has_no_phases() -> None:
    assert SGLANG.launch_phases(["hello", ""]) == []


@pytest.mark.parametrize(("value", "pretends"), [("2.73", True), (3, True), ("-1", False), ("", False)])
def test_a_server_told_how_many_drafts_to_accept_is_known_to_pretend(value: Any, pretends: bool) -> None:
    env = {"SGLANG_SIMULATE_ACC_LEN": value}
    assert simulates_drafts(SGLANG, env) is pretends
    assert not simulates_drafts(SGLANG, {}) and not simulates_drafts(LLAMACPP, env)
