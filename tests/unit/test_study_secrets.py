"""A study names the secrets of its server; their values stay in the user's environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_samples import RIGHT, study_of

from pivotbench.cells import Cell, launch_request
from pivotbench.engines import get_engine
from pivotbench.errors import UserError
from pivotbench.study import check_secrets

NAMING = RIGHT + "secrets: [HF_TOKEN, MY_LICENCE]\n"


def test_secrets_that_are_set_are_fine(tmp_path: Path) -> None:
    check_secrets(study_of(tmp_path, NAMING), {"HF_TOKEN": "a" * 8, "MY_LICENCE": "b" * 8})
    check_secrets(study_of(tmp_path), {})


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"HF_TOKEN": "a" * 8}, "secrets[1]: MY_LICENCE is not set; export it where snakemake is started"),
        ({"HF_TOKEN": "", "MY_LICENCE": "b" * 8}, "secrets[0]: HF_TOKEN is not set"),
        ({"HF_TOKEN": "hunter2", "MY_LICENCE": "b" * 8}, "secrets[0]: HF_TOKEN is too short"),
    ],
)
def test_a_secret_that_is_missing_is_named_with_its_line(
    tmp_path: Path, environment: dict[str, str], words: str
) -> None:
    with pytest.raises(UserError) as caught:
        check_secrets(study_of(tmp_path, NAMING), environment)
    assert f"study.yaml:{NAMING.count(chr(10))}: {words}" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_results_do_not_hang_on_secrets(tmp_path: Path) -> None:
    cell = Cell("sample", "backends", "plain", 1)
    naming, without = study_of(tmp_path, NAMING), study_of(tmp_path)
    assert launch_request(naming, cell) == launch_request(without, cell)
    assert naming.canonical() == without.canonical()


def test_switches_may_have_the_name_of_a_secret(tmp_path: Path) -> None:
    text = RIGHT + "env: {HF_HUB_DISABLE_IMPLICIT_TOKEN: '1', TOKENIZERS_PARALLELISM: 'false'}\n"
    assert study_of(tmp_path, text).env["HF_HUB_DISABLE_IMPLICIT_TOKEN"] == "1"


@pytest.mark.parametrize("name", ["sglang", "llamacpp"])
def test_what_is_added_to_every_launch_trusts_no_code_and_listens_on_this_machine(name: str) -> None:
    command = get_engine(name).command("python", "model", {}, port=1234, served_name="served")
    assert not any("trust" in word for word in (*command.argv, *command.env))
    assert command.added[command.added.index("--host") + 1] == "127.0.0.1"
    assert "host" in get_engine(name).reserved_flags
