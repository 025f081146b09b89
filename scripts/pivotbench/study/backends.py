"""Configurations: named sets of flags, written one by one or as a matrix with exclusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from pivotbench.engines import base
from pivotbench.study.fields import (
    NAME_CHARACTERS,
    RESERVED_NAMES,
    Flags,
    FlagValue,
    Strict,
    check_flag_names,
    check_name,
    refusal,
    slug,
)
from pivotbench.wording import quoted, suggestion

Configurations = dict[str, dict[str, base.FlagValue]]

MAX_CONFIGURATIONS = 10_000
# Every combination is looked up under each set of flags that they name.
MAX_EXCLUSIONS = 1_000
# Which exclusions name these flags, by the values they name.
Exclusions = dict[tuple[str, ...], dict[tuple[str, ...], list[int]]]
# Words that say nothing without their flag.
_SWITCHES = frozenset({"on", "off", "yes", "no", "auto", "none", "default", "enable", "disable"})

Alternatives = Annotated[
    dict[str, Annotated[list[FlagValue], Field(min_length=1)]], AfterValidator(check_flag_names)
]


class Backends(Strict):
    """Server configurations to compare in phase one: any name with its flags, a matrix, or both."""

    model_config = ConfigDict(extra="allow")

    matrix: Alternatives = Field(
        default_factory=dict,
        description="Flags with lists of values; each combination is a configuration named after its values.",
    )
    exclude: list[Flags] = Field(
        default_factory=list,
        description="Combinations of the matrix to leave out; flags that are not named match any value.",
    )
    __pydantic_extra__: dict[str, Flags]

    @property
    def named(self) -> Configurations:
        """The configurations written one by one."""
        return dict(self.__pydantic_extra__)

    @cached_property
    def configurations(self) -> Configurations:
        """Every configuration by name, sorted: the named ones and the matrix's combinations."""
        return expand(self)

    @model_validator(mode="after")
    def _names_are_usable(self) -> Backends:
        for name in self.named:
            check_name(name, name, reserved=RESERVED_NAMES)
        _ = self.configurations  # every one has a usable name
        return self


class Speculative(Strict):
    """Speculative configurations to compare in phase two, on top of one backend: any name with its flags."""

    model_config = ConfigDict(extra="allow")

    on: str | None = Field(
        default=None,
        description="The backend to speculate on; given, phase one is skipped. Default: phase one's winner.",
    )
    __pydantic_extra__: dict[str, Flags]

    @property
    def named(self) -> Configurations:
        """The speculative configurations."""
        return dict(self.__pydantic_extra__)

    @model_validator(mode="after")
    def _names_are_usable(self) -> Speculative:
        for name in self.named:
            if name == "none":
                raise refusal("'none' is the backend without speculation, which always runs; remove it", name)
            check_name(name, name, reserved=RESERVED_NAMES)
        if not self.named:
            raise refusal("needs at least one named speculative configuration")
        return self


def value_text(value: base.FlagValue) -> str:
    """Return a flag's value as a server reads it, so that 4 and "4" are one value."""
    return " ".join(str(item) for item in value) if isinstance(value, list) else str(value)


def value_name(flag: str, value: base.FlagValue) -> str:
    """Return the part of a generated name that stands for one flag's value.

    Text names itself; numbers, booleans and switch words such as ``on`` carry their flag. The part depends
    on nothing else, so adding a value to the matrix renames no configuration.
    """
    if value is True:
        return slug(flag)
    if value is False:
        return f"no-{slug(flag)}"
    word = slug(value_text(value))
    alone = isinstance(value, str) and word not in _SWITCHES and not word.replace(".", "").isdigit()
    return word if alone and word else f"{slug(flag)}-{word}"


