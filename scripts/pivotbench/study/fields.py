"""The small types a study is made of, and how a validator refuses a value.

A refusal may point below the value it judges (``at``), so that the line named is the one to change.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from pivotbench.engines import base
from pivotbench.redaction import is_secret_flag
from pivotbench.wording import quoted, suggestion

NAME_PATTERN = r"[a-z0-9][a-z0-9.-]*"
NAME_CHARACTERS = 100
WITHOUT_SPECULATION = "none"
RESERVED_NAMES = ("race", WITHOUT_SPECULATION, "on", "matrix", "exclude")
# Comparisons of studies have a folder of that name beside those of the studies.
RESERVED_STUDIES = ("compare",)

_LOCAL = ("/", "./", "../", "~")
_FLAG_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_SCALAR_SCHEMA = [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]
_ITEM_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "number"}]}


def refusal(message: str, *at: str | int) -> PydanticCustomError:
    """Return the error to raise in a validator; ``at`` leads from the judged value to the wrong part."""
    return PydanticCustomError("refused", "{message}", {"message": message, "at": at})


def slug(text: str) -> str:
    """Return the nearest text that is a valid name, or an empty string."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")


def check_name(name: str, *at: str | int, reserved: tuple[str, ...] = ()) -> str:
    """Return ``name`` if it can name a directory of results; raise a refusal otherwise."""
    if len(name) > NAME_CHARACTERS:
        raise refusal(f"a name has at most {NAME_CHARACTERS} characters", *at)
    if not re.fullmatch(NAME_PATTERN, name):
        hint = f"; try {quoted(slug(name)[:NAME_CHARACTERS])}" if slug(name) else ""
        raise refusal(f"a name is lower-case letters, digits, '.' and '-', not {quoted(name)}{hint}", *at)
    if name in reserved:
        raise refusal(f"{quoted(name)} is reserved; choose another name", *at)
    return name


def _check_flag_value(value: Any) -> Any:
    if isinstance(value, list):
        if not value:
            raise refusal("an empty list gives the flag no value; leave the flag out")
        for index, item in enumerate(value):
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                raise refusal("a list of values holds text and numbers only", index)
            _check_argument(item, index)
        return value
    if not isinstance(value, str | int | float):
        raise refusal("a flag's value is text, a number, true, false, or a list of them")
    _check_argument(value)
    return value


def _check_argument(value: Any, *at: str | int) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise refusal("a number must be finite", *at)
    if isinstance(value, str) and not value.isprintable():
        raise refusal(f"must be one line of printable text, not {quoted(value)}", *at)


def check_flag_names(flags: dict[str, Any]) -> dict[str, Any]:
    for name in flags:
        if name.startswith("-"):
            raise refusal(f"write the flag without dashes: {quoted(name.lstrip('-'))}", name)
        if not re.fullmatch(_FLAG_PATTERN, name):
            raise refusal(f"{quoted(name)} cannot be a flag's name", name)
        if is_secret_flag(name):
            raise refusal(
                "every user of the machine can read a command line; remove it: servers listen on this "
                "machine alone and need no key, and what they need of others goes under secrets",
                name,
            )
    return flags


def folder_of(info: ValidationInfo) -> Path:
    """Return the folder that relative paths of the study under validation start from."""
    context = info.context
    folder = context.get("folder") if isinstance(context, dict) else None
    return Path(folder) if folder is not None else Path.cwd()


def resolve(text: str, folder: Path) -> Path:
    """Return an absolute path; symlinks stay, since a virtual environment's interpreter is one."""
    return (folder / os.path.expanduser(text)).absolute()  # noqa: PTH111 - it leaves an unknown ~user alone


def is_local(path: str) -> bool:
    """Return whether a path is local rather than an id on a hub; the spelling alone tells."""
    return path.startswith(_LOCAL) or path in (".", "..")


def as_shown(file: Path, info: ValidationInfo) -> Path:
    """Return an absolute path as the user would write it from where the study was named."""
    folder = folder_of(info)
    return folder / file.relative_to(folder.absolute()) if file.is_relative_to(folder.absolute()) else file


def check_reachable(path: Path, *at: str | int) -> Path:
    """Return a path that can be looked at, be it there or not; raise a refusal for any other."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return path
    except OSError as error:
        raise refusal(f"cannot be looked at: {error.strerror}: {quoted(str(path))}", *at) from None
    return path


def check_file(path: Path, info: ValidationInfo, *at: str | int) -> Path:
    """Return the path of a file that is there; raise a refusal otherwise."""
    if path.is_dir():
        raise refusal(f"{as_shown(path, info)} is a folder; name a file in it", *at)
    if not path.is_file():
        raise refusal(f"no such file: {as_shown(path, info)} (paths start from the study's folder)", *at)
    return path


def _resolve(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and value.strip() and value.isprintable():
        return check_reachable(resolve(value, folder_of(info)))
    if isinstance(value, Path):
        return value
    raise refusal("must be the path of a file")


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise refusal("must be one line of text that is not blank")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise refusal("must not be blank")
    return text


def _ascending(values: list[int]) -> list[int]:
    if len(set(values)) != len(values):
        raise refusal("holds a value twice")
    return sorted(values)


Name = Annotated[
    str,
    AfterValidator(lambda name: check_name(name, reserved=RESERVED_STUDIES)),
    Field(
        json_schema_extra={
            "pattern": f"^{NAME_PATTERN}$",
            "maxLength": NAME_CHARACTERS,
            "not": {"enum": list(RESERVED_STUDIES)},
        }
    ),
]
Line = Annotated[str, AfterValidator(_one_line), Field(json_schema_extra={"minLength": 1})]
Text = Annotated[str, AfterValidator(_not_blank), Field(json_schema_extra={"minLength": 1})]
StudyPath = Annotated[Path, BeforeValidator(_resolve), WithJsonSchema({"type": "string", "minLength": 1})]
Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]
Concurrencies = Annotated[
    list[Annotated[int, Field(ge=1, le=65536)]], Field(min_length=1), AfterValidator(_ascending)
]
FlagValue = Annotated[
    base.FlagValue,
    PlainValidator(_check_flag_value),
    WithJsonSchema({"anyOf": [*_SCALAR_SCHEMA, {"type": "array", "items": _ITEM_SCHEMA, "minItems": 1}]}),
]
Flags = Annotated[dict[str, FlagValue], AfterValidator(check_flag_names)]


class Strict(BaseModel):
    """A mapping of a study: nothing is converted, and a key it does not know is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict) and cls.model_config.get("extra") == "forbid":
            known = sorted(cls.model_fields)
            for key in data:
                if key not in known:
                    raise refusal(f"unknown key; {suggestion(str(key), known)}", str(key))
        return data
