"""Nothing reaches a shell unquoted, and no text of a study is a pattern of Snakemake's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

RULES = sorted((Path(__file__).parents[2] / "workflow" / "rules").glob("*.smk"))
PROGRAM = re.compile(r'"[^"]*(?:\.py|--)[^"]*"')
# The rule's own name is ours.
UNQUOTED = re.compile(r"\{(?!rule\})[^{}:]*\}|\{[^{}:]*:(?!q\})[^{}]*\}")


@pytest.mark.parametrize("file", RULES, ids=[file.name for file in RULES])
def test_every_value_in_a_command_is_quoted(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    commands = PROGRAM.findall(text)
    assert bool(commands) == bool(re.search(r"^ +shell:", text, re.MULTILINE))
    assert [found for command in commands for found in UNQUOTED.findall(command)] == []


@pytest.mark.parametrize("file", RULES, ids=[file.name for file in RULES])
def test_params_are_functions_whose_results_are_not_filled_in(file: Path) -> None:
    for name, value in re.findall(r"^    params:\n        (\w+)=(.*),$", file.read_text(), re.MULTILINE):
        assert value in ("decision_rules",) or value.startswith("asked("), f"{name}={value}"
