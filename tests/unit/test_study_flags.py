"""Flags are checked against the installed engine's own list before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_samples import RIGHT, changed, study_of

from pivotbench.engines.catalogue import FlagCatalogue, FlagSpec
from pivotbench.errors import UserError
from pivotbench.study import check_flags, deprecated_flags

CATALOGUE = FlagCatalogue(
    engine="llamacpp",
    version="9.9",
    flags=(
        FlagSpec("threads", aliases=("thread-count",)),
        FlagSpec("ctx-size"),
        FlagSpec("flash-attn", aliases=("fa",), choices=("on", "off", "auto")),
        FlagSpec("spec-type", choices=("none", "ngram-simple"), many=True),
        FlagSpec("no-repack", takes_value=False),
        FlagSpec("levels", choices=("1", "2")),
        FlagSpec("host", aliases=("address",)),
    ),
)
RESERVED = frozenset({"host", "port"})


def problem(folder: Path, old: str, new: str) -> str:
    study = study_of(folder, changed(old, new))
    with pytest.raises(UserError) as caught:
        check_flags(study, {None: CATALOGUE}, RESERVED)
    return str(caught.value).removeprefix(f"{folder}/")


@pytest.mark.parametrize(
    "flags",
    [
        "flash-attn: auto",
        "fa: on}\n  b: {fa: off",
        "no-repack: true",
        "no-repack: false",
        "spec-type: [none, ngram-simple]",
        "levels: 1",
        "levels: '2'",
    ],
)
def test_right_flags_pass(tmp_path: Path, flags: str) -> None:
    check_flags(study_of(tmp_path, changed("{flash-attn: on}", f"{{{flags}}}")), {None: CATALOGUE}, RESERVED)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("flash-atn: on", "flash-atn: llamacpp 9.9 has no such flag; did you mean 'flash-attn'?"),
        ("flash_attn: on", "flash_attn: llamacpp 9.9 has no such flag; did you mean 'flash-attn'?"),
        ("zzzzzz: on", "zzzzzz: llamacpp 9.9 has no such flag"),
        ("flash-attn: onn", "flash-attn: 'onn' is none of on, off, auto; did you mean 'on'?"),
        ("flash-attn: true", "flash-attn: needs a value (on, off, auto), not true"),
        ("flash-attn: false", "flash-attn: needs a value (on, off, auto), not false"),
        ("ctx-size: true", "ctx-size: needs a value, not true"),
        ("ctx-size: [1, 2]", "ctx-size: takes one value, not a list"),
        ("spec-type: [none, ngram-simpel]", "spec-type: 'ngram-simpel' is none of none, ngram-simple; did"),
        ("no-repack: on", "no-repack: takes no value; write true"),
        ("no-repack: 1", "no-repack: takes no value; write true"),
        ("no-repack: [a]", "no-repack: takes no value; write true"),
        ("levels: 3", "levels: '3' is none of 1, 2"),
        ("host: 0.0.0.0", "host: is set by Pivotbench for every launch; remove it"),
        ("address: 0.0.0.0", "address: is set by Pivotbench for every launch; remove it"),
        ("port: 80", "port: is set by Pivotbench for every launch; remove it"),
        ("thread-count: 2", "thread-count: is the flag written 'threads' elsewhere; use one spelling"),
    ],
)
def test_a_wrong_flag_is_refused_with_file_line_and_key(tmp_path: Path, flags: str, words: str) -> None:
    message = problem(tmp_path, "{flash-attn: on}", f"{{{flags}}}")
    assert message.startswith(f"study.yaml:9: backends.flash.{words}")
    assert "\n" not in message


def test_a_flag_of_serve_is_named_there(tmp_path: Path) -> None:
    assert problem(tmp_path, "  threads: 1", "  treads: 1").startswith("study.yaml:5: serve.treads: ")


def test_a_flag_of_a_speculation_is_named_there(tmp_path: Path) -> None:
    message = problem(tmp_path, "spec-type: ngram-simple", "spec-type: ngram-simpel")
    assert message.startswith("study.yaml:11: speculative.copy.spec-type: ")


def test_a_value_of_a_matrix_is_named_with_its_line(tmp_path: Path) -> None:
    matrix = "  matrix:\n    flash-attn:\n      - on\n      - maybe"
    message = problem(tmp_path, "  flash: {flash-attn: on}", matrix)
    assert message.startswith("study.yaml:12: backends.matrix.flash-attn[1]: 'maybe'")


def test_of_several_wrong_flags_the_first_in_the_file_is_named(tmp_path: Path) -> None:
    study = study_of(tmp_path, changed("{flash-attn: on}", "{bad: 1}").replace("ctx-size", "worse"))
    with pytest.raises(UserError, match=r"serve\.worse"):
        check_flags(study, {None: CATALOGUE})


def two_versions(backends: str) -> str:
    """A study of two versions of SGLang, with these backends."""
    versions = "versions: {old: {python: old/python}, new: {python: new/python}}"
    text = RIGHT.replace("engine: llamacpp", f"engine: sglang\n{versions}")
    text = text.replace("  plain: {}\n  flash: {flash-attn: on}\n", backends)
    text = text.replace("serve:\n  threads: 1\n  ctx-size: 2048\n", "").replace("  reference: plain\n", "")
    return text.replace("speculative:\n  copy: {spec-type: ngram-simple}\n", "")


def of(version: str, *flags: FlagSpec) -> FlagCatalogue:
    return FlagCatalogue("sglang", version, flags)


OLD = of("0.5.16", FlagSpec("attention-backend", choices=("fa3", "triton")))
NEW = of("0.5.23", FlagSpec("attention-backend", choices=("fa3", "fa4")), FlagSpec("level"))


def check_two(folder: Path, backends: str) -> None:
    check_flags(study_of(folder, two_versions(backends)), {"old": OLD, "new": NEW}, RESERVED)


@pytest.mark.parametrize(
    "backends",
    [
        "  a: {version: old, attention-backend: triton}\n"
        "  b: {version: new, attention-backend: fa4, level: 1}\n",
        "  matrix: {version: [old, new], attention-backend: [fa3, fa4]}\n"
        "  exclude: [{version: old, attention-backend: fa4}]\n",
    ],
)
def test_each_version_may_have_flags_and_choices_of_its_own(tmp_path: Path, backends: str) -> None:
    check_two(tmp_path, backends)


@pytest.mark.parametrize(
    ("backends", "words"),
    [
        (
            "  a: {version: old, attention-backend: fa4}\n  b: {version: new}\n",
            "a.attention-backend: 'fa4' is none of fa3, triton; did you mean 'fa3'? (sglang 0.5.16)",
        ),
        (
            "  a: {version: old, level: 1}\n  b: {version: new}\n",
            "a.level: sglang 0.5.16 has no such flag",
        ),
        (
            "  matrix: {version: [old, new], attention-backend: [fa3, triton]}\n",
            "matrix.attention-backend[1]: 'triton' is none of fa3, fa4 (sglang 0.5.23)",
        ),
    ],
)
def test_a_flag_is_held_against_the_list_of_the_very_version_that_gets_it(
    tmp_path: Path, backends: str, words: str
) -> None:
    with pytest.raises(UserError) as caught:
        check_two(tmp_path, backends)
    assert f"backends.{words}" in str(caught.value)


def test_a_version_whose_list_is_not_known_yet_is_passed_over(tmp_path: Path) -> None:
    study = study_of(tmp_path, two_versions("  a: {version: old, level: 1}\n  b: {version: new, level: 1}\n"))
    check_flags(study, {"new": NEW})


def test_a_deprecated_flag_is_named_with_its_line_and_its_successor(tmp_path: Path) -> None:
    study = study_of(tmp_path, two_versions("  a: {version: old, limit: 8}\n  b: {version: new}\n"))
    old = of("0.5.16", FlagSpec("max", aliases=("limit",), deprecated="--max-decode"))
    assert deprecated_flags(study, {"old": old, "new": NEW}) == [
        f"{tmp_path}/study.yaml:6: backends.a.limit: deprecated in sglang 0.5.16: use --max-decode"
    ]
