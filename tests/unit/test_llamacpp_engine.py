"""The llama.cpp engine: its command, its flags, who answers at its address, and what its log says."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pivotbench.engines import engine_python, get_engine, llamacpp_serve
from pivotbench.engines.llamacpp import LLAMACPP
from pivotbench.errors import UserError

LOG = """\
0.00.002.524 I cmn  common_param: common_params_print_info: verbosity = 4
0.00.002.599 I cmn  common_param: system_info: n_threads = 1 (n_threads_batch = 2) / 2 | CPU : SSE3 = 1 |
0.00.003.309 I srv          init: using 8 threads for HTTP server
0.00.005.000 I srv          init: loading model
0.00.304.524 I load_tensors: loading model tensors, this can take a while... (load_mode = mmap)
0.00.311.370 I load_tensors:   CPU_Mapped model buffer size =    92.10 MiB
0.00.505.000 I llama_context: constructing llama_context
0.00.622.603 I llama_context: n_ctx                 = 8192
0.00.622.604 I llama_context: n_ctx_seq             = 2048
0.00.622.605 I llama_context: n_batch               = 2048
0.00.622.605 I llama_context: n_ubatch              = 512
0.00.622.607 I llama_context: flash_attn            = auto
0.00.622.607 I llama_context: kv_unified            = false
0.01.294.929 I llama_kv_cache: size =  180.00 MiB (  2048 cells), K (q8_0):   47.81 MiB, V (f16):   90.00 MiB
0.01.301.024 I resolve_fused_ops: Flash Attention enabled
0.01.305.000 I cmn  common_init_: warming up the model with an empty run - please wait ...
0.01.385.000 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 2048, kv_unified = 'false'
0.01.386.000 I spec common_specu: adding speculative implementation 'ngram-map-k'
1.01.390.000 I srv          init: listening on http://127.0.0.1:40787
""".splitlines()


def test_a_command_keeps_what_the_study_asked_apart_from_what_every_launch_gets() -> None:
    command = LLAMACPP.command(
        "python",
        "m.gguf",
        {"threads": 1, "no-repack": True, "swa-full": False, "spec-type": ["ngram-mod", "ngram-map-k"]},
        port=8123,
        served_name="nonce",
    )
    assert command.study[2:] == (
        *("--model", "m.gguf", "--no-repack", "--spec-type", "ngram-mod", "ngram-map-k", "--threads", "1"),
    )
    assert command.added == ("--alias", "nonce", "--host", "127.0.0.1", "--port", "8123")


def test_the_flags_pivotbench_adds_are_reserved() -> None:
    added = LLAMACPP.command("python", "m", {}, port=1, served_name="n").added
    assert {flag.removeprefix("--") for flag in added if flag.startswith("--")} < LLAMACPP.reserved_flags


def catalogue() -> dict[str, dict[str, Any]]:
    flags = llamacpp_serve.catalogue(llamacpp_serve.build_parser(), "1")["flags"]
    return {flag["name"]: flag for flag in flags}


def test_the_catalogue_states_choices_values_and_repetition() -> None:
    flags = catalogue()
    assert flags["flash-attn"]["choices"] == ["on", "off", "auto"]
    assert not flags["no-repack"]["takes_value"]
    assert flags["threads"]["takes_value"]
    assert flags["spec-type"]["many"]
    assert flags["spec-draft-model"]["aliases"] == ["model-draft"]


def test_no_flag_asks_for_a_key_or_only_prints() -> None:
    assert not {"api-key", "help", "print-flags"} & set(catalogue())


@pytest.mark.parametrize("argv", [["--flash-attn", "maybe"], ["--thread", "1"], ["--threads", "many"]])
def test_the_serving_program_refuses_what_it_does_not_know(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        llamacpp_serve.build_parser().parse_args(argv)
    assert exit.value.code == 2


def test_a_flag_sets_the_field_it_names() -> None:
    params = SimpleNamespace(cpuparams=SimpleNamespace(n_threads=-1), flash_attn_type=None)
    xllamacpp = SimpleNamespace(llama_flash_attn_type={"LLAMA_FLASH_ATTN_TYPE_DISABLED": 0})
    settings = vars(llamacpp_serve.build_parser().parse_args(["--threads", "3", "--flash-attn", "off"]))
    for field, value in settings.items():
        llamacpp_serve.set_field(xllamacpp, params, field, value)
    assert params.cpuparams.n_threads == 3
    assert params.flash_attn_type == 0


def test_a_field_the_engine_does_not_have_is_an_error() -> None:
    with pytest.raises(AttributeError):
        llamacpp_serve.set_field(None, SimpleNamespace(), "n_parallel", 4)


def test_launch_phases_are_timed_by_the_logs_own_stamps() -> None:
    phases = {phase.name: phase.seconds for phase in LLAMACPP.launch_phases(LOG)}
    assert phases == pytest.approx(
        {"start": 0.005, "weights": 0.5, "context": 0.8, "warm-up": 0.08, "listen": 60.005}
    )


def test_a_launch_that_broke_off_has_the_phases_it_reached() -> None:
    assert [phase.name for phase in LLAMACPP.launch_phases(LOG[:8])] == ["start", "weights"]


def test_without_a_warm_up_the_phase_takes_no_time() -> None:
    log = [line for line in LOG if "warming up" not in line]
    phases = {phase.name: phase.seconds for phase in LLAMACPP.launch_phases(log)}
    assert phases["warm-up"] == 0


def test_effective_settings_come_from_the_log_where_the_server_is_silent() -> None:
    assert LLAMACPP.server_info("http://127.0.0.1:9", LOG) == {
        "threads": 1,
        "threads-batch": 2,
        "threads-http": 8,
        "ctx-size": 8192,
        "batch-size": 2048,
        "ubatch-size": 512,
        "kv-unified": "false",
        "cache-type-k": "q8_0",
        "cache-type-v": "f16",
        "load-mode": "mmap",
        "flash-attn": "on",
        "weight-buffers": "CPU_Mapped",
        "spec-type": "ngram-map-k",
    }


class Answers(BaseHTTPRequestHandler):
    """Answers what the server object holds: {path: (status, JSON value)}."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, value = self.server.answers[self.path]  # type: ignore[attr-defined]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    served = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=served.serve_forever, args=(0.01,), daemon=True).start()
    yield served
    served.shutdown()
    served.server_close()


