"""The cause of a failure is the first line that explains it, named by a code with a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pivotbench.diagnose import diagnose, first_error
from pivotbench.reasons import reason_codes
from pivotbench.results import TRANSIENT_CODES
from pivotbench.signatures import catalogue

DATA = Path(__file__).parent.parent / "data"
LOGS = DATA / "sglang-logs"
HEALTHY = sorted(path for path in LOGS.glob("*.log") if path.name != "moe-trtllm.log")
PUBLIC = yaml.safe_load((DATA / "public-failures.yaml").read_text(encoding="utf-8"))

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
V_CACHE = "0.00.493.558 E llama_init_from_model: quantized V cache requires flash_attn to be enabled"


def lines_of(name: str) -> list[str]:
    return (LOGS / name).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.stem)
def test_a_healthy_server_that_was_stopped_shows_no_error(path: Path) -> None:
    assert first_error(path.read_text(encoding="utf-8").splitlines(), "sglang") is None


def test_kernels_that_cannot_be_downloaded_are_transient_and_no_unsupported_gpu() -> None:
    reason = diagnose(lines_of("moe-trtllm.log"), -9, "sglang")
    assert (reason.code, reason.kind) == ("artifact_unavailable", "transient")
    assert "Max retries reached. Download failed." in reason.evidence[0]
    assert any(line.startswith("AssertionError: Failed to get checksums.txt") for line in reason.evidence)
    assert "flashinfer-cubin" in reason.message


@pytest.mark.parametrize("case", PUBLIC, ids=lambda case: f"{case['code']}-{case['source'].split('/')[-1]}")
def test_a_public_failure_gets_its_code(case: dict[str, Any]) -> None:
    log = [*case.get("above", ()), *case["lines"]]
    reason = diagnose(log, case.get("exit_code", 1), case.get("engine", "sglang"))
    assert reason.code == case["code"]
    assert reason.evidence[0] == case["lines"][0].strip() or case["lines"][0].startswith("INFO")


def test_the_public_failures_are_many_and_of_many_kinds() -> None:
    assert len({case["source"] for case in PUBLIC}) >= 25
    assert len({case["code"] for case in PUBLIC}) >= 15


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
    assert first_error([skipped], "sglang") is None
    assert first_error([skipped.partition("[TensorRT-LLM]")[2]], "sglang") is not None


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
    assert first_error([V_CACHE], "sglang") is None


def test_sigkill_without_a_logged_cause_is_transient_and_blames_nobody() -> None:
    reason = diagnose(["INFO: all is well"], -9, "sglang")
    assert (reason.code, reason.kind) == ("killed", "transient")
    assert "SIGKILL" in reason.message


def test_an_unknown_failure_shows_its_five_most_telling_lines_in_order() -> None:
    log = [f"step {i}" for i in range(50)]
    log[10] = "WARNING: something failed early"
    log[20] = "strange.TooStrangeError: the moon is in the wrong house"
    log[30] = "ERROR in worker 7"
    reason = diagnose(log, 3, "sglang")
    assert (reason.code, reason.kind) == ("unknown", "deterministic")
    assert reason.evidence == (log[10], log[20], log[30], "step 48", "step 49")
    assert "status 3" in reason.message


def test_evidence_is_at_most_five_lines_of_readable_length() -> None:
    log = [f"[TP{i}] {OOM} {'x' * 1000}" for i in range(8)]
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
    assert first_error(log[:1]) is None
