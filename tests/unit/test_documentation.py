"""What the documents show is true: their study loads, and the ready-made ones do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from study_samples import RIGHT, study_of

from pivotbench.study import load_study

ROOT = Path(__file__).resolve().parents[2]


def test_the_readmes_study_is_the_ready_made_one() -> None:
    [shown] = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    stored = (ROOT / "config/studies/one-gpu.yaml").read_text()
    words = [line for line in stored.splitlines() if not line.startswith("# ") or "schema" in line]
    assert "\n".join(words).replace("name: one-gpu", "name: mine") == shown.rstrip("\n")


@pytest.mark.parametrize("path", sorted((ROOT / "config").rglob("*.yaml")), ids=lambda p: p.stem)
def test_every_ready_made_study_loads(path: Path) -> None:
    assert load_study(path).configurations


def test_the_references_study_of_two_versions_makes_the_configurations_it_says(tmp_path: Path) -> None:
    text = (ROOT / "config/README.md").read_text()
    [shown] = [block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "versions:" in block]
    head = RIGHT.partition("serve:")[0].replace("llamacpp", "sglang")
    tail = RIGHT[RIGHT.index("smoke:") :].replace("  reference: plain\n", "")
    study = study_of(tmp_path, head + shown + tail)
    [names] = re.findall(r"^# ([a-z0-9, -]+):", shown, re.MULTILINE)
    assert list(study.configurations) == names.split(", ")
    assert study.version_of("fa3-new") == "new"


DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/method.md",
    "docs/measurements.md",
    "docs/clusters.md",
    "docs/comparing.md",
    "docs/troubleshooting.md",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/campaigns/**/README.md")),
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("benchmarks/*/README.md")),
    "docs/report-checklist.md",
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_between_documents_leads_somewhere(document: str) -> None:
    path = ROOT / document
    for link in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / link).exists(), link