MODELS = (200, {"data": [{"id": "nonce", "aliases": ["nonce"]}]})
TOKEN = (200, {"choices": [{"message": {"content": "Hi"}}]})


@pytest.mark.parametrize(
    ("models", "generation", "state"),
    [
        (MODELS, TOKEN, "ready"),
        ((503, {"error": {"message": "Loading model"}}), TOKEN, "loading"),
        (MODELS, (500, {"error": "no"}), "loading"),
        ((200, {"data": [{"id": "another"}]}), TOKEN, "stranger"),
        ((404, "not an LLM server"), TOKEN, "stranger"),
    ],
)
def test_only_our_own_server_that_generates_is_ready(
    server: ThreadingHTTPServer, models: Any, generation: Any, state: str
) -> None:
    server.answers = {"/v1/models": models, "/v1/chat/completions": generation}  # type: ignore[attr-defined]
    url = f"http://127.0.0.1:{server.server_port}"
    assert LLAMACPP.probe(url, "nonce", timeout_seconds=2).state == state


def test_a_refused_connection_means_still_loading(server: ThreadingHTTPServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}"
    server.server_close()
    assert LLAMACPP.probe(url, "nonce", timeout_seconds=1).state == "loading"


def test_the_version_is_read_without_starting_the_interpreter(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    assert LLAMACPP.installed_version(python) is None
    folder = tmp_path / "lib" / "python3.11" / "site-packages" / "xllamacpp-1.2.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Name: xllamacpp\nVersion: 1.2\n")
    assert LLAMACPP.installed_version(python) == "1.2"


def test_an_environment_without_the_engine_is_named_in_one_line() -> None:
    with pytest.raises(UserError, match="xllamacpp") as error:
        LLAMACPP.read_flags(Path(sys.executable), {})
    assert "\n" not in str(error.value)


def test_an_interpreter_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match="/no/python"):
        LLAMACPP.read_flags(Path("/no/python"), {})


def test_a_misspelt_engine_gets_the_nearest_name() -> None:
    with pytest.raises(UserError, match="did you mean 'llamacpp'"):
        get_engine("lamacpp")


def test_an_engine_has_its_own_environment_unless_the_study_names_one() -> None:
    assert engine_python("llamacpp", None, Path("/r")) == Path("/r/.venv-llamacpp/bin/python")
    assert engine_python("llamacpp", Path("/my/python"), Path("/r")) == Path("/my/python")
