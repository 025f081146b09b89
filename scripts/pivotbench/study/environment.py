"""The variables of a server: those a study writes out, and the names of those that stay with the user."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from pivotbench.redaction import SHORTEST_CHARACTERS, is_secret_variable
from pivotbench.study.fields import refusal
from pivotbench.wording import quoted

if TYPE_CHECKING:
    from pivotbench.study.model import Study

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_OURS = "PIVOTBENCH_"


def _text_of_number(value: Any) -> Any:
    return str(value) if type(value) is int else value


def _check_name(name: str, *at: str | int) -> None:
    if not re.fullmatch(_NAME, name):
        raise refusal(f"{quoted(name)} cannot be the name of an environment variable", *at)
    if name.startswith(_OURS):
        raise refusal(f"{quoted(name)} is Pivotbench's own; set it where snakemake is started", *at)


def _check_variables(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        _check_name(name, name)
        if "\0" in value:
            raise refusal("holds a null character", name)
        if is_secret_variable(name, value):
            raise refusal(
                f"a secret is not written into a study; set it in your own environment and write "
                f"secrets: [{name}]",
                name,
            )
    return env


def _check_secrets(names: list[str]) -> list[str]:
    for index, name in enumerate(names):
        _check_name(name, index)
        if name in names[:index]:
            raise refusal(f"{quoted(name)} is listed twice", index)
    return names


Variables = Annotated[
    dict[str, Annotated[str, BeforeValidator(_text_of_number)]], AfterValidator(_check_variables)
]
Secrets = Annotated[list[str], AfterValidator(_check_secrets)]


def check_secrets(study: Study, environment: Mapping[str, str] | None = None) -> None:
    """Check that every secret a study names is set in an environment (None: this process's).

    Raises UserError for the first that is not, or that is too short to be kept out of files.
    """
    environment = os.environ if environment is None else environment
    for index, name in enumerate(study.secrets):
        value = environment.get(name, "")
        if len(value) >= SHORTEST_CHARACTERS:
            continue
        if value:
            what = f"{name} is too short to be kept out of files; {SHORTEST_CHARACTERS} characters at least"
        else:
            what = f"{name} is not set; export it where snakemake is started, or remove it here"
        assert study.source is not None
        raise study.source.error(("secrets", index), what)
