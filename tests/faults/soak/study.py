"""The study of the soak: a scripted server that is ready in moments, and loads of a few tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

import scripted


def soak_study(folder: Path, **backends: Any) -> dict[str, Any]:
    """Return the study; every server has a worker in a session of its own."""
    return {
        "name": "small",
        "engine": "sglang",
        "python": str(scripted.PYTHON),
        "model": "scripted/model",
        "serve": {
            "script-token-seconds": 0.01,
            "script-events": str(folder / "events"),
            "script": ["orphans=1"],
        },
        "backends": {"good": {"attention-backend": "fa3"}, **backends},
        "smoke": {"max_tokens": 4, "repeats": 1, "prompts": [{"ask": "What is 2+2?", "contains": "4"}]},
        "throughput": {
            "seconds": 0.2,
            "windows": 2,
            "min_requests": 1,
            "workloads": {
                "text": {"kind": "text", "prompts": "prompts.jsonl", "output_tokens": 4, "concurrency": [1]}
            },
        },
        "decision": {
            "metric": {"workloads": {"text": 1}, "concurrency": 1},
            "margin": 0.1,
            "confidence": 0.9,
            "rounds": {"min": 1, "max": 1},
        },
        "hosts": {"gpus": 0, "launch_timeout_seconds": 60, "slot_wait_seconds": 60},
    }


def write_study(folder: Path, study: dict[str, Any]) -> Path:
    """Write the study with its prompts into ``folder``; return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prompts.jsonl").write_text('{"id": "p", "prompt": "Tell me about number one."}\n')
    (folder / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    return folder / "study.yaml"
