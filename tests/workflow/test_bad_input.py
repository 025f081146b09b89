"""Through Snakemake: a broken study is one line and an exit code, a hostile one is text and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from workflow.campaign import Folder, small_study

WORDS = "$(touch executed) `touch executed`; touch executed & '\" {wildcards} {x} {params.asked} {{y}} %s \\"
# What a study may hold beside what the loader's own corpus shows: each is the first thing wrong with it.
BROKEN = {
    "no YAML": ("name: [\n", "study.yaml:2: not valid YAML"),
    "empty": ("", "study.yaml:1: the file is empty"),
    "key unknown": ("nmae: a\n", "study.yaml:1: nmae: unknown key; did you mean 'name'?"),
    "key twice": ("name: a\nname: b\n", "study.yaml:2: name: given twice"),
    "name a path": ("name: ../../a\n", "study.yaml:1: name: a name is lower-case letters"),
    "name a command": ("name: $(touch executed)\n", "study.yaml:1: name: a name is lower-case letters"),
    "object": ("name: !!python/object/apply:os.system [touch executed]\n", "study.yaml:1: name: the tag"),
    "bomb": (
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)),
        "at most 100,000 values",
    ),
    "secret": (
        f"{yaml.safe_dump(small_study(Path()))}env: {{HF_TOKEN: hunter22}}\n",
        ": env.HF_TOKEN: a secret is not written into a study",
    ),
    "brackets": ("[" * 1_000_000, "study.yaml:1: not valid YAML"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_study_ends_a_run_in_one_line(tmp_path: Path, case: str) -> None:
    text, words = BROKEN[case]
    folder = Folder.create(tmp_path / "run")
    (folder.path / "study.yaml").write_text(text)
    run = folder.snakemake("all")
    assert run.code != 0
    said = run.text.splitlines()
    assert len(said) == 1, run.text
    assert said[0].startswith("error: ")
    assert words in said[0]
    assert "hunter22" not in run.text
    assert not [
        path for path in folder.path.rglob("*") if path.name in ("executed", "results", "cache", "locks")
    ]


@pytest.mark.parametrize("told", ["", "[a, b]", "absent.yaml", "/dev/zero", ".", "{x}.yaml"])
def test_a_study_that_is_none_is_never_taken_for_the_default(tmp_path: Path, told: str) -> None:
    run = Folder(tmp_path).snakemake("all", "--dry-run", config=(f"study={told}",))
    assert run.code != 0
    assert run.text.startswith("error: ")
    assert run.text.count("\n") == 1


def test_no_text_of_a_study_is_ever_run_or_filled_in(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / 'it\'s $(touch executed) `touch executed` {wildcards} {x} "q" ;&|')
    study = folder.study()
    prompts, weights = "p $(touch executed) {x}'.jsonl", "m $(touch executed) {x}'"
    (folder.path / prompts).write_text((folder.path / "prompts.jsonl").read_text())
    (folder.path / weights).mkdir()
    study["model"] = {"name": WORDS, "path": f"./{weights}"}
    study["backends"] = {"good": {"attention-backend": "fa3", "revision": WORDS}}
    del study["speculative"]
    study["env"] = {"HARMLESS": f"{WORDS}\n{WORDS}"}
    study["smoke"]["prompts"] = [{"ask": f"What is 2+2? {WORDS}\n{WORDS}", "contains": "4"}]
    study["throughput"]["workloads"]["text"]["prompts"] = prompts
    folder.write(study)
    name = "s $(touch executed) ';.yaml"
    (folder.path / "study.yaml").rename(folder.path / name)
    run = folder.snakemake("results/small/decision.json", config=(f"study={name}",))
    assert run.code == 0, run.text
    assert not list(tmp_path.rglob("executed*"))
    launch = json.loads((folder.cell("good") / "launch.json").read_text())
    assert launch["requested"]["revision"] == WORDS
    assert WORDS in launch["command"]["study"]
