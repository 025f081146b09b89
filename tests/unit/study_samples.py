"""Small studies for the tests: one that is right, and ways to change it."""

from __future__ import annotations

from pathlib import Path

from pivotbench.study import Study, load_study

RIGHT = """\
name: sample
engine: llamacpp
model: org/small-model
serve:
  threads: 1
  ctx-size: 2048
backends:
  plain: {}
  flash: {flash-attn: on}
speculative:
  copy: {spec-type: ngram-simple}
smoke:
  max_tokens: 8
  prompts:
    - {ask: "What is 2+2?", contains: "4"}
    - {ask: "Name a colour."}
throughput:
  seconds: 2
  windows: 2
  min_requests: 4
  workloads:
    free: {kind: text, prompts: free.jsonl, output_tokens: 16, concurrency: [1, 4]}
    noise: {kind: synthetic, prompt_tokens: 32, output_tokens: 16, concurrency: [1]}
decision:
  metric: {workloads: {free: 1}, concurrency: 1}
  margin: 0.1
  confidence: 0.9
  rounds: {min: 2, max: 3}
  reference: plain
hosts: {gpus: 0}
"""

PROMPTS = (
    '{"id": "a", "prompt": "Say a."}\n{"id": "b", "messages": [{"role": "user", "content": "Say b."}]}\n'
)


def write_study(folder: Path, text: str = RIGHT, prompts: str = PROMPTS) -> Path:
    """Write a study and its prompt file; return the study's path."""
    (folder / "free.jsonl").write_text(prompts, encoding="utf-8")
    file = folder / "study.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def changed(old: str, new: str) -> str:
    """Return the right study with its only ``old`` replaced."""
    assert RIGHT.count(old) == 1, f"{old!r} occurs {RIGHT.count(old)} times"
    return RIGHT.replace(old, new)


def study_of(folder: Path, text: str = RIGHT) -> Study:
    """Return the study of a text."""
    return load_study(write_study(folder, text))
