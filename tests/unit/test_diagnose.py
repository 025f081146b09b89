"""The cause of a failure is the first line that explains it, named by a code with a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from pivotbench.diagnosis.diagnose import diagnose, diagnose_file
from pivotbench.diagnosis.reasons import reason_codes

DATA = Path(__file__).parent.parent / "data"
LOGS = DATA / "sglang-logs"
CAMPAIGNS = DATA.parents[1] / "docs" / "campaigns"
HEALTHY = sorted(path for path in LOGS.glob("*.log") if path.name != "moe-trtllm.log")
PUBLIC = yaml.safe_load((DATA / "public-failures.yaml").read_text(encoding="utf-8"))

HARMLESS = yaml.safe_load((DATA / "harmless-lines.yaml").read_text(encoding="utf-8"))

ROUTINE = [
    f"[2026-01-01 00:00:{i:02} TP0] Decode batch, #running-req: 6, #token: 1920, cuda graph: True"
    for i in range(20)
]
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
V_CACHE = "0.00.493.558 E llama_init_from_model: quantized V cache requires flash_attn to be enabled"


def lines_of(name: str) -> list[str]:
    return (LOGS / name).read_text(encoding="utf-8").splitlines()


def signature_of(lines: Sequence[str], engine: str = "") -> str | None:
    """The signature of what ended a server that left these lines; None where they show no failure."""
    return diagnose(lines, None, engine).signature


def public(case: dict[str, Any]) -> list[str]:
    lines: list[str] = case["lines"] if "lines" in case else case["log"].splitlines()
    return lines


@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.stem)
def test_a_healthy_server_that_was_stopped_shows_no_error(path: Path) -> None:
    assert signature_of(path.read_text(encoding="utf-8").splitlines(), "sglang") is None


def test_kernels_that_cannot_be_downloaded_are_transient_and_no_unsupported_gpu() -> None:
    reason = diagnose(lines_of("moe-trtllm.log"), -9, "sglang")
    assert (reason.code, reason.kind) == ("artifact_unavailable", "transient")
    assert "Max retries reached. Download failed." in reason.evidence[0]
    assert any(line.startswith("AssertionError: Failed to get checksums.txt") for line in reason.evidence)
    assert reason.remedy is not None
    assert "flashinfer-cubin" in reason.remedy


@pytest.mark.parametrize(
    ("log", "code", "line"),
    [
        (
            "h200-dense-8b/trtllm-mha.log",
            "unsupported_arch",
            "TRTLLM MHA backend for prefill is only supported on",
        ),
        (
            "h200-nextn/verify-mask.log",
            "flag_conflict",
            "RuntimeError: The expanded size of the tensor (16384)",
        ),
    ],
)
def test_the_failures_of_the_campaigns_are_told_by_their_logs(log: str, code: str, line: str) -> None:
    lines = (CAMPAIGNS / log).read_text(encoding="utf-8").splitlines()
    reason = diagnose(lines, -9, "sglang")
    assert reason.code == code
    assert any(line in said for said in reason.evidence)


@pytest.mark.parametrize("case", PUBLIC, ids=lambda case: f"{case['code']}-{case['source'].split('/')[-1]}")
def test_a_public_failure_gets_its_code_its_causal_line_and_a_remedy(case: dict[str, Any]) -> None:
    reason = diagnose(public(case), case.get("exit_code", 1), case.get("engine", "sglang"))
    assert (reason.code, reason.kind) == (case["code"], reason_codes().reasons[case["code"]].kind)
    if "cause" in case:
        assert any(case["cause"] in line for line in reason.evidence[: 5 if reason.signature is None else 1])
    assert reason.remedy


def test_the_public_failures_are_many_and_of_every_kind_that_a_log_can_tell() -> None:
    assert len({case["source"] for case in PUBLIC}) >= 75
    told = {code for code, known in reason_codes().reasons.items() if known.seen == "log"}
    assert {case["code"] for case in PUBLIC} == told


@pytest.mark.parametrize("case", PUBLIC, ids=lambda case: case["source"].split("/")[-1])
def test_reading_only_the_suspicious_lines_changes_nothing(case: dict[str, Any], tmp_path: Path) -> None:
    log, file = [*ROUTINE, *public(case), *ROUTINE], tmp_path / "server.log"
    file.write_text("\n".join(log), encoding="utf-8")
    how = (case.get("exit_code", 1), case.get("engine", "sglang"))
    whole, quick = diagnose(log, *how), diagnose_file(file, *how)
    assert (quick.code, quick.signature) == (whole.code, whole.signature)
    assert quick.evidence[0] == whole.evidence[0]


@pytest.mark.parametrize("case", HARMLESS, ids=lambda case: case["source"].split("/")[-1])
def test_what_only_looks_like_a_failure_is_none(case: dict[str, Any]) -> None:
    assert signature_of(case["lines"], case.get("engine", "sglang")) is None


@pytest.mark.parametrize(
    ("before", "code"),
    [
        ("[2026-01-01 00:00:00 TP0] Load weight begin. avail mem=139.09 GB", "oom_weights"),
        ("[2026-01-01 00:00:00 TP0] Load weight end. elapsed=0.09 s", "oom_kv_cache"),
        ("[2026-01-01 00:00:00 TP0] Capture target decode CUDA graph begin. bs=[1, 2]", "oom_graph_capture"),
        ("[2026-01-01 00:00:00] The server is fired up and ready to roll!", "oom_under_load"),
        ('  File "model_runner.py", line 9, in init_cuda_graphs', "oom_graph_capture"),
    ],
)
def test_running_out_of_memory_is_named_by_the_phase_it_happened_in(before: str, code: str) -> None:
    assert diagnose([before, "", OOM], 1, "sglang").code == code


def test_memory_that_runs_out_is_named_by_the_phase_of_its_own_process() -> None:
    log = [
        "[2026-01-01 00:00:00 DP0 TP0] Load weight begin. avail mem=139.09 GB",
        "[2026-01-01 00:00:00 DP1 TP1] Load weight begin. avail mem=139.09 GB",
        "[2026-01-01 00:00:09 DP0 TP0] Load weight end. elapsed=9 s",
        "[2026-01-01 00:00:10 DP0 TP0] Memory pool end. avail mem=8.38 GB",
        f"[2026-01-01 00:00:11 DP1 TP1] Scheduler hit an exception: {OOM}",
    ]
    assert diagnose(log, -9, "sglang").code == "oom_weights"


def test_the_first_error_wins_over_what_it_caused() -> None:
    log = [
        "[2026-01-01 00:00:00 TP1] Load weight begin. avail mem=10 GB",
        f"[2026-01-01 00:00:01 TP1] Scheduler hit an exception: {OOM}",
        "[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)",
        "[2026-01-01 00:10:00] Received sigquit from a child process. It usually means the child failed.",
    ]
    assert diagnose(log, -9, "sglang").code == "oom_weights"


def test_kernels_an_autotuner_skips_are_no_failure() -> None:
    skipped = (
        "2026-01-01 06:41:27,319 - WARNING - autotuner.py:485 - flashinfer.jit: [Autotuner]: Skipping tactic "
        "15, due to failure while profiling: [TensorRT-LLM][ERROR] Assertion failed: "
        "Failed to initialize cutlass TMA WS grouped gemm. Error: Error Internal"
    )
    assert signature_of([skipped], "sglang") is None
    assert signature_of([skipped.partition("[TensorRT-LLM]")[2]], "sglang") is not None


def test_an_error_of_one_rank_explains_the_timeouts_of_the_others_wherever_it_is_logged() -> None:
    log = [
        "[rank0]:[E101 00:10:00 ProcessGroupNCCL.cpp:607] Watchdog caught collective operation timeout",
        "[2026-01-01 00:10:01 TP0] Watchdog timeout (self.watchdog_timeout=300)",
        "[2026-01-01 00:10:02 TP1] Load weight begin. avail mem=10 GB",
        f"[2026-01-01 00:10:02 TP1] Scheduler hit an exception: {OOM}",
    ]
    assert diagnose(log, -6, "sglang").code == "oom_weights"
    assert diagnose(log[:2], -6, "sglang").code == "nccl_timeout"


def test_the_first_of_chained_exceptions_is_the_cause() -> None:
    log = [
        "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.",
        "The above exception was the direct cause of the following exception:",
        "ValueError: the draft and the target model are incompatible",
    ]
    assert diagnose(log, 1, "sglang").code == "jit_compile_failed"


def test_a_download_that_failed_before_the_server_was_ready_did_not_kill_it() -> None:
    failed = "flashinfer.jit: Max retries reached. Download failed."
    ready = "[2026-01-01 00:00:00] The server is fired up and ready to roll!"
    assert signature_of([failed, ready], "sglang") is None
    assert diagnose([failed, ready, OOM], 1, "sglang").code == "oom_under_load"
    taken = "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000)"
    assert diagnose([taken, ready], 1, "sglang").code == "port_in_use"


def test_a_watchdog_that_only_tells_is_no_failure() -> None:
    assert signature_of(["Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=True)"]) is None


def test_source_text_in_a_traceback_is_not_taken_for_the_error() -> None:
    log = [
        '  File "layer.py", line 3, in forward',
        '    raise ValueError("no kernel image is available for execution on the device")',
        "ValueError: Two of the heads disagree",
    ]
    assert diagnose(log, 1, "sglang").code == "unknown"


def test_too_old_a_toolkit_is_told_from_an_unsupported_gpu() -> None:
    error = "RuntimeError: No supported CUDA architectures found for major versions [12]."
    warning = "WARNING:flashinfer:Failed to get device capability: SM 12.x requires CUDA >= 12.9."
    assert diagnose([error], 1, "sglang").code == "unsupported_arch"
    reason = diagnose([warning, error], 1, "sglang")
    assert (reason.code, reason.evidence) == ("jit_compile_failed", (warning, error))


def test_a_quantized_v_cache_without_flash_attention_is_a_conflict_of_flags() -> None:
    log = [
        "0.00.491.700 I cmn  common_init_: added <|endoftext|> logit bias = -inf",
        V_CACHE,
        "0.00.493.620 E cmn  common_init_: failed to create context with model 'm.gguf'",
        "llamacpp_serve: the server did not start: Failed to init server, please check the input params.",
    ]
    reason = diagnose(log, 1, "llamacpp")
    assert (reason.code, reason.kind, reason.evidence) == ("flag_conflict", "deterministic", (V_CACHE,))
    assert "flash attention" in reason.message


def test_signatures_of_one_engine_are_not_applied_to_another() -> None:
    assert signature_of([V_CACHE], "sglang") is None


def test_sigkill_without_a_logged_cause_is_transient_and_blames_nobody() -> None:
    reason = diagnose(["INFO: all is well"], -9, "sglang")
    assert (reason.code, reason.kind) == ("killed", "transient")
    assert "SIGKILL" in reason.message


def test_an_exception_that_nobody_knows_is_the_cause_although_the_engine_then_killed_itself() -> None:
    case = next(case for case in PUBLIC if case["source"].endswith("sglang/issues/2812"))
    log = [*public(case), "[2025-01-25 21:59:50] Received sigquit from a child process."]
    reason = diagnose(log, -9, "sglang")
    assert (reason.code, reason.kind) == ("unknown", "deterministic")
    assert "KeyError: 'dc49ad867dc144249f59f4e85c7229cd'" in reason.evidence


def test_an_unknown_failure_shows_its_five_most_telling_lines_in_order() -> None:
    log = [f"step {i}" for i in range(50)]
    log[10] = "worker 3: something failed early"
    log[20] = "strange.TooStrangeError: the moon is in the wrong house"
    log[30] = "ERROR in worker 7"
    reason = diagnose(log, 3, "sglang")
    assert (reason.code, reason.kind) == ("unknown", "deterministic")
    assert reason.evidence == (log[10], log[20], log[30], "step 48", "step 49")
    assert "status 3" in reason.message


def test_evidence_is_at_most_five_lines_of_readable_length() -> None:
    log = [f"[TP{i}] {OOM} {str(i) * 1000}" for i in range(8)]
    reason = diagnose(log, 1, "sglang")
    assert len(reason.evidence) == 5
    assert max(map(len, reason.evidence)) <= 400


def test_a_model_without_a_generation_config_is_not_missing() -> None:
    """SGLang says so in every log of such a model and goes on; here another process took its port."""
    log = [
        "[2026-01-01 00:00:00] Failed to load generation config for /m: /m does not appear to have a file "
        "named generation_config.json. Proceeding without generation config.",
        "[2026-01-01 00:00:30] ERROR:    [Errno 98] error while attempting to bind on address "
        "('127.0.0.1', 37865): address already in use",
        "[2026-01-01 00:02:50] Initialization failed. warmup error: Traceback (most recent call last):",
    ]
    reason = diagnose(log, -9, "sglang")
    assert (reason.code, reason.kind) == ("port_in_use", "transient")
    assert signature_of(log[:1]) is None
