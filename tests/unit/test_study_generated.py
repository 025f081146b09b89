"""What is generated from the models and committed is current, and agrees with the loader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from broken_studies import BROKEN
from study_samples import RIGHT

from pivotbench.study import schema
from pivotbench.study.reference import REFERENCE_FILE, reference_text
from pivotbench.study.schema import SCHEMA_FILE, schema_text, study_schema

CONFIG = Path(__file__).parents[2] / "config"

# What a schema for editors cannot see: other files, other keys, and YAML itself.
BEYOND_A_SCHEMA = {
    "engine misspelt",
    "engine twice",
    "reference never launched",
    "budget without a GPU",
    "bound to no GPU",
    "a rate for days",
    "env bad name",
    "model two slashes",
    "model no origin",
    "model both origins",
    "model no digest",
    "model no file",
    "file outside",
    "digest of a path",
    "revision local",
    "flag with dashes",
    "flag with a blank",
    "flag twice",
    "no backends",
    "backend twice",
    "matrix value twice",
    "matrix collision",
    "matrix takes a name",
    "matrix huge",
    "exclude alone",
    "exclude unknown flag",
    "exclude unknown value",
    "exclude empty",
    "speculation empty",
    "base unknown",
    "hypothesis on nobody",
    "hypothesis over phases",
    "prompt twice",
    "two expectations",
    "bad expression",
    "expectation blank",
    "no prompts",
    "file missing",
    "file too long: name",
    "file too long: folder",
    "file too long: path",
    "continuations a folder",
    "continuations too long",
    "python too long",
    "local model too long",
    "hub id too long",
    "model file too long",
    "file a folder",
    "text with length",
    "natural end of random tokens",
    "concurrency twice",
    "rate twice",
    "text with shared prefix",
    "metric without concurrency",
    "endpoint of another engine",
    "no length",
    "synthetic with file",
    "metric unknown",
    "metric level",
    "goodput at one load",
    "goodput without rates",
    "percentile of few requests",
    "rounds swapped",
    "reference unknown",
    "sum not a sum",
    "sum without a decimal value",
    "continuations missing",
    "merge key",
    "tag",
    "key a list",
    "recursive alias",
    "seconds infinite",
    "python two lines",
    "two origins",
    "container llamacpp",
    "docker a file",
    "no such sif",
    "version unused",
    "version unknown",
    "version unknown in matrix",
    "version of a speculation",
}


class EditorLoader(yaml.SafeLoader):
    """YAML 1.2 booleans, as editors read them."""


EditorLoader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool" or first in "tTfF"
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def editor(text: str) -> Any:
    return yaml.load(text, EditorLoader)


VALIDATOR = jsonschema.Draft202012Validator(study_schema())


def test_the_committed_schema_is_current() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), "run python -m pivotbench.study.schema"


def test_the_committed_reference_is_current() -> None:
    assert REFERENCE_FILE.read_text(encoding="utf-8") == reference_text(), (
        "run python -m pivotbench.study.reference"
    )


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(study_schema())


def test_the_schema_accepts_the_default_study_and_the_sample() -> None:
    for text in (RIGHT, (CONFIG / "config.yaml").read_text(encoding="utf-8")):
        assert list(VALIDATOR.iter_errors(editor(text))) == []


IN_A_SCHEMA = [case for case in BROKEN if case[0] not in BEYOND_A_SCHEMA]


@pytest.mark.parametrize("text", [c[1] for c in IN_A_SCHEMA], ids=[c[0] for c in IN_A_SCHEMA])
def test_editors_mark_what_the_loader_refuses(text: str) -> None:
    assert list(VALIDATOR.iter_errors(editor(text)))


def test_every_key_is_described_for_editors_and_in_the_reference() -> None:
    definition = study_schema()
    reference = reference_text()
    for part in (definition, *definition["$defs"].values()):
        for key, field in part["properties"].items():
            assert field.get("description", "").endswith("."), key
            assert f"| `{key}` |" in reference, key


def test_the_default_study_refers_to_the_schema() -> None:
    first = (CONFIG / "config.yaml").read_text(encoding="utf-8").split("\n", 1)[0]
    assert (CONFIG / first.removeprefix("# yaml-language-server: $schema=")).resolve() == SCHEMA_FILE


def test_the_schema_has_no_null_and_no_generated_title() -> None:
    text = json.dumps(study_schema()["$defs"])
    assert '"null"' not in text
    assert '"title"' not in text
    assert schema.__doc__
