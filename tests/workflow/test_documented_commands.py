"""Every command in the documents is run: as it stands where that is cheap, else as far as REASONS says.

Each block is a script of its own, run in a folder that holds what the documents take for granted: the
repository's files, a study of the reader's (my.yaml) and results of it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from campaigns import write_demo
from documents import DOCUMENTS, ROOT, Block, Command, blocks, unmarked_commands
from pivotbench.study import load_study
from workflow.campaign import Folder

# What is not run as it stands, and why; a command of any other kind fails until it is entered here.
REASONS = {
    "make": "builds, downloads or measures for minutes: `make -n` says what it would do",
    "snakemake": "a campaign takes minutes: `--dry-run` plans the same targets from the same study",
    "snakemake --report": "needs a finished campaign: test_targets.py has one; its study loads",
    "snakemake frozen=true": "needs stored cells: test_caching.py has some; its study loads",
    "python": "measures for minutes: `--help` of the same module knows every option given",
    "python -m sglang.launch_server": "needs a GPU: the flags are those of SGLang's own list",
    "python -m sglang.benchmark.serving": "is run by bench-client: SGLang is pinned for it",
    "benchmarks.gpu.models": "imports torch: its source has every option given",
    "benchmarks.decision.apart": "takes no option and measures for minutes: its module is there",
}
# Run to their end: they start nothing.
RUN = ("compare", "compare_gate", "stop_servers", "--list-target-rules")
PLACEHOLDERS = {
    "study=PATH": "study=my.yaml",
    "results/.../throughput.json": "results/demo/backends/flash-on/r1/throughput.json",
    ".../r1/teardown.json": "results/demo/backends/flash-on/r1/teardown.json",
}
LEFT_OUT = shutil.ignore_patterns("*.png", "*.html", "*.csv", "__pycache__")
BLOCKS = [block for document in DOCUMENTS for block in blocks(document)]
# A span that stands in several places is run once.
UNIQUE = list({block.commands: block for block in reversed(BLOCKS)}.values())[::-1]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's folder, before anything was typed."""
    folder = Folder.create(tmp_path_factory.mktemp("reader") / "folder")
    for name in ("config", "docs", "benchmarks"):
        shutil.copytree(
            ROOT / name, folder.path / name, ignore=shutil.ignore_patterns("*.png", "*.html", "*.csv")
        )
    for name in ("Snakefile", "workflow", "scripts", "envs"):
        (folder.path / name).symlink_to(ROOT / name)
    (folder.path / "my.yaml").write_text(yaml.safe_dump(folder.study() | {"name": "mine"}))
    write_demo(folder.path / "results").rename(folder.path / "results" / "mine")
    shutil.copytree(folder.path / "results" / "mine", folder.path / "results" / "mine-before")
    return folder.path


@pytest.fixture
def reader(template: Path, tmp_path: Path) -> Folder:
    """A copy of that folder."""
    shutil.copytree(template, tmp_path / "folder", symlinks=True)
    return Folder(tmp_path / "folder")


@pytest.mark.slow
@pytest.mark.parametrize("block", UNIQUE, ids=str)
def test_a_documented_command_does_what_it_can_without_its_hours(block: Block, reader: Folder) -> None:
    for command in block.commands:
        check(command, reader)


def test_every_reason_is_of_a_command_that_is_documented() -> None:
    seen = {kind(command) for block in UNIQUE for command in block.commands}
    assert seen >= REASONS.keys()


def test_a_command_of_a_new_kind_or_with_an_option_that_is_not_there_fails(reader: Folder) -> None:
    with pytest.raises(pytest.fail.Exception, match="no check for 'curl'"):
        check(Command((), ("curl", "example.org")), reader)
    with pytest.raises(AssertionError):
        check(Command((), ("python", "-m", "benchmarks.scale", "--no-such-option")), reader)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_command_hides_in_a_block_that_is_not_marked_as_one(document: Path) -> None:
    assert not unmarked_commands(document)


def kind(command: Command) -> str:
    """Return which kind of command it is: a key of REASONS, or the program where it is run as it stands."""
    words = command.words
    program = words[0].rpartition("/")[2]
    if program == "snakemake":
        if any(word in RUN for word in words):
            return "run"
        return next((k for k in REASONS if k.startswith("snakemake ") and k.split()[1] in words), program)
    if program == "python":
        module = words[words.index("-m") + 1] if "-m" in words else ""
        return next((k for k in REASONS if k in (module, f"python -m {module}")), program)
    return program


def check(command: Command, reader: Folder) -> None:
    """Do with one command what its kind allows."""
    words = [PLACEHOLDERS.get(word, word) for word in command.words]
    match kind(command):
        case "mv" | "cp" | "mkdir":
            if words[0] != "mv":
                succeeds(words, reader)
                return
            # What is moved away is measured anew by the next command, which is not run here: it stays too.
            shutil.rmtree(reader.path / words[2])
            succeeds(words, reader)
            shutil.copytree(reader.path / words[2], reader.path / words[1])
        case ".":
            assert (Path(sys.prefix) / "bin" / Path(words[1]).name).is_file(), "no such environment"
        case "make":
            succeeds(["make", "-n", *words[1:]], reader, cwd=ROOT)
        case "run":
            succeeds([sys.executable, "-m", *words], reader)
        case "snakemake":
            dry = [] if {"-n", "--dry-run"} & set(words) else ["--dry-run"]
            succeeds([sys.executable, "-m", *words, *dry], reader)
        case "snakemake --report" | "snakemake frozen=true":
            studies = [word.partition("=")[2] for word in words if word.startswith("study=")]
            assert load_study(reader.path / (studies or ["config/config.yaml"])[0]).configurations
        case "python":
            at = words.index("-m") if "-m" in words else 0
            said = succeeds([sys.executable, *words[at if at else 1 : at + 2], "--help"], reader, cwd=ROOT)
            assert options(words) <= {word.strip("[],") for word in said.split()}
            arguments_exist(words)
        case "python -m sglang.launch_server":
            known = json.loads((ROOT / "tests/data/sglang-flags/0.5.16.json").read_text())["flags"]
            names = {f"--{name}" for flag in known for name in (flag["name"], *flag["aliases"])}
            assert options(words) <= names
        case "python -m sglang.benchmark.serving":
            assert "\nsglang==" in (ROOT / "envs/bench-client.txt").read_text()
        case "benchmarks.gpu.models":
            source = importlib.util.find_spec("benchmarks.gpu.models")
            assert source is not None and source.origin is not None
            text = Path(source.origin).read_text()
            assert all(f'"{option}"' in text for option in options(words))
            arguments_exist(words)
        case "benchmarks.decision.apart":
            assert importlib.util.find_spec("benchmarks.decision.apart") and not options(words)
        case other:
            pytest.fail(f"{command.text}: no check for {other!r}; add one, or its reason to REASONS")


def options(words: list[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


def arguments_exist(words: list[str]) -> None:
    """Paths into the repository lead somewhere."""
    for word in words:
        if word.startswith(("docs/", "config/", "benchmarks/", "tests/")):
            assert (ROOT / word).exists(), word


def succeeds(words: list[str], reader: Folder, cwd: Path | None = None) -> str:
    """Run a command and return what it says; it ends with status 0."""
    path = os.pathsep.join(str(ROOT / name) for name in ("scripts", "tests", "."))
    done = subprocess.run(
        words,
        cwd=cwd or reader.path,
        env=reader.environment() | {"PYTHONPATH": path, "COLUMNS": "200"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}"
    return done.stdout
