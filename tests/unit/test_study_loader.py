"""What a study file means: YAML as servers need it, paths from the study's folder, values unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_samples import RIGHT, changed, study_of, write_study

from pivotbench.errors import UserError
from pivotbench.study import load_study


def serve(folder: Path, text: str) -> object:
    return study_of(folder, changed("  threads: 1", f"  flag: {text}")).serve["flag"]


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "y", "n", "On", "True", "TRUE", "False"])
def test_only_true_and_false_are_booleans(tmp_path: Path, word: str) -> None:
    assert serve(tmp_path, word) == word


def test_true_and_false_are_booleans(tmp_path: Path) -> None:
    assert serve(tmp_path, "true") is True
    assert serve(tmp_path, "false") is False


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("-1", -1),
        ("0", 0),
        ("0.5", 0.5),
        ("1e-5", 1e-5),
        (".5", 0.5),
        ("'8'", "8"),
        ('"true"', "true"),
        ("010", "010"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2024-01-02", "2024-01-02"),
        (".nan", ".nan"),
        ("1e999", "1e999"),
        ("'null'", "null"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("[a, 1, 0.5]", ["a", 1, 0.5]),
    ],
)
def test_a_value_reaches_the_server_as_it_was_written(tmp_path: Path, text: str, value: object) -> None:
    loaded = serve(tmp_path, text)
    assert loaded == value
    assert type(loaded) is type(value)


def test_keys_are_text_even_where_they_look_like_something_else(tmp_path: Path) -> None:
    study = study_of(tmp_path, changed("  plain: {}", "  plain: {}\n  8: {}\n  true: {}"))
    assert {"8", "true"} <= set(study.configurations)


def test_anchors_and_aliases_work(tmp_path: Path) -> None:
    study = study_of(tmp_path, changed("  plain: {}", "  plain: &p {threads: 2}\n  copy: *p"))
    assert study.configurations["copy"] == study.configurations["plain"] == {"threads": 2}


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    assert study_of(tmp_path, "\ufeff" + RIGHT).name == "sample"


def test_windows_line_ends_keep_line_numbers(tmp_path: Path) -> None:
    text = changed("max_tokens: 8", "max_tokens: 0").replace("\n", "\r\n")
    file = write_study(tmp_path)
    file.write_bytes(text.encode())
    with pytest.raises(UserError, match=r"study\.yaml:13: smoke\.max_tokens"):
        load_study(file)


def test_paths_start_from_the_studys_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "studies").mkdir()
    write_study(tmp_path / "studies", RIGHT + "python: ../venv/bin/python\n")
    monkeypatch.chdir(tmp_path)
    study = load_study(Path("studies/study.yaml"))
    assert study.throughput.workloads["free"].prompts == tmp_path / "studies" / "free.jsonl"
    assert study.python == tmp_path / "studies" / "../venv/bin/python"


def test_an_interpreter_that_is_a_symlink_stays_one(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to("/usr/bin/env")
    study = study_of(tmp_path, RIGHT + "python: python\n")
    assert study.python == tmp_path / "python"


@pytest.mark.parametrize("path", ["./m", "../m", "~/m", "~nobody-of-that-name/m", "/models/m"])
def test_a_model_path_with_a_local_beginning_is_local(tmp_path: Path, path: str) -> None:
    study = study_of(tmp_path, changed("org/small-model", path))
    assert study.model.local_path is not None
    assert study.model.local_path.is_absolute()
    assert study.model.name == "m"


@pytest.mark.parametrize("hub_id", ["org/small-model", "small-model", "nvidia/Qwen3.5-397B-A17B-NVFP4"])
def test_another_model_path_is_a_hub_id(tmp_path: Path, hub_id: str) -> None:
    study = study_of(tmp_path, changed("org/small-model", hub_id))
    assert study.model.local_path is None
    assert study.model.path == hub_id


def test_a_number_in_the_environment_becomes_text(tmp_path: Path) -> None:
    assert study_of(tmp_path, RIGHT + "env: {LEVEL: 1}\n").env == {"LEVEL": "1"}


def test_a_study_without_speculation_has_no_phase_two(tmp_path: Path) -> None:
    study = study_of(tmp_path, changed("speculative:\n  copy: {spec-type: ngram-simple}\n", ""))
    assert study.speculations == {}
    assert study.speculative_base is None


def test_a_pinned_base_is_known(tmp_path: Path) -> None:
    study = study_of(tmp_path, changed("  copy:", "  on: flash\n  copy:").replace("  reference: plain\n", ""))
    assert study.speculative_base == "flash"
    assert list(study.speculations) == ["copy"]


def test_concurrencies_are_measured_in_ascending_order(tmp_path: Path) -> None:
    study = study_of(tmp_path, changed("concurrency: [1, 4]", "concurrency: [4, 1]"))
    assert study.throughput.workloads["free"].concurrency == [1, 4]
