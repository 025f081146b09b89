"""Whatever a study holds, it is either loaded or refused in one readable line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from study_samples import RIGHT, write_study

from pivotbench.errors import UserError
from pivotbench.study import load_study
from pivotbench.study.source import read_source

SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([None, "x" * 5000]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
ANY_FOLDER = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def load(file: Path) -> None:
    try:
        load_study(file)
    except UserError as error:
        text = str(error)
        assert text.startswith(f"{file}:")
        assert text.isprintable()
        assert len(text) < 600 + len(str(file))


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a nested value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in pairs for place in ((value, key), *places(item))]


@given(seed=st.integers(0, 2**32), value=VALUES, rename=st.one_of(st.none(), st.text(max_size=200)))
@ANY_FOLDER
def test_any_value_and_any_key_anywhere(tmp_path: Path, seed: int, value: Any, rename: str | None) -> None:
    data = read_source(write_study(tmp_path)).data
    container, key = random.Random(seed).choice(places(data))
    container[key] = value
    if rename is not None and isinstance(container, dict):
        container[rename] = container.pop(key)
    load(write_study(tmp_path, json.dumps(data)))


@given(seed=st.integers(0, 2**32), noise=st.text(max_size=6))
@ANY_FOLDER
def test_any_slip_of_the_keyboard(tmp_path: Path, seed: int, noise: str) -> None:
    at = random.Random(seed).randrange(len(RIGHT))
    file = write_study(tmp_path)
    file.write_bytes((RIGHT[:at] + noise + RIGHT[at + len(noise) :]).encode())
    load(file)


@given(data=st.binary(max_size=60))
@ANY_FOLDER
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "study.yaml"
    file.write_bytes(data)
    load(file)