def expand(backends: Backends) -> Configurations:
    """Return every configuration by name, sorted: the named ones and the matrix's combinations.

    Generated names join their values in the order of the flags' names, so the order in the file is free.
    Raises a refusal for too many, colliding or unusable names, and exclusions that match nothing.
    """
    configurations = backends.named
    _check_matrix(backends)
    flags = sorted(backends.matrix)
    combinations = product(*(backends.matrix[flag] for flag in flags)) if flags else iter(())
    excluded = [False] * len(backends.exclude)
    exclusions = _by_flags(backends.exclude)
    for values in combinations:
        combination = dict(zip(flags, values, strict=True))
        matched = _matching(exclusions, combination)
        for index in matched:
            excluded[index] = True
        if not matched:
            name = _generated_name(combination)
            if name in configurations:
                where = "backends" if name in backends.named else "the matrix"
                raise refusal(
                    f"generates the name {quoted(name)}, which {where} already has; "
                    "write these configurations by name",
                    "matrix",
                )
            configurations[name] = combination
    if False in excluded:
        raise refusal(
            "matches no combination of the matrix; correct or remove it", "exclude", excluded.index(False)
        )
    if not configurations:
        raise refusal("holds no configuration; name at least one, such as 'default: {}'")
    if len(configurations) > MAX_CONFIGURATIONS:
        raise refusal(f"{len(configurations):,} configurations; the limit is {MAX_CONFIGURATIONS:,}")
    return dict(sorted(configurations.items()))


def _check_matrix(backends: Backends) -> None:
    size = prod(len(values) for values in backends.matrix.values())
    if size > MAX_CONFIGURATIONS:
        counted = f"{size:,}" if size < 10**15 else "more than a quadrillion"
        raise refusal(f"{counted} combinations; the limit is {MAX_CONFIGURATIONS:,}", "matrix")
    if len(backends.exclude) > MAX_EXCLUSIONS:
        counted = f"{len(backends.exclude):,} exclusions; the limit is {MAX_EXCLUSIONS:,}"
        raise refusal(f"{counted}: name fewer flags in each", "exclude")
    for flag, values in backends.matrix.items():
        seen: set[str] = set()
        for index, value in enumerate(values):
            if value_text(value) in seen:
                raise refusal(f"{quoted(value_text(value))} is listed twice", "matrix", flag, index)
            seen.add(value_text(value))
    texts = {flag: [value_text(value) for value in values] for flag, values in backends.matrix.items()}
    if backends.exclude and not backends.matrix:
        raise refusal("there is no matrix to exclude from", "exclude")
    for index, item in enumerate(backends.exclude):
        if not item:
            raise refusal("would exclude every combination; name a flag and a value", "exclude", index)
        for flag, value in item.items():
            if flag not in backends.matrix:
                raise refusal(
                    f"not a flag of the matrix; {suggestion(flag, sorted(backends.matrix))}",
                    "exclude",
                    index,
                    flag,
                )
            if value_text(value) not in texts[flag]:
                raise refusal(
                    f"{quoted(value_text(value))} is not in the matrix; "
                    f"{suggestion(value_text(value), texts[flag], label='it has')}",
                    "exclude",
                    index,
                    flag,
                )


def _by_flags(exclude: Sequence[Mapping[str, base.FlagValue]]) -> Exclusions:
    found: Exclusions = {}
    for index, item in enumerate(exclude):
        flags = tuple(sorted(item))
        values = tuple(value_text(item[flag]) for flag in flags)
        found.setdefault(flags, {}).setdefault(values, []).append(index)
    return found


def _matching(exclusions: Exclusions, combination: Mapping[str, base.FlagValue]) -> list[int]:
    texts = {flag: value_text(value) for flag, value in combination.items()}
    return [
        index
        for flags, by_values in exclusions.items()
        for index in by_values.get(tuple(texts[flag] for flag in flags), ())
    ]


def _generated_name(combination: Mapping[str, base.FlagValue]) -> str:
    name = "-".join(value_name(flag, value) for flag, value in combination.items())
    if len(name) > NAME_CHARACTERS:
        raise refusal(
            f"generates a name of {len(name)} characters ({quoted(name)}); "
            "write these configurations by name",
            "matrix",
        )
    return check_name(name, "matrix", reserved=RESERVED_NAMES)
