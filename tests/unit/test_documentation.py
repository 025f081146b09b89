"""What the documents show is true: their study loads, and the ready-made ones do."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from study_samples import RIGHT, study_of

from documents import DOCUMENTS, ROOT
from pivotbench.decision.document import json_schema
from pivotbench.engines.base import Engine
from pivotbench.study import load_study


def test_the_readmes_study_is_the_ready_made_one() -> None:
    [shown] = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    stored = (ROOT / "config/studies/one-gpu.yaml").read_text()
    words = [line for line in stored.splitlines() if not line.startswith("# ") or "schema" in line]
    assert "\n".join(words).replace("name: one-gpu", "name: mine") == shown.rstrip("\n")


@pytest.mark.parametrize("path", sorted((ROOT / "config").rglob("*.yaml")), ids=lambda p: p.stem)
def test_every_ready_made_study_loads(path: Path) -> None:
    assert load_study(path).configurations


def test_the_study_of_the_engines_guide_loads_where_the_engine_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config" / "engines").mkdir(parents=True)
    shutil.copy2(ROOT / "docs/examples/vllm.py", tmp_path / "config" / "engines")
    monkeypatch.chdir(tmp_path)
    assert load_study(ROOT / "docs/examples/vllm-study.yaml").engine == "vllm"


def test_the_references_study_of_two_versions_makes_the_configurations_it_says(tmp_path: Path) -> None:
    text = (ROOT / "config/README.md").read_text()
    [shown] = [block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "versions:" in block]
    head = RIGHT.partition("serve:")[0].replace("llamacpp", "sglang")
    tail = RIGHT[RIGHT.index("smoke:") :].replace("  reference: plain\n", "")
    study = study_of(tmp_path, head + shown + tail)
    [names] = re.findall(r"^# ([a-z0-9, -]+):", shown, re.MULTILINE)
    assert list(study.configurations) == names.split(", ")
    assert study.version_of("fa3-new") == "new"


def numeric(field: dict[str, Any]) -> bool:
    """Whether a field of a JSON schema holds numbers."""
    values = field.get("additionalProperties")
    return (
        field.get("type") in ("number", "integer")
        or "prefixItems" in field
        or any(numeric(part) for part in field.get("anyOf", ()))
        or (isinstance(values, dict) and numeric(values))
    )


def test_the_method_says_how_every_figure_of_a_decision_is_made() -> None:
    method = (ROOT / "docs/method.md").read_text()
    schema = json_schema()
    for part in (schema, *schema["$defs"].values()):
        figures = [key for key, field in part.get("properties", {}).items() if numeric(field)]
        assert not [key for key in figures if f"`{key}`" not in method], part["title"]


def test_the_modules_that_the_method_names_are_there() -> None:
    table = (ROOT / "docs/method.md").read_text().partition("## Every figure of decision.json")[2]
    rows = [line.rsplit("|", 2)[1] for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) > 20
    for name in {name for row in rows for name in re.findall(r"`([a-z/]+)`", row)}:
        package = ROOT / "scripts/pivotbench" / ("" if name.startswith("agreement") else "decision")
        assert (package / f"{name}.py").is_file(), name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_between_documents_leads_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / link).exists(), link


def test_the_engine_of_the_guide_is_the_example_word_for_word() -> None:
    guide = (ROOT / "docs/engines.md").read_text()
    example = (ROOT / "docs/examples/vllm.py").read_text()
    shown = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert len(shown) == 4 and all(block in example for block in shown)
    assert len(example.splitlines()) <= 100


def test_the_guide_tells_of_everything_an_engine_may_tell() -> None:
    guide = (ROOT / "docs/engines.md").read_text()
    told = {name for name in (*vars(Engine), *Engine.__annotations__) if not name.startswith("_")}
    assert "teacher_logprobs" in told and "companions" in told
    assert not {name for name in told if f"`{name}`" not in guide}
